#!/usr/bin/env python3
"""Executes pages of the book, line by line:

    tests/pages.py KNEE [PAGE…]

Each page gets an empty folder. A block whose fence names a file (```toml NAME) is written
to it; the lines of a block ```sh are run as typed; a block ```text must be what the lines
before it, on that page, printed, however it is wrapped.
"""
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = ["start-traffic.md", "start-controller.md", "start-links.md", "inputs.md", "traces.md", "advise.md", "steer.md",
         "policy.md", "fit.md", "logs.md"]
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def words(text):
    """Collapses white space in a text, because lines may break anywhere."""
    return " ".join(text.split())


def try_page(page, folder, environment):
    """Executes a page; returns the numbers of commands run and of lines compared."""
    printed, run, compared = "", 0, 0
    for language, name, text in BLOCK.findall((DOCS / page).read_text()):
        if name:
            (folder / name).write_text(text)
        elif language == "sh":
            for line in text.splitlines():
                done = subprocess.run(
                    ["sh", "-euc", line],
                    cwd=folder,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                if done.returncode != 0:
                    sys.exit(f"{page}: {line}: exit code {done.returncode}\n{done.stdout}")
                printed += done.stdout
                run += 1
        elif language == "text":
            for line in text.splitlines():
                if words(line) not in words(printed):
                    sys.exit(f"{page}: not printed: {line}\nbut this was:\n{printed}")
                compared += 1
        else:
            sys.exit(f"{page}: nobody tries a block of {language}")
    return run, compared


def main(knee, pages):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        (scratch / "bin").mkdir()
        (scratch / "bin" / "knee").symlink_to(Path(knee).resolve())
        environment = {
            "PATH": f"{scratch / 'bin'}:/usr/bin:/bin",
            "HOME": str(scratch),
            "COLUMNS": "120",
            "LANG": os.environ.get("LANG", "C.UTF-8"),
        }
        for page in pages:
            folder = scratch / page
            folder.mkdir()
            began = time.monotonic()
            run, compared = try_page(page, folder, environment)
            took = time.monotonic() - began
            print(f"{took:5.1f} s  {page}: {run} commands run, {compared} lines of output as shown")
            assert run > 0 and compared > 0, page


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:] or PAGES)
