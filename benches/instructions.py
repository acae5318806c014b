#!/usr/bin/env python3
"""Counts the instructions per delivered data packet, and fails above a limit.

Instructions, unlike time, are the same on every run of the same binary. Each case is run
for two lengths under valgrind's cachegrind; the difference excludes set-up, start-up and
output. Needs valgrind and a release build of `knee`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Payload of a packet, bytes.
PAYLOAD = 1448
ROOT = Path(__file__).resolve().parent.parent

# The same with --quick, for a build with debug assertions.
QUICK = {
    "ii": (2, 4, 1262),
    "ii-loss": (2, 4, 2653),
    "v": (1, 2, 2971),
    "multipath": (2, 4, 1782),
}

# Case: simulated seconds of the short and the long run, maximum instructions per packet.
CASES = {
    "ii": (10, 30, 1126),
    "ii-loss": (10, 20, 2350),
    "iv": (3, 5, 1386),
    "v": (3, 5, 1717),
    "multipath": (10, 20, 1510),
}

# Maximum cost of a packet of a connection over two paths, relative to a packet of one flow
# over one path.
TWO_PATHS = 1.355

# Schedulers that may send a packet other than the next: maximum cost of a packet, relative
# to minrtt; rate of each path in Mbit/s and length of the short run, half that of the long
# one.
SCHEDULERS = {"daps": 3, "dems": 3}
RATES = {10: 12, 50: 6, 200: 2, 1000: 1}

# Waiting transfers must cost nothing: maximum cost of a sent packet in the third minute,
# relative to the second second. Delivered packets would measure the effect of the overload
# on the traffic, because more and more are retransmitted.
OVERLOADED = 1.3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--knee", default=target / "release" / "knee", help="the program")
    parser.add_argument("--quick", action="store_true",
                        help="four short cases, with the limits of a debug build")
    arguments = parser.parse_args()
    program = arguments.knee
    # Other processes do not affect the counts.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        def begun(name, case, short, long, *changes, sent=False):
            runs = [pool.submit(run, program, case, seconds, changes, sent)
                    for seconds in (short, long)]
            return name, runs
        within = quick(begun) if arguments.quick else whole(begun)
    if not all(within):
        sys.exit("a packet costs more instructions than it may")


def heading():
    print(f"{'case':<18} {'packets':>10} {'instructions':>14} {'per packet':>11} {'limit':>6}")


def limited(begun, cases):
    """Returns the runs of each case, and its limit."""
    runs = {case: begun(case, case, short, long) for case, (short, long, _) in cases.items()}
    return runs, {case: limit for case, (_, _, limit) in cases.items()}


def quick(begun):
    """Whether each of the short cases is within its limit."""
    runs, limits = limited(begun, QUICK)
    heading()
    return [cost(runs[case], limit) <= limit for case, limit in limits.items()]


def whole(begun):
    """Whether each case of a release build is within its limit."""
    runs, limits = limited(begun, CASES)
    schedulers = {
        (rate, scheduler): begun(
            f"{scheduler}, {rate} Mbit/s", "multipath", seconds, 2 * seconds,
            f"flow.flow.scheduler={scheduler}", f"link.a.rate={rate} Mbit/s",
            f"link.b.rate={rate} Mbit/s", "link.a.delay=5 ms")
        for rate, seconds in RATES.items() for scheduler in ["minrtt", *SCHEDULERS]}
    overloaded = [begun(f"mix, {long} s", "mix-overloaded", short, long, sent=True)
                  for short, long in [(1, 2), (150, 180)]]
    heading()
    costs = {case: cost(runs[case], limit) for case, limit in limits.items()}
    within = [costs[case] <= limit for case, limit in limits.items()]
    ratio = costs["multipath"] / costs["ii"]
    print(f"{'multipath over ii':<18} {ratio:>38.2f} {TWO_PATHS:>6.2f}", flush=True)
    within.append(ratio <= TWO_PATHS)
    for rate in RATES:
        base = cost(schedulers[rate, "minrtt"], float("inf"))
        within += [cost(schedulers[rate, scheduler], most * base) <= most * base
                   for scheduler, most in SCHEDULERS.items()]
    base = cost(overloaded[0], float("inf"))
    within.append(cost(overloaded[1], OVERLOADED * base) <= OVERLOADED * base)
    return within


def cost(begun, limit):
    """Returns the instructions per packet, from the difference of two runs."""
    name, runs = begun
    (packets_a, instructions_a), (packets_b, instructions_b) = (each.result() for each in runs)
    packets, instructions = packets_b - packets_a, instructions_b - instructions_a
    per_packet = instructions / packets
    print(f"{name:<18} {packets:>10} {instructions:>14} {per_packet:>11.0f} {limit:>6.0f}",
          flush=True)
    return per_packet


def run(program, case, seconds, changes, sent):
    scenario = ROOT / "benches" / "scenarios" / f"{case}.toml"
    with tempfile.TemporaryDirectory(prefix="knee-instructions-") as scratch:
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=no",
                   "--cachegrind-out-file=/dev/null", str(program), "run", str(scenario),
                   "--no-alternatives",
                   "--set", f"duration={seconds} s", "--out", f"{scratch}/run"]
        command += [word for change in changes for word in ("--set", change)]
        finished = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True)
        if finished.returncode != 0:
            sys.exit(f"{' '.join(command)}\nended with {finished.returncode}:\n{finished.stderr}")
        counted = re.search(r"I\s+refs:\s+([\d,]+)", finished.stderr)
        manifest = next(Path(scratch).rglob("manifest.json"))
        packets = json.loads(manifest.read_text())["data_packets"]
        if sent:
            summary = json.loads((manifest.parent / "summary.json").read_text())
            packets = sum(flow["sent_bytes"] for flow in summary["flows"]) // PAYLOAD
    return packets, int(counted.group(1).replace(",", ""))


if __name__ == "__main__":
    main()
