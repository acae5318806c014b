#!/usr/bin/env python3
"""Runs the same dumbbell in ns-3 and in Knee, and prints the cost of a packet.

Needs Debian's `ns3`, `libns3-dev` and g++, and a release build of `knee` (`cargo build
--release`). Cost is user CPU time of the simulation alone, without set-up and output, per
data packet delivered in order. ns-3 simulates a shorter time if the full one would take
many minutes: its cost per packet hardly depends on that, unless its start-up dominates (see
README.md).

    benches/ns3/run.py                 all cases
    benches/ns3/run.py i iv --repeat 3 some, the median of three runs
    benches/ns3/run.py --only ns3      one side
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIBRARIES = ["core", "network", "internet", "point-to-point", "applications", "traffic-control"]

# ns-3's options per case. `hosts` is the arrangement in which ns-3 is fastest.
CASES = {
    "i": {"flows": 2, "mbit": 10, "seconds": 600},
    "ii": {"flows": 1, "mbit": 100, "seconds": 60},
    "ii-loss": {"flows": 1, "mbit": 100, "seconds": 60, "loss": 0.01},
    "iii": {"flows": 1, "mbit": 1000, "seconds": 4},
    "iv": {"flows": 100, "mbit": 1000, "seconds": 2},
    "v": {"flows": 1000, "mbit": 1000, "seconds": 2, "hosts": 32},
    "vi": {"flows": 10000, "mbit": 10000, "seconds": 0.6, "hosts": 32},
}
COLUMNS = "{:<8} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>8}"


def main():
    arguments = parse()
    print(COLUMNS.format("case", "ns-3 packets", "ns-3 CPU s", "ns-3 pkt/s",
                         "Knee packets", "Knee CPU s", "Knee pkt/s", "ratio"))
    with tempfile.TemporaryDirectory(prefix="knee-ns3-") as scratch:
        ns3 = build(scratch) if arguments.only != "knee" else None
        for case in arguments.cases or CASES:
            theirs = repeat(arguments, "ns3", lambda: run_ns3(ns3, case))
            ours = repeat(arguments, "knee", lambda: run_knee(arguments.knee, case, scratch))
            print(row(case, theirs, ours), flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    parser.add_argument("--repeat", type=int, default=1, help="runs per case; the median counts")
    parser.add_argument("--only", choices=["ns3", "knee"], help="run one side")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--knee", default=target / "release" / "knee", help="the program")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    return arguments


def build(scratch):
    program = Path(scratch) / "dumbbell"
    libraries = [f"-lns3-{name}" for name in LIBRARIES]
    source = str(HERE / "dumbbell.cc")
    subprocess.run(["g++", "-std=c++17", "-O2", "-DNDEBUG", source, "-o", str(program), *libraries],
                   check=True)
    return program


def repeat(arguments, side, run):
    """Returns the median cost of a side as (packets, user CPU seconds), or None."""
    if arguments.only not in (None, side):
        return None
    runs = [run() for _ in range(arguments.repeat)]
    return runs[0][0], statistics.median(seconds for _, seconds in runs)


def run_ns3(program, case):
    options = [f"--{name}={value}" for name, value in CASES[case].items()]
    output = subprocess.run([program, *options], check=True, stdout=subprocess.PIPE, text=True)
    packets, seconds = output.stdout.splitlines()[-1].split(",")[:2]
    return int(packets), float(seconds)


def run_knee(program, case, scratch):
    scenario = ROOT / "benches" / "scenarios" / f"{case}.toml"
    directory = Path(scratch) / f"knee-{case}"
    finished = subprocess.run([program, "run", scenario, "--force", "--out", directory],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if finished.returncode != 0:
        sys.exit(f"knee run {scenario} ended with {finished.returncode}:\n{finished.stderr}")
    manifests = sorted(directory.rglob("manifest.json"))
    if len(manifests) != 1:
        sys.exit(f"expected one manifest.json below {directory}, found {len(manifests)}")
    manifest = json.loads(manifests[0].read_text())
    return manifest["data_packets"], manifest["user_cpu_s"]


def row(case, theirs, ours):
    cells, speeds = [], []
    for side in (theirs, ours):
        packets, seconds = side or (0, 0.0)
        speed = packets / seconds if seconds else 0.0
        speeds.append(speed)
        cells += [f"{packets}", f"{seconds:.3f}", f"{speed:.0f}"] if side else ["-"] * 3
    ratio = f"{speeds[1] / speeds[0]:.0f}" if all(speeds) else "-"
    return COLUMNS.format(case, *cells, ratio)


if __name__ == "__main__":
    main()
