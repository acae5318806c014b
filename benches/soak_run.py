#!/usr/bin/env python3
"""Runs an experiment by `knee steer run` for an hour, with `knee observe` beside it.

    benches/soak_run.py [KNEE] [--minutes N] [--closes N]

In a network namespace of its own, clients of 250 addresses get 10 kB over loopback, so that N
sockets close a second, 2,000 by default. The experiment compares CUBIC and Reno, between which
there is no difference there: nothing is lost, and the window is never full. Blocks last 12 s.

Fails if the verdict is better or worse (which happens by chance in under 5 % of the runs),
if a report was lost, if rows and lost reports are not all closes, if over a tenth of the triples
are left out because the host was too busy, if the memory of a process grows (its maximum in the
last third by over 10 % and 8 MB above that in the first), or if anything stays behind. Needs root
and a build with the feature bpf. With fewer than 16 triples, below 11 minutes, there is no
interval.
"""

import argparse
import csv
import ctypes
import itertools
import json
import re
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
BLOCK_S, PAIRS = 12, 2
POLICY = """
name = "soak"
[[group]]
name = "clients"
prefixes = ["127.0.1.0/24"]
ports = [{port}]
controller = "reno"
control = "cubic"
"""


def isolate():
    """Enters namespaces of network and mounts, with a BPF file system."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET | CLONE_NEWNS) != 0:
        raise SystemExit("soak_run: needs root, for namespaces")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], check=True)


def traffic(listener, closes, over):
    """Opens and closes connections until it is over; returns their number."""
    to, payload = listener.getsockname(), b"x" * 10_000
    connections, began = 0, time.monotonic()
    while not over.is_set():
        if connections * 2 > closes * (time.monotonic() - began):
            time.sleep(0.001)
            continue
        client = socket.socket()
        client.bind((f"127.0.1.{connections * 7 % 250 + 1}", 0))
        client.connect(to)
        server, _ = listener.accept()
        server.sendall(payload)
        server.shutdown(socket.SHUT_WR)
        while client.recv(65536):
            pass
        client.close()
        server.close()
        connections += 1
    return connections


def memory_kb(process):
    """Returns the resident memory of a process, 0 once it has ended."""
    try:
        text = Path(f"/proc/{process.pid}/status").read_text()
    except FileNotFoundError:
        return 0
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return int(found[1]) if found else 0


def grown(name, memory):
    """Prints how the memory of a process developed; returns what is wrong."""
    memory = [kb for kb in memory if kb]
    third = max(1, len(memory) // 3)
    first, last = max(memory[:third]), max(memory[-third:])
    print(f"memory   {name}: {first} kB in the first third, {last} kB in the last", flush=True)
    is_flat = last <= 1.1 * first + 8192
    return [] if is_flat else [f"the memory of {name} grew from {first} to {last} kB"]


def verdicts(text):
    """Returns the verdicts of the table that has them, one for each class of sizes."""
    rows = list(csv.reader(text.splitlines()))
    begin = next((at for at, row in enumerate(rows) if "verdict" in row), len(rows) - 1)
    table = itertools.takewhile(lambda row: len(row) == len(rows[begin]), rows[begin + 1:])
    verdicts = [row[rows[begin].index("verdict")] for row in table]
    return [verdict for verdict in verdicts if verdict]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("knee", nargs="?", default=ROOT / "target/release/knee")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--closes", type=float, default=2000)
    given = parser.parse_args()
    knee = Path(given.knee).resolve()
    isolate()
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    triples = max(4, (int(60 * given.minutes / BLOCK_S) - 2 * PAIRS) // 3)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "policy.toml").write_text(POLICY.format(port=listener.getsockname()[1]))
        line = [knee, "observe", "--out", folder / "out", "--format", "json"]
        line += ["--assignment", folder / "assignment"]
        observe = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        observe.stderr.readline()
        over, done = threading.Event(), []
        clients = threading.Thread(
            target=lambda: done.append(traffic(listener, given.closes, over))
        )
        clients.start()
        began = time.monotonic()
        line = [knee, "steer", "run", folder / "policy.toml", "--blocks", folder / "blocks"]
        line += ["--journal", folder / "own/journal", "--assignment", folder / "assignment"]
        line += ["--block", f"{BLOCK_S} s", "--burn-in", "2 s", "--triples", str(triples)]
        line += ["--calibration", str(PAIRS), "--allow", "short-block"]
        line += ["--allow", "short-burn-in", "--allow", "few-triples", "--format", "csv"]
        with (folder / "said").open("w+") as said:
            run = subprocess.Popen(line, stdout=said, stderr=subprocess.STDOUT)
            memory = {"knee steer run": [], "knee observe": []}
            while run.poll() is None:
                memory["knee steer run"].append(memory_kb(run))
                memory["knee observe"].append(memory_kb(observe))
                time.sleep(1)
            said.seek(0)
            text = said.read()
        if not (folder / "blocks").exists():
            over.set()
            clients.join()
            observe.terminate()
            observe.wait()
            raise SystemExit(text)
        seconds = time.monotonic() - began
        over.set()
        clients.join()
        listener.close()
        time.sleep(1)
        observe.terminate()
        told = json.loads(observe.communicate()[0])
        lines = [json.loads(line) for line in (folder / "blocks").read_text().splitlines()]
        blocks = [line for line in lines if "number" in line]
        left = list(Path("/sys/fs/bpf/knee-steer").glob("*"))
        status = subprocess.run(
            [knee, "steer", "status", "--journal", folder / "own/journal"],
            capture_output=True,
            text=True,
        )
    closes = 2 * done[0] + 1
    heard = told["connections"] + told["without_connection"]
    void = [block["number"] for block in blocks if block.get("void")]
    lost = told["lost_reports"] + sum(block["lost"] for block in blocks)
    print("\n".join(line for line in text.splitlines() if not line.startswith("Done: ")))
    print(f"\nran      {seconds:.0f} s, {closes / seconds:.0f} closes a second")
    print(f"closed   {closes} sockets, {heard} reports, {lost} lost, {len(blocks)} blocks, {len(void)} void")
    wrong = [each for name, kb in memory.items() for each in grown(name, kb)]
    if run.returncode != 0:
        wrong.append(f"knee steer run ended with {run.returncode}")
    found = verdicts(text)
    if not found or not set(found) <= {"alike", "undecided"}:
        wrong.append(f"the verdicts are not: alike or undecided, but: {', '.join(found) or 'none'}")
    if lost or heard + told["lost_reports"] != closes:
        wrong.append(f"{closes} closes, {heard} reports, {lost} lost")
    out = {(number - 2 * PAIRS) // 3 for number in void if number >= 2 * PAIRS}
    if len(out) > triples / 10:
        wrong.append(f"{len(out)} of {triples} triples are left out, the host is too busy")
    if left or status.returncode != 0:
        wrong.append(f"left behind: {left} {status.stdout}")
    if wrong:
        raise SystemExit("\n".join(wrong))
    print("The answer is right, the memory is flat, and nothing is lost or left behind.")


if __name__ == "__main__":
    main()
