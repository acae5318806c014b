#!/usr/bin/env python3
"""Builds `knee` from scratch, and fails if compiling takes too much processor time, or if the
program is too large.

The crates are downloaded first. The time is that of the compilers, user and system, on all
cores together, two fifths more on a busy machine than on a quiet one. So the limit is a
ratio within one run: the total over the time that the largest dependency takes together
with its own dependencies. That is the mean of two builds at the same time: one alone would
leave a processor idle, which makes the other quicker, and is at times a sixth off. Load that
begins or ends after them counts. The time that passes is printed beside it.
The table shows the slowest crates as reported by `cargo build --timings`; its times include
waiting for a core.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The unit of measurement: this crate with its dependencies.
MEASURE = "parquet"
# Maximum ratio of the total to that time.
LIMIT = 7.5
# Maximum size of the program without its symbols, MB.
SIZE_LIMIT = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", type=Path, help="an empty target directory, which is kept")
    target = parser.parse_args().target
    subprocess.run(["cargo", "fetch", "--locked", "--quiet"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as scratch:
        target = target or Path(scratch)
        if (target / "release").exists():
            sys.exit(f"{target} holds a build already: name an empty directory")
        others = [Path(scratch) / f"measure-{number}" for number in range(2)]
        measure = build(others, "--package", MEASURE)
        began = time.monotonic()
        seconds = build([target], "--timings", "--bin", "knee")
        waited = time.monotonic() - began
        for name, wall in slowest(target):
            print(f"{name:<28} {wall:>6.1f} s")
        size = stripped_size(target / "release" / "knee", Path(scratch))
    ratio = seconds / measure
    print(f"{'all, processor time':<28} {seconds:>6.1f} s, in {waited:.0f} s with {os.cpu_count()} processors")
    print(f"{'of ' + MEASURE + ' alone':<28} {measure:>6.1f} s: {ratio:.2f} times, limit {LIMIT}")
    print(f"{'program, stripped':<28} {size / 1e6:>6.1f} MB, limit {SIZE_LIMIT}")
    sys.exit(ratio > LIMIT or size / 1e6 > SIZE_LIMIT)


def build(targets, *what):
    """Builds into each of the directories at the same time.

    Returns the seconds of processor time that one of them takes.
    """
    # Ignore profile settings of this machine, which a user does not have.
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("CARGO_PROFILE_RELEASE")}
    command = ["cargo", "build", "--release", "--locked", "--quiet", *what]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    builds = [
        subprocess.Popen(command, cwd=ROOT, env=kept | {"CARGO_TARGET_DIR": str(target)})
        for target in targets
    ]
    if any([each.wait() for each in builds]):
        sys.exit(f"{' '.join(command)} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent / len(targets)


def slowest(target, count=12):
    """Returns the names of the crates that took longest, with their time."""
    page = (target / "cargo-timings" / "cargo-timing.html").read_text()
    units = json.loads(re.search(r"UNIT_DATA = (\[.*?\]);\n", page, re.S).group(1))
    units.sort(key=lambda unit: -unit["duration"])
    return [(unit["name"], unit["duration"]) for unit in units[:count]]


def stripped_size(program, scratch):
    """Returns the size of the program without its symbols, bytes."""
    copy = scratch / "stripped"
    shutil.copy(program, copy)
    subprocess.run(["strip", str(copy)], check=True)
    return copy.stat().st_size


if __name__ == "__main__":
    main()
