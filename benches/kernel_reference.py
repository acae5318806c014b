#!/usr/bin/env python3
"""Repeats measurements of Linux's TCP on the ground "kernel".

    sudo python3 benches/kernel_reference.py --knee target/release/knee FOLDER

FOLDER contains CSV files with one run per row, with the columns name, rate_mbit, rtt_ms,
buf_bytes, loss, cc, flows, goodput_mbit, retrans_ratio and srtt_p50 (milliseconds). Rows
that differ only in their repeat are combined: the median counts, and the spread of the
repeats is allowed in addition to the tolerances (goodput 2 %, median smoothed RTT 10 %,
retransmissions after the warm-up 20 % or 0.2 points). Rows of controllers that this kernel
lacks are skipped. Runs take real time: 40 s each, with staggered starts 80 s.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

KEYS = ("rate_mbit", "rtt_ms", "buf_bytes", "loss", "cc", "flows")
FIGURES = ("goodput_mbit", "srtt_p50", "retrans_ratio")
KNOWN = ("bbr", "cubic", "reno")


def rows(folder):
    """Returns the repeats of each setting."""
    found = {}
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            if not set(KEYS + FIGURES) <= set(reader.fieldnames or ()):
                continue
            for row in reader:
                # Five flows with staggered starts are a separate setting.
                setting = tuple(row[key] for key in KEYS) + ("stag" in row["name"],)
                if row["cc"] in KNOWN:
                    found.setdefault(setting, []).append({k: float(row[k]) for k in FIGURES})
    return found


def scenario(setting):
    rate, rtt, buffer, loss, controller, flows, staggered = setting
    half = float(rtt) / 2
    interval = "2 s" if staggered else "0 s"
    seconds, warmup = (80, "11 s") if staggered else (40, "5 s")
    return f"""name = "{controller} {rate} Mbit/s {rtt} ms"
duration = "{seconds} s"
warmup = "{warmup}"
[link.bottleneck]
rate = "{rate} Mbit/s"
delay = "{half} ms"
buffer = "{buffer} B"
loss = "{float(loss) * 100} %"
[path.main]
forward = ["bottleneck"]
reverse_delay = "{half} ms"
[[flow]]
name = "flow"
cc = "{controller}"
count = {flows}
start_interval = "{interval}"
"""


def measured(knee, setting):
    """Returns goodput in Mbit/s, RTT in ms, retransmitted ratio, and the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "row.toml")
        path.write_text(scenario(setting))
        command = [knee, "run", str(path), "--on", "kernel", "--json", "--out", folder + "/out"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.stdout:
            sys.exit(done.stderr)
    summary = json.loads(done.stdout)
    flows = summary["flows"]

    def mean(value):
        return statistics.fmean(value(flow) for flow in flows)

    return {
        "goodput_mbit": sum(flow["goodput_bps"] for flow in flows) / 1e6,
        "srtt_p50": mean(lambda flow: flow["srtt_us"]["p50"]) / 1e3,
        "retrans_ratio": mean(lambda flow: flow["retransmit_ratio_steady"]),
    }, summary["verdict"]


def allowed(figure, median, repeats):
    spread = max(abs(value - median) for value in repeats)
    part = {"goodput_mbit": 0.02, "srtt_p50": 0.1, "retrans_ratio": 0.2}[figure] * median
    return max(spread, part, 0.002 if figure == "retrans_ratio" else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--knee", default="target/release/knee")
    parser.add_argument("--only", default="", help="rows whose setting contains this")
    arguments = parser.parse_args()
    print("setting | goodput: reference, here | RTT | sent again | agrees | run")
    agreed = count = 0
    for setting, repeats in rows(arguments.folder).items():
        words = "{}Mbit/s {}ms {}B loss {} {} x{}".format(*setting[:6]) + " staggered" * setting[6]
        if arguments.only not in words:
            continue
        here, verdict = measured(arguments.knee, setting)
        cells, fits = [], True
        for figure in FIGURES:
            values = [repeat[figure] for repeat in repeats]
            median = statistics.median(values)
            good = abs(here[figure] - median) <= allowed(figure, median, values)
            fits &= good
            cells.append(f"{median:.4g}, {here[figure]:.4g}{'' if good else ' !'}")
        count += 1
        agreed += fits
        print(words, *cells, "yes" if fits else "no", verdict, sep=" | ", flush=True)
    print(f"{agreed} of {count} agree")


if __name__ == "__main__":
    main()
