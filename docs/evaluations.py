#!/usr/bin/env python3
"""Evaluates all built-in controllers, and writes the results as a page:

    docs/evaluations.py [--check] [--only NAME,NAME] [--reports DIR] [--jobs N] [KNEE]

Runs `knee evaluate NAME --quick` for each controller and preset, and for CUBIC with each of the
slow starts that a draft proposes, and writes docs/evaluations.md. With --check it writes nothing, and fails if the page would change; with
--only as well, if the column or the section of one of these controllers would.
--reports keeps the page of each as DIR/NAME.html, for `docs/book.py --evaluations DIR`, and its
report in the order of RFC 9743 as DIR/NAME.md.
KNEE is the program, by default the one in the path.
"""
import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "evaluations.md"

HEAD = """\
# All controllers by the criteria of RFC 9743

Results of [`knee evaluate NAME --quick`](evaluate.md) for each built-in controller, and for CUBIC with
the [slow starts](slow-starts.md) that drafts propose: a row for each criterion, and in each cell three
signs, against Reno, CUBIC and BBR. The scenarios are few and simulated, the seeds five, or ten where a
controller would be worse than all three. A sign shows that there is a difference, not how much it
matters, and there is no overall score.
`docs/evaluations.py` makes this page; it is the same from run to run, and CI checks three of its
columns.

| sign | meaning |
| --- | --- |
| `+` | better |
| `=` | alike: the difference is within the margin of the line |
| `-` | worse; `---` is worse than all three |
| `?` | undecided: more seeds may decide |
| `x` | could not be tried |

`fixed`, whose window is constant, and `gcc`, whose rate is at most 2 Mbit/s, are left out. `lia`,
`olia` and `balia` couple several paths, which flows have only in 7.10. `dctcp` and `prague` meet
marks in only two cases.
"""

LEFT_OUT = {"fixed", "gcc"}
# Candidates for standards that are no controllers by themselves.
SLOW_STARTS = {
    start: f'{{ name = "cubic", slow_start = "{start}"{more} }}'
    for start, more in {
        "hystart++": "", "search": "", "rapid-start": "", "careful-resume": ', saved_window = "1 BDP"'
    }.items()
}
STANDARDS = ["Reno", "CUBIC", "BBR"]
SIGNS = {"better": "+", "alike": "=", "worse": "-", "undecided": "?", None: "x"}


def run(knee, *words):
    """Runs the program, and returns its output."""
    done = subprocess.run([knee, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"knee {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def controllers(knee):
    """Returns the names of all controllers and presets, in the order of the program."""
    listed = run(knee, "list", "controllers", "--format", "text")
    names = re.findall(r"^(?:preset )?([a-z]\S*): ", listed, re.MULTILINE)
    return [name for name in names if name not in LEFT_OUT] + list(SLOW_STARTS)


def signs(line):
    """Returns three signs, as code so that they are not taken for Markdown."""
    untried = line["could_not_be_tried"] is not None
    return "".join("x" if untried else SIGNS[one["word"]] for one in line["against"])


def size(line, at):
    """Formats the ratio for reading."""
    ratio = line["against"][at]["ratio"]["estimate"]
    return f"{ratio:.3g}"


def matrix(names, found):
    """Returns a row per criterion, with a column per controller."""
    rows = [f"| § | criterion | {' | '.join(f'`{name}`' for name in names)} |"]
    rows.append(f"| --- | --- |{' --- |' * len(names)}")
    for at, line in enumerate(found[names[0]]["lines"]):
        cells = " | ".join(f"`{signs(found[name]['lines'][at])}`" for name in names)
        rows.append(f"| {line['section']} | {line['title']} | {cells} |")
    return "\n".join(rows)


def own(name, evaluation):
    """Returns where a controller is worse than all others of the three, and how to see the whole
    report."""
    others = {one: at for at, one in enumerate(STANDARDS) if one.lower() != name}
    *first, last = others
    who = f"{', '.join(first)} and {last}"
    worse = [
        f"- {line['section']} {line['title']}: "
        f"{', '.join(size(line, at) for at in others.values())}; "
        f"worst in “{line['worst']['case']}”"
        for line in evaluation["lines"]
        if line["worse_than_all"]
    ]
    told = f"Worse than {who}, with its value over theirs:\n\n" + "\n".join(worse)
    none = f"In no line worse than each of {who}."
    untried = {
        line["could_not_be_tried"] for line in evaluation["lines"] if line["could_not_be_tried"]
    }
    reasons = "".join(f"\n\nNot tested: {reason}" for reason in sorted(untried))
    candidate = f"'{SLOW_STARTS[name]}'" if name in SLOW_STARTS else name
    return (f"\n## {name}\n\n{told if worse else none}{reasons}\n\n"
            f"```sh\nknee evaluate {candidate} --quick\n```\n")


def evaluate(knee, names, jobs, reports):
    """Returns the evaluation of each controller."""
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            out = str(Path(scratch) / name)
            report = f"{out}.md"
            words = ["evaluate", SLOW_STARTS.get(name, name), "--quick", "--format", "json", "--out", out, *jobs]
            # It exits with 1 if a criterion fails.
            done = subprocess.run([knee, *words, "--report", report], stdout=subprocess.PIPE)
            if done.returncode not in (0, 1):
                sys.exit(f"knee {' '.join(words)} ended with {done.returncode}")
            found[name] = json.loads(done.stdout)
            if reports:
                shutil.copy(report, reports)
                shutil.copy(Path(out) / "report.html", reports / f"{name}.html")
    return found


def page(found):
    """Returns the text of docs/evaluations.md."""
    parts = [HEAD, "\n", matrix(list(found), found), "\n"]
    parts += [own(name, evaluation) for name, evaluation in found.items()]
    return "".join(parts)


def columns(text):
    """Returns the columns of the table in a page, by their heads."""
    rows = [row.split("|")[1:-1] for row in text.splitlines() if re.match(r"\| (§|\d)", row)]
    return {column[0].strip(" `"): [cell.strip() for cell in column] for column in zip(*rows)}


def is_up_to_date(found, text):
    """Whether a page has the columns and sections of these controllers."""
    new, old = columns(matrix(list(found), found)), columns(text)
    sections = (own(name, evaluation) for name, evaluation in found.items())
    return all(old.get(head) == column for head, column in new.items()) and all(
        section in text for section in sections
    )


def main():
    parser = argparse.ArgumentParser(description="Evaluates all built-in controllers.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--reports", type=Path)
    parser.add_argument("--jobs")
    parser.add_argument("knee", nargs="?", default="knee")
    arguments = parser.parse_args()
    if arguments.only and not arguments.check:
        parser.error("--only needs --check: the page has all controllers")
    program = shutil.which(arguments.knee) or sys.exit(f"there is no program {arguments.knee}")
    knee = str(Path(program).resolve())
    jobs = ["--jobs", arguments.jobs] if arguments.jobs else []
    if arguments.reports:
        arguments.reports.mkdir(parents=True, exist_ok=True)
    found = evaluate(knee, arguments.only or controllers(knee), jobs, arguments.reports)
    text = PAGE.read_text() if PAGE.exists() else ""
    if is_up_to_date(found, text) if arguments.only else page(found) == text:
        print("docs/evaluations.md is up to date")
    elif arguments.check:
        sys.exit("docs/evaluations.md is out of date: run docs/evaluations.py, read what changed")
    else:
        PAGE.write_text(page(found))
        print("docs/evaluations.md written")


if __name__ == "__main__":
    main()
