"""Runs the examples of docs/write-your-own.md literally."""

import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

DOCUMENT = Path(__file__).parents[3] / "docs" / "write-your-own.md"
PROGRAMS = {"python": sys.executable, "knee": Path(sysconfig.get_path("scripts")) / "knee"}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w.]+\.(?:py|toml))`")


def blocks():
    """Returns language, text and file of each block of the section on Python."""
    text = DOCUMENT.read_text()
    section = text[text.index("## In Python") : text.index("## In Rust")]
    before = 0
    for found in BLOCK.finditer(section):
        names = FILE.findall(section[before : found.start()])
        before = found.end()
        yield found[1], found[2], names[-1] if names else None


def test_it_does_what_it_says(tmp_path):
    said = []
    for language, text, name in blocks():
        if language in ("python", "toml"):
            (tmp_path / name).write_text(text)
            continue
        assert language == "sh"
        for line in text.splitlines():
            if line.startswith(("pip install", "python3 -m venv")):
                # Already done by whoever runs the tests.
                continue
            command, *words = shlex.split(line)
            done = subprocess.run(
                [PROGRAMS[command], *words], cwd=tmp_path, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
            if command == "python":
                said.append(done.stdout)
    tried, ranked = said
    assert float(tried.split()[0]) > 15
    assert {line.split()[0] for line in ranked.splitlines()[1:]} == {"gentle", "cubic", "bbr"}
    assert (tmp_path / "ranked" / "report.html").exists()
