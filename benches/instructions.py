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

# Bytes of data in a packet.
PAYLOAD = 1448
ROOT = Path(__file__).resolve().parent.parent

# Case: short and long run in simulated seconds, most instructions per packet.
CASES = {
    "ii": (10, 30, 1165),
    "ii-loss": (10, 20, 2780),
    "iv": (3, 5, 1490),
    "v": (3, 5, 2040),
    "multipath": (10, 20, 2275),
}

# A packet of a connection over two paths: the most that it may cost, in packets
# of one flow over one path.
TWO_PATHS = 2.01

# Schedulers that send other than the next packet: the most that their packet
# may cost, in packets of minrtt; rate of each path in Mbit/s and length of the
# short run, whose double is the long one.
SCHEDULERS = {"daps": 3, "dems": 3}
RATES = {10: 12, 50: 6, 200: 2, 1000: 1}

# Transfers that wait cost nothing: what a packet that is sent may cost in the
# third minute, in packets of the second second. Delivered packets would count
# what the overload does to the traffic, for more and more are sent again.
OVERLOADED = 1.3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--knee", default=target / "release" / "knee", help="the program")
    program = parser.parse_args().knee
    print(f"{'case':<18} {'packets':>10} {'instructions':>14} {'per packet':>11} {'limit':>6}")
    costs = {case: measured(program, case, case, limit, short, long)
             for case, (short, long, limit) in CASES.items()}
    within = [costs[case] <= limit for case, (_, _, limit) in CASES.items()]
    ratio = costs["multipath"] / costs["ii"]
    print(f"{'multipath over ii':<18} {ratio:>38.2f} {TWO_PATHS:>6.2f}", flush=True)
    within.append(ratio <= TWO_PATHS)
    for rate, seconds in RATES.items():
        def cost(scheduler, limit):
            return measured(program, f"{scheduler}, {rate} Mbit/s", "multipath", limit, seconds,
                            2 * seconds, f"flow.flow.scheduler={scheduler}",
                            f"link.a.rate={rate} Mbit/s", f"link.b.rate={rate} Mbit/s",
                            "link.a.delay=5 ms")
        base = cost("minrtt", float("inf"))
        within += [cost(scheduler, most * base) <= most * base
                   for scheduler, most in SCHEDULERS.items()]
    def overloaded(short, long, limit):
        return measured(program, f"mix, {long} s", "mix-overloaded", limit, short, long,
                        sent=True)
    base = overloaded(1, 2, float("inf"))
    within.append(overloaded(150, 180, OVERLOADED * base) <= OVERLOADED * base)
    if not all(within):
        sys.exit("a packet costs more instructions than it may")


def measured(program, name, case, limit, short, long, *changes, sent=False):
    """Instructions per packet between the lengths of two runs."""
    (packets_a, instructions_a), (packets_b, instructions_b) = (
        run(program, case, seconds, changes, sent) for seconds in (short, long))
    packets, instructions = packets_b - packets_a, instructions_b - instructions_a
    cost = instructions / packets
    print(f"{name:<18} {packets:>10} {instructions:>14} {cost:>11.0f} {limit:>6.0f}", flush=True)
    return cost


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
