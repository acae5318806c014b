#!/usr/bin/env python3
"""Makes the pictures of the gallery, and its page:

    docs/gallery.py [--check] [KNEE]

Runs the commands that the page shows, and writes docs/gallery/NAME.svg and docs/gallery.md.
With --check it writes nothing, and fails if a picture or the page would change. KNEE is the
program, by default the one in the path.
"""
import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "gallery"

HEAD = """\
# Gallery

Nine pictures, each with the scenario that it comes from and the command that
makes it. The scenarios are in `docs/gallery`, and the commands run there.
`docs/gallery.py` makes all pictures and this page; they are the same from run to
run, and CI checks that they are up to date.
"""

# Name of the scenario, the quantity for `knee plot`, and what the picture shows.
PICTURES = [
    (
        "sharing",
        "throughput",
        "CUBIC has the link to itself for 20 s. Then BBR joins: in a buffer of one BDP it takes "
        "most of the rate. Every ten seconds PROBE_RTT makes it yield for a moment.",
    ),
    (
        "window",
        "window",
        "Each flow has a link of its own. After a loss Reno halves its window and needs 15 s "
        "to grow back; CUBIC reduces by 30 %, returns quickly to where it was, and stays "
        "there for a while before it tries more (RFC 9438).",
    ),
    (
        "deep-buffer",
        "queue",
        "A buffer of eight BDP is full most of the time: each packet waits 150 to 240 ms on "
        "a path whose empty RTT is 30 ms. The marks at the bottom are dropped packets.",
    ),
    (
        "codel",
        "queue",
        "The same path and flow. CoDel (RFC 8289) drops packets early and keeps the queueing "
        "delay below 10 ms, once the burst of slow start has passed.",
    ),
    (
        "bandwidth",
        "bandwidth",
        "BBR's estimate of the bandwidth. It finds the higher rate within a second. After "
        "the fall to 5 Mbit/s the old estimate remains in its filter of ten round trips, "
        "which the growing queue makes longer. The background shows the controller's phases.",
    ),
    (
        "recorded-link",
        "capacity",
        "A link whose rate comes from a trace in Mahimahi's format: the grey area is what the "
        "link allowed, the line what it carried. Copa leaves a little unused where the rate "
        "rises again. The trace is the one that `knee init --template trace` writes.",
    ),
    (
        "low-latency",
        "rtt-distribution",
        "Two queues with one rate: DualPI2 (RFC 9332) serves Prague's packets almost at once, "
        "while CUBIC, in the classic queue, waits about 15 ms.",
    ),
    (
        "two-links",
        "throughput",
        "One connection over two links. The Wi-Fi is away from 8 to 13 s; the connection goes "
        "on over LTE alone and takes the Wi-Fi up again. Data that arrives ahead of a gap on "
        "the other path is delivered late and all at once, hence the peaks.",
    ),
    (
        "finish",
        "finish",
        "256 kB over 1 and 5 Mbit/s, each connection on links of its own. With minRTT, with turns and "
        "with SCTC read packet by packet the two paths finish nearly together. SCTC in cycles divides "
        "the file by the first windows, ten packets each, and the slow path has its half long after "
        "the fast one; with a send buffer it divides in smaller tasks.",
    ),
]


def commands(name, what):
    """Returns the commands that make a picture, in the folder of the scenarios."""
    return [
        f"knee run {name}.toml --out {name}",
        f"knee plot {name} --what {what} --out {name}.svg",
    ]


def title(scenario):
    """Returns the title of a scenario; its first line is `name = "…"`."""
    return scenario.split('"')[1]


def page():
    """Returns the text of docs/gallery.md."""
    parts = [HEAD]
    for name, what, seen in PICTURES:
        scenario = (FOLDER / f"{name}.toml").read_text()
        lines = "\n".join(commands(name, what))
        parts.append(
            f"\n## {title(scenario)}\n\n![{title(scenario)}](gallery/{name}.svg)\n\n{seen}\n\n"
            f"```sh\n{lines}\n```\n\n```toml\n{scenario}```\n"
        )
    return "".join(parts)


def draw(knee, folder):
    """Runs the commands of all pictures in a copy of the folder."""
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("*.svg"))
    for name, what, _ in PICTURES:
        for line in commands(name, what):
            _, *words = line.split()
            done = subprocess.run([knee, *words], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{line}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description="Makes the pictures of the gallery.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("knee", nargs="?", default="knee")
    arguments = parser.parse_args()
    found = shutil.which(arguments.knee) or sys.exit(f"there is no program {arguments.knee}")
    knee = str(Path(found).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "gallery"
        draw(knee, folder)
        files = {FOLDER / f"{name}.svg": folder / f"{name}.svg" for name, _, _ in PICTURES}
        made = {kept: new.read_bytes() for kept, new in files.items()}
    made[DOCS / "gallery.md"] = page().encode()
    stale = [kept for kept, new in made.items() if not kept.exists() or kept.read_bytes() != new]
    for kept in stale:
        if not arguments.check:
            kept.write_bytes(made[kept])
        print(f"{'out of date' if arguments.check else 'written'}: {kept.relative_to(DOCS)}")
    if arguments.check and stale:
        sys.exit("run docs/gallery.py, look at the pictures, and commit them")
    print(f"{len(made) - len(stale)} of {len(made)} files were up to date")


if __name__ == "__main__":
    main()
