"""Evaluations of controllers written in Python."""

import hashlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import knee
import pytest
from reno import Reno
from test_sweep import FakeRay

RENO = Path(__file__).with_name("reno.py")
SCRIPT = Path(sys.executable).with_name("knee")


class Window(knee.Controller):
    """A fixed window that eventually raises."""

    def on_ack(self, ack):
        if ack.delivered_bytes > 100_000:
            raise ValueError("no window for this")
        return self.initial_window_bytes


def test_reno_in_python_has_the_values_of_reno():
    done = knee.evaluate(Reno, sections=["5.1.2", "7.6"], quick=True, repeat=2)
    assert done["candidate"] == "Reno" and len(done["lines"]) > 10
    source = hashlib.sha256(inspect.getsource(Reno).encode()).hexdigest()
    assert done["brought"] == {"class": "Reno", "module": "reno", "sha256": source}
    for line in done["lines"]:
        assert line["could_not_be_tried"] is None, line
        for seed in line["seeds"]:
            assert seed["candidate"] == seed["standards"][0], line["title"]


def test_whoever_makes_the_runs_they_are_the_same(tmp_path, monkeypatch):
    def made(candidate, **how):
        out = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        knee.evaluate(candidate, sections=["5.1.2"], quick=True, repeat=2, out=out, **how)
        kept = {path.relative_to(out): path for path in out.rglob("*") if path.is_file()}
        assert {Path("evaluation.json"), Path("evaluation.parquet")} <= set(kept)
        return {name: path.read_bytes() for name, path in kept.items()}

    threads = made("vegas")
    assert made("vegas", executor="serial") == threads
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    assert made("vegas", executor="ray", batch=3) == threads
    assert ray.pending_max > 1
    # A class, and one that raises in other processes.
    for candidate in (Reno, Window):
        assert made(candidate, executor="processes", workers=2) == made(candidate)


def test_runs_elsewhere_replace_no_evaluation(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(knee.KneeError, match="not empty"):
        knee.evaluate("vegas", sections=["5.1.2"], quick=True, executor="serial", out=tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_wrong_executor_replaces_no_evaluation(tmp_path):
    how = {"sections": ["5.1.2"], "quick": True, "repeat": 2, "out": tmp_path / "kept"}
    knee.evaluate("vegas", **how)
    before = sorted(path.name for path in how["out"].iterdir())
    with pytest.raises(ValueError, match="no executor 'cluster'"):
        knee.evaluate("vegas", executor="cluster", force=True, **how)
    assert sorted(path.name for path in how["out"].iterdir()) == before


def test_what_a_controller_raises_is_the_reason_of_its_lines():
    done = knee.evaluate(Window, sections=["5.1.2"], quick=True, repeat=2)
    for line in done["lines"]:
        assert "ValueError: no window for this" in line["could_not_be_tried"]


def evaluated(word, *words, **more):
    return subprocess.run(
        [SCRIPT, "evaluate", word, "--quick", "--section", "5.1.2", "--repeat", "2", *words],
        capture_output=True,
        text=True,
        **more,
    )


def test_the_console_script_evaluates_a_file(tmp_path):
    (tmp_path / "mine.py").write_text(RENO.read_text())
    first = evaluated("mine.py:Reno", "--out", "first", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "mine.py:Reno against reno, cubic, bbr" in first.stdout
    known = json.loads((tmp_path / "first" / "evaluation.json").read_text())
    # The command that repeats it.
    assert known["command"].startswith("knee evaluate mine.py:Reno ")
    # Which version of the class that was.
    source = hashlib.sha256(inspect.getsource(Reno).encode()).hexdigest()
    assert known["brought"]["class"] == "Reno" and known["brought"]["sha256"] == source
    assert (tmp_path / "first" / "report.html").stat().st_size > 10_000
    # The only controller of the file, against the same one.
    against = ("--out", "second", "--against", "first/evaluation.json")
    second = evaluated("mine.py", *against, cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert "No criterion got worse." in second.stderr


def test_a_file_may_bear_the_name_of_a_module_of_python(tmp_path):
    (tmp_path / "inspect.py").write_text(RENO.read_text())
    done = evaluated("inspect.py", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_file_without_the_controller_says_what_it_has(tmp_path):
    (tmp_path / "empty.py").write_text("x = 1\n")
    empty = evaluated("empty.py", cwd=tmp_path)
    assert empty.returncode != 0 and "no class with a method on_ack" in empty.stderr
    other = evaluated(f"{RENO}:Cubic", cwd=tmp_path)
    assert other.returncode != 0 and "no controller Cubic (it has Reno)" in other.stderr
    missing = evaluated("missing.py:Reno", cwd=tmp_path)
    assert missing.returncode != 0 and "there is no file missing.py" in missing.stderr
