#!/usr/bin/env python3
"""A sweep on a real Ray cluster, compared with the same one in this process and on two
processes: the same bytes, and how long each took.

Run with a Python that has the package, Ray and pyarrow: `pip install 'knee[ray]' pyarrow &&
python benches/ray_sweep.py [POINTS]`. Without `RAY_ADDRESS` Ray starts a cluster on this
machine.
"""

import hashlib
import sys
import time
import tomllib

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


def main(points=200):
    scenario = tomllib.loads(PATH)
    vary = {"link.l.rate": ["50 Mbit/s", "100 Mbit/s"]}
    found = {}
    for name, how in (
        ("serial", {"executor": "serial"}),
        ("processes", {"executor": "processes", "workers": 2}),
        ("ray", {"executor": "ray"}),
        ("ray, again", {"executor": "ray", "batch": 7}),
    ):
        begun = time.perf_counter()
        sweep = knee.sweep(scenario, vary, repeat=points // 2, **how)
        took = time.perf_counter() - begun
        found[name] = digest(sweep)
        print(f"{name:<12} {took:7.2f} s  {found[name][:16]}", flush=True)
    if len(set(found.values())) != 1:
        raise SystemExit("who made the runs has changed what came out")
    print("the same bytes from all")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
