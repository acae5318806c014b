#!/usr/bin/env python3
"""Attacks `knee bond`, `knee serve` and the readers of files, and checks what must hold meanwhile.

    benches/siege.py [--knee KNEE] [--besiege BESIEGE] [--kept FILE] [PART...]

Parts, all by default:

- combined: random datagrams, first packets of connections, handshakes that never join, thousands
  of streams half of which are never read, and a server that announces the largest windows, all at
  once, while a client works: each end has at most 128 MiB more than when idle, and the client is
  served within a second;
- kills: either end is killed during transfers, again and again: what was cut off ends with a
  reset, the next one works, and nothing is left behind;
- flaps: links go down and return during transfers, all of which are whole;
- revocation: one of two keys is revoked by a reload: its client is cut off, the other goes on;
- hosts: connections that say nothing, garbage, endless handshakes, wrong tokens and unknown keys, all
  at once, at `knee serve`, while a client runs flows to it: the server has at most 128 MiB more than
  when idle, and a run takes at most a second longer; then either end is killed during runs, and the
  next one works;
- files: what is no regular file, endless or packed twice, as every kind of input: a sentence,
  within a second of processor time and 100 MB;
- lines: 10 MB of quoted fields with CR, and a log of 100,000 lines in place of a scenario.

What a part found is kept in FILE, `target/siege.json` by default; parts that passed are not run
again, so that an interrupted siege goes on. Needs root, for network namespaces. KNEE is a build
with the feature bond, BESIEGE the example of that name of the crate knee-quic. `--share 0.1` does
a tenth of everything.
"""

import argparse
import asyncio
import base64
import ctypes
import gzip
import json
import os
import random
import resource
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLONE_NEWNET = 0x40000000
SERVER, FILES = "10.99.0.1", 80
MIB = 1 << 20
# What an end may have beyond its memory when idle, and what a reader of files may have.
GROWTH_MAX, READER_MAX = 128 * MIB, 100_000_000
SERVED_S = 1.0
PATTERN = random.Random(7).randbytes(65521)


def many_files():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def content(place, count):
    """Returns bytes of every file, from a place on."""
    at = place % len(PATTERN)
    return (PATTERN * (2 + count // len(PATTERN)))[at:at + count]


# The service behind the server: sends as many bytes as it is asked for, then reads to the end.


async def answer(reader, writer, ended):
    announced, got, how = 0, 0, "reset"
    try:
        wanted, announced = struct.unpack("!QQ", await reader.readexactly(16))
        for at in range(0, wanted, 65536):
            writer.write(content(at, min(65536, wanted - at)))
            await writer.drain()
        while data := await reader.read(65536):
            if data != content(got, len(data)):
                how = "changed"
                return
            got += len(data)
        how = "end"
        writer.write(struct.pack("!Q", got))
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()
        if announced:
            with open(ended, "a") as file:
                print(json.dumps([announced, got, how]), file=file, flush=True)


async def serve(ended):
    many_files()
    server = await asyncio.start_server(
        lambda r, w: answer(r, w, ended), SERVER, FILES, backlog=4096
    )
    print("serving", flush=True)
    await server.serve_forever()


# Hosts and processes.


def ip(*arguments, inside=None):
    line = ["nsenter", f"--net=/proc/{inside}/ns/net"] if inside else []
    subprocess.run([*line, "ip", *arguments], check=True)


class World:
    """A client's host, which is this one's namespace, with two links to that of a server."""

    def __init__(self, given):
        self.knee, self.besiege, self.share = given.knee, given.besiege, given.share
        self.folder = Path(tempfile.mkdtemp(prefix="knee-siege-"))
        self.processes = []
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
            raise SystemExit("siege: needs root, for network namespaces")
        many_files()
        self.far = self.start(["unshare", "--net", "sleep", "infinity"]).pid
        here = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.far}/ns/net") == here:
            time.sleep(0.01)
        ip("link", "set", "lo", "up")
        ip("link", "set", "lo", "up", inside=self.far)
        ip("addr", "add", f"{SERVER}/32", "dev", "lo", inside=self.far)
        for n in range(2):
            ip("link", "add", f"w{n}", "type", "veth", "peer", f"f{n}", "netns", str(self.far))
            ip("addr", "add", f"10.64.{n}.1/24", "dev", f"w{n}")
            ip("addr", "add", f"10.64.{n}.2/24", "dev", f"f{n}", inside=self.far)
            ip("link", "set", f"f{n}", "up", inside=self.far)
            self.up(n)
        self.ended = self.folder / "ended"
        self.ended.touch()
        service = self.start([sys.executable, __file__, "--serve", self.ended], there=True,
                             stdout=subprocess.PIPE)
        service.stdout.readline()
        self.keys = {name: self.key(name) for name in ("server", "a", "b", "c", "boast")}

    def up(self, n):
        ip("link", "set", f"w{n}", "up")
        ip("route", "replace", f"{SERVER}/32", "via", f"10.64.{n}.2", "dev", f"w{n}", "metric",
           str(n + 1))

    def start(self, line, there=False, **more):
        enter = ["nsenter", f"--net=/proc/{self.far}/ns/net"] if there else []
        process = subprocess.Popen([*enter, *map(str, line)], **more)
        self.processes.append(process)
        return process

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()

    def key(self, name):
        done = subprocess.run([self.knee, "bond", "keys", self.folder / f"{name}.key"],
                              check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def secret(self, name):
        """Returns a private key as the attacks want it."""
        lines = (self.folder / f"{name}.key").read_text().splitlines()
        return base64.b64decode("".join(line for line in lines if "-" not in line)).hex()

    def clients(self, names):
        """Writes the server's configuration."""
        known = ", ".join(f'{{ name = "{name}", key = "{self.keys[name]}" }}' for name in names)
        (self.folder / "server.toml").write_text(
            f'key = "server.key"\nstatus = "{self.folder}/server.sock"\n'
            f"client = [{known}]\negress = {{ allow = [\"10.99.0.0/16\"] }}\n"
            "limits = { streams = 6144, new_streams_per_second = 5000 }\n"
        )

    def server(self):
        with (self.folder / "server.log").open("a") as log:
            process = self.start([self.knee, "bond", "serve", self.folder / "server.toml"],
                                 there=True, stderr=log)
        return process

    def client(self, name, port, peer="server", at=4433, more=(), links=2):
        links = ", ".join(f'{{ interface = "w{n}" }}' for n in range(links))
        (self.folder / f"{name}.toml").write_text(
            f'server = "{SERVER}:{at}"\nserver_key = "{self.keys[peer]}"\nkey = "{name}.key"\n'
            f'listen = "127.0.0.1:{port}"\nstatus = "{self.folder}/{name}.sock"\n'
            f"link = [{links}]\n"
        )
        with (self.folder / f"{name}.log").open("a") as log:
            return self.start([self.knee, "bond", "connect", *more, self.folder / f"{name}.toml"],
                              stderr=log)

    def wait_for(self, port, seconds=30):
        """Waits until a request works; returns how long it took."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            try:
                if download(port, 100, timeout=2) == "whole":
                    return time.monotonic() - began
            except OSError:
                pass
            time.sleep(0.05)
        raise SystemExit(f"siege: no request works within {seconds} s; see {self.folder}")


def memory(process):
    """Returns the resident memory of a process, bytes."""
    try:
        pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()


# Applications on the client's host.


def ask(port, wanted, announced=0, timeout=20):
    """Connects over SOCKS5 to the service (RFC 1928), and asks for bytes."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=timeout)
    try:
        connection.sendall(b"\5\1\0")
        if connection.recv(2) != b"\5\0":
            raise ConnectionError("no greeting")
        connection.sendall(b"\5\1\0\1" + socket.inet_aton(SERVER) + struct.pack("!H", FILES))
        reply = connection.recv(10)
        if len(reply) != 10 or reply[1] != 0:
            raise ConnectionError(f"refused: {reply!r}")
        connection.sendall(struct.pack("!QQ", wanted, announced))
    except OSError:
        connection.close()
        raise
    return connection


def download(port, size, pause=0.0, timeout=20, gaps=None):
    """Returns how a download ended: whole, broken, cut off silently, or changed."""
    got, last = 0, time.monotonic()
    try:
        with ask(port, size, timeout=timeout) as connection:
            while got < size:
                data = connection.recv(65536)
                if not data:
                    return "cut off silently"
                if data != content(got, len(data)):
                    return "changed"
                got += len(data)
                if gaps is not None:
                    gaps.append(time.monotonic() - last)
                    last = time.monotonic()
                time.sleep(pause)
            return "whole"
    except OSError:
        return "broken"


def upload(port, size, pause=0.0):
    """Returns whether the service confirmed an upload."""
    try:
        with ask(port, 0, size) as connection:
            for at in range(0, size, 65536):
                connection.sendall(content(at, min(65536, size - at)))
                time.sleep(pause)
            connection.shutdown(socket.SHUT_WR)
            confirmed = connection.recv(8)
            return "whole" if confirmed == struct.pack("!Q", size) else "not confirmed"
    except OSError:
        return "broken"


class Probe(threading.Thread):
    """A user: a request of 1 kB ten times a second, and how long each took."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.over, self.took, self.failed = port, threading.Event(), [], 0

    def run(self):
        while not self.over.wait(0.1):
            began = time.monotonic()
            if download(self.port, 1000) != "whole":
                self.failed += 1
            self.took.append(time.monotonic() - began)

    def said(self):
        took = sorted(self.took)
        return {"requests": len(took), "failed": self.failed,
                "median_s": round(statistics.median(took), 4),
                "p99_s": round(took[len(took) * 99 // 100], 3), "longest_s": round(took[-1], 3)}


# The parts. Each returns what it found, and what is wrong.


async def many(port, count, found):
    """Opens connections, of which every other is never read; the others are, and stay open."""
    took, open_now, failed = [], [], 0
    gate = asyncio.Semaphore(50)

    async def one(number):
        nonlocal failed
        async with gate:
            began = time.monotonic()
            try:
                # The buffer of one that does not read is small: the system's would take megabytes.
                connection = socket.socket()
                connection.setblocking(False)
                if number % 2:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
                reader, writer = await asyncio.open_connection(sock=connection, limit=4096)
                open_now.append(writer)
                writer.write(b"\5\1\0")
                await reader.readexactly(2)
                to = socket.inet_aton(SERVER) + struct.pack("!H", FILES)
                writer.write(b"\5\1\0\1" + to)
                reply = await reader.readexactly(10)
                if reply[1] != 0:
                    failed += 1
                    return
                size = 10 * MIB if number % 2 else 2
                writer.write(struct.pack("!QQ", size, 0))
                if number % 2:
                    writer.transport.pause_reading()
                else:
                    await reader.readexactly(size)
                    took.append(time.monotonic() - began)
            except (OSError, asyncio.IncompleteReadError):
                failed += 1

    await asyncio.gather(*(one(number) for number in range(count)))
    found.update(streams=count, streams_failed=failed, streams_answered=len(took),
                 answer_median_s=round(statistics.median(took), 4) if took else None,
                 answer_longest_s=round(max(took), 3) if took else None)
    await asyncio.sleep(2)
    for writer in open_now:
        writer.transport.abort()


def combined(world):
    scale = lambda count: max(1, int(count * world.share))
    world.clients(["a", "b"])
    server = world.server()
    ours = world.client("a", 1080)
    boast = [world.besiege, "boast", f"{SERVER}:4500", world.secret("boast"),
             base64.b64decode(world.keys["c"]).hex()]
    world.start(boast, there=True, stdout=subprocess.DEVNULL)
    theirs = world.client("c", 1081, peer="boast", at=4500)
    world.wait_for(1080)
    ends = {"server": server, "client": ours, "client of the boaster": theirs}
    time.sleep(2)
    idle = {name: memory(process) for name, process in ends.items()}
    most, over = dict(idle), threading.Event()

    def watch():
        while not over.wait(0.05):
            for name, process in ends.items():
                most[name] = max(most[name], memory(process))

    watcher, probe = threading.Thread(target=watch, daemon=True), Probe(1080)
    probe.start()
    time.sleep(3)
    found = {"before the attack": probe.said()}
    watcher.start()
    to = f"{SERVER}:4433"
    known = [world.secret("b"), base64.b64decode(world.keys["server"]).hex()]
    lines = [["garbage", to, scale(1_000_000)], ["initials", to, scale(100_000)],
             ["unjoined", to, scale(10_000), *known]]
    began = time.monotonic()
    attacks = [world.start(["nice", world.besiege, *line], stdout=subprocess.PIPE, text=True)
               for line in lines]
    asyncio.run(many(1080, scale(5_000), found))
    for attack in attacks:
        found.setdefault("attacks", []).append(attack.communicate()[0].strip())
    time.sleep(1)
    over.set()
    probe.over.set()
    probe.join()
    found["seconds"] = round(time.monotonic() - began, 1)
    found["probe"] = probe.said()
    wrong = []
    for name, process in ends.items():
        found[f"{name}, MiB"] = [round(idle[name] / MIB, 1), round(most[name] / MIB, 1)]
        if process.poll() is not None:
            wrong.append(f"the {name} ended with {process.returncode}")
        if most[name] - idle[name] > GROWTH_MAX:
            wrong.append(f"the {name} grew by {(most[name] - idle[name]) / MIB:.0f} MiB")
    if probe.failed or found["probe"]["longest_s"] > SERVED_S:
        wrong.append(f"the client was not served within a second: {found['probe']}")
    if found["streams_failed"] or found["streams_answered"] != scale(5_000) // 2:
        wrong.append("not every other stream was answered")
    for process in ends.values():
        process.terminate()
        process.wait(30)
    return found, wrong


def shown(world):
    """Returns what a process could leave behind on either host."""
    all_of = []
    for inside in (None, world.far):
        enter = ["nsenter", f"--net=/proc/{inside}/ns/net"] if inside else []
        # An address brings a route of its own when it is found to be the only one (RFC 4862).
        tentative = [*enter, "ip", "-6", "address", "show", "tentative"]
        deadline = time.monotonic() + 10
        while subprocess.run(tentative, capture_output=True).stdout:
            if time.monotonic() > deadline:
                raise TimeoutError("addresses of links stay tentative")
            time.sleep(0.1)
        for what in (["rule"], ["-6", "rule"], ["route", "show", "table", "all"], ["-o", "link"]):
            said = subprocess.run([*enter, "ip", *what], capture_output=True, text=True)
            all_of.append(said.stdout)
    return all_of


def leaves_directly():
    """Returns whether a datagram beside the links leaves this host."""
    try:
        socket.socket(type=socket.SOCK_DGRAM).sendto(b"", (SERVER, 9))
        return True
    except PermissionError:
        return False


def kills(world):
    count, rng = max(2, int(30 * world.share)), random.Random(47)
    before = shown(world)
    world.clients(["a"])
    server, client = world.server(), world.client("a", 1080)
    world.wait_for(1080)
    found = {"kills": 0, "downloads": {}, "uploads": {}, "longest until served again, s": 0}
    wrong = []
    for number in range(count):
        # Every third client diverts all traffic of its host.
        diverts = number % 6 == 4
        if diverts:
            client.terminate()
            client.wait(30)
            client = world.client("a", 1080, more=["--transparent"])
            world.wait_for(1080)
            if leaves_directly():
                wrong.append("a datagram left beside the links")
        results = {"downloads": [], "uploads": []}
        threads = [
            threading.Thread(target=lambda: results["downloads"].append(
                download(1080, 8 * MIB, pause=0.02))),
            threading.Thread(target=lambda: results["uploads"].append(
                upload(1080, 8 * MIB, pause=0.02))),
        ]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.3, 1.2))
        killed = client if number % 2 == 0 else server
        killed.kill()
        killed.wait()
        time.sleep(0.2)
        if diverts and not leaves_directly():
            wrong.append("what diverts traffic outlived its client")
        if killed is client:
            client = world.client("a", 1080)
        else:
            server = world.server()
        for thread in threads:
            thread.join()
        for kind, all_of in results.items():
            for how in all_of:
                found[kind][how] = found[kind].get(how, 0) + 1
        again = world.wait_for(1080, 60)
        found["longest until served again, s"] = max(
            found["longest until served again, s"], round(again, 2))
        found["kills"] += 1
    time.sleep(1)
    for process in (client, server):
        process.terminate()
        process.wait(30)
    time.sleep(1)
    at_service = [json.loads(line) for line in world.ended.read_text().splitlines()]
    short = [each for each in at_service if each[2] == "end" and each[0] != each[1]]
    found["uploads as the service saw them"] = {
        how: sum(each[2] == how for each in at_service) for how in ("end", "reset", "changed")}
    if short or any(each[2] == "changed" for each in at_service):
        wrong.append(f"uploads that look whole and are not: {short}")
    for how in ("cut off silently", "changed"):
        if how in found["downloads"]:
            wrong.append(f"{found['downloads'][how]} downloads {how}")
    if shown(world) != before:
        wrong.append(f"left behind: {shown(world)} instead of {before}")
    if left := sorted(path.name for path in world.folder.glob("*.sock")):
        wrong.append(f"sockets left: {left}")
    return found, wrong


def flaps(world):
    count, rng = max(2, int(20 * world.share)), random.Random(48)
    world.clients(["a"])
    server, client = world.server(), world.client("a", 1080)
    world.wait_for(1080)
    over, ended, gaps = threading.Event(), [], []

    def load(work, **more):
        while not over.is_set():
            ended.append(work(1080, 2 * MIB, pause=0.02, **more))

    threads = [threading.Thread(target=load, args=(work,), kwargs=more)
               for work, more in ((download, {"gaps": gaps}), (download, {}), (upload, {}))]
    for thread in threads:
        thread.start()
    for number in range(count):
        n = number % 2
        time.sleep(rng.uniform(0.5, 1.5))
        ip("link", "set", f"w{n}", "down")
        time.sleep(rng.uniform(0.2, 1.5))
        world.up(n)
    over.set()
    for thread in threads:
        thread.join()
    found = {"flaps": count, "longest pause, s": round(max(gaps), 2)}
    found.update({how: ended.count(how) for how in set(ended)})
    wrong = [] if set(ended) == {"whole"} else [f"not all transfers were whole: {set(ended)}"]
    for process in (client, server):
        process.terminate()
        process.wait(30)
    return found, wrong


def revocation(world):
    world.clients(["a", "b"])
    server = world.server()
    ours, other = world.client("a", 1080), world.client("b", 1081)
    world.wait_for(1080)
    world.wait_for(1081)
    results, gaps = {}, []
    threads = [
        threading.Thread(target=lambda: results.update(
            a=download(1080, 16 * MIB, pause=0.02, gaps=gaps))),
        threading.Thread(target=lambda: results.update(
            b=download(1081, 16 * MIB, pause=0.02), ended=time.monotonic())),
    ]
    for thread in threads:
        thread.start()
    time.sleep(1)
    world.clients(["a"])
    server.send_signal(signal.SIGHUP)
    revoked = time.monotonic()
    for thread in threads:
        thread.join()
    time.sleep(1)
    refused = download(1081, 100, timeout=3)
    found = {"a": results["a"], "longest pause of a, s": round(max(gaps), 3), "b": results["b"],
             "b ended after, s": round(results["ended"] - revoked, 2), "b again": refused}
    world.clients(["a", "b"])
    server.send_signal(signal.SIGHUP)
    found["b works again after, s"] = round(world.wait_for(1081, 90), 1)
    wrong = []
    if results["a"] != "whole" or max(gaps) > SERVED_S:
        wrong.append("the other client did not go on")
    if results["b"] != "broken" or refused != "broken" or results["ended"] - revoked > 5:
        wrong.append("the revoked client went on")
    for process in (ours, other, server):
        process.terminate()
        process.wait(30)
    return found, wrong


# Runs to another machine.

RUN = """
name = "siege"
duration = "{duration}"
[link.wire]
rate = "1 Gbit/s"
delay = "1 ms"
[path.main]
forward = ["wire"]
reverse_delay = "1 ms"
[[flow]]
name = "f"
cc = "cubic"
workload = {workload}
"""


class Runs:
    """A server of runs on the far host, and a client of it."""

    def __init__(self, world):
        self.world, self.at = world, (SERVER, 4434)
        (world.folder / "serve.toml").write_text(
            f'listen = "{SERVER}:4434"\nkey = "server.key"\n'
            f'client = [{{ name = "a", key = "{world.keys["a"]}" }}]\n'
            '[limits]\nbytes_per_day = "1000 GB"\n')
        for name in ("a", "b"):
            (world.folder / f"{name}-far.toml").write_text(
                f'host = "{SERVER}:4434"\nhost_key = "{world.keys["server"]}"\n'
                f'key = "{name}.key"\n')
        for name, duration, workload in (("short", "1 s", '{ file = "1 kB" }'),
                                         ("long", "60 s", '"bulk"')):
            text = RUN.format(duration=duration, workload=workload)
            (world.folder / f"{name}.toml").write_text(text)

    def serve(self):
        environment = {**os.environ, "XDG_STATE_HOME": str(self.world.folder / "state")}
        environment.pop("STATE_DIRECTORY", None)
        with (self.world.folder / "serve.log").open("a") as log:
            process = self.world.start(
                [self.world.knee, "serve", self.world.folder / "serve.toml"], there=True,
                stderr=log, env=environment)
        for _ in range(300):
            try:
                socket.create_connection(self.at, timeout=1).close()
                return process
            except OSError:
                time.sleep(0.1)
        raise SystemExit("siege: knee serve does not listen")

    def start(self, scenario, client="a"):
        folder = self.world.folder
        line = [self.world.knee, "run", f"{scenario}.toml", "--on", "hosts", "--host",
                f"{client}-far.toml", "--out", f"{scenario}-of-{client}", "--force"]
        return self.world.start(line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def run(self, scenario="short", client="a"):
        """Returns exit code, seconds and what was said."""
        began = time.monotonic()
        process = self.start(scenario, client)
        said = process.communicate(timeout=120)[0]
        return process.returncode, time.monotonic() - began, said


def besiege_runs(runs, count, over, sent):
    """Connects again and again, in one of the ways of strangers, from another address."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    rng, open_now = random.Random(49), []
    hello = bytes([22, 3, 1, 0x40, 0, 1, 0xFF, 0xFF, 0xFF])
    while not over.is_set() and sent["connections"] < count:
        kind = rng.randrange(4)
        try:
            connection = socket.create_connection(runs.at, 1, source_address=("10.64.1.1", 0))
            connection.settimeout(0.05)
            if kind == 1:
                connection.sendall(rng.randbytes(rng.randrange(1, 1 << 14)))
            elif kind == 2:
                connection.sendall(hello + bytes(1 << 14))
            elif kind == 3:
                connection.sendall(b"knee-1\r\n" + rng.randbytes(32) + bytes(1 << 14))
            open_now.append(connection)
        except OSError:
            sent["refused"] += 1
        sent["connections"] += 1
        if len(open_now) > 500:
            open_now.pop(0).close()
    for connection in open_now:
        connection.close()


def hosts(world):
    runs, wrong = Runs(world), []
    server = runs.serve()
    before = [runs.run() for _ in range(5)]
    time.sleep(1)
    idle = most = memory(server)
    over, sent = threading.Event(), {"connections": 0, "refused": 0}
    count = max(400, int(40_000 * world.share))
    attacks = [threading.Thread(target=besiege_runs, args=(runs, count, over, sent), daemon=True)
               for _ in range(4)]
    for attack in attacks:
        attack.start()
    meanwhile, strangers = [], []
    while any(attack.is_alive() for attack in attacks) or len(meanwhile) < 5:
        meanwhile.append(runs.run())
        strangers.append(runs.run(client="b"))
        most = max(most, memory(server))
    over.set()
    for attack in attacks:
        attack.join()
    most = max(most, memory(server))
    usual_s = statistics.median(took for _, took, _ in before)
    longest_s = max(took for _, took, _ in meanwhile)
    found = {**sent, "runs": len(meanwhile), "usual_s": round(usual_s, 2),
             "longest_s": round(longest_s, 2),
             "server, MiB": [round(idle / MIB, 1), round(most / MIB, 1)]}
    if server.poll() is not None:
        wrong.append(f"the server ended with {server.returncode}")
    for code, _, said in before + meanwhile:
        if code != 0:
            wrong.append(f"a run ended with {code}: {said[-300:]}")
    if any(code == 0 for code, _, _ in strangers):
        wrong.append("an unknown key could run flows")
    if longest_s - usual_s > SERVED_S:
        wrong.append(f"a run took {longest_s - usual_s:.2f} s longer than without an attack")
    if most - idle > GROWTH_MAX:
        wrong.append(f"the server grew by {(most - idle) / MIB:.0f} MiB")

    rng, kinds = random.Random(50), {"server": 0, "client": 0}
    for number in range(max(2, int(20 * world.share))):
        client = runs.start("long")
        time.sleep(rng.uniform(0.5, 1.5))
        killed = ("server", "client")[number % 2]
        kinds[killed] += 1
        (server if killed == "server" else client).kill()
        said = client.communicate(timeout=60)[0]
        if killed == "server":
            server.wait()
            if client.returncode == 0 or "panicked" in said:
                wrong.append(f"a run without its server ended with {client.returncode}: {said[-300:]}")
            server = runs.serve()
        code, _, said = runs.run()
        if code != 0:
            wrong.append(f"after a {killed} was killed: {code}: {said[-300:]}")
    found["killed"] = kinds
    server.terminate()
    if server.wait(30) != 0:
        wrong.append(f"the server ended with {server.returncode}")
    used = [json.loads(path.read_text()) for path in (world.folder / "state").rglob("*.json")]
    if len(used) != 1 or used[0]["clients"]["a"]["bytes"] < 1000 * len(meanwhile):
        wrong.append(f"what was used is not kept: {used}")
    return found, wrong


SCENARIO = """
duration = "1 s"
[link.l]
rate = {rate}
delay = "10 ms"
{more}
[path.main]
forward = ["l"]
reverse_delay = "10 ms"
[[flow]]
name = "f"
cc = "cubic"
workload = {workload}
"""


def reader(world, line, at, stdin=None):
    """Runs a reader of files; returns exit code, seconds of the processor and of the clock, bytes,
    and what it said."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([str(world.knee), *map(str, line)], cwd=at, stdout=said,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        timer = threading.Timer(20, process.kill)
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace")
    return (process.returncode, used.ru_utime + used.ru_stime, time.monotonic() - began,
            used.ru_maxrss * 1024, text)


def odd_files(at):
    """Makes the odd files; returns their names."""
    os.mkfifo(at / "fifo")
    os.symlink("fifo", at / "to-fifo")
    os.symlink("/dev/zero", at / "to-zero")
    os.symlink("loop", at / "loop")
    (at / "folder").mkdir()
    line = b"x" * MIB
    with (at / "line").open("wb") as file:
        for _ in range(1000):
            file.write(line)
    with gzip.open(at / "line.gz", "wb", 1) as file:
        for _ in range(1000):
            file.write(line)
    (at / "twice.gz").write_bytes(gzip.compress(gzip.compress(b"bytes\n7\n" * 1000)))
    with gzip.open(at / "digits.gz", "wb", 1) as file:
        for _ in range(15):
            file.write(b"7\n" * 1_000_000)
    return ["fifo", "to-fifo", "to-zero", "/dev/zero", "/dev/null", "loop", "folder", "line",
            "line.gz", "twice.gz", "digits.gz"]


def files(world):
    at = world.folder / "files"
    at.mkdir(exist_ok=True)
    names = odd_files(at)
    plain = SCENARIO.format(rate='"10 Mbit/s"', more="", workload='"bulk"')
    (at / "plain.toml").write_text(plain)
    reader(world, ["run", "plain.toml", "--out", "run"], at)
    (at / "inputs.toml").write_text(plain)
    keys = {"trace": ('{ trace = "X" }', "", '"bulk"'),
            "loss": ('"10 Mbit/s"', 'loss = { file = "X" }', '"bulk"'),
            "page": ('"10 Mbit/s"', "", '{ page = { objects = "X" } }'),
            "log": ('"10 Mbit/s"', "",
                    '{ mix = { arrival_interval = "1 s", sizes = { log = "X" } } }')}
    found, wrong, worst_s, worst_bytes = {}, [], 0, 0
    for name in names:
        lines = {command: [command, name] for command in
                 ("check", "run", "report", "rerun", "advise")}
        lines["sweep"] = ["sweep", name, "--vary", "flow.f.cc=bbr,reno"]
        lines["compare"] = ["compare", name, "run"]
        lines["plot"] = ["plot", name, "--what", "throughput"]
        lines["export"] = ["export", name]
        for key, (rate, more, workload) in keys.items():
            text = SCENARIO.format(rate=rate, more=more, workload=workload).replace("X", name)
            (at / f"{key}-of.toml").write_text(text)
            lines[f"scenario with a {key}"] = ["check", f"{key}-of.toml"]
            if name.startswith("/dev") or name in ("folder", "loop"):
                continue
        # The folder of somebody else, with this among its inputs and in place of its records.
        for record in ("inputs/x", "manifest.json", "summary.json", "scenario.toml",
                       "flows.parquet"):
            own = at / f"own-{record.replace('/', '-')}-{name.replace('/', '-')}"
            if not own.exists():
                subprocess.run(["cp", "-r", at / "run", own], check=True)
                (own / "inputs").mkdir(exist_ok=True)
                (own / record).unlink(missing_ok=True)
                os.symlink(os.path.abspath(at / name), own / record)
            lines[f"rerun with {record}"] = ["rerun", own, "--out", at / "again", "--force"]
            if record != "inputs/x":
                lines[f"report with {record}"] = ["report", own]
        (at / "s.toml").write_text(f'key = "{name}"\nclient = []\nstatus = "{at}/s.sock"\n')
        lines["bond key"] = ["bond", "serve", "s.toml"]
        lines["configuration of serve"] = ["serve", name]
        lines["bond configuration"] = ["bond", "serve", name]
        lines["bond client"] = ["bond", "doctor", name]
        lines["bond keys"] = ["bond", "keys", name]
        lines["journal"] = ["steer", "status", "--journal", at / name]
        lines["policy"] = ["steer", "plan", name]
        lines["log of report"] = ["report", "run", "--log", name]
        for what, line in lines.items():
            code, cpu_s, clock_s, held, said = reader(world, line, at)
            worst_s, worst_bytes = max(worst_s, cpu_s), max(worst_bytes, held)
            case = f"{what}, {name}"
            # Nothing is refused in an empty log or configuration, or by a status without journal.
            is_said = code in (0, 1, 2, 3) and len(said.splitlines()) <= 20
            if not is_said or cpu_s > 1 or held > READER_MAX or "panicked" in said:
                wrong.append(f"{case}: {code}, {cpu_s:.2f} s, {held / 1e6:.0f} MB: {said[:200]}")
            found[case] = [code, round(cpu_s, 2), round(clock_s, 2), round(held / 1e6),
                           said.strip()[:160]]
    codes = [each[0] for each in found.values()]
    summary = {"cases": len(found), "exit codes": {code: codes.count(code) for code in set(codes)},
               "most seconds": round(worst_s, 2), "most MB": round(worst_bytes / 1e6), "all": found}
    return summary, wrong


def lines(world):
    at = world.folder / "lines"
    at.mkdir(exist_ok=True)
    found, wrong = {}, []
    # In parts: a process begins with the peak of the memory of its parent (getrusage(2)).
    row = '1.2.3.4 - - [12/Mar/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 7\n'
    for name, start, part, count in [
        ("cr.csv", "time,bytes\r", '"1","7"\r' * 1000, 1250),
        ("wide.csv", "time,bytes\r", '"x",' * 1000, 2500),
        ("access.log", "", row * 100, 1000),
    ]:
        with (at / name).open("w", newline="") as file:
            file.write(start)
            for _ in range(count):
                file.write(part)
    for name, limit_s, line in [
        ("cr.csv", 2, ["check", "cr.toml"]),
        ("wide.csv", 2, ["check", "wide.toml"]),
        ("access.log", 1, ["run", "access.log"]),
    ]:
        log = f'{{ mix = {{ arrival_interval = "1 s", sizes = {{ log = "{name}" }} }} }}'
        text = SCENARIO.format(rate='"10 Mbit/s"', more="", workload=log)
        (at / name).with_suffix(".toml").write_text(text)
        code, cpu_s, clock_s, held, said = reader(world, line, at)
        found[name] = {"exit code": code, "processor_s": round(cpu_s, 2),
                       "clock_s": round(clock_s, 2), "MB": round(held / 1e6),
                       "said": said.strip()[:300]}
        if cpu_s > limit_s or held > READER_MAX:
            wrong.append(f"{name}: {cpu_s:.2f} s, {held / 1e6:.0f} MB")
    return found, wrong


PARTS = {part.__name__: part for part in (combined, kills, flaps, revocation, hosts, files, lines)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--knee", type=Path, default=target / "release/knee")
    parser.add_argument("--besiege", type=Path, default=target / "release/examples/besiege")
    parser.add_argument("--kept", type=Path, default=target / "siege.json")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return asyncio.run(serve(given.serve))
    given.knee, given.besiege = given.knee.resolve(), given.besiege.resolve()
    kept = json.loads(given.kept.read_text()) if given.kept.exists() else {}
    parts = given.parts or [part for part in PARTS if not kept.get(part, {}).get("passed")]
    failed = []
    for part in parts:
        world = World(given)
        try:
            found, wrong = PARTS[part](world)
        finally:
            world.end()
        kept[part] = {"passed": not wrong, "wrong": wrong, "found": found, "share": given.share}
        given.kept.write_text(json.dumps(kept, indent=1))
        brief = {key: value for key, value in found.items() if key != "all"}
        print(f"{part}: {json.dumps(brief, ensure_ascii=False)}", flush=True)
        for each in wrong:
            print(f"  wrong: {each}", flush=True)
        failed += [part] if wrong else []
        if not wrong:
            subprocess.run(["rm", "-rf", world.folder], check=True)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
