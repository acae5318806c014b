#!/usr/bin/env python3
"""Runs the queries of docs/observe.md on files of `knee observe`.

    tests/observe_queries.py KNEE FOLDER

Observes this host for a few seconds into FOLDER, opens connections over loopback meanwhile,
and runs every SQL block of the page with DuckDB. Then runs a mix on the simulator and, if
possible, on the kernel, and reads the files of all three as one table with DuckDB and
Polars, without a cast. Fails if a query fails or returns no row, if the rows of the
connections made here do not add up to the bytes sent, or if a table lacks rows.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import duckdb
import polars

PAGE = Path(__file__).resolve().parent.parent / "docs/observe.md"
MIX = '''
name = "Mix"
duration = "2 s"

[link.bottleneck]
rate = "20 Mbit/s"
delay = "5 ms"
buffer = "2 BDP"

[path.main]
forward = ["bottleneck"]
reverse_delay = "5 ms"

[[flow]]
name = "clients"
cc = "cubic"
workload = { mix = { arrival_interval = "50 ms", sizes = { median = "30 kB", sigma = 1.0, max = "1 MB" } } }
'''
# Bytes of each transfer. The large ones last for several timer ticks of any kernel.
SIZES = [100_000_000] * 3 + [10_000] * 20


def serve(listener):
    for size in SIZES:
        connection, _ = listener.accept()
        connection.sendall(bytes(size))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
        connection.close()


def stay_open():
    """Sends a little on a connection for longer than two of the intervals of --open."""
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    other, _ = listener.accept()
    for _ in range(25):
        client.sendall(bytes(1000))
        other.recv(1000, socket.MSG_WAITALL)
        time.sleep(0.1)


def main():
    knee, folder = (Path(given).resolve() for given in sys.argv[1:])
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        command = [knee, "observe", "--duration", "8 s", "--out", "."]
        observer = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        beside = subprocess.Popen(
            [*command, "--open"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        # Observers print their first line once they are listening.
        print(observer.stderr.readline().strip())
        beside.stderr.readline()
        listener = socket.create_server(("127.0.0.1", 0))
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        port = listener.getsockname()[1]
        stay_open()
        for size in SIZES:
            client = socket.create_connection(("127.0.0.1", port))
            while size > 0:
                size -= len(client.recv(1 << 20))
            client.close()
        server.join()
        out, _ = observer.communicate(timeout=60)
        beside.communicate(timeout=60)
        if observer.returncode != 0 or beside.returncode != 0:
            raise SystemExit(f"knee observe: exit {observer.returncode}, {beside.returncode}")
        print(out)
        os.chdir(folder)
        sent = duckdb.sql(
            f"SELECT sum(acked_bytes) FROM 'connections-*.parquet' WHERE local_port = {port}"
        ).fetchall()[0][0]
        if sent != sum(SIZES):
            raise SystemExit(f"{sent} bytes in the rows, {sum(SIZES)} were sent")
        queries = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
        assert len(queries) == 6, len(queries)
        for query in queries:
            answer = duckdb.sql(query)
            print(answer)
            if not answer.fetchall():
                raise SystemExit(f"no row:\n{query}")
        one_table(knee, Path(scratch), sorted(folder.glob("connections-*.parquet")))


def one_table(knee, scratch, files):
    """Checks that files of several grounds form one table: the same columns and types."""
    (scratch / "mix.toml").write_text(MIX)
    grounds = ["sim", "kernel"] if os.geteuid() == 0 and os.path.exists("/dev/net/tun") else ["sim"]
    for ground in grounds:
        command = [knee, "run", scratch / "mix.toml", "--on", ground, "--no-alternatives"]
        subprocess.run(
            [*command, "--out", scratch / ground], stdout=subprocess.DEVNULL, check=True
        )
        files = [*files, scratch / ground / "connections.parquet"]
    tables = [polars.read_parquet(file) for file in files]
    rows = sum(len(table) for table in tables)
    # Refuses tables in which the name, position or type of a column differs.
    together = polars.concat(tables, how="vertical")
    names = [str(file) for file in files]
    counted = duckdb.sql(f"SELECT count(*) FROM read_parquet({names})").fetchall()[0][0]
    types = {
        tuple(duckdb.sql(f"DESCRIBE SELECT * FROM read_parquet('{name}')").fetchall())
        for name in names
    }
    print(f"{rows} rows of {len(files)} files, of sim, live and", grounds)
    if not len(together) == counted == rows or min(map(len, tables)) == 0:
        raise SystemExit(f"{len(together)} rows in Polars, {counted} in DuckDB, {rows} written")
    if len(types) != 1:
        raise SystemExit(f"the files have {len(types)} schemas")


main()
