#!/usr/bin/env python3
"""Rehearses experiments over real TCP for an hour, and checks answers that are known.

    benches/soak.py [KNEE] [--minutes N]

Two experiments by `knee steer rehearse --on kernel`, between hosts in network namespaces over
emulated links, each half of the time:

- CUBIC against itself, under two names: it is neither better nor worse;
- BBR against CUBIC at 1 % random loss: BBR is faster. CUBIC reaches about
  sqrt(3/2) * 1460 B / (40 ms * sqrt(0.01)) = 3.6 Mbit/s (Mathis et al., 1997), of 20.

Fails if an answer is wrong (which happens by chance to the first in under 5 % of the runs), if
over a tenth of the triples are left out because the host was too busy, if a process, a device
or a mounted namespace stays behind, or if the memory of the process grows: its maximum in the
last third of the time by over 10 % and 8 MB above that in the first third. Blocks last 12 s,
three times what nearly all transfers take. There are at least 16 triples each, which takes 24
minutes. Needs root and the kernel's module tcp_bbr.
"""

import argparse
import re
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK_S, SETUP_S = 12, 1
PAIRS, TRIPLES_MIN = 3, 16
SCENARIO = """
name = "soak"
duration = "{block} s"
warmup = "3 s"
sample_interval = "100 ms"
[link.bottleneck]
rate = "20 Mbit/s"
delay = "20 ms"
buffer = "2 BDP"
loss = "{loss} %"
[path.main]
forward = ["bottleneck"]
reverse_delay = "20 ms"
""" + "".join(
    f"""
[[flow]]
name = "{name}"
path = "main"
cc = "{{{name}}}"
workload = {{{{ mix = {{{{ arrival_interval = "1.2 s", process = "all", sizes = {{{{ median = "800 kB", sigma = 0.05, max = "900 kB" }}}} }}}} }}}}
"""
    for name in ("tested", "usual")
)


def left_behind():
    """Returns the devices of this host and the namespaces that are mounted."""
    links = subprocess.run(["ip", "-o", "link"], check=True, capture_output=True, text=True)
    names = {line.split(":")[1].strip() for line in links.stdout.splitlines()}
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return names | {line.split()[4] for line in mounts if " - nsfs " in line}


def processes_of(session):
    """Returns the processes of a session, as command lines."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(after_name[3]) == session and after_name[0] != "Z":
                found.append((folder / "cmdline").read_text().replace("\0", " ").strip())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def memory_kb(process):
    """Returns the resident memory of a process, 0 once it has ended."""
    try:
        text = Path(f"/proc/{process.pid}/status").read_text()
    except FileNotFoundError:
        return 0
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return int(found[1]) if found else 0


def rehearse(knee, file, triples):
    """Runs an experiment; returns its output and the memory over time."""
    line = [knee, "steer", "rehearse", file, "--on", "kernel", "--truth", "0"]
    line += ["--triples", str(triples), "--calibration", str(PAIRS)]
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(line, stdout=out, start_new_session=True)
        memory = []
        while process.poll() is None:
            memory.append(memory_kb(process))
            time.sleep(1)
        out.seek(0)
        text = out.read()
    if processes_of(process.pid):
        raise SystemExit(f"left behind: {', '.join(processes_of(process.pid))}")
    if process.returncode != 0:
        raise SystemExit(f"knee steer rehearse ended with {process.returncode}")
    return text, [kb for kb in memory if kb]


def check(knee, folder, minutes, loss, tested, answer):
    """Checks one experiment against its answer; returns what is wrong."""
    file = folder / f"{tested}.toml"
    file.write_text(SCENARIO.format(block=BLOCK_S, loss=loss, tested=tested, usual="cubic"))
    blocks = int(60 * minutes / (BLOCK_S + SETUP_S))
    triples = max(TRIPLES_MIN, (blocks - 2 * PAIRS) // 3)
    text, memory = rehearse(knee, file, triples)
    row = next((line for line in text.splitlines() if "100 kB to 1 MB" in line), "no result")
    found = re.search(r"(\d+) of \d+ triples are left out", text)
    void = int(found[1]) if found else 0
    third = max(1, len(memory) // 3)
    first, last = max(memory[:third]), max(memory[-third:])
    print(f"{tested} against cubic, {triples} triples, {void} left out, "
          f"memory {first} kB, then {last} kB:\n  {row.strip()}", flush=True)
    wrong = []
    if not any(word in row for word in answer):
        wrong.append(f"{tested}: not {' or '.join(answer)}")
    if void > triples / 10:
        wrong.append(f"{tested}: {void} of {triples} triples left out, the host is too busy")
    if last > 1.1 * first + 8192:
        wrong.append(f"{tested}: memory grew from {first} to {last} kB")
    if "are too short" in text or "is too short" in text:
        wrong.append(f"{tested}: blocks are too short for the transfers")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("knee", nargs="?", default=ROOT / "target/release/knee")
    parser.add_argument("--minutes", type=float, default=60)
    arguments = parser.parse_args()
    before, half = left_behind(), arguments.minutes / 2
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        wrong = check(arguments.knee, folder, half, 0, "cubic", ("alike", "undecided"))
        wrong += check(arguments.knee, folder, half, 1, "bbr", ("better",))
    left = left_behind() - before
    if left:
        wrong.append(f"left behind: {', '.join(sorted(left))}")
    if wrong:
        raise SystemExit("\n".join(wrong))
    print("Both answers are right, the memory is flat, and nothing is left behind.")


if __name__ == "__main__":
    main()
