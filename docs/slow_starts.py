#!/usr/bin/env python3
"""Compares the slow starts of CUBIC over the ready-made paths:

    docs/slow_starts.py [--check] [--log LOG] [--jobs N] [KNEE]

Writes the page docs/slow-starts.md. With --check it writes nothing, and fails if the page would
change. With --log it prints the table of sizes as they come, for those of an access log.
KNEE is the program, by default the one in the path.
"""
import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
SCENARIO = DOCS / "slow-starts" / "transfer.toml"
PAGE = DOCS / "slow-starts.md"
STARTS = ["standard", "hystart", "hystart++", "search", "rapid-start", "careful-resume"]
SIZES = ["100 kB", "1 MB", "10 MB"]
SEEDS = 10
# Of a delivery network, as in studies/delivery-network; larger ones do not end within the run.
DRAWN = '{ median = "30 kB", sigma = 2.2, max = "10 MB" }'
DRAWN_SEEDS = 40
# Two-sided test at 5 %, which finds a difference in 80 % of trials.
QUANTILES = 1.96 + 0.84
# Smaller differences of the mean, in per cent, are not worth a trial.
SMALLEST = 0.5

HEAD = """\
# Which slow start

One transfer of CUBIC over each ready-made path, from an empty link, by `docs/slow_starts.py`:
{runs} runs in the simulator, {seeds} seeds for each path, size and slow start. The
[slow starts](controllers.md#slow-start) are values of `slow_start`; `careful-resume` has one BDP of
the path as `saved_window`, which is the best that it can hope for. There is no other traffic. The
simulator gives the same numbers each time.

## Completion time

Geometric mean over the paths, relative to `standard`; in brackets what is retransmitted.

{overview}

## Each path

Completion time relative to `standard` for a transfer of each size.
{paths}
## Sizes as they come

One size for each of {drawn_seeds} seeds, the same for every slow start, log-normal with a median of
30 kB and a sigma of 2.2, below 10 MB: {drawn_runs} runs. `docs/slow_starts.py --log access.log` prints
this table for the sizes of a log of yours.

{drawn}

## What a trial would need

Connections in each arm of a trial that compares a slow start with `standard`, if its connections
were spread evenly over these paths: `2 (1.96 + 0.84)² s² / d²`, where d is the difference of the
means of the logarithm of the completion time, and s its standard deviation over paths and seeds.
Such a trial finds the difference in four of five cases. "None" stands for a difference below
{smallest} %. Connections that never leave slow start, or that the application limits, add to the
spread and not to the difference.

{trial}
"""


def run(knee, *words):
    """Runs the program, and returns its output."""
    done = subprocess.run([knee, *words], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"knee {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def paths(knee):
    """Returns the names of the ready-made paths."""
    listed = run(knee, "list", "paths", "--format", "text")
    return re.findall(r"^([a-z0-9][a-z0-9-]*): ", listed, re.MULTILINE)


def controller(start):
    saved = ', saved_window = "1 BDP"' if start == "careful-resume" else ""
    return f'{{ name = "cubic", slow_start = "{start}"{saved} }}'


def measured(knee, names, jobs, seeds, workload):
    """Returns, by path, size and slow start, the completion times in s and retransmitted shares.

    `workload` are words that give the flow its workload, or vary it by size; without a size in
    them it is "drawn".
    """
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        run(
            knee, "sweep", str(SCENARIO), "--repeat", str(seeds), "--out", f"{folder}/sweep",
            "--vary", f"path.main.like={','.join(names)}", *workload,
            "--vary", f"flow.flow.cc={','.join(map(controller, STARTS))}",
            *(["--jobs", jobs] if jobs else []))
        for file in sorted(Path(f"{folder}/sweep/runs").iterdir()):
            one = json.loads(file.read_text())
            name, size, start = re.search(
                r'like=(\S+) (?:.*file = "([^"]+)")?.*slow_start = "([^"]+)"', one["point"]).groups()
            values = one["groups"][0]["measures"]
            # A mix of one transfer has percentiles over one.
            time = values.get("completion_s" if size else "transfer_completion_p50_s")
            found.setdefault((name, size or "drawn", start), []).append(
                (one["seed"], time, values["retransmit_ratio"]))
    late = sorted({name for (name, *_), runs in found.items() if any(time is None for _, time, _ in runs)})
    if late:
        sys.exit(f"not completed within the run over {', '.join(late)}: leave large sizes out of the log")
    return {point: [values for _, *values in sorted(runs)] for point, runs in found.items()}


def drawn(knee, names, jobs, sizes):
    """Returns the same for one transfer of a random size; that of a seed is the same for all."""
    workload = f'{{ mix = {{ arrival_interval = "100 ms", count = 1, sizes = {sizes} }} }}'
    found = measured(knee, names, jobs, DRAWN_SEEDS, ["--set", f"flow.flow.workload={workload}"])

    def row(start):
        again = statistics.fmean(a for name in names for _, a in found[name, "drawn", start])
        return f"`{start}`", [
            f"{math.exp(gain(found, names, ['drawn'], start)):.2f}", f"{again:.1%}",
            "" if start == "standard" else connections(found, names, ["drawn"], start)]
    columns = ["completion time", "retransmitted", "connections for a trial"]
    return table("`slow_start`", columns, map(row, STARTS)), sum(map(len, found.values()))


def logarithms(found, name, size, start):
    return [math.log(time) for time, _ in found[name, size, start]]


def gain(found, names, sizes, start):
    """Returns the mean difference of the logarithm of the completion time from `standard`."""
    return statistics.fmean(
        statistics.fmean(logarithms(found, name, size, start))
        - statistics.fmean(logarithms(found, name, size, "standard"))
        for name in names for size in sizes)


def table(first, columns, rows):
    """Returns a table in Markdown; `rows` has the first cell and the others of each."""
    lines = [f"| {first} | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]
    return "\n".join(lines + [f"| {head} | {' | '.join(cells)} |" for head, cells in rows])


def overview(found, names):
    def cell(size, start):
        again = statistics.fmean(a for name in names for _, a in found[name, size, start])
        return f"{math.exp(gain(found, names, [size], start)):.2f} ({again:.1%})"
    rows = [(f"`{start}`", [cell(size, start) for size in SIZES]) for start in STARTS]
    return table("`slow_start`", SIZES, rows)


def each_path(found, names):
    others = STARTS[1:]
    parts = []
    for size in SIZES:
        rows = [
            (f"`{name}`", [f"{math.exp(gain(found, [name], [size], start)):.2f}" for start in others])
            for name in names]
        parts.append(f"\n{size}:\n\n{table('path', [f'`{start}`' for start in others], rows)}\n")
    return "".join(parts)


def connections(found, names, sizes, start):
    """Returns the connections that each arm of a trial needs, rounded to two digits."""
    difference = gain(found, names, sizes, start)
    if abs(math.expm1(difference)) < SMALLEST / 100:
        return "None"
    spread = statistics.pstdev(
        value for name in names for size in sizes for value in logarithms(found, name, size, start))
    needed = 2 * (QUANTILES * spread / difference) ** 2
    digits = max(0, math.floor(math.log10(needed)) - 1)
    return f"{math.ceil(needed / 10**digits) * 10**digits:,}"


def trial(found, names):
    columns = [[size] for size in SIZES] + [SIZES]
    rows = [
        (f"`{start}`", [connections(found, names, sizes, start) for sizes in columns])
        for start in STARTS[1:]]
    return table("`slow_start`", [*SIZES, "all three"], rows)


def page(knee, jobs):
    names = paths(knee)
    sizes = ",".join(f'{{ file = "{size}" }}' for size in SIZES)
    found = measured(knee, names, jobs, SEEDS, ["--vary", f"flow.flow.workload={sizes}"])
    random, random_runs = drawn(knee, names, jobs, DRAWN)
    return HEAD.format(
        drawn=random, drawn_runs=random_runs, drawn_seeds=DRAWN_SEEDS,
        runs=sum(map(len, found.values())), seeds=SEEDS, smallest=f"{SMALLEST:g}",
        overview=overview(found, names), paths=each_path(found, names), trial=trial(found, names))


def main():
    parser = argparse.ArgumentParser(description="Compares slow starts over the ready-made paths.")
    parser.add_argument("--check", action="store_true", help="fail if the page would change")
    parser.add_argument("--log", type=Path, help="print a table for the sizes of this access log")
    parser.add_argument("--jobs", help="number of runs at a time")
    parser.add_argument("knee", nargs="?", default="knee", help="the program")
    options = parser.parse_args()
    if options.log:
        sizes = f"{{ log = {json.dumps(str(options.log.resolve()))} }}"
        print(drawn(options.knee, paths(options.knee), options.jobs, sizes)[0])
        return
    made = page(options.knee, options.jobs)
    if not options.check:
        PAGE.write_text(made)
    elif not PAGE.exists() or PAGE.read_text() != made:
        sys.exit(f"{PAGE.name} would change: run docs/slow_starts.py")


if __name__ == "__main__":
    main()
