#!/usr/bin/env python3
"""Judges `knee fit` over paths that are hidden from it, on the kernel or the simulator.

    sudo python3 benches/fit.py --knee target/release/knee --on kernel FOLDER

60 paths are drawn from --seed (hexadecimal, such as the first eight digits of a commit): rates of 1 to
500 Mbit/s, RTTs of 5 to 300 ms, queues of 0.3 to 10 BDP, a third without loss and the others with 0.01
to 2 %, under CUBIC, Reno and BBR in turns. Each is run for 20 s. What is said of a figure is right if it
is closely known and within 5 % (rate), 3 % (RTT), 30 % (buffer) or a factor of 1.5 (loss, above 0.1 %),
or if the bound that is given holds; "unknown" is never wrong. 54 of 60 must be right for each figure.

FOLDER keeps the runs, also those of an interrupted series: the same command continues. --paths and
--below shorten the series; runs that the ground calls invalid are repeated once, then left out.
"""
import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import time

TOLERANCES = {"rate": 0.05, "RTT": 0.03, "random loss": 0.5, "buffer": 0.3}


def drawn(seed, count, below):
    """Returns paths: Mbit/s, RTT in ms, queue in BDP, loss in %, controller."""
    rng = random.Random(int(seed, 16))
    between = lambda low, high: low * (high / low) ** rng.random()
    paths = []
    for number in range(count):
        rate, rtt = round(between(1, below), 3), round(between(5, 300), 2)
        # A queue holds a segment at least.
        bdp = round(max(between(0.3, 10), 1600 * 8e-3 / (rate * rtt)), 3)
        loss = round(between(0.01, 2), 4) if number % 3 else 0
        paths.append((rate, rtt, bdp, loss, ("cubic", "reno", "bbr")[number // 3 % 3]))
    return paths


def scenario(path):
    rate, rtt, bdp, loss, cc = path
    return f"""name = "hidden"
duration = "20 s"
[link.wire]
rate = "{rate} Mbit/s"
delay = "{rtt / 2:.3f} ms"
buffer = "{bdp} BDP"
loss = "{loss} %"
[path.main]
forward = ["wire"]
reverse_delay = "{rtt / 2:.3f} ms"
[[flow]]
name = "bulk"
cc = "{cc}"
"""


def knee(options, *arguments):
    done = subprocess.run([options.knee, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def measured(options, number, path):
    """Runs a path, or finds its run; returns the folder, or None if the host was too busy twice."""
    folder = options.folder / f"{options.on}-{options.seed}-{number + 1}"
    summary = folder / "summary.json"
    for attempt in range(2):
        if not summary.exists():
            file = options.folder / "hidden.toml"
            file.write_text(scenario(path))
            where = ["--on", options.on, "--no-alternatives", "--force", "--out", folder]
            knee(options, "run", file, *where)
        if json.loads(summary.read_text())["verdict"] != "invalid":
            return folder
        if attempt == 0:
            summary.unlink()
    return None


def truths(path):
    rate, rtt, bdp, loss, _ = path
    return {
        "rate": rate * 1e6,
        "RTT": rtt / 1e3,
        "random loss": loss / 100,
        "buffer": bdp * rate * 1e6 * rtt / 8e3,
    }


def is_right(row, truth):
    best, low, high = row["best"], row["best_low"], row["best_high"]
    if best is None:
        return (low is None or low <= 1.02 * truth) and (high is None or 0.98 * truth <= high)
    name = row["of_the_path"]
    if name == "random loss" and truth <= 0.001:
        return low <= truth <= high
    return best > 0 and abs(math.log(best / truth)) <= math.log1p(TOLERANCES[name])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--knee", default="target/release/knee")
    parser.add_argument("--on", choices=("sim", "kernel"), default="kernel")
    parser.add_argument("--seed", default="00000000", help="seed of the hidden paths")
    parser.add_argument("--paths", type=int, default=60)
    parser.add_argument("--below", type=float, default=500, help="highest rate, Mbit/s")
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print(f"{options.paths} paths, about {options.paths * 25 / 60:.0f} minutes")
    began = time.monotonic()
    right = {name: [] for name in TOLERANCES}
    close = {name: [] for name in TOLERANCES}
    for number, path in enumerate(drawn(options.seed, options.paths, options.below)):
        folder = measured(options, number, path)
        if folder is None:
            print(number + 1, path, "left out: the host was too busy", flush=True)
            continue
        rows = json.loads(knee(options, "fit", folder, "--format", "json"))["tables"]["path"]
        wrong = []
        for row in rows:
            name = row["of_the_path"]
            truth = truths(path)[name]
            right[name].append(is_right(row, truth))
            if row["best"] is not None and truth > 0:
                close[name].append((row["best_high"] - row["best_low"]) / row["best"])
            if not right[name][-1]:
                wrong.append(f"{name} is {truth:.4g}, said {row['best']}, {row['between']}")
        print(number + 1, path, "; ".join(wrong) or "right", flush=True)
    for name, found in right.items():
        widths = close[name]
        width = f", median width {100 * statistics.median(widths):.1f} %" if widths else ""
        print(f"{name}: {sum(found)} of {len(found)} right, {len(widths)} closely known{width}")
    print(f"took {(time.monotonic() - began) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
