#!/usr/bin/env python3
"""Compares the ground quic with the simulator, and measures it over several links.

    benches/quic.py KNEE [--only cells|links] [--repeat N]

KNEE is a release build with `--features quic`. Run as root on a quiet host; takes
some 35 minutes of real time.

- cells: two dozen combinations of rate, RTT, buffer and controller without random loss:
  completion on both grounds, and packets lost by the link (medians of N runs).
- links: transfers over two links and over one with loss, compared with goals and with the
  simulator.

A run that the ground calls invalid is repeated, at most twice.
"""

import argparse
import itertools
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RATES = [5, 20, 50]
ROUND_TRIPS = [20, 80]
CONTROLLERS = ["reno", "cubic", "bbr", "bbr3"]
BUFFERS = [1, 3]
COMPLETION = 0.03
LOST = 1.5
# The simulator has QUIC's packets, ACKs and window: what QUIC and the bundle need of a packet, no
# quick ACKs, without which BBR loses twice as much over a buffer of eight packets, and a window that
# is not tuned.
TRANSPORT = ('[transport]\nmss = "1424 B"\nheader = "76 B"\nacks = "quic"\n'
             'receive_window = "16 MiB"\n')
LOSSY_RUNS = 11


def link(name, rate, one_way, buffer, more=""):
    return f"""
[link.{name}]
rate = "{rate} Mbit/s"
delay = "{one_way} ms"
buffer = "{buffer}"
{more}
[path.{name}]
forward = ["{name}"]
reverse_delay = "{one_way} ms"
"""


def flow(size, controller, more):
    return f"""
[[flow]]
name = "f"
cc = "{controller}"
workload = {{ file = "{size}" }}
{more}
"""


def run(knee, text, duration, seed=1):
    """Returns completion in seconds and packets lost by links, on sim and on quic."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "cell.toml"
        scenario.write_text(f'name = "cell"\nduration = "{duration} s"\n{TRANSPORT}{text}')
        for _ in range(3):
            out = Path(folder) / "out"
            line = [knee, "run", scenario, "--seed", str(seed), "--on", "sim,quic", "--out", out,
                    "--force"]
            done = subprocess.run(line, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"quic.py: {' '.join(map(str, line))}:\n{done.stderr}")
            on = {ground: json.loads((out / ground / "summary.json").read_text())
                  for ground in ["sim", "quic"]}
            if on["quic"]["verdict"] != "invalid":
                break
        else:
            print(f"  invalid three times: {on['quic']['verdict_reason']}", file=sys.stderr)
    result = []
    for summary in on.values():
        took = summary["flows"][0]["completion_us"]
        lost = sum(one["drops"] + one["losses"] for one in summary["links"])
        result.append((took / 1e6 if took else float("inf"), lost))
    return result


def cells(knee, repeat):
    print("rate      RTT    buffer  controller  sim       quic      off      lost sim  quic  runs")
    missed = {"completion": 0, "lost": 0}
    off = []
    grid = list(itertools.product(RATES, ROUND_TRIPS, CONTROLLERS))
    for number, (rate, rtt, controller) in enumerate(grid):
        buffer = BUFFERS[(number + number // len(CONTROLLERS)) % 2]
        size = f"{rate * 6 / 8:g} MB"
        text = link("a", rate, rtt / 2, f"{buffer} BDP") + flow(size, controller, 'path = "a"')
        # In real time no run is like another: one late packet can be one more loss, or a window.
        runs = [run(knee, text, 10) for _ in range(repeat)]
        sim, sim_lost = runs[0][0]
        quic, quic_lost = (statistics.median(one[1][value] for one in runs) for value in range(2))
        part = quic / sim - 1
        # A transfer that does not end is off by more than any bound.
        part = part if math.isfinite(part) else math.inf
        off.append(abs(part))
        missed["completion"] += abs(part) > COMPLETION
        # A handful of packets is too few for a ratio.
        alike = abs(sim_lost - quic_lost) <= 5 or 1 / LOST <= quic_lost / max(sim_lost, 1) <= LOST
        missed["lost"] += not alike
        each = ", ".join(f"{took:.3f} s {lost}" for _, (took, lost) in runs)
        print(f"{rate:3} Mbit/s {rtt:3} ms {buffer:3} BDP  {controller:10}  {sim:6.3f} s  "
              f"{quic:6.3f} s  {part:+7.2%}  {sim_lost:8}  {quic_lost:4}  {each}", flush=True)
    print(f"{len(grid)} cells: median difference {statistics.median(off):.2%}, most "
          f"{max(off):.2%}; completion off by more than {COMPLETION:.0%} in "
          f"{missed['completion']}, losses by more than a factor of {LOST} in {missed['lost']}")


def links(knee, repeat):
    both = 'paths = ["a", "b"]'
    uneven = link("a", 10, 5, "64 kB") + link("b", 1, 100, "64 kB")
    gone = 'down = [{{ from = "2 s", until = "{}" }}]'
    rows = [
        ("20 MB over 10 and 5 Mbit/s", "rate", "at least 14.0 Mbit/s", 20,
         link("a", 10, 10, "100 kB") + link("b", 5, 10, "100 kB"), "cubic", both),
        ("1 MB over uneven links", "time", "at most 0.83 s", 1, uneven, "cubic", both),
        ("1 MB over the better alone", "time", "", 1, uneven, "cubic", 'path = "a"'),
        ("2 MB, window 64 KiB, uneven", "rate", "at least 9.2 Mbit/s", 2, uneven, "cubic",
         both + '\nreceive_window = "64 KiB"'),
        ("5 MB, a link dead at 2 s", "time", "at most 5.0 s", 5,
         link("a", 10, 10, "100 kB", gone.format("60 s")) + link("b", 10, 10, "100 kB"),
         "cubic", both),
        ("20 MB, back at 6 s", "time", "at most 14.8 s", 20,
         link("a", 10, 10, "100 kB", gone.format("6 s")) + link("b", 10, 10, "100 kB"),
         "cubic", both),
        ("50 MB, 300 Mbit/s, 1 % loss", "rate", "at least 150 Mbit/s", 50,
         link("a", 300, 50, "4 MB", 'loss = "1 %"'), "bbr", 'path = "a"'),
    ]
    print("what                          goal                  sim            quic (median)  runs")
    for name, what, goal, megabytes, text, controller, where in rows:
        # Which packets a link loses makes a difference of a fifth: each run has its own seed.
        times, duration = (max(repeat, LOSSY_RUNS), 6) if "loss =" in text else (repeat, 60)
        results = [run(knee, text + flow(f"{megabytes} MB", controller, where), duration, seed)
                   for seed in range(1, times + 1)]

        def shown(took):
            return f"{took:.3f} s" if what == "time" else f"{megabytes * 8 / took:.1f} Mbit/s"

        sims, quics = ([one[ground][0] for one in results] for ground in range(2))
        each = ", ".join(shown(one) for one in quics)
        print(f"{name:29} {goal:21} {shown(statistics.median(sims)):14} "
              f"{shown(statistics.median(quics)):14} {each}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("knee", type=Path)
    parser.add_argument("--only", choices=["cells", "links"])
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    knee = options.knee.resolve()
    if options.only != "links":
        cells(knee, options.repeat)
    if options.only != "cells":
        links(knee, options.repeat)


if __name__ == "__main__":
    main()
