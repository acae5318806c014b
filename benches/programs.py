#!/usr/bin/env python3
"""Compares what Knee counts of programs with what they count themselves, over 60 cells.

    programs.py KNEE OUT [--kind tcp|quic] [--cells N] [--tries 3]

As root, from anywhere. 24 cells of TCP (curl) and 36 of QUIC (quic-go and quinn, built by
programs/build, and Debian's ngtcp2, by its qlog): rate, RTT, buffer, and controller. Over TCP, the bytes retransmitted must be those that
the server's kernel counted; over QUIC, the packets that links dropped may differ from those that the
server's stack took for lost by 2, or by 1 % if that is more. A row is added to OUT/cells.csv
as soon as its cell is done, and the same command goes on behind the last one. Both count the same on a
host that is late, over TCP; over QUIC a run that is not valid is tried again, since a stack takes what
is late for lost, and then counts as not tried. Ends with 1 if a cell is apart."""

import argparse
import csv
import itertools
import json
import pathlib
import re
import subprocess
import sys

PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "programs"
# Where ngtcp2.toml has the server write what it takes for lost.
QLOG = PROGRAMS / "qlog"
HEAD = ["kind", "cell", "ours", "theirs", "is_sound", "verdict", "reason"]
BYTES = {"10 Mbit/s": "5 MB", "50 Mbit/s": "20 MB"}


def cells(kind):
    """Yields name, scenario, flow and settings of each cell."""
    variants = {
        "tcp": [("curl", "cubic"), ("curl", "bbr")],
        "quic": [("quic-go", "newreno"), ("quinn", "cubic"), ("ngtcp2", "cubic")],
    }[kind]
    grid = itertools.product(variants, BYTES, [10, 40], ["0.5 BDP", "1 BDP", "4 BDP"])
    for (flow, controller), rate, one_way_ms, buffer in grid:
        name = f"{flow}-{controller}-{rate.split()[0]}mbit-{2 * one_way_ms}ms-{buffer.split()[0]}bdp"
        yield name, f"{flow}.toml", flow, [
            f"flow.{flow}.cc={controller}",
            f"flow.{flow}.program.bytes={BYTES[rate]}",
            f"link.bottleneck.rate={rate}",
            f"link.bottleneck.delay={one_way_ms} ms",
            f"link.bottleneck.buffer={buffer}",
            f"path.main.reverse_delay={one_way_ms} ms",
        ]


def run(knee, out, scenario, settings):
    QLOG.mkdir(exist_ok=True)
    for left in QLOG.glob("*.sqlog"):
        left.unlink()
    words = [knee, "run", scenario, "--on", "programs", "--out", str(out), "--force"]
    for setting in settings:
        words += ["--set", setting]
    ended = subprocess.run(words, cwd=PROGRAMS, capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(ended.stderr)
    return json.loads((out / "summary.json").read_text())


def counts(kind, out, flow, summary):
    """What Knee counted, and what the program did; None if it told nothing."""
    told = (out / "output" / f"{flow}.server.out").read_text()
    counted = re.findall(r"(?:lost|retransmitted) (\d+)", told)
    theirs = sum(map(int, counted)) if counted else None
    if flow == "ngtcp2":
        logs = [log.read_text() for log in QLOG.glob("*.sqlog")]
        theirs = sum(log.count('packet_lost"') for log in logs) if logs else None
    if kind == "tcp":
        return summary["flows"][0]["retransmitted_bytes"], theirs
    traffic = json.loads((out / "traffic.json").read_text())
    sent = [one for one in traffic["flows"] if one["source"].endswith(":5201")]
    return sum(one["dropped_packets"] for one in sent), theirs


def is_sound(kind, out, summary):
    """Whether the counts say something: the transfer is whole, and the observer saw all of it."""
    whole = summary["flows"][0]["completion_us"] is not None
    seen = json.loads((out / "traffic.json").read_text())["missed_events"] == 0
    return whole and seen and (kind == "tcp" or summary["verdict"] == "valid")


def is_apart(kind, ours, theirs):
    return abs(ours - theirs) > (0 if kind == "tcp" else max(2, ours / 100))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("knee", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--kind", choices=["tcp", "quic"], action="append")
    parser.add_argument("--cells", type=int, help="at most this many in this run")
    parser.add_argument("--tries", type=int, default=3)
    arguments = parser.parse_args()
    knee, out = str(arguments.knee.resolve()), arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    table = out / "cells.csv"
    rows = list(csv.DictReader(table.open())) if table.exists() else []
    done = {row["cell"] for row in rows}
    todo = [(kind, *cell) for kind in arguments.kind or ["tcp", "quic"] for cell in cells(kind)]
    todo = [cell for cell in todo if cell[1] not in done][: arguments.cells]
    with table.open("a", newline="") as file:
        writer = csv.DictWriter(file, HEAD)
        if not rows:
            writer.writeheader()
        for number, (kind, name, scenario, flow, settings) in enumerate(todo, 1):
            for _ in range(arguments.tries):
                summary = run(knee, out / name, scenario, settings)
                ours, theirs = counts(kind, out / name, flow, summary)
                sound = theirs is not None and is_sound(kind, out / name, summary)
                if sound:
                    break
            values = [kind, name, ours, theirs, sound, summary["verdict"], summary.get("verdict_reason")]
            row = dict(zip(HEAD, values))
            writer.writerow(row)
            file.flush()
            rows.append({key: str(value) for key, value in row.items()})
            print(f"{number} of {len(todo)}: {name}: {ours} here, {theirs} there, {row['verdict']}")
    sound = [row for row in rows if row["is_sound"] == "True"]
    apart = [row for row in sound if is_apart(row["kind"], int(row["ours"]), int(row["theirs"]))]
    print(f"{len(sound)} cells, {len(rows) - len(sound)} not tried, {len(apart)} apart")
    for row in apart:
        print(f"apart: {row['cell']}: {row['ours']} here, {row['theirs']} there")
    sys.exit(bool(apart))


if __name__ == "__main__":
    main()
