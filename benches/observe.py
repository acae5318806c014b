#!/usr/bin/env python3
"""Measures the cost of observing a host.

    benches/observe.py [KNEE] [--rate N] [--seconds S] [--sample 1/N] [--user NAME] [--bpf]

Opens and closes connections over loopback, in a network namespace of its own, at up to RATE
closes per second (two sockets per connection), while `knee observe` listens there as
another user. Prints the closes counted by this program, rows and lost reports, user and
system time of the observer per report, and its maximum resident memory. Fails if reports
and lost ones do not add up to the closes. Needs root for the namespace; the observer runs
unprivileged, except with --bpf, which needs --user root.
"""

import argparse
import ctypes
import json
import os
import pwd
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("knee", nargs="?", default=str(ROOT / "target/release/knee"))
    parser.add_argument("--rate", type=float, default=20_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--sample", default="1/1")
    parser.add_argument("--user", default="nobody")
    parser.add_argument("--bpf", action="store_true")
    given = parser.parse_args()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise SystemExit("observe: needs root, for a network namespace")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
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
        command = [knee, "observe", "--out", out, "--sample", given.sample, "--format", "json"]
        command += ["--bpf"] if given.bpf else []
        observer = subprocess.Popen(
            command,
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=[],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        print(observer.stderr.readline().strip())
        connections = traffic(given.rate, given.seconds)
        time.sleep(1)
        observer.terminate()
        told = json.loads(observer.stdout.read())
        _, status, usage = os.wait4(observer.pid, 0)
        if status != 0:
            raise SystemExit(f"observe: exit status {status}")
    # Both ends of each, and the listening socket, which BPF programs leave out.
    closed = connections * 2 + (0 if given.bpf else 1)
    reports = told["connections"] + told["without_connection"]
    lost = told["lost_reports"]
    cpu = usage.ru_utime + usage.ru_stime
    print(f"closed   {closed} sockets, {closed / given.seconds:.0f} a second")
    print(f"heard    {reports}, lost {lost}, rows {told['rows']}: {told['verdict']}")
    print(f"cost     {cpu / max(reports, 1) * 1e6:.2f} µs a report ({usage.ru_utime:.2f} s user, {usage.ru_stime:.2f} s system)")
    print(f"memory   {usage.ru_maxrss / 1024:.0f} MB")
    if reports + lost != closed:
        raise SystemExit(f"observe: {reports + lost} reports, {closed} sockets closed")


main()
