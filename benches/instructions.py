#!/usr/bin/env python3
"""Counts the instructions that a delivered data packet costs, and fails above
a limit.

Instructions, unlike time, are the same on every run of the same binary. Each
case is run for two lengths under valgrind's cachegrind; the difference leaves
set-up, start-up and output out. Needs valgrind and a release build of `knee`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Case: short and long run in simulated seconds, most instructions per packet.
CASES = {
    "ii": (10, 30, 1700),
    "iv": (3, 5, 2000),
    "v": (3, 5, 2300),
    "multipath": (10, 20, 3000),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--knee", default=target / "release" / "knee", help="the program")
    program = parser.parse_args().knee
    print(f"{'case':<6} {'packets':>10} {'instructions':>14} {'per packet':>11} {'limit':>6}")
    too_many = False
    for case, (short, long, limit) in CASES.items():
        (packets_a, instructions_a), (packets_b, instructions_b) = (
            run(program, case, seconds) for seconds in (short, long))
        packets, instructions = packets_b - packets_a, instructions_b - instructions_a
        cost = instructions / packets
        too_many |= cost > limit
        print(f"{case:<6} {packets:>10} {instructions:>14} {cost:>11.0f} {limit:>6}", flush=True)
    if too_many:
        sys.exit("a packet costs more instructions than it may")


def run(program, case, seconds):
    scenario = ROOT / "benches" / "scenarios" / f"{case}.toml"
    with tempfile.TemporaryDirectory(prefix="knee-instructions-") as scratch:
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=no",
                   "--cachegrind-out-file=/dev/null", str(program), "run", str(scenario),
                   "--set", f"duration={seconds} s", "--out", f"{scratch}/run"]
        finished = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True)
        if finished.returncode != 0:
            sys.exit(f"{' '.join(command)}\nended with {finished.returncode}:\n{finished.stderr}")
        counted = re.search(r"I\s+refs:\s+([\d,]+)", finished.stderr)
        manifest = next(Path(scratch).rglob("manifest.json"))
        packets = json.loads(manifest.read_text())["data_packets"]
    return packets, int(counted.group(1).replace(",", ""))


if __name__ == "__main__":
    main()
