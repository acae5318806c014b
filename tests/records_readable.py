#!/usr/bin/env python3
"""Checks that a run directory can be read without Knee.

    tests/records_readable.py DIR...

Opens the Parquet files with pyarrow, and with DuckDB and Polars if installed; checks that
all read the same numbers, that columns carry their unit, and that the summary follows from
the tables by formulas repeated here. Exits 1 with a message for the first mismatch.
"""

import importlib
import json
import pathlib
import sys

import pyarrow.parquet as parquet

SCHEMAS = {
    "flows": "knee-flows/2",
    "samples": "knee-samples/2",
    "links": "knee-links/2",
    "connections": "knee-connections/1",
}
# Written only if they have rows.
SOMETIMES = {
    "paths": "knee-paths/1",
    "path-samples": "knee-samples/2",
    "objects": "knee-objects/1",
}
UNITS = ("_ns", "_bytes", "_bps", "_packets", "_overhead")
WITHOUT_UNIT = {
    "flow", "index", "name", "cc", "path", "link", "phase", "flow_name", "link_name",
    "timeouts", "recoveries", "spurious_recoveries", "scheduler", "suspicions", "path_name",
    "backup", "number", "connection", "quality", "workload", "app_limited", "dsacks",
    "reorderings", "cc_source", "prefix", "local_port", "remote_port", "group", "block", "arm",
    "weight",
}  # fmt: skip


def check(fits, what):
    if not fits:
        raise SystemExit(f"records_readable: {what}")


def close(one, other, tolerance=1e-9):
    return abs(one - other) <= tolerance * max(abs(one), abs(other), 1)


def optional(module):
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def check_table(path, schema):
    """Opens a file with every installed reader; returns its rows."""
    table = parquet.read_table(path)
    found = (parquet.read_metadata(path).metadata or {}).get(b"knee.schema", b"none").decode()
    check(found == schema, f"{path} has schema {found}, not {schema}")
    for name in table.column_names:
        fits = name in WITHOUT_UNIT or name.endswith(UNITS)
        check(fits, f"column {name} of {path} has no unit")
    numbers = [f.name for f in table.schema if str(f.type) in ("int64", "double")]
    rows = table.to_pylist()
    sums = [sum(row[name] or 0 for row in rows) for name in numbers]
    readers = ["pyarrow"]
    for name, reader in (("duckdb", sums_in_duckdb), ("polars", sums_in_polars)):
        module = optional(name)
        if module is None:
            continue
        for column, one, other in zip(numbers, sums, reader(module, path, numbers)):
            check(close(one, other or 0), f"{name} and pyarrow differ on {column} of {path}")
        readers.append(name)
    return rows, readers


def sums_in_duckdb(duckdb, path, columns):
    wanted = ", ".join(f'sum("{name}")' for name in columns)
    return duckdb.sql(f"SELECT {wanted} FROM '{path}'").fetchall()[0]


def sums_in_polars(polars, path, columns):
    # A sum of nanoseconds could exceed 64 bits and wrap, so add as floats.
    frame = polars.read_parquet(path, columns=columns).cast(polars.Float64)
    return frame.sum().row(0)


def check_flows(summary, flows, samples):
    check(len(summary["flows"]) == len(flows), "summary and flows.parquet differ in flows")
    by_name = {}
    for row in samples:
        by_name.setdefault(row["flow_name"], []).append(row)
    for said, row in zip(summary["flows"], flows):
        label = f"{row['name']}[{row['index']}]"
        check(said["name"] == row["name"] and said["index"] == row["index"], f"order at {label}")
        for key in ("sent_bytes", "retransmitted_bytes", "delivered_bytes"):
            check(said[key] == row[key], f"{key} of {label} differs from flows.parquet")
        if row["sent_bytes"]:
            ratio = row["retransmitted_bytes"] / row["sent_bytes"]
            check(close(said["retransmit_ratio"], ratio), f"retransmit_ratio of {label}")
        check_ladder(said["rtt_us"], f"rtt_us of {label}")
        own = by_name.get(label, [])
        check_series(label, own, ("delivered_bytes", "sent_bytes", "retransmitted_bytes"))
        check_goodput(said, row, own, summary["warmup_us"] * 1e3)


def check_goodput(said, row, samples, warmup_ns):
    """Checks goodput, a division if there is a sample at the end of the warm-up."""
    begin = row["start_ns"] + warmup_ns
    before = {sample["time_ns"]: sample["delivered_bytes"] for sample in samples}
    before[row["start_ns"]] = 0
    if begin not in before or begin >= row["end_ns"]:
        return
    bits = 8e9 * (row["delivered_bytes"] - before[begin])
    expected = bits / (row["end_ns"] - begin)
    check(close(said["goodput_bps"], expected), f"goodput of {row['name']}[{row['index']}]")


def check_links(summary, links):
    by_name = {}
    for row in links:
        by_name.setdefault(row["link_name"], []).append(row)
    for said in summary["links"]:
        own = by_name.get(said["name"], [])
        check_series(said["name"], own, ("departed_bytes", "entered_packets", "dropped_packets"))
        if own:
            check(said["drops"] == own[-1]["dropped_packets"], f"drops of {said['name']}")
        utilisation = said["utilisation"]
        check(utilisation is None or 0 <= utilisation <= 1.0001, f"utilisation of {said['name']}")
        check_ladder(said["queue_bytes"], f"queue_bytes of {said['name']}")


def check_paths(paths, samples):
    by_path = {}
    for row in samples:
        by_path.setdefault((row["flow"], row["path"]), []).append(row)
    for row in paths:
        label = f"{row['flow_name']} on {row['name']}"
        own = by_path.get((row["flow"], row["path"]), [])
        check_series(label, own, ("delivered_bytes", "sent_bytes", "retransmitted_bytes"))
        check(all(sample["path_name"] == row["name"] for sample in own), f"name of {label}")
        check(row["retransmitted_bytes"] <= row["sent_bytes"], f"{label} sent more again than at all")


def check_objects(objects):
    for row in objects:
        times = [row["requested_ns"], row["first_byte_ns"], row["completed_ns"]]
        known = [time for time in times if time is not None]
        check(known == sorted(known), f"{row['name']} of {row['flow_name']} arrives before it is sent")


def check_connections(connections, flows):
    """Checks rows by themselves, and together with their flow."""
    delivered = {}
    for row in connections:
        label = f"connection {row['connection']} of {row['flow_name']}"
        whole = row["acked_bytes"] == row["delivered_bytes"] == row["size_bytes"]
        ended = row["completion_ns"] is not None
        # A stop may cut off an endless workload.
        mix_or_file = row["workload"] in ("mix", "file")
        check(not (ended and mix_or_file) or whole, f"{label} is complete but not delivered")
        check(not ended or row["start_ns"] + row["completion_ns"] == row["end_ns"], f"end of {label}")
        if row["busy_ns"] is not None:
            check(row["receive_limited_ns"] <= row["busy_ns"], f"{label} is limited for too long")
            life = row["end_ns"] - row["start_ns"]
            # The kernel counts microseconds, on a clock of its own.
            check(row["busy_ns"] <= life + 5_000_000, f"{label} is busy beyond its end")
        check(row["retransmitted_bytes"] <= row["sent_bytes"], f"{label} sent more again than at all")
        delivered[row["flow"]] = delivered.get(row["flow"], 0) + row["delivered_bytes"]
    for flow in flows:
        total = delivered.get(flow["flow"], 0)
        check(total == flow["delivered_bytes"], f"connections of {flow['name']} are not their flow")


def check_series(label, rows, counters):
    times = [row["time_ns"] for row in rows]
    check(times == sorted(times), f"samples of {label} are not in order of time")
    for counter in counters:
        values = [row[counter] for row in rows]
        check(values == sorted(values), f"{counter} of {label} runs backwards")


def check_ladder(spread, what):
    if spread is None:
        return
    ladder = [spread[key] for key in ("min", "p5", "p50", "p95", "p99", "max")]
    check(ladder == sorted(ladder), f"{what}: percentiles are not in order: {ladder}")
    check(ladder[0] <= spread["mean"] <= ladder[-1], f"{what}: mean outside the range")


def check_schema(directory, summary):
    jsonschema = optional("jsonschema")
    if jsonschema is None:
        return
    schemas = pathlib.Path(__file__).resolve().parent.parent / "schemas"
    jsonschema.validate(summary, json.loads((schemas / "summary.schema.json").read_text()))
    manifest = json.loads((directory / "manifest.json").read_text())
    jsonschema.validate(manifest, json.loads((schemas / "manifest.schema.json").read_text()))


def check_run(directory):
    summary = json.loads((directory / "summary.json").read_text())
    tables = {}
    for name, schema in SCHEMAS.items():
        tables[name], readers = check_table(directory / f"{name}.parquet", schema)
    for name, schema in SOMETIMES.items():
        path = directory / f"{name}.parquet"
        tables[name] = check_table(path, schema)[0] if path.exists() else []
        check(tables[name] or not path.exists(), f"{path} is there without rows")
    check(tables["flows"], f"{directory} has no flows")
    check_schema(directory, summary)
    check_flows(summary, tables["flows"], tables["samples"])
    check_links(summary, tables["links"])
    check_paths(tables["paths"], tables["path-samples"])
    check_objects(tables["objects"])
    check_connections(tables["connections"], tables["flows"])
    counts = ", ".join(f"{len(rows)} {name}" for name, rows in tables.items() if rows)
    print(f"{directory}: {counts}; read with {', '.join(readers)}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit("usage: records_readable.py DIR...")
    for argument in sys.argv[1:]:
        check_run(pathlib.Path(argument))
