"""Runs, their tables, and errors."""

import json
import subprocess
import sys

import knee
import pytest


def test_a_scenario_as_text_path_and_dict(one_path, tmp_path):
    file = tmp_path / "one.toml"
    file.write_text(one_path)
    document = {
        "duration": "20 s",
        "sample_interval": "50 ms",
        "link": {
            "bottleneck": {
                "rate": "10 Mbit/s", "delay": "20 ms", "buffer": "1 BDP", "loss": "0.05 %",
            }
        },
        "path": {"main": {"forward": ["bottleneck"], "reverse_delay": "20 ms"}},
        "flow": [{"name": "flow", "path": "main", "cc": "reno"}],
    }  # fmt: skip
    samples = [knee.run(given).samples for given in (one_path, str(file), file, document)]
    columns = [{name: table[name] for name in table.columns} for table in samples]
    assert len(samples[0]) == 400
    assert all(other == columns[0] for other in columns[1:])


def test_a_link_carries_at_most_its_rate(one_path):
    run = knee.run(one_path, set={"link.bottleneck.loss": "0 %"}, seed=3)
    (flow,) = run.summary["flows"]
    # Of 1500 bytes on the link, 1448 are payload.
    assert 8e6 < flow["goodput_bps"] < 10e6 * 1448 / 1500
    assert min(x for x in run.samples["rtt_ns"] if x is not None) >= 40_000_000


def test_a_run_that_is_kept_is_the_one_of_the_program(one_path, tmp_path):
    file = tmp_path / "one.toml"
    file.write_text(one_path)
    knee.run(file, out=tmp_path / "module")
    knee_command("run", file, "--out", tmp_path / "program")
    names = ["samples.parquet", "flows.parquet", "links.parquet", "connections.parquet"]
    for name in [*names, "summary.json"]:
        one, other = (tmp_path / way / name for way in ("module", "program"))
        assert one.read_bytes() == other.read_bytes(), name
    manifests = [json.loads((tmp_path / way / "manifest.json").read_text())["program"]["sha256"]
                 for way in ("module", "program")]  # fmt: skip
    # The program is the shared module, however it was started.
    assert manifests[0] == manifests[1] is not None


def knee_command(*arguments):
    code = "import sys; from knee._command import main; main()"
    words = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(words, check=True, capture_output=True, text=True)


def test_the_console_script_is_the_program():
    told = knee_command("--version").stdout
    assert told.startswith(f"knee {knee.__version__}")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        knee_command("run", "nowhere.toml")
    assert failed.value.returncode == 2
    assert "nowhere.toml" in failed.value.stderr


def test_tables_go_to_others_without_a_copy(one_path):
    run = knee.run(one_path)
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(run.samples)
    assert table.num_rows == len(run.samples) == 400
    assert table.column_names == run.samples.columns
    for name in table.column_names:
        assert table[name].to_pylist() == run.samples[name], name
    # Two readers share the same memory.
    again = pyarrow.table(run.samples)
    buffers = [one["time_ns"].chunk(0).buffers()[1].address for one in (table, again)]
    assert buffers[0] == buffers[1]
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(run.samples)
    assert frame.equals(run.samples.to_polars()) and frame.height == 400
    assert frame["phase"].to_list() == run.samples["phase"]
    pytest.importorskip("pandas")
    assert list(run.samples.to_pandas()["phase"]) == run.samples["phase"]
    duckdb = pytest.importorskip("duckdb")
    samples = run.samples
    told = duckdb.sql("select count(*), max(delivered_bytes) from samples")
    assert told.fetchall() == [(400, max(samples["delivered_bytes"]))]


def test_what_is_wrong_is_said_with_its_place(one_path):
    with pytest.raises(knee.ScenarioError) as raised:
        knee.run(one_path.replace('"10 Mbit/s"', '"10 Mbit"').replace('"reno"', '"rino"'))
    told = str(raised.value)
    assert "scenario.toml:7:8" in told and "scenario.toml:19:6" in told
    assert 'did you mean "reno"' in told
    with pytest.raises(knee.ScenarioError, match="nowhere.toml"):
        knee.run("nowhere.toml")
    with pytest.raises(TypeError, match="int is no scenario"):
        knee.run(7)
    with pytest.raises(knee.KneeError, match='there is no ground "moon"'):
        knee.run(one_path, on="moon")
    with pytest.raises(TypeError, match="no value of a scenario"):
        knee.run(one_path, set={"duration": None})


def test_a_directory_is_not_written_over(one_path, tmp_path):
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(knee.KneeError, match="not empty"):
        knee.run(one_path, out=tmp_path)
    assert (tmp_path / "mine").read_text() == "precious"
