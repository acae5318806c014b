#!/usr/bin/env python3
"""Runs NewReno over the same bottleneck in htsim and in Knee, and prints the cost of a packet.

Needs a checkout of htsim (https://github.com/Broadcom/csg-htsim), g++ and make, and a release
build of `knee` (`cargo build --release`). The two take turns, and the medians are compared. Both
acknowledge each packet and have a buffer of one bandwidth-delay product. Knee repairs losses by
SACK, which htsim's TCP lacks. Cost is user CPU time of the simulation, in Knee's case with its
set-up, per data packet delivered in order. Fails if Knee is slower in a case.

    benches/htsim/run.py CHECKOUT                all cases, five turns
    benches/htsim/run.py CHECKOUT ii --turns 9   one, nine turns
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RTT_MS = 60

# Flows, Mbit/s and simulated seconds of the scenarios of the same name in benches/scenarios.
CASES = {"ii": (1, 100, 60), "iv": (100, 1000, 20), "v": (1000, 1000, 20)}
COLUMNS = "{:<6} {:>14} {:>14} {:>14} {:>14} {:>8}"


def main():
    arguments = parse()
    with tempfile.TemporaryDirectory(prefix="knee-htsim-") as scratch:
        scratch = Path(scratch)
        htsim = build(arguments.checkout, scratch)
        print(COLUMNS.format("case", "htsim packets", "ns a packet",
                             "Knee packets", "ns a packet", "ratio"), flush=True)
        slower = []
        for case in arguments.cases or CASES:
            turns = [(run_htsim(htsim, case), run_knee(arguments.knee, case, scratch))
                     for _ in range(arguments.turns)]
            theirs, ours = (
                (side[0][0], statistics.median(1e9 * cpu / packets for packets, cpu in side))
                for side in zip(*turns))
            ratio = theirs[1] / ours[1]
            print(COLUMNS.format(case, theirs[0], f"{theirs[1]:.0f}", ours[0], f"{ours[1]:.0f}",
                                 f"{ratio:.2f}"), flush=True)
            slower += [case] if ratio <= 1 else []
    if slower:
        sys.exit(f"Knee is slower than htsim in {', '.join(slower)}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="folder of htsim")
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    parser.add_argument("--turns", type=int, default=5, help="runs of each side per case")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--knee", default=target / "release" / "knee", help="the program")
    arguments = parser.parse_intermixed_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    if not (arguments.checkout / "sim" / "tcp.cpp").exists():
        parser.error(f"{arguments.checkout} is no checkout of htsim: it has no sim/tcp.cpp")
    return arguments


def build(checkout, scratch):
    """Builds a copy of htsim, optimised and without assertions, and the program; returns that."""
    copy = scratch / "sim"
    shutil.copytree(checkout / "sim", copy)
    flags = "-std=c++11 -O3 -DNDEBUG -w"
    # Objects of another build may be there.
    for command in (["make", "clean"],
                    ["make", f"-j{os.cpu_count()}", f"CFLAGS={flags}", "libhtsim.a"]):
        subprocess.run(command, cwd=copy, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    program = scratch / "dumbbell"
    subprocess.run(["g++", *flags.split(), f"-I{copy}", str(HERE / "dumbbell.cc"),
                    str(copy / "libhtsim.a"), "-o", str(program)], check=True)
    return program


def run_htsim(program, case):
    """Returns packets and user CPU seconds."""
    flows, mbit, seconds = CASES[case]
    command = [program, str(flows), str(mbit), str(RTT_MS), str(seconds)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    packets, cpu = output.stdout.splitlines()[-1].split()
    return int(packets), float(cpu)


def run_knee(program, case, scratch):
    """Returns packets and user CPU seconds."""
    scenario = ROOT / "benches" / "scenarios" / f"{case}.toml"
    changes = ["flow.bbr.cc=reno", "link.bottleneck.buffer=1 BDP", "transport.ack_every=1"]
    command = [program, "run", scenario, "--force", "--no-alternatives", "--out", scratch / "knee"]
    command += [word for change in changes for word in ("--set", change)]
    finished = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True)
    if finished.returncode != 0:
        sys.exit(f"knee run {scenario} ended with {finished.returncode}:\n{finished.stderr}")
    manifest = json.loads(next((scratch / "knee").rglob("manifest.json")).read_text())
    return manifest["data_packets"], manifest["user_cpu_s"]


if __name__ == "__main__":
    main()
