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
    def refused(word, *parts):
        done = evaluated(word, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("error: ") and len(done.stderr.splitlines()) == 1, done.stderr
        assert all(part in done.stderr for part in parts), done.stderr
        assert not (tmp_path / "knee-out").exists()

    (tmp_path / "empty.py").write_text("x = 1\n")
    refused("empty.py", "empty.py has no controller", "on_ack")
    (tmp_path / "reno.py").write_text(RENO.read_text())
    refused("reno.py:Cubic", "reno.py has no controller Cubic", "it has Reno")
    refused("missing.py:Reno", "missing.py", "there is no such file")
    (tmp_path / "wrong.py").write_text("class Mine:\n    def on_ack(self ack):\n")
    refused("wrong.py", "wrong.py, line 2:", "correct the file")
    (tmp_path / "raising.py").write_text("import knee\n\nx = 1 / 0\n")
    refused("raising.py:Mine", "raising.py, line 3: ZeroDivisionError: division by zero")
    (tmp_path / "two.py").write_text(RENO.read_text() + "\n\nclass Other(Reno):\n    pass\n")
    refused("two.py", "two.py has several controllers: Reno, Other", "two.py:CLASS")


def test_a_class_that_fails_in_every_run_is_an_error(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    def __init__(self, init):\n        pass\n"
        "    def on_ack(self, ack):\n        raise ValueError('no window for this')\n"
    )
    done = evaluated("mine.py:Mine", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "no window for this" in done.stderr
