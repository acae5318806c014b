#!/usr/bin/env python3
"""Checks `knee observe --open` against `ss`, and against planted drops.

    benches/open.py [KNEE] [--minutes 10] [--connections 1000] [--repeats 20] [--out FILE]

First, connections send a little in each second and are quiet at its end, when `ss -ti` and the
observer read them: all figures of both must be the same. Prints the share of connections and
seconds in which they are, and the processor time of the observer. Then packets are dropped on
purpose, in a queue of the sending host, in its veth, in a router, in veth and router, and nowhere:
prints how often the sentence names these places and no others.

Needs root for network namespaces, and ip, tc and ss. Parts that are complete are kept in FILE (JSON
lines), and a further call goes on from there.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPU_MAX, SAME_MIN = 0.03, 0.99
HOSTS = ["sender", "router", "receiver"]
RECEIVER = ("10.9.2.1", 5201)
# Commands of the sender and of the router, and the kinds of places that are to be named.
CASES = {
    "qdisc": ("tbf rate 20mbit burst 10k limit 6k", "tbf rate 200mbit burst 10k limit 40m", False),
    "interface": ("", "tbf rate 50mbit burst 10k limit 40m", True),
    "network": ("", "tbf rate 20mbit burst 10k limit 20k", False),
    "interface+network": ("", "tbf rate 50mbit burst 10k limit 12k", True),
    "nothing": ("", "tbf rate 20mbit burst 10k limit 40m", False),
}
SECONDS_OF_CASE = 6


class Network:
    """A sender, a router and a receiver in namespaces, which end with the process."""

    def __init__(self):
        self.name = f"knee-open-{os.getpid()}"
        for host in HOSTS:
            subprocess.run(["ip", "netns", "add", f"{self.name}-{host}"], check=True)
            self.ip(host, "link set lo up")
        for number, (host, peer) in enumerate([("sender", "left"), ("receiver", "right")], 1):
            router = f"{self.name}-router"
            link = "link add eth0 gso_max_segs 1 type veth peer name"
            self.ip(host, f"{link} {peer} netns {router}")
            for place, device, end in [(host, "eth0", 1), ("router", peer, 2)]:
                self.ip(place, f"addr add 10.9.{number}.{end}/24 dev {device}")
                self.ip(place, f"link set {device} up")
            self.ip(host, f"route add default via 10.9.{number}.2")
        self.run("router", ["sysctl", "-qw", "net.ipv4.ip_forward=1"])

    def close(self):
        for host in HOSTS:
            subprocess.run(["ip", "netns", "delete", f"{self.name}-{host}"], check=True)

    def ip(self, host, line):
        subprocess.run(["ip", "-n", f"{self.name}-{host}", *line.split()], check=True)

    def inside(self, host, command):
        return ["ip", "netns", "exec", f"{self.name}-{host}", *map(str, command)]

    def run(self, host, command):
        return subprocess.run(
            self.inside(host, command), check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    def queue(self, host, device, kind):
        subprocess.run(
            self.inside(host, ["tc", "qdisc", "del", "dev", device, "root"]),
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if kind:
            self.run(host, ["tc", "qdisc", "add", "dev", device, "root", *kind.split()])

    def traffic(self, *arguments):
        """Starts this program as receiver and as sender; returns both."""
        both = []
        for host, role in [("receiver", "receive"), ("sender", "send")]:
            command = self.inside(host, [sys.executable, __file__, "--role", role, *arguments])
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            process.stdout.readline()
            both.append(process)
        return both


def receive():
    listener = socket.create_server(RECEIVER, backlog=4096)
    print("ready", flush=True)

    def read(connection):
        try:
            while connection.recv(1 << 18):
                pass
        except OSError:
            pass

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=read, args=(connection,), daemon=True).start()


def send_steadily():
    sockets = [socket.create_connection(RECEIVER) for _ in range(4)]
    print("ready", flush=True)

    def write(connection):
        try:
            while True:
                connection.sendall(bytes(1 << 14))
        except OSError:
            pass

    for one in sockets:
        threading.Thread(target=write, args=(one,), daemon=True).start()
    sys.stdin.read()


def send_in_turns(connections):
    """Sends on all connections whenever a line is read."""
    sockets = [socket.create_connection(RECEIVER) for _ in range(connections)]
    print("ready", flush=True)
    for turn, _ in enumerate(sys.stdin):
        for number, one in enumerate(sockets):
            # From a packet to a window, not the same in each second.
            one.sendall(bytes(500 + (number * 7919 + turn * 104729) % 6_000))


def read_ss(text):
    """The figures of `ss -tinH`, by local port."""
    found = {}
    lines = text.splitlines()
    for head, figures in zip(lines[::2], lines[1::2]):
        port = int(head.split()[-2].rsplit(":", 1)[1])

        def number(name, figures=figures):
            match = re.search(rf"(?:^|\s){name}:([0-9.]+)", figures)
            return float(match[1]) if match else 0

        sent, again = number("bytes_sent"), number("bytes_retrans")
        found[port] = {
            "sent_bytes": sent,
            "retransmitted_bytes": again,
            # The kernel counts SYN and FIN.
            "acked_bytes": min(number("bytes_acked"), sent - again),
            "srtt_us": round(number("rtt") * 1000),
            "rtt_min_us": round(number("minrtt") * 1000),
            "window_bytes": number("cwnd") * number("mss"),
            "unacked_packets": number("unacked"),
        }
    return found


def processor_seconds(process):
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def beside_ss(network, knee, seconds, connections):
    """Reads connections by both for this long."""
    network.queue("router", "right", "tbf rate 200mbit burst 20k limit 100k")
    receiver, sender = network.traffic("--connections", connections)
    same = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        command = network.inside("sender", [knee, "observe", "--open", "--json", "--out", folder])
        observer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        first = json.loads(observer.stdout.readline())
        at = first["unix_ns"] / 1e9
        begun, used = time.monotonic(), processor_seconds(observer.pid)
        again, wrong = 0, {}
        while time.monotonic() - begun < seconds:
            # The next reading is at `at + 1`; connections are quiet from half a second before.
            sender.stdin.write(b"\n")
            sender.stdin.flush()
            time.sleep(max(0.0, at + 0.8 - time.time()))
            of_ss = read_ss(network.run("sender", ["ss", "-tinH", "state", "established"]))
            told = json.loads(observer.stdout.readline())
            at = told["unix_ns"] / 1e9
            again += sum(row["interval"]["retransmitted_packets"] for row in told["rows"])
            for row in told["rows"]:
                theirs = of_ss.get(row["local_port"], {})
                differ = [name for name, value in theirs.items() if (row[name] or 0) != value]
                compared += 1
                same += bool(theirs) and not differ
                for name in differ:
                    wrong[name] = wrong.get(name, 0) + 1
        elapsed = time.monotonic() - begun
        cost = (processor_seconds(observer.pid) - used) / elapsed
        memory = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{observer.pid}/status").read_text())
        observer.terminate()
        observer.wait()
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    for process in (sender, receiver):
        process.kill()
    return {
        "part": "ss",
        "seconds": elapsed,
        "compared": compared,
        "same": same / max(compared, 1),
        "differ": wrong,
        "retransmitted_packets": again,
        "processor": cost,
        "memory_mb": int(memory[1]) / 1024,
        "file_bytes": size,
    }


def named(told):
    """The kinds of places that a sentence names."""
    lost = told["lost"]
    kinds = {place["kind"] for place in lost["places"]}
    if lost["network_packets"] > 0:
        kinds.add("network")
    assert all(place["place"] in lost["sentence"] for place in lost["places"]), lost
    assert ("in the network" in lost["sentence"]) == ("network" in kinds), lost
    assert lost["sentence"].startswith("Nothing was lost") == (not kinds), lost
    return "+".join(sorted(kinds)) or "nothing"


def planted(network, knee, case):
    """Drops packets in one way; returns what the last sentence says."""
    own, routers, refuses = CASES[case]
    network.queue("sender", "eth0", own)
    network.queue("router", "right", routers)
    receiver, sender = network.traffic()
    ended = threading.Event()

    def refuse():
        # A veth drops what is larger than its peer takes.
        while refuses and not ended.wait(0.2):
            network.ip("router", "link set left mtu 1000")
            time.sleep(0.02)
            network.ip("router", "link set left mtu 1500")

    refusing = threading.Thread(target=refuse)
    refusing.start()
    with tempfile.TemporaryDirectory() as folder:
        command = [knee, "observe", "--open", "--json", "--out", folder]
        command += ["--interval", "500 ms", "--duration", f"{SECONDS_OF_CASE - 1} s"]
        lines = network.run("sender", command).splitlines()
    ended.set()
    refusing.join()
    for process in (sender, receiver):
        process.kill()
        process.wait()
    told = json.loads(lines[-1])
    return {"part": case, "named": named(told), "sentence": told["lost"]["sentence"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("knee", nargs="?", default=str(ROOT / "target/release/knee"))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", default="open-bench.jsonl")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role == "receive":
        return receive()
    if given.role == "send":
        many = given.connections != 1000 or "--connections" in sys.argv
        return send_in_turns(given.connections) if many else send_steadily()
    out = Path(given.out)
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    count = lambda part: sum(one["part"] == part for one in done)
    left = sum(max(0, given.repeats - count(case)) for case in CASES) * SECONDS_OF_CASE
    left += 0 if count("ss") else given.minutes * 60
    print(f"takes about {left / 60:.0f} min; {len(done)} parts are complete in {out}", flush=True)

    def keep(result):
        done.append(result)
        with out.open("a") as file:
            print(json.dumps(result), file=file)

    network = Network()
    try:
        if not count("ss"):
            keep(beside_ss(network, given.knee, given.minutes * 60, given.connections))
        for case in CASES:
            while count(case) < given.repeats:
                keep(planted(network, given.knee, case))
    finally:
        network.close()
    failed = False
    for one in (one for one in done if one["part"] == "ss"):
        print(
            f"ss       {one['same']:.3%} of {one['compared']} connections and seconds are the same; "
            f"processor {one['processor']:.2%}, memory {one['memory_mb']:.0f} MB, "
            f"{one['retransmitted_packets']} packets retransmitted; differ: {one['differ']}"
        )
        failed |= one["same"] < SAME_MIN or one["processor"] > CPU_MAX
    for case in CASES:
        all_named = [one for one in done if one["part"] == case]
        right = sum(one["named"] == case for one in all_named)
        print(f"{case:18} named in {right} of {len(all_named)}")
        for one in all_named:
            if one["named"] != case:
                print(f"    {one['named']}: {one['sentence']}")
        failed |= right < len(all_named)
    sys.exit(failed)


if __name__ == "__main__":
    main()
