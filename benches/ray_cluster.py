#!/usr/bin/env python3
"""A sweep and an evaluation on a real Ray cluster, compared with the same ones in this
process and on two processes: the same bytes, and how long each took.

Run with a Python that has the package, Ray and pyarrow: `pip install 'knee[ray]' pyarrow &&
python benches/ray_cluster.py [POINTS]`. Without `RAY_ADDRESS` Ray starts a cluster on this
machine.
"""

import hashlib
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import knee
import pyarrow

PATH = """
duration = "20 s"
[link.l]
rate = "100 Mbit/s"
delay = "10 ms"
buffer = "1 BDP"
loss = "0.01 %"
[path.p]
forward = ["l"]
reverse_delay = "10 ms"
[[flow]]
name = "f"
path = "p"
cc = "cubic"
"""


def digest(table):
    """Returns the SHA-256 of the table in Arrow's format."""
    table = pyarrow.table(table).combine_chunks()
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def sweep(points, **how):
    """Returns the digest of a sweep's table."""
    vary = {"link.l.rate": ["50 Mbit/s", "100 Mbit/s"]}
    return digest(knee.sweep(tomllib.loads(PATH), vary, repeat=points // 2, **how))


def evaluation(**how):
    """Returns the digest of what an evaluation leaves behind: table, document, page and the
    scenarios of its worst cases."""
    with tempfile.TemporaryDirectory() as out:
        knee.evaluate("vegas", sections=["5.1", "5.2"], quick=True, out=out, **how)
        made = hashlib.sha256()
        for path in sorted(path for path in Path(out).rglob("*") if path.is_file()):
            made.update(str(path.relative_to(out)).encode() + path.read_bytes())
    return made.hexdigest()


def compare(what, make, first):
    """Makes the same on each executor, `first` being the one of this process."""
    print(what)
    found = set()
    for name, how in (
        (first, {"executor": first}),
        ("processes", {"executor": "processes", "workers": 2}),
        ("ray", {"executor": "ray"}),
        ("ray, again", {"executor": "ray", "batch": 7}),
    ):
        begun = time.perf_counter()
        made = make(**how)
        took = time.perf_counter() - begun
        found.add(made)
        print(f"  {name:<12} {took:7.2f} s  {made[:16]}", flush=True)
    if len(found) != 1:
        raise SystemExit("who made the runs has changed what came out")


def main(points=200):
    compare(f"a sweep of {points} points", lambda **how: sweep(points, **how), "serial")
    compare("an evaluation", evaluation, "threads")
    print("the same bytes from all")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
