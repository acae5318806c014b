#!/usr/bin/env python3
"""Builds the book with mdBook and checks every link and anchor in it:

    docs/book.py OUT [--mdbook PROGRAM] [--evaluations DIR]

Pages of docs/ link to pages and files elsewhere in the repository, as they must when read
in the repository. mdBook needs all of them in one folder, so they are copied first, each to
its place: the pages named in docs/SUMMARY.md, and the files that these link to.
--evaluations adds the reports kept by `docs/evaluations.py --reports DIR`, each linked from
its section of docs/evaluations.md: they are too large for the repository. Fails if a page
links to something that does not exist, in the repository or in the built book.
"""
import argparse
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def linked(page):
    """Returns the files of the repository that a page links to, relative to its root."""
    text = FENCED.sub("", (ROOT / page).read_text())
    for target in LINK.findall(text):
        parts = urlsplit(target)
        if not parts.scheme and parts.path:
            yield posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(parts.path)))


def gather(pages):
    """Copies the summary, its pages and the files that they link to into `pages`."""
    chapters = list(linked("docs/SUMMARY.md"))
    wanted = set(chapters)
    for chapter in chapters:
        wanted.update(linked(chapter))
    missing = sorted(file for file in wanted if not (ROOT / file).is_file())
    if missing:
        sys.exit(f"linked to, but no file: {', '.join(missing)}")
    unlisted = sorted(file for file in wanted if file.endswith(".md") and file not in chapters)
    if unlisted:
        sys.exit(f"linked to, but not in docs/SUMMARY.md: {', '.join(unlisted)}")
    for file in wanted:
        (pages / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, pages / file)
    # mdBook turns README.md into index.html, but does not change links to it.
    for chapter in chapters:
        text = (pages / chapter).read_text()
        (pages / chapter).write_text(re.sub(r"(\]\([^):]*)README\.md", r"\1index.html", text))
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    place = lambda found: f"]({posixpath.normpath(posixpath.join('docs', found[1]))})"
    (pages / "SUMMARY.md").write_text(LINK.sub(place, summary))


def add_evaluations(pages, reports):
    """Adds the reports of all controllers next to the page that summarizes them."""
    page, folder = pages / "docs/evaluations.md", pages / "docs/evaluations"
    folder.mkdir()
    text = page.read_text()
    for report in sorted(reports.glob("*.html")):
        shutil.copy(report, folder)
        head = f"\n## {report.stem}\n"
        if head not in text:
            sys.exit(f"docs/evaluations.md has no section on {report.stem}")
        link = f"\n[The whole report](evaluations/{report.name})\n"
        text = text.replace(head, head + link)
    page.write_text(text)


class Page(HTMLParser):
    """Collects the links and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def dead(book):
    """Returns the broken links of the built pages, and the number of links."""
    # The print page repeats all pages, and 404 is served from any folder.
    files = [path for path in book.rglob("*.html") if path.name not in ("print.html", "404.html")]
    pages = {path: Page(path.read_text()) for path in files}
    wrong, count = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            if not target.is_file():
                wrong.append(f"{path.relative_to(book)}: {link}: there is no such file")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                wrong.append(f"{path.relative_to(book)}: {link}: there is no such anchor")
    return wrong, count, len(pages)


def main():
    parser = argparse.ArgumentParser(description="Builds the book and checks its links.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--mdbook", default="mdbook")
    parser.add_argument("--evaluations", type=Path)
    arguments = parser.parse_args()
    book = arguments.out.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        gather(scratch / "pages")
        if arguments.evaluations:
            add_evaluations(scratch / "pages", arguments.evaluations)
        shutil.copy(ROOT / "docs/book.toml", scratch)
        subprocess.run([arguments.mdbook, "build", scratch, "--dest-dir", book], check=True)
    wrong, links, pages = dead(book)
    if wrong:
        sys.exit("\n".join(sorted(set(wrong))))
    if pages < 10 or links < 100:
        sys.exit(f"only {pages} pages with {links} links were found")
    print(f"{pages} pages, {links} links, none of them dead: {book / 'index.html'}")


if __name__ == "__main__":
    main()
