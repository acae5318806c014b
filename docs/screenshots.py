#!/usr/bin/env python3
"""Renews the README's pictures of pages, with Chromium:

    docs/screenshots.py KNEE

Fonts are the host's, so CI does not compare the pictures: look at them before committing.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
FIVE = DOCS.parent / "studies" / "improved-bbr" / "five-flows.toml"
RANK = "rank coexist.toml --cc bbr,bbr3,reno,copa --repeat 10"
# Name, the command below the README's question, the page, width and height.
PICTURES = [
    ("answer-mix", "mix", "run mix.toml", 1280, 684),
    ("answer-compare", "coexist", RANK, 1280, 736),
    ("answer-links", "two-links", "run two-links.toml", 1100, 370),
    ("report", "first", f"run {FIVE}", 1280, 1500),
]


def main(knee):
    for name, template, command, width, height in PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            for words in ([f"init --template {template}"], [command, "--out page"]):
                line = [knee, *" ".join(words).split()]
                subprocess.run(line, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            browser = [
                "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={folder}/browser", f"--window-size={width},{height}",
                f"--screenshot={DOCS / name}.png", f"file://{folder}/page/report.html",
            ]  # fmt: skip
            subprocess.run(browser, check=True, timeout=120, stderr=subprocess.DEVNULL)
        print(DOCS / f"{name}.png")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(str(Path(sys.argv[1]).resolve()))
