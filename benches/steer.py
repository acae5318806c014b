#!/usr/bin/env python3
"""How fast a policy is applied by routes and taken back, and whether a kill leaves anything.

    benches/steer.py [KNEE] [--prefixes N] [--kills N] [--seed N]

In a network namespace of its own, with a device that leads nowhere:

- a policy of N prefixes: time of `knee steer plan`, from the start of `knee steer apply`
  until it says that all is applied, and of `knee steer rollback`, processes included;
- `knee steer apply` is killed (SIGKILL) N times, each at a random moment of its first
  300 ms; what rules and routes have Knee's mark, and what the journal says, is looked at
  after each. Fails where something is left for longer than ten seconds.

Needs root, or unshare --user --map-root-user.
"""

import argparse
import ctypes
import json
import random
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
    """Lines of rules and routes with Knee's mark."""
    lines = ip("rule") + ip("-6 rule") + ip("route show table all")
    return sum("proto 222" in line for line in lines.splitlines())


def policy(path, prefixes):
    """A policy of so many /24 in 10.0.0.0/8 and beyond."""
    names = [f'"{10 + n // 65536}.{n // 256 % 256}.{n % 256}.0/24"' for n in range(prefixes)]
    path.write_text(
        'name = "bench"\n[[group]]\nname = "all"\ncontroller = "reno"\n'
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
        time.sleep(draw.uniform(0, 0.3))
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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("knee", nargs="?", default=ROOT / "target/release/knee", type=Path)
    parser.add_argument("--prefixes", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    knee = arguments.knee.resolve()
    namespace()
    with tempfile.TemporaryDirectory() as folder:
        prefixes(knee, Path(folder), arguments.prefixes)
        kills(knee, Path(folder), arguments.kills, arguments.seed)


main()
