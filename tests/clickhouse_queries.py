#!/usr/bin/env python3
"""Runs the statements of docs/observe-fleet.md on a folder of `knee observe`.

    tests/clickhouse_queries.py FOLDER

Uses chdb, ClickHouse's own engine (pip install chdb). Prints the result of each question.
Fails if a statement fails, if a question gives no row, or if the loaded bytes are not those
of the files.
"""

import os
import re
import sys
from pathlib import Path

from chdb import session

PAGE = Path(__file__).resolve().parent.parent / "docs/observe-fleet.md"


def main():
    os.chdir(sys.argv[1])
    server = session.Session()
    statements = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(statements) == 9, len(statements)
    for statement in statements:
        answer = str(server.query(statement.rstrip().rstrip(";"), "Pretty"))
        if statement.startswith(("CREATE", "INSERT")):
            continue
        print(answer)
        if not answer.strip():
            raise SystemExit(f"no row:\n{statement}")

    def number(query):
        return float(str(server.query(query, "TSV")))

    for table in ("connections", "minutes"):
        for column in ("acked_bytes", "sent_bytes", "retransmitted_bytes"):
            loaded = number(f"SELECT sum({column}) FROM {table}")
            written = number(f"SELECT sum({column}) FROM file('{table}-*.parquet', Parquet)")
            if loaded != written:
                raise SystemExit(f"{table}.{column}: {loaded} loaded, {written} written")
    print("all bytes are there")


main()
