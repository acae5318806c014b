#!/usr/bin/env python3
"""Measures how fast a policy is applied and rolled back, and what a kill leaves behind.

    benches/steer.py [KNEE] [--prefixes N] [--kills N]
                     [--programs] [--connections N] [--open N] [--seed N]

In a network namespace of its own, with a device that leads nowhere:

- a policy of N prefixes: time of `knee steer plan`, of `knee steer apply` from its start
  until it reports that everything is applied, and of `knee steer rollback`, including the
  processes;
- `knee steer apply` is killed (SIGKILL) N times, each at a random moment of its first 1.5
  s; after each kill, rules and routes with Knee's mark and the journal are checked. Fails
  if anything is left for longer than ten seconds.

With `--programs` and a knee that has them (`--features bpf`), as root, over the loopback
device:

- CPU time of the kernel per short connection, both ends, alternately with the programs and
  without;
- N open connections are changed, a thousand per second, and all are restored;
- N kills as above: no connection may keep the controller, and no folder may stay in
  /sys/fs/bpf.

Needs root, or unshare --user --map-root-user.
"""

import argparse
import ctypes
import json
import os
import random
import resource
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLONE_NEWNET = 0x40000000
PATIENCE = 10


def ip(line):
    return subprocess.run(
        ["ip", *line.split()], check=True, capture_output=True, text=True
    ).stdout


def namespace():
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "cannot make a network namespace; run as root")
    ip("link set lo up")
    ip("tuntap add dev wire mode tun")
    ip("link set wire up")
    ip("address add 192.0.2.1/24 dev wire")
    ip("route add default via 192.0.2.254")


def marked():
    """Returns the lines of rules and routes with Knee's mark."""
    lines = ip("rule") + ip("-6 rule") + ip("route show table all")
    return sum("proto 222" in line for line in lines.splitlines())


def policy(path, prefixes):
    """Returns a policy with this many /24 prefixes in 10.0.0.0/8 and beyond."""
    names = [f'"{10 + n // 65536}.{n // 256 % 256}.{n % 256}.0/24"' for n in range(prefixes)]
    path.write_text(
        'name = "bench"\nactuator = "route"\n[[group]]\nname = "all"\ncontroller = "reno"\n'
        f"prefixes = [{', '.join(names)}]\n"
    )


def apply(knee, folder):
    return subprocess.Popen(
        [knee, "steer", "apply", folder / "policy.toml", "--journal", folder / "journal"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def timed(work):
    began = time.monotonic()
    result = work()
    return time.monotonic() - began, result


def prefixes(knee, folder, number):
    policy(folder / "policy.toml", number)

    def ask(action, *rest):
        line = [knee, "steer", action, *rest, "--format", "json"]
        return json.loads(subprocess.run(line, check=True, capture_output=True).stdout)

    plan, planned = timed(lambda: ask("plan", folder / "policy.toml"))

    def start():
        process = apply(knee, folder)
        for line in process.stdout:
            if "Applied" in line:
                return process
        raise SystemExit(f"knee steer apply failed: {process.stderr.read()}")

    applied, process = timed(start)
    assert marked() == len(planned["routes"]) + len(planned["rules"])
    journal = ("--journal", folder / "journal")
    status = ask("status", *journal)
    assert (status["missing"], status["foreign"]) == (0, []), status
    back, returned = timed(lambda: ask("rollback", *journal))
    process.communicate()
    assert returned["routes"] == len(planned["routes"]) and marked() == 0, returned
    print(
        f"{number} prefixes, {len(planned['routes'])} routes: plan {plan:.2f} s, "
        f"apply {applied:.2f} s, rollback {back:.2f} s"
    )


def kills(knee, folder, number, seed):
    policy(folder / "policy.toml", 200)
    draw = random.Random(seed)
    journal = folder / "journal"
    steered, slowest = 0, 0.0
    for _ in range(number):
        process = apply(knee, folder)
        time.sleep(draw.uniform(0, 1.5))
        process.kill()
        process.wait()
        steered += marked() > 0
        began = time.monotonic()
        while marked() or (journal.exists() and journal.stat().st_size):
            if time.monotonic() - began > PATIENCE:
                raise SystemExit(f"left after a kill: {marked()} rules and routes")
            time.sleep(0.005)
        slowest = max(slowest, time.monotonic() - began)
        process.communicate()
    print(
        f"{number} kills: nothing left; {steered} of them with routes there right after, "
        f"gone at most {slowest:.2f} s later"
    )


def programs(path, port):
    path.write_text(
        'name = "bench"\nactuator = "bpf"\nopen_connections = true\n'
        '[[group]]\nname = "all"\ncontroller = "reno"\nhold_out = "0%"\n'
        f'prefixes = ["127.0.0.0/16"]\nports = [{port}]\n'
    )


def controller(of):
    name = of.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.rstrip(b"\0").decode()


def connection(server, client):
    near = socket.socket()
    near.bind((client, 0))
    near.connect(server.getsockname())
    return near, server.accept()[0]


def until(holds, what):
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > 60:
            raise SystemExit(f"not within a minute: {what}")
        time.sleep(0.01)
    return time.monotonic() - began


def applied(knee, folder):
    process = apply(knee, folder)
    for line in process.stdout:
        if "Applied" in line:
            return process
    raise SystemExit(f"knee steer apply failed: {process.stderr.read()}")


def stopped(knee, folder, process):
    line = [knee, "steer", "rollback", "--journal", folder / "journal", "--format", "json"]
    took, done = timed(lambda: subprocess.run(line, check=True, capture_output=True))
    process.communicate()
    return took, json.loads(done.stdout)


def cost(knee, folder, server, number):
    """Measures the kernel's CPU time per connection, alternately with and without."""

    def one_turn():
        began = resource.getrusage(resource.RUSAGE_SELF).ru_stime
        for _ in range(number):
            near, far = connection(server, "127.0.0.2")
            near.send(b"x")
            far.recv(1)
            near.close()
            far.close()
        return (resource.getrusage(resource.RUSAGE_SELF).ru_stime - began) / number * 1e6

    one_turn()
    without, with_them = [], []
    for turn in range(20):
        if turn % 2:
            process = applied(knee, folder)
            with_them.append(one_turn())
            stopped(knee, folder, process)
        else:
            without.append(one_turn())
    pairs = [b - a for a, b in zip(without, with_them)]
    base, more = statistics.median(without), statistics.median(pairs)
    spread = statistics.stdev(pairs) / len(pairs) ** 0.5
    print(
        f"{number} short connections, 10 pairs in turns: {base:.1f} us of the kernel's CPU each, "
        f"{more:+.2f} us with the programs (standard error {spread:.2f}), {100 * more / base:+.1f} %; "
        f"at 5000 a second {more * 0.5:+.2f} % of a processor"
    )


def accepted(server, number):
    """Opens connections in a second process, so that each process holds one end."""
    reader, writer = os.pipe()
    client = os.fork()
    if client == 0:
        os.close(writer)
        held = []
        for n in range(number):
            near = socket.socket()
            near.bind((f"127.0.{n % 200 + 1}.1", 0))
            near.connect(server.getsockname())
            held.append(near)
        os.read(reader, 1)
        os._exit(0)
    os.close(reader)
    ends = [server.accept()[0] for _ in range(number)]

    def release():
        os.close(writer)
        os.waitpid(client, 0)
        for end in ends:
            end.close()

    return ends, release


def open_connections(knee, folder, server, number):
    default = controller(connection(server, "127.0.0.2")[1])
    assert default != "reno", "the default here is what the bench would give"
    ends, release = accepted(server, number)
    counts = lambda: sum(controller(far) == "reno" for far in ends)
    process = applied(knee, folder)
    changed = until(lambda: counts() == number, "open connections are changed")
    took, back = stopped(knee, folder, process)
    assert counts() == 0 and all(controller(far) == default for far in ends)
    release()
    print(
        f"{number} open connections: changed in {changed:.1f} s, {back['connections']} returned "
        f"in {took:.2f} s by knee steer rollback, all as before"
    )


def program_kills(knee, folder, server, number, seed):
    draw, journal = random.Random(seed), folder / "journal"
    pins = Path("/sys/fs/bpf/knee-steer") / "".join(
        letter for letter in os.readlink("/proc/self/ns/net") if letter.isdigit()
    )
    pairs = [connection(server, "127.0.0.3") for _ in range(200)]
    default = controller(pairs[0][1])
    as_before = lambda: all(controller(far) == default for _, far in pairs)
    empty = lambda: not journal.exists() or journal.stat().st_size == 0
    steered, slowest = 0, 0.0
    for _ in range(number):
        process = apply(knee, folder)
        time.sleep(draw.uniform(0, 1.5))
        process.kill()
        process.wait()
        near, far = connection(server, "127.0.0.3")
        assert controller(far) == default, "a connection after the kill"
        near.close()
        far.close()
        steered += not as_before()
        done = lambda: as_before() and empty() and not pins.exists()
        slowest = max(slowest, until(done, "all is as before a kill"))
        process.communicate()
    print(
        f"{number} kills with programs: nothing left; {steered} of them with connections "
        f"changed right after, all as before at most {slowest:.2f} s later"
    )


def by_programs(knee, folder, arguments):
    server = socket.create_server(("127.0.0.1", 0), backlog=4096)
    programs(folder / "policy.toml", server.getsockname()[1])
    line = [knee, "steer", "plan", folder / "policy.toml", "--format", "json"]
    subprocess.run(line, check=True, capture_output=True)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    cost(knee, folder, server, arguments.connections)
    open_connections(knee, folder, server, arguments.open)
    program_kills(knee, folder, server, arguments.kills, arguments.seed)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("knee", nargs="?", default=ROOT / "target/release/knee", type=Path)
    parser.add_argument("--prefixes", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--programs", action="store_true", help="the rows of BPF programs too")
    parser.add_argument("--connections", type=int, default=5000, help="in a turn")
    parser.add_argument("--open", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    knee = arguments.knee.resolve()
    namespace()
    with tempfile.TemporaryDirectory() as folder:
        prefixes(knee, Path(folder), arguments.prefixes)
        kills(knee, Path(folder), arguments.kills, arguments.seed)
        if arguments.programs:
            by_programs(knee, Path(folder), arguments)


main()
