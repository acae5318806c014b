#!/usr/bin/env python3
"""Measures the Python package against its goals: import, wheel, calls, tables, processes.

Run with a Python that has the package and Polars: `python benches/python.py --wheel
target/wheels/knee-*.whl`. The minimum of several runs counts; on a busy machine all figures
are upper bounds.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import knee

PATH = """
duration = "20 s"
[link.l]
rate = "100 Mbit/s"
delay = "10 ms"
buffer = "1 BDP"
[path.p]
forward = ["l"]
reverse_delay = "10 ms"
[[flow]]
name = "f"
path = "p"
cc = { name = "fixed", window = "200 packets" }
"""


class Calls(knee.Controller):
    """The window of the built-in controller that it is compared with; counts calls."""

    calls = 0

    def __init__(self, init):
        Calls.calls = 0
        self.decision = knee.Decision(200 * init.mss_bytes, None, 2 * init.mss_bytes)


class One(Calls):
    def on_ack(self, ack):
        Calls.calls += 1
        ack.rtt_ns
        return self.decision


class Eight(Calls):
    def on_ack(self, ack):
        Calls.calls += 1
        ack.now_ns, ack.rtt_ns, ack.srtt_ns, ack.min_rtt_ns  # noqa: B018
        ack.newly_acked_bytes, ack.in_flight_bytes, ack.delivered_bytes, ack.lost_bytes  # noqa: B018
        return self.decision


class Round(One):
    per_round = True


def least(work, times=7):
    """Returns the shortest time of several runs, seconds."""
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return min(took)


def said(what, value, unit, goal):
    print(f"{what:<44} {value:>8.3g} {unit:<8} goal {goal}", flush=True)


def importing():
    def fresh(code):
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    said("import knee", 1e3 * (least(fresh("import knee")) - least(fresh("pass"))), "ms", "20")


def calls():
    def run(**own):
        change = {"flow.f.cc": "own"} if own else None
        return lambda: knee.run(PATH, set=change, controllers=own or None)

    built_in = least(run())
    for what, controller, goal in [("one attribute read", One, 0.4), ("eight", Eight, 1.5)]:
        above = least(run(own=controller)) - built_in
        said(f"an ACK above the built-in, {what}", 1e6 * above / Calls.calls, "us", goal)
    above = least(run(own=Round)) / built_in
    said("a run with per_round over the built-in", above, "", "1.1")


def tables():
    change = {"sample_interval": "1 ms", "duration": "1000 s", "link.l.rate": "1 Mbit/s"}
    begun = time.perf_counter()
    samples = knee.run(PATH, set=change).samples
    print(f"a run of {len(samples)} rows took {time.perf_counter() - begun:.1f} s")
    try:
        import polars
    except ImportError:
        print("without Polars")
        return
    said("its rows to Polars", 1e3 * least(lambda: polars.DataFrame(samples)), "ms", "5")


def processes(points):
    # Of about 20 ms each.
    rates = [f"{50_000 + 10 * number} kbit/s" for number in range(points)]

    def sweep(**how):
        def made():
            return knee.sweep(PATH, {"link.l.rate": rates}, **how)

        begun = time.perf_counter()
        table = made().table
        return time.perf_counter() - begun, table["goodput_bps"]

    (one, by_one), (two, by_two) = sweep(executor="serial"), sweep(workers=2)
    print(f"{points} points: {one:.1f} s by one process, {two:.1f} s by two")
    assert by_one == by_two
    said("two processes over one", one / two, "times", "1.7")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="whose size is told")
    parser.add_argument("--points", type=int, default=1000, help="of the sweep")
    arguments = parser.parse_args()
    if arguments.wheel:
        said("wheel", arguments.wheel.stat().st_size / 1e6, "MB", "8")
    importing()
    calls()
    tables()
    processes(arguments.points)


if __name__ == "__main__":
    main()
