#!/usr/bin/env python3
"""Follows the first steps of a new user with an installed program:

    tests/journeys.py ARCHIVE.tar.gz

Unpacks the archive, and with only the program in it runs, each in an empty folder, every
template of `knee init` with the command that `init` prints, and the commands of the three
questions at the top of the README. The answer to each question must be the same, word for
word, in the terminal, in JSON, in Markdown and on the page.
"""
import html
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
TEMPLATES = ["first", "mix", "page", "video", "two-links", "trace", "coexist"]


def words(text):
    """Collapses white space in a text, because lines may break anywhere."""
    return " ".join(text.split())


def page(folder):
    """Returns the text of a page, without its scripts, drawings and tags."""
    text = (folder / "report.html").read_text()
    text = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", text, flags=re.DOTALL)
    return words(html.unescape(re.sub(r"<[^>]*>", "", text)))


def rows(markdown):
    """Returns the rows of the tables of a Markdown text, without headers and rules."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    rule = next(i for i, row in enumerate(cells) if set(row[0]) <= set("-:"))
    return cells[rule + 1 :]


class Journeys:
    def __init__(self, program, folder):
        self.folder = folder
        # The rest of the path is only for the shell.
        self.environment = {
            "PATH": f"{program.parent}:/usr/bin:/bin",
            "HOME": str(folder),
            "COLUMNS": "120",
        }

    def clean(self, name):
        folder = self.folder / name
        folder.mkdir()
        return folder

    def shell(self, line, folder):
        """Runs a command as typed, and returns its output."""
        done = subprocess.run(
            ["sh", "-euc", line], cwd=folder, env=self.environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            sys.exit(f"{line}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def template(self, name):
        """Runs a template with the command that `init` prints; returns its folder."""
        folder = self.clean(f"template-{name}")
        said = self.shell(f"knee init --template {name}", folder)
        line = re.search(r"^run it +(knee run .+)$", said, re.MULTILINE).group(1)
        self.shell(line, folder)
        (run,) = (folder / "knee-out").iterdir()
        assert "<svg" in (run / "report.html").read_text(), f"{line}: no picture"
        return run


def same_everywhere(sentences, places):
    assert sentences and all(sentences), "no answer"
    for sentence in sentences:
        for place, text in places.items():
            assert words(sentence) in words(text), f"not in {place}: {sentence}"


def run_answers(journeys, folder, line, terminal):
    """Returns the answers of a run, as in `answers.json`."""
    (run,) = (folder / "knee-out").iterdir()
    answers = json.loads((run / "answers.json").read_text())
    sentences = [path["sentence"] for path in answers["paths"]]
    sentences += (answers.get("mix") or {}).get("sentences", [])
    scenario = re.search(r"knee run (\S+)", line).group(1)
    markdown = journeys.shell(f"knee run {scenario} --format markdown --out again", folder)
    reported = journeys.shell(f"knee report {run} --markdown", folder)
    places = {
        "the terminal": terminal,
        "Markdown": markdown.replace("\\", ""),
        "the report as Markdown": reported.replace("\\", ""),
        "the page": page(run),
    }
    same_everywhere(sentences, places)
    return sentences


def rank_answers(journeys, folder, terminal):
    """Checks the answer of a ranking, and its table, cell by cell."""
    (rank,) = (folder / "knee-out").glob("rank-*")
    sentence = json.loads((rank / "rank.json").read_text())["says"]
    markdown = journeys.shell(f"knee report {rank} --markdown", folder).replace("\\", "")
    shown = page(rank)
    same_everywhere([sentence], {"the terminal": terminal, "Markdown": markdown, "the page": shown})
    printed = [re.split(r" {2,}", line.strip()) for line in terminal.splitlines()]
    drawn = [
        [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<td.*?</td>", row)]
        for row in re.findall(r"<tr>.*?</tr>", (rank / "report.html").read_text(), re.DOTALL)
    ]
    assert len(rows(markdown)) > 1, "no table"
    for row in rows(markdown):
        assert row in printed, f"not in the terminal's table: {row}"
        assert row in drawn, f"not in the page's table: {row}"
    return [sentence]


def questions():
    """Returns the questions at the top of the README, each with its commands."""
    asked = re.findall(r"^\*\*([^*\n]+\?)\*\*\n\n```sh\n([^`]*)```", README.read_text(), re.M)
    assert len(asked) == 3, [question for question, _ in asked]
    return asked


def main(archive):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        with tarfile.open(archive) as packed:
            packed.extractall(scratch / "installed")
        (program,) = (scratch / "installed").glob("*/bin/knee")
        journeys = Journeys(program, scratch)
        for name in TEMPLATES:
            began = time.monotonic()
            journeys.template(name)
            print(f"{time.monotonic() - began:5.1f} s  template {name}")
        for number, (question, lines) in enumerate(questions()):
            folder = journeys.clean(f"question-{number}")
            for line in lines.splitlines():
                began = time.monotonic()
                terminal = journeys.shell(line, folder)
                sentences = []
                if "knee rank" in line:
                    sentences = rank_answers(journeys, folder, terminal)
                elif "knee run" in line:
                    sentences = run_answers(journeys, folder, line, terminal)
                print(f"{time.monotonic() - began:5.1f} s  {question} {line}")
                for sentence in sentences:
                    print(f"         {sentence}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
