#!/usr/bin/env python3
"""Kills Knee, a program of a flow, or both at random moments, and looks for what is left.

    programs_kills.py KNEE [--count 100] [--seed 1]

As root. Each time `programs/curl.toml` is run for three seconds; at a random moment from its start on a
process gets SIGKILL: Knee, one of the flow's programs, or both. A second after Knee has ended there must be
no process that it started, no device, no namespace, no mount and no file of it outside of the run's
folder. Ends with 1 if there is; prints the seed, so that the same moments can be tried again."""

import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "programs"
# Folders in which a tool leaves files by habit.
PLACES = ["/tmp", "/run", "/var/tmp", "/dev/shm", "/run/netns", "/sys/fs/bpf"]
MARK = "KNEE_KILLS"


def processes():
    """Command lines of the processes that a run started, by their environment."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if MARK.encode() in (folder / "environ").read_bytes():
                words = (folder / "cmdline").read_bytes().split(b"\0")
                found[int(folder.name)] = b" ".join(words).decode(errors="replace").strip()
        except OSError:
            # It ended meanwhile.
            continue
    return {number: words for number, words in found.items() if words}


def host():
    """What a run may leave behind, as lines."""
    links = subprocess.run(["ip", "-oneline", "link"], capture_output=True, text=True, check=True)
    lines = {"device " + line.split(": ")[1] for line in links.stdout.splitlines()}
    lines |= {"mount " + line.split()[1] for line in open("/proc/self/mounts")}
    for place in map(pathlib.Path, PLACES):
        if place.is_dir():
            lines |= {f"file {entry}" for entry in place.iterdir()}
    return lines


def left(before, seconds):
    """What is there that was not before, once it has had some seconds to go."""
    until = time.monotonic() + seconds
    while True:
        found = [f"process {words}" for words in processes().values()]
        found += sorted(host() - before)
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("knee", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chosen = random.Random(arguments.seed)
    words = [str(arguments.knee.resolve()), "run", "curl.toml", "--on", "programs", "--force",
             "--set", "duration=3 s", "--set", "flow.curl.program.bytes=20 MB"]
    print(f"{arguments.count} runs of at most 4 s, seed {arguments.seed}", flush=True)
    bad = 0
    victims = {"Knee": 0, "program": 0, "both": 0}
    with tempfile.TemporaryDirectory(dir=PROGRAMS) as folder:
        for number in range(1, arguments.count + 1):
            before = host()
            knee = subprocess.Popen(
                [*words, "--out", f"{folder}/run"], cwd=PROGRAMS, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, env=os.environ | {MARK: str(number)})
            victim = chosen.choice(list(victims))
            moment = chosen.uniform(0, 3.5)
            time.sleep(moment)
            programs = [one for one, words in processes().items()
                        if one != knee.pid and ("serve.py" in words or words.startswith("curl"))]
            killed = [knee.pid] if victim != "program" else []
            if victim != "Knee" and programs:
                killed.append(chosen.choice(sorted(programs)))
            for one in killed:
                try:
                    os.kill(one, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            victims[victim] += bool(killed)
            try:
                knee.wait(20)
            except subprocess.TimeoutExpired:
                bad += 1
                print(f"{number}: {victim} at {moment:.3f} s: Knee does not end", flush=True)
                knee.kill()
                knee.wait()
            if found := left(before, 1):
                bad += 1
                print(f"{number}: {victim} at {moment:.3f} s: {found}", flush=True)
            if number % 20 == 0:
                print(f"{number} of {arguments.count}", flush=True)
    print(f"killed: {victims}; something was left {bad} times")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
