"""Controllers in Python on the command line: in every command, by the commands that Knee prints."""

import hashlib
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ONE_PATH

RENO = Path(__file__).with_name("reno.py")
SCRIPT = Path(sys.executable).with_name("knee")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "path.toml").write_text(ONE_PATH.replace('"20 s"', '"3 s"'))
    (tmp_path / "mine.py").write_text(RENO.read_text())
    return tmp_path


def knee(folder, line, *codes):
    words = shlex.split(line)
    done = subprocess.run([SCRIPT, *words], capture_output=True, text=True, cwd=folder)
    assert done.returncode in (codes or (0,)), f"{line}\n{done.stdout}\n{done.stderr}"
    return done


def printed_again(done):
    """Returns the command that repeats it."""
    return next(
        line.partition("knee ")[2] for line in done.stdout.splitlines() if line.startswith("repeat")
    )


def without(line, option):
    words = shlex.split(line)
    return shlex.join(word for word in words if word != option)


def test_a_run_names_a_class_and_is_reproduced(folder):
    done = knee(folder, "run path.toml --set flow.flow.cc=mine.py:Reno --out own")
    knee(folder, "run path.toml --out plain")
    own = json.loads((folder / "own/summary.json").read_text())["flows"][0]
    plain = json.loads((folder / "plain/summary.json").read_text())["flows"][0]
    assert own["goodput_bps"] == plain["goodput_bps"] > 0
    manifest = json.loads((folder / "own/manifest.json").read_text())
    assert manifest["brought"]["mine.py:Reno"]["class"] == "Reno"
    source = hashlib.sha256(RENO.read_bytes()).hexdigest()
    assert manifest["inputs"]["mine.py"] == source
    assert manifest["program"]["toolchain"].startswith("rustc")
    assert manifest["program"]["target"] and manifest["program"]["commit"]
    assert (folder / "own/inputs/mine.py").read_bytes() == RENO.read_bytes()
    knee(folder, f"{printed_again(done)} --out again")
    # From the copy in the folder, wherever the file has gone.
    (folder / "mine.py").unlink()
    assert "Identical" in knee(folder, "rerun own --out rerun").stdout
    knee(folder, "run own/scenario.toml --out copy")


def test_a_scenario_names_a_class_beside_it(folder):
    below = folder / "below"
    below.mkdir()
    text = (folder / "path.toml").read_text().replace('"reno"', '"mine.py:Reno"')
    (below / "path.toml").write_text(text)
    (folder / "mine.py").rename(below / "mine.py")
    knee(folder, "check below/path.toml")
    knee(folder, "run below/path.toml --out own")
    knee(folder, "run below/path.toml --repeat 2 --out repeats")
    assert "Identical" in knee(folder, "rerun repeats --out again").stdout


def test_rankings_sweeps_and_comparisons_take_classes(folder):
    done = knee(folder, "rank path.toml --cc mine.py:Reno,reno --against cubic --out r")
    ranks = json.loads((folder / "r/rank.json").read_text())
    assert {entry["candidate"] for entry in ranks["entries"]} == {"mine.py:Reno", "reno"}
    knee(folder, f"{printed_again(done)} --out r2")
    done = knee(folder, "sweep path.toml --vary flow.flow.cc=reno,mine.py:Reno --out s")
    knee(folder, f"{printed_again(done)} --out s2")
    assert "Identical" in knee(folder, "rerun s --out s3").stdout
    assert "Identical" in knee(folder, "rerun r --out r3").stdout
    knee(folder, "compare s")
    knee(folder, "run path.toml --set flow.flow.cc=mine.py --out only")
    knee(folder, "run path.toml --out plain")
    knee(folder, "compare only plain --out compared")


def test_a_changed_class_runs_again_in_a_sweep(folder):
    line = "sweep path.toml --vary flow.flow.cc=reno,mine.py:Reno --out s"
    assert "2 of 2 runs exist already" not in knee(folder, line).stderr
    assert "2 of 2 runs exist already" in knee(folder, line).stderr
    (folder / "mine.py").write_text(RENO.read_text().replace("segments // 2", "segments // 4"))
    assert "1 of 2 runs exist already" in knee(folder, line).stderr


def test_what_an_evaluation_prints_runs(folder):
    done = knee(
        folder, "evaluate mine.py:Reno --quick --section 5.1.2 --repeat 2 --out deep/evaluation"
    )
    inputs = sorted((folder / "deep/evaluation/inputs").glob("*.toml"))
    assert inputs
    for file in inputs:
        # 1: a claim of the scenario cannot be measured in this case.
        knee(folder, f"run {file.relative_to(folder)} --out {file.stem}", 0, 1)
    knee(folder, f"{printed_again(done)} --out again")
    # As the page says, in its folder.
    knee(folder / "deep/evaluation", f"run inputs/{inputs[0].name} --out once-more", 0, 1)


def test_two_files_of_one_name_are_not_taken_for_each_other(folder):
    (folder / "below").mkdir()
    (folder / "below/mine.py").write_text(RENO.read_text() + "\n")
    line = "rank path.toml --cc mine.py:Reno,below/mine.py:Reno --out r"
    assert "two different files have the controller mine.py:Reno" in knee(folder, line, 2).stderr
