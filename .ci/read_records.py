"""Opens a run's records as a stranger would: with pyarrow and json alone.

Usage: read_records.py DIR
"""

import json
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet

# A column says what it counts in by how its name ends.
UNITS = ("_ns", "_us", "_s", "_bytes", "_bps", "_packets", "_segments", "_ratio")
# Names, indexes and plain counts need no unit.
UNITLESS_TYPES = (pyarrow.types.is_string, pyarrow.types.is_dictionary, pyarrow.types.is_boolean)
UNITLESS = {"flow", "path", "link", "index", "timeouts", "recoveries", "spurious_recoveries",
            "header_overhead"}


def check_table(path):
    table = pyarrow.parquet.read_table(path)
    assert table.num_rows > 0, f"{path.name} is empty"
    for field in table.schema:
        plain = any(test(field.type) for test in UNITLESS_TYPES)
        unit = field.name.endswith(UNITS)
        assert plain or unit or field.name in UNITLESS, f"{path.name}: {field.name} has no unit"
    print(f"{path.name}: {table.num_rows} rows, {table.num_columns} columns")
    return table


def check_summary(path, flows):
    summary = json.loads(path.read_text())
    for key in ("schema", "name", "ground", "seed", "verdict", "flows", "links", "measures", "claims"):
        assert key in summary, f"summary.json lacks {key}"
    assert len(summary["flows"]) == flows.num_rows
    # The summary and the table must tell the same.
    delivered = flows.column("delivered_bytes").to_pylist()
    assert [flow["delivered_bytes"] for flow in summary["flows"]] == delivered
    for flow in summary["flows"]:
        rtt = flow["rtt_us"]
        ordered = [rtt[key] for key in ("min", "p5", "p50", "p95", "p99", "max")]
        assert ordered == sorted(ordered), rtt
        assert rtt["min"] <= rtt["mean"] <= rtt["max"], rtt


def main():
    directory = Path(sys.argv[1])
    manifests = sorted(directory.rglob("manifest.json"))
    assert manifests, f"no run below {directory}"
    for manifest in manifests:
        run = manifest.parent
        flows = check_table(run / "flows.parquet")
        check_table(run / "samples.parquet")
        check_table(run / "links.parquet")
        check_summary(run / "summary.json", flows)
        cost = json.loads(manifest.read_text())
        assert cost["data_packets"] == sum(flows.column("delivered_packets").to_pylist())


main()
