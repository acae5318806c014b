#!/usr/bin/env python3
"""Compares the simulator with Linux's TCP on paths that reorder.

    sudo python3 benches/reordering.py --knee target/release/knee FOLDER

30 cells with a queue of 1,000 packets: 15 known ones, and 15 drawn from --seed (hexadecimal, such
as the first eight digits of a commit). Jitter is uniform up to its amount, and packets overtake.
Each cell runs five times for 60 s on the ground "kernel", in real time, one run after another, and
eleven times on the simulator; medians are compared. A cell agrees in goodput if the medians differ
by at most 10 %, and in the retransmitted share by at most one point, or by the spread (largest less
smallest) of the kernel's runs. 27 of 30 must agree in each.

FOLDER keeps the result of each run in real time, also of an interrupted or partial series: the same
command continues. --seconds and --runs shorten the series, --cells selects by a part of the name,
--only takes "known" or "drawn" cells, --judge runs nothing in real time. Runs that the ground calls
invalid are repeated twice, then left out.
"""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

SIM_RUNS = 11
SETTINGS = [  # Mbit/s, one-way delay and jitter in ms, loss in %
    (50, 20, 5, 0),
    (50, 20, 20, 0),
    (40, 30, 5, 0.5),
    (40, 35, 8, 0),
    (100, 50, 25, 1),
    (20, 50, 20, 2),
]


def known():
    """Returns two controllers in each setting, and Reno in three of them."""
    cells = [setting + (cc,) for setting in SETTINGS for cc in ("bbr", "cubic")]
    return cells + [SETTINGS[number] + ("reno",) for number in (0, 3, 5)]


def drawn(seed):
    """Returns 15 cells: rate, delay and jitter uniform on a logarithmic scale, a third without loss."""
    rng = random.Random(int(seed, 16))
    cells = []
    for number in range(15):
        rate = round(5 * 20 ** rng.random(), 1)
        delay = round(5 * 20 ** rng.random(), 1)
        jitter = round((2 * delay) ** rng.random(), 1)
        loss = 0 if number % 3 == 0 else round(0.05 * 40 ** rng.random(), 2)
        cells.append((rate, delay, jitter, loss, ("bbr", "cubic", "reno")[number % 3]))
    return cells


def name(cell):
    rate, delay, jitter, loss, cc = cell
    return f"{rate}mbit-{delay}ms-{jitter}ms-{loss}pc-{cc}"


def scenario(cell, seconds):
    rate, delay, jitter, loss, cc = cell
    return f"""name = "{name(cell)}"
duration = "{seconds} s"
[link.bottleneck]
rate = "{rate} Mbit/s"
delay = "{delay} ms"
buffer = "1000 packets"
loss = "{loss} %"
jitter = {{ amount = "{jitter} ms", reorder = true }}
[path.main]
forward = ["bottleneck"]
reverse_delay = "{delay} ms"
[[flow]]
name = "flow"
cc = "{cc}"
"""


def run(knee, cell, seconds, ground, seed):
    """Runs a cell once; returns verdict, goodput in Mbit/s and retransmitted percentage."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "cell.toml")
        file.write_text(scenario(cell, seconds))
        command = [knee, "run", file, "--on", ground, "--seed", str(seed), "--no-alternatives"]
        command += ["--out", f"{folder}/out"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20 * seconds + 300)
        if done.returncode != 0:
            sys.exit(done.stderr)
        summary = json.loads(pathlib.Path(folder, "out", "summary.json").read_text())
        flow = summary["flows"][0]
        return {
            "verdict": summary["verdict"],
            "why": summary["verdict_reason"],
            "goodput": flow["goodput_bps"] / 1e6,
            "retransmitted": 100 * flow["retransmit_ratio"],
        }


def on_kernel(options, cell, repeat):
    """Returns a kept run, or runs it."""
    file = options.folder / f"{name(cell)}-{options.seconds}s-{repeat + 1}.json"
    kept = json.loads(file.read_text()) if file.exists() else None
    tries = kept["tries"] if kept else 0
    while not options.judge and tries < 3 and (kept is None or kept["verdict"] == "invalid"):
        kept = run(options.knee, cell, options.seconds, "kernel", repeat + 1)
        tries += 1
        file.write_text(json.dumps({**kept, "tries": tries}))
        print(f"  {file.stem}: {kept['goodput']:.2f} Mbit/s, {kept['verdict']}", flush=True)
    return kept


def agrees(sim, kernel, allowed):
    median = statistics.median(kernel)
    spread = max(kernel) - min(kernel)
    return abs(statistics.median(sim) - median) <= max(allowed(median), spread)


def judge(options, cell):
    """Prints the line of a cell; returns whether goodput and retransmissions agree, or None."""
    kept = [on_kernel(options, cell, repeat) for repeat in range(options.runs)]
    real = [one for one in kept if one and one["verdict"] != "invalid"]
    seeds = range(1, SIM_RUNS + 1)
    sim = [run(options.knee, cell, options.seconds, "sim", seed) for seed in seeds]
    values = lambda runs, key: sorted(one[key] for one in runs)
    text = lambda list: f"{statistics.median(list):6.2f} ({list[0]:.2f} to {list[-1]:.2f})"
    figures = [text(values(sim, key)) for key in ("goodput", "retransmitted")]
    if not real:
        print(f"{name(cell):32} {figures[0]:26} {'':29} {figures[1]}", flush=True)
        return None
    goodput = agrees(values(sim, "goodput"), values(real, "goodput"), lambda median: 0.1 * median)
    lost = agrees(values(sim, "retransmitted"), values(real, "retransmitted"), lambda _: 1)
    line = [name(cell).ljust(32)]
    for key, right, figure in (("goodput", goodput, figures[0]), ("retransmitted", lost, figures[1])):
        line += [figure.ljust(26), text(values(real, key)).ljust(26), "yes" if right else "NO "]
    print(*line, f"of {len(real)} runs", flush=True)
    return goodput, lost


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--knee", default="target/release/knee")
    parser.add_argument("--seed", default="00000000", help="seed of the drawn cells")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=5, help="runs of a cell in real time")
    parser.add_argument("--only", choices=("known", "drawn"))
    parser.add_argument("--cells", default="", help="part of a cell's name")
    parser.add_argument("--judge", action="store_true", help="run only the simulator")
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    cells = known() if options.only != "drawn" else []
    cells += drawn(options.seed) if options.only != "known" else []
    cells = [cell for cell in cells if options.cells in name(cell)]
    minutes = len(cells) * options.runs * (options.seconds + 1) / 60
    print(f"{len(cells)} cells, up to {minutes:.0f} minutes in real time")
    print("cell, goodput in Mbit/s on simulator and kernel, retransmitted % on both")
    began = time.monotonic()
    judged = [found for found in (judge(options, cell) for cell in cells) if found]
    for which, key in enumerate(("goodput", "retransmitted share")):
        print(f"{key}: {sum(found[which] for found in judged)} of {len(judged)} agree")
    print(f"took {(time.monotonic() - began) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
