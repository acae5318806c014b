#!/usr/bin/env python3
"""Counts how often experiments on the packet simulator give the right answer.

    benches/switchback.py KNEE [EXPERIMENTS]

For buffers from half a BDP to eight: with the same controller as A and as B, how often an
effect is found; with BBR tested against CUBIC, how often the interval covers the true
value, which is known from many runs with the same arrivals under each, and how often the
verdict and a split test are wrong; then how often an effect of some 5 % is found, over a quiet
link with blocks of ten minutes. The guard does not count here: a stop says nothing about
speed. Takes some ten minutes on two cores with 20 experiments.
"""

import csv
import io
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SCENARIO = """
name = "mix"
duration = "{duration} s"
warmup = "8 s"
sample_interval = "1 s"
[link.bottleneck]
rate = "20 Mbit/s"
delay = "20 ms"
buffer = "{buffer} BDP"
[path.main]
forward = ["bottleneck"]
reverse_delay = "20 ms"
""" + "".join(
    f"""
[[flow]]
name = "{name}"
path = "main"
cc = "{{{name}}}"
workload = {{{{ mix = {{{{ arrival_interval = "{{interval}} s", process = "all", sizes = {{{{ median = "1.2 MB", sigma = {{sigma}}, max = "3 MB" }}}} }}}} }}}}
"""
    for name in ("tested", "usual")
)
BUSY = {"duration": 40, "interval": 1.6, "sigma": 0.3}
QUIET = {"duration": 600, "interval": 3.2, "sigma": 0.1, "buffer": 3}
SIZES = "1 to 3 MB"
TRIPLES = 24
TRIPLES_POWER = 48
# Two directions, two classes of sizes, 5 %.
THRESHOLD = 80


def rehearse(knee, file, *options):
    """Returns the figures of the larger class, from all tables."""
    command = [knee, "steer", "rehearse", file, "--format", "csv", "--jobs", "1", *options]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["objects"] == SIZES]
    tables = [row for row in rows if row["table"] in ("classes", "halves")]
    return {key: value for row in tables for key, value in row.items() if value}


def main(knee, experiments=20):
    print(f"{experiments} experiments of {TRIPLES} triples each")
    print("buffer  seen without effect  truth (95 %)            covered  wrong sign  split wrong")
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor() as pool:
        for buffer in (0.5, 1, 2, 4, 8):
            null, real = Path(scratch, "null.toml"), Path(scratch, "real.toml")
            null.write_text(SCENARIO.format(buffer=buffer, tested="cubic", usual="cubic", **BUSY))
            real.write_text(SCENARIO.format(buffer=buffer, tested="bbr", usual="cubic", **BUSY))
            truth = rehearse(knee, real, "--triples", "16", "--truth", "200")
            middle, low, high = (float(truth[key]) for key in ("truth", "truth_low", "truth_high"))
            seeds = [str(1 + 10_000 * number) for number in range(experiments)]
            options = ("--triples", str(TRIPLES), "--truth", "0", "--seed")
            nulls = list(pool.map(lambda seed: rehearse(knee, null, *options, seed), seeds))
            reals = list(pool.map(lambda seed: rehearse(knee, real, *options, seed), seeds))
            seen = sum(row["verdict"] in ("better", "worse") for row in nulls)
            covered = sum(
                float(row["b_minus_a_low"]) <= middle <= float(row["b_minus_a_high"]) for row in reals
            )
            # If the interval of the true value includes zero, any sign is wrong.
            sign = (low > 0) - (high < 0)
            says = {"better": 1, "worse": -1}
            wrong = sum(says.get(row["verdict"], sign) != sign for row in reals)
            split = sum(
                (float(row["split_test_low"]) > 0) - (float(row["split_test_high"]) < 0)
                not in (0, sign)
                for row in reals
            )
            shown = f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"
            print(
                f"{buffer:>4} BDP {seen:>19} {shown:<25} {covered:>8} {wrong:>11} {split:>12}",
                flush=True,
            )
        power(knee, Path(scratch, "quiet.toml"), pool, experiments)


def power(knee, file, pool, experiments):
    """Counts experiments whose evidence for a true effect is enough after the last triple."""
    file.write_text(SCENARIO.format(tested="bbr", usual="cubic", **QUIET))
    truth = rehearse(knee, file, "--triples", "1", "--truth", "200")
    middle, low, high = (float(truth[key]) for key in ("truth", "truth_low", "truth_high"))
    options = ("--triples", str(TRIPLES_POWER), "--truth", "0", "--seed")
    seeds = [str(7 + 10_000 * number) for number in range(experiments)]
    rows = list(pool.map(lambda seed: rehearse(knee, file, *options, seed), seeds))
    right = "better" if middle > 0 else "worse"
    # A guard may stop an experiment earlier; the evidence goes on.
    found = sum(
        float(row["evidence"]) >= THRESHOLD and (float(row["b_minus_a"]) > 0) == (middle > 0)
        for row in rows
    )
    covered = sum(
        float(row["b_minus_a_low"]) <= middle <= float(row["b_minus_a_high"]) for row in rows
    )
    print(
        f"an effect of {middle:+.1f} % ({low:+.1f} to {high:+.1f}), {TRIPLES_POWER} triples of "
        f"{QUIET['duration']} s: {right} is found in {found} of {experiments}, covered in {covered}"
    )


if __name__ == "__main__":
    main(sys.argv[1], *(int(argument) for argument in sys.argv[2:3]))
