#!/usr/bin/env python3
"""Compares the simulator and QUIC with Linux's TCP on paths that reorder.

    sudo python3 benches/reordering.py --knee target/release/knee FOLDER

30 cells with a queue of 1,000 packets: 15 known ones, and 15 drawn from --seed (hexadecimal, such
as the first eight digits of a commit). Jitter is uniform up to its amount, and packets overtake.
Each cell runs five times for 60 s on the ground "kernel" and three times on "quic", in real time,
and eleven times on the simulator; medians are compared. A cell agrees in goodput if the medians
differ by at most 10 %, and the simulator's in the retransmitted share by at most one point, or by the
spread (largest less smallest) of the kernel's runs. 27 of 30 must agree in each.

With --only grid, 20 cells are drawn from --seed of a grid of rates, RTTs, jitter up to 400 ms and
queues of 0.5 to 4 BDP with three controllers; what the simulator carries in the last 30 s must be at
least half of what the kernel carries, in each.

FOLDER keeps the result of each run in real time, also of an interrupted or partial series: the same
command continues. --jobs runs several at once, if the processors suffice: the verdict of a run says
so. --seconds and --runs shorten the series, --cells selects by a part of the name, --only takes
"known" or "drawn" cells or the "grid", --judge runs nothing in real time. Runs that the ground calls invalid are
repeated twice, then left out.
"""
import argparse
import collections
import concurrent.futures
import itertools
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

SIM_RUNS = 11
QUIC_RUNS = 3
Cell = collections.namedtuple("Cell", "rate delay jitter loss buffer cc warmup")
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
    pairs = [(setting, cc) for setting in SETTINGS for cc in ("bbr", "cubic")]
    pairs += [(SETTINGS[number], "reno") for number in (0, 3, 5)]
    return [Cell(*setting, "1000 packets", cc, 0) for setting, cc in pairs]


def drawn(seed):
    """Returns 15 cells: rate, delay and jitter uniform on a logarithmic scale, a third without loss."""
    rng = random.Random(int(seed, 16))
    cells = []
    for number in range(15):
        rate = round(5 * 20 ** rng.random(), 1)
        delay = round(5 * 20 ** rng.random(), 1)
        jitter = round((2 * delay) ** rng.random(), 1)
        loss = 0 if number % 3 == 0 else round(0.05 * 40 ** rng.random(), 2)
        cc = ("bbr", "cubic", "reno")[number % 3]
        cells.append(Cell(rate, delay, jitter, loss, "1000 packets", cc, 0))
    return cells


def grid(seed):
    """Returns 20 cells of a grid, measured in their second half."""
    values = [(5, 20, 100), (5, 20, 100), (5, 20, 100, 400), (0.5, 1, 4), ("bbr", "cubic", "reno")]
    cells = list(itertools.product(*values))
    chosen = random.Random(int(seed, 16)).sample(cells, 20)
    return [Cell(*path, 0, f"{bdp} BDP", cc, 30) for *path, bdp, cc in chosen]


def name(cell):
    buffer = "" if cell.buffer == "1000 packets" else "-" + cell.buffer.replace(" ", "").lower()
    return f"{cell.rate}mbit-{cell.delay}ms-{cell.jitter}ms-{cell.loss}pc{buffer}-{cell.cc}"


def scenario(cell, seconds):
    return f"""name = "{name(cell)}"
duration = "{seconds} s"
warmup = "{cell.warmup} s"
[link.bottleneck]
rate = "{cell.rate} Mbit/s"
delay = "{cell.delay} ms"
buffer = "{cell.buffer}"
loss = "{cell.loss} %"
jitter = {{ amount = "{cell.jitter} ms", reorder = true }}
[path.main]
forward = ["bottleneck"]
reverse_delay = "{cell.delay} ms"
[[flow]]
name = "flow"
cc = "{cell.cc}"
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


def in_real_time(options, cell, ground, repeat):
    """Returns a kept run, or runs it."""
    file = options.folder / f"{name(cell)}-{options.seconds}s-{ground}-{repeat + 1}.json"
    kept = json.loads(file.read_text()) if file.exists() else None
    tries = kept["tries"] if kept else 0
    while not options.judge and tries < 3 and (kept is None or kept["verdict"] == "invalid"):
        kept = run(options.knee, cell, options.seconds, ground, repeat + 1)
        tries += 1
        file.write_text(json.dumps({**kept, "tries": tries}))
        print(f"  {file.stem}: {kept['goodput']:.2f} Mbit/s, {kept['verdict']}", flush=True)
    return kept


def repeats(options):
    """Returns ground and number of each run of a cell in real time."""
    quic = 0 if options.only == "grid" else min(options.runs, QUIC_RUNS)
    counts = {"kernel": options.runs, "quic": quic}
    return [(ground, repeat) for ground, count in counts.items() for repeat in range(count)]


def agrees(found, kernel, allowed):
    median = statistics.median(kernel)
    spread = max(kernel) - min(kernel)
    return abs(statistics.median(found) - median) <= max(allowed(median), spread)


def found(options, cell):
    """Returns the kept runs of a cell in real time, and those on the simulator."""
    real = {"kernel": [], "quic": []}
    for ground, repeat in repeats(options):
        kept = in_real_time(options, cell, ground, repeat)
        if kept and kept["verdict"] != "invalid":
            real[ground].append(kept)
    seeds = range(1, SIM_RUNS + 1)
    sim = [run(options.knee, cell, options.seconds, "sim", seed) for seed in seeds]
    return real["kernel"], real["quic"], sim


def values(runs, key):
    return sorted(one[key] for one in runs)


def judge(options, cell):
    """Prints the line of a cell; returns whether goodput (simulator, QUIC) and retransmissions agree."""
    kernel, quic, sim = found(options, cell)
    ten_percent, one_point = (lambda median: 0.1 * median), (lambda _: 1)
    compared = [  # of what, figure, and how far apart
        (sim, "goodput", ten_percent),
        (quic, "goodput", ten_percent),
        (sim, "retransmitted", one_point),
    ]
    judged = []
    line = [name(cell).ljust(32)]
    for runs, key, allowed in compared:
        both = runs and kernel
        judged.append(agrees(values(runs, key), values(kernel, key), allowed) if both else None)
        line.append(text(values(runs, key)))
        line.append({None: "-", True: "yes", False: "NO"}[judged[-1]].ljust(4))
    line += [text(values(kernel, key)) for key in ("goodput", "retransmitted")]
    print(*line, f"{len(kernel)} + {len(quic)} runs", flush=True)
    return judged


def judge_of_grid(options, cell):
    """Prints the line of a cell of the grid; returns whether the simulator carries half, or None."""
    kernel, _, sim = found(options, cell)
    columns = [text(values(runs, "goodput")) for runs in (sim, kernel)]
    half = None
    if kernel:
        medians = [statistics.median(values(runs, "goodput")) for runs in (sim, kernel)]
        half = medians[0] >= medians[1] / 2
    print(name(cell).ljust(38), *columns, {None: "-", True: "yes", False: "NO"}[half], flush=True)
    return half


def text(values):
    figure = f"{statistics.median(values):.2f} ({values[0]:.2f} to {values[-1]:.2f})" if values else ""
    return figure.ljust(26)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--knee", default="target/release/knee")
    parser.add_argument("--seed", default="00000000", help="seed of the drawn cells")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=5, help="runs of a cell on the kernel")
    parser.add_argument("--jobs", type=int, default=1, help="runs in real time at once")
    parser.add_argument("--only", choices=("known", "drawn", "grid"))
    parser.add_argument("--cells", default="", help="part of a cell's name")
    parser.add_argument("--judge", action="store_true", help="run only the simulator")
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    kinds = {"known": known, "drawn": lambda: drawn(options.seed), "grid": lambda: grid(options.seed)}
    wanted = [options.only] if options.only else ["known", "drawn"]
    cells = [cell for kind in wanted for cell in kinds[kind]()]
    cells = [cell for cell in cells if options.cells in name(cell)]
    runs = [(cell, *repeat) for cell in cells for repeat in repeats(options)]
    minutes = len(runs) * (options.seconds + 1) / 60 / options.jobs
    print(f"{len(cells)} cells, up to {minutes:.0f} minutes in real time")
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda one: in_real_time(options, *one), runs))
    if options.only == "grid":
        print("cell; goodput in Mbit/s on simulator and kernel; whether the simulator has half of it")
        halves = [judge_of_grid(options, cell) for cell in cells]
        print(f"at least half: {halves.count(True)} of {len(cells) - halves.count(None)}")
    else:
        print("cell; goodput in Mbit/s on the simulator and over QUIC, retransmitted % on the simulator,")
        print("each with whether it agrees; both on the kernel; kept runs of kernel and QUIC")
        judged = [judge(options, cell) for cell in cells]
        of = ("goodput, simulator", "goodput, QUIC", "retransmitted, simulator")
        for what, column in zip(of, zip(*judged)):
            print(f"{what}: {column.count(True)} of {len(cells) - column.count(None)} agree")
    print(f"took {(time.monotonic() - began) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
