#!/usr/bin/env python3
"""Measures the cost of observing a host.

    benches/observe.py [KNEE] [--rate N] [--seconds S] [--sample 1/N] [--user NAME] [--bpf]
    benches/observe.py [KNEE] --instructions

Opens and closes connections over loopback, in a network namespace of its own, at up to RATE
closes per second (two sockets per connection), while `knee observe` listens there as
another user. Prints the closes counted by this program, rows and lost reports, user and
system time of the observer per report, and its maximum resident memory. Fails if reports
and lost ones do not add up to the closes. Needs root for the namespace; the observer runs
unprivileged, except with --bpf, which needs --user root.

With --instructions the observer runs under valgrind (callgrind), at 1,000 closes a second for 10 s
and for 40 s. Prints the instructions of its own code that a further report costs, which do not
depend on how busy the machine is, except for how many reports it reads at a time.
"""

import argparse
import ctypes
import json
import os
import pwd
import re
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLONE_NEWNET = 0x40000000


def traffic(rate, seconds):
    """Opens and closes connections, with both ends in this thread; returns their number."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    to = listener.getsockname()
    payload = b"x" * 1000
    connections, began = 0, time.monotonic()
    while (now := time.monotonic() - began) < seconds:
        if connections * 2 > rate * now:
            time.sleep(0.001)
            continue
        client = socket.socket()
        client.connect(to)
        server, _ = listener.accept()
        server.send(payload)
        server.close()
        client.recv(4096)
        client.close()
        connections += 1
    listener.close()
    return connections


def observe(given, rate, seconds, tool=()):
    """Observes traffic; returns closes, the summary, the use of resources and the messages."""
    user = pwd.getpwnam(given.user)
    with tempfile.TemporaryDirectory() as folder:
        # A folder that the other user can read and write.
        os.chmod(folder, 0o755)
        knee = Path(folder) / "knee"
        knee.write_bytes(Path(given.knee).read_bytes())
        knee.chmod(0o755)
        out = Path(folder) / "out"
        out.mkdir()
        os.chown(out, user.pw_uid, user.pw_gid)
        command = [*tool, knee, "observe", "--out", out, "--sample", given.sample]
        command += ["--format", "json"] + (["--bpf"] if given.bpf else [])
        observer = subprocess.Popen(
            command,
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=[],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not (line := observer.stderr.readline()).startswith("Observing"):
            if not line:
                raise SystemExit("observe: the observer did not start")
        print(line.strip())
        connections = traffic(rate, seconds)
        time.sleep(1)
        observer.terminate()
        told, said = json.loads(observer.stdout.read()), observer.stderr.read()
        _, status, usage = os.wait4(observer.pid, 0)
        if status != 0:
            raise SystemExit(f"observe: exit status {status}")
    # Both ends of each, and the listening socket, which BPF programs leave out.
    closed = connections * 2 + (0 if given.bpf else 1)
    reports = told["connections"] + told["without_connection"]
    if reports + told["lost_reports"] != closed:
        raise SystemExit(f"observe: {reports} reports, {closed} sockets closed")
    return closed, told, usage, said


def instructions(given):
    """Prints the instructions of a report: the difference between two runs."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    runs = []
    for seconds in (10, 40):
        _, told, _, said = observe(given, 1000, seconds, tool)
        counted = re.search(r"Collected : (\d+)", said)
        runs.append((told["connections"], int(counted[1])))
    (few, less), (many, more) = runs
    print(f"cost     {(more - less) / (many - few):.0f} instructions a report")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("knee", nargs="?", default=str(ROOT / "target/release/knee"))
    parser.add_argument("--rate", type=float, default=20_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--sample", default="1/1")
    parser.add_argument("--user", default="nobody")
    parser.add_argument("--bpf", action="store_true")
    parser.add_argument("--instructions", action="store_true")
    given = parser.parse_args()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise SystemExit("observe: needs root, for a network namespace")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    if given.instructions:
        instructions(given)
        return
    closed, told, usage, _ = observe(given, given.rate, given.seconds)
    reports = told["connections"] + told["without_connection"]
    user, system = (time / max(reports, 1) * 1e6 for time in (usage.ru_utime, usage.ru_stime))
    print(f"closed   {closed} sockets, {closed / given.seconds:.0f} a second")
    print(f"heard    {reports}, lost {told['lost_reports']}, rows {told['rows']}: {told['verdict']}")
    print(f"cost     {user + system:.2f} µs a report, {user:.2f} user and {system:.2f} system")
    print(f"memory   {usage.ru_maxrss / 1024:.0f} MB")


main()
