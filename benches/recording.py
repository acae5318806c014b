#!/usr/bin/env python3
"""Measures the cost of recording a hundred flows every millisecond.

    benches/recording.py [KNEE]

Runs a hundred BBR flows over 1 Gbit/s on the simulator, the second time for twice as long:
with a sample per millisecond, and with one sample at the end. Prints user CPU time and
maximum resident memory of each run, as reported by wait4(2), the cost of the samples in
addition to the simulation (including measures and page), and the bytes written. Fails if
recording takes more user CPU time than simulating, which is the case today (about 1.9 times), or
100 MB. Needs a release build of `knee`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLOWS = 100
SECONDS = (10, 20)
SCENARIO = """
name = "A hundred flows"
duration = "{seconds} s"
sample_interval = "{interval}"
[link.bottleneck]
rate = "1 Gbit/s"
delay = "10 ms"
buffer = "1 BDP"
[path.main]
forward = ["bottleneck"]
reverse_delay = "10 ms"
[[flow]]
cc = "bbr"
count = {flows}
"""


def run(knee, folder, seconds, interval):
    """Returns user CPU seconds, maximum memory in MB, and size of the tables in MB."""
    scenario = folder / "scenario.toml"
    scenario.write_text(SCENARIO.format(seconds=seconds, interval=interval, flows=FLOWS))
    out = folder / "run"
    command = [knee, "run", scenario, "--out", out, "--force"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"recording: {' '.join(map(str, command))} failed")
    written = sum(file.stat().st_size for file in out.glob("*.parquet"))
    return usage.ru_utime, usage.ru_maxrss / 1024, written / 1e6


def main():
    knee = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target/release/knee")
    print(f"{'simulated':>10} {'samples':>10} {'user CPU':>10} {'memory':>10} {'written':>10}")
    fits = True
    with tempfile.TemporaryDirectory() as folder:
        for seconds in SECONDS:
            each = run(knee, Path(folder), seconds, "1 ms")
            none = run(knee, Path(folder), seconds, f"{seconds} s")
            for label, (cpu, memory, written) in (("1 ms", each), ("at the end", none)):
                row = f"{seconds} s".rjust(10) + label.rjust(11)
                print(f"{row} {cpu:8.2f} s {memory:7.0f} MB {written:7.1f} MB")
            writing = each[0] - none[0]
            rows = FLOWS * seconds * 1000
            print(f"  recording: {writing:.2f} s of user CPU, {1e6 * writing / rows:.2f} us a row,")
            print(f"  {writing / none[0]:.2f} of what simulating takes")
            fits &= writing < none[0] and each[1] < 100
    if not fits:
        raise SystemExit("recording: more user CPU than simulating, or more than 100 MB")


if __name__ == "__main__":
    main()
