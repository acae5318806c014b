#!/usr/bin/env python3
"""Asks the questions of docs/observe.md of what `knee observe` writes.

    tests/observe_queries.py KNEE

Observes this host for a few seconds, opens connections over loopback meanwhile, and runs
every SQL block of the page with DuckDB. Fails where a query fails or gives no row, and
where the rows of the connections made here lack bytes.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import duckdb

PAGE = Path(__file__).resolve().parent.parent / "docs/observe.md"
# Large enough for several ticks of any kernel.
SIZES = [100_000_000] * 3 + [10_000] * 20


def serve(listener):
    for size in SIZES:
        connection, _ = listener.accept()
        connection.sendall(bytes(size))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
        connection.close()


def main():
    knee = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        command = [knee, "observe", "--duration", "4 s", "--out", "."]
        observer = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        # Its first words say that it listens.
        print(observer.stderr.readline().strip())
        listener = socket.create_server(("127.0.0.1", 0))
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        port = listener.getsockname()[1]
        for size in SIZES:
            client = socket.create_connection(("127.0.0.1", port))
            while size > 0:
                size -= len(client.recv(1 << 20))
            client.close()
        server.join()
        out, _ = observer.communicate(timeout=60)
        if observer.returncode != 0:
            raise SystemExit(f"knee observe: exit {observer.returncode}")
        print(out)
        os.chdir(folder)
        sent = duckdb.sql(
            f"SELECT sum(acked_bytes) FROM 'connections-*.parquet' WHERE local_port = {port}"
        ).fetchall()[0][0]
        if sent != sum(SIZES):
            raise SystemExit(f"{sent} bytes in the rows, {sum(SIZES)} were sent")
        queries = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
        assert len(queries) == 5, len(queries)
        for query in queries:
            answer = duckdb.sql(query)
            print(answer)
            if not answer.fetchall():
                raise SystemExit(f"no row:\n{query}")


main()
