#!/usr/bin/env python3
"""Measures how fast a policy is applied and rolled back, and what a kill leaves behind.

    benches/steer.py [KNEE] [--prefixes N] [--kills N] [--tables N]
                     [--programs] [--connections N] [--pairs N] [--open N] [--seed N]

In a network namespace of its own, with a device that leads nowhere:

- a policy of N prefixes: time of `knee steer plan`, of `knee steer apply` from its start
  until it reports that everything is applied, and of `knee steer rollback`, including the
  processes;
- `knee steer apply` is killed (SIGKILL) N times, each at a random moment of its first 1.5
  s; after each kill, rules and routes with Knee's mark and the journal are checked. Fails
  if anything is left for longer than ten seconds;
- a policy is applied over N random main tables with routes of others, some with a controller or
  a locked one (a test of knee-policy, which cargo builds).

With `--programs` and a knee that has them (`--features bpf`), as root, over the loopback
device, and for the first two over IPv4, IPv6 and IPv4-mapped IPv6:

- CPU time of the kernel per short connection, both ends, alternately with the programs and
  without; both ends look up the policy, the accepting one gets a controller;
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
IP_BIND_ADDRESS_NO_PORT = 24


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


def tables(number):
    line = ["cargo", "test", "--quiet", "-p", "knee-policy", "--test", "namespaces"]
    subprocess.run([*line, "--no-run"], check=True, cwd=ROOT, capture_output=True)
    environment = {**os.environ, "PROPTEST_CASES": str(number)}
    took, done = timed(
        lambda: subprocess.run(
            [*line, "random_tables"], cwd=ROOT, env=environment, capture_output=True, text=True
        )
    )
    if done.returncode or "1 passed" not in done.stdout:
        raise SystemExit(f"random tables: {done.stdout}{done.stderr}")
    print(f"{number} random tables in {took:.0f} s: routes of others and locked ones as before")


def programs(path, ports):
    path.write_text(
        'name = "bench"\nactuator = "bpf"\nopen_connections = true\n'
        '[[group]]\nname = "all"\ncontroller = "reno"\nhold_out = "0%"\n'
        f'prefixes = ["127.0.0.0/16", "2001:db8:5::/48"]\nports = {ports}\n'
    )


def controller(of):
    name = of.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.rstrip(b"\0").decode()


class Family:
    """A server, and its clients."""

    def __init__(self, name):
        self.name = name
        self.is_v6 = name == "IPv6"
        if name == "IPv4":
            self.server = socket.create_server(("127.0.0.1", 0), backlog=4096)
        else:
            # An IPv4 client is an IPv4-mapped one here.
            self.server = socket.create_server(
                ("::", 0), family=socket.AF_INET6, backlog=4096, dualstack_ipv6=True
            )
        self.port = self.server.getsockname()[1]

    def connect(self, client):
        """Connects from the client of this number, below 200."""
        near = socket.socket(socket.AF_INET6 if self.is_v6 else socket.AF_INET)
        # The port is chosen by both ends, as without an address: in turns ports are used again.
        near.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        near.bind((f"2001:db8:5::{client + 1:x}" if self.is_v6 else f"127.0.{client + 1}.1", 0))
        near.connect(("2001:db8::1" if self.is_v6 else "127.0.0.1", self.port))
        return near

    def pair(self, client=0):
        near = self.connect(client)
        return near, self.server.accept()[0]


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


def cost(knee, folder, family, number, pairs):
    """Measures the CPU time per connection in pairs of turns with and without, in both orders.

    The kernel's part of a process's time is estimated from samples, the whole is exact: so the
    difference is that of the whole, and only what it is compared with is the kernel's part.
    """

    def one_turn():
        kernel = resource.getrusage(resource.RUSAGE_SELF).ru_stime
        whole = time.process_time()
        for turn in range(number):
            # Of one client all ports would be in use after half a minute.
            near, far = family.pair(turn % 200)
            near.send(b"x")
            far.recv(1)
            near.close()
            far.close()
        kernel = resource.getrusage(resource.RUSAGE_SELF).ru_stime - kernel
        return (time.process_time() - whole) / number * 1e6, kernel / number * 1e6

    def with_programs():
        process = applied(knee, folder)
        took = one_turn()
        stopped(knee, folder, process)
        return took

    one_turn()
    kernels, differences = [], []
    for turn in range(pairs):
        if turn % 2:
            more, (base, kernel) = with_programs()[0], one_turn()
        else:
            base, kernel = one_turn()
            more = with_programs()[0]
        kernels.append(kernel)
        differences.append(more - base)
    base, more = statistics.median(kernels), statistics.median(differences)
    # Of a median, with the robust estimate of the deviation.
    apart = statistics.median(abs(each - more) for each in differences)
    error = 1.2533 * 1.4826 * apart / pairs**0.5
    print(
        f"{family.name}: {number} short connections, {pairs} pairs of turns: {base:.1f} us of the "
        f"kernel's CPU each, {more:+.2f} us with the programs (standard error {error:.2f}), "
        f"{100 * more / base:+.1f} %; at 5000 a second {more * 0.5:+.2f} % of a processor"
    )


def accepted(family, number):
    """Opens connections in a second process, so that each process holds one end."""
    reader, writer = os.pipe()
    client = os.fork()
    if client == 0:
        os.close(writer)
        held = []
        for n in range(number):
            held.append(family.connect(n % 200))
        os.read(reader, 1)
        os._exit(0)
    os.close(reader)
    ends = [family.server.accept()[0] for _ in range(number)]

    def release():
        os.close(writer)
        os.waitpid(client, 0)
        for end in ends:
            end.close()

    return ends, release


def open_connections(knee, folder, family, number):
    default = controller(family.pair()[1])
    assert default != "reno", "the default here is what the bench would give"
    ends, release = accepted(family, number)
    counts = lambda: sum(controller(far) == "reno" for far in ends)
    process = applied(knee, folder)
    changed = until(lambda: counts() == number, "open connections are changed")
    took, back = stopped(knee, folder, process)
    assert counts() == 0 and all(controller(far) == default for far in ends)
    release()
    print(
        f"{family.name}: {number} open connections: changed in {changed:.1f} s, {back['connections']} returned "
        f"in {took:.2f} s by knee steer rollback, all as before"
    )


def program_kills(knee, folder, family, number, seed):
    draw, journal = random.Random(seed), folder / "journal"
    pins = Path("/sys/fs/bpf/knee-steer") / "".join(
        letter for letter in os.readlink("/proc/self/ns/net") if letter.isdigit()
    )
    pairs = [family.pair(3) for _ in range(200)]
    default = controller(pairs[0][1])
    as_before = lambda: all(controller(far) == default for _, far in pairs)
    empty = lambda: not journal.exists() or journal.stat().st_size == 0
    steered, slowest = 0, 0.0
    for _ in range(number):
        process = apply(knee, folder)
        time.sleep(draw.uniform(0, 1.5))
        process.kill()
        process.wait()
        near, far = family.pair(3)
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
    ip("address add 2001:db8::1/128 dev lo nodad")
    lines = [f"address add 2001:db8:5::{n + 1:x}/128 dev lo nodad\n" for n in range(200)]
    subprocess.run(["ip", "-batch", "-"], check=True, input="".join(lines), text=True)
    families = [Family(name) for name in ("IPv4", "IPv6", "IPv4-mapped IPv6")]
    programs(folder / "policy.toml", [family.port for family in families])
    line = [knee, "steer", "plan", folder / "policy.toml", "--format", "json"]
    subprocess.run(line, check=True, capture_output=True)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for family in families:
        cost(knee, folder, family, arguments.connections, arguments.pairs)
    for family in families:
        open_connections(knee, folder, family, arguments.open)
    program_kills(knee, folder, families[0], arguments.kills, arguments.seed)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("knee", nargs="?", default=ROOT / "target/release/knee", type=Path)
    parser.add_argument("--prefixes", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--programs", action="store_true", help="the rows of BPF programs too")
    parser.add_argument("--connections", type=int, default=5000, help="in a turn")
    parser.add_argument("--pairs", type=int, default=20, help="of turns with and without")
    parser.add_argument("--open", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    knee = arguments.knee.resolve()
    namespace()
    with tempfile.TemporaryDirectory() as folder:
        prefixes(knee, Path(folder), arguments.prefixes)
        kills(knee, Path(folder), arguments.kills, arguments.seed)
        if arguments.tables:
            tables(arguments.tables)
        if arguments.programs:
            by_programs(knee, Path(folder), arguments)


main()
