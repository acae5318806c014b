"""Sweeps on any executor, rankings and studies."""

import pickle
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import knee
import pytest
from reno import Reno
from schedulers import Dice

VARY = {
    "link.bottleneck.rate": ["5 Mbit/s", "20 Mbit/s"],
    "flow.flow.cc": ["cubic", {"name": "fixed", "window": "1 BDP"}],
}


def columns(sweep):
    return {name: sweep.table[name] for name in sweep.table.columns}


@pytest.fixture
def short(one_path):
    return one_path.replace('"20 s"', '"2 s"').replace('"0.05 %"', '"0.5 %"')


class FakeRay(types.ModuleType):
    """The part of Ray's interface that a sweep uses, with Ray's rules: arguments and
    results are pickled, references returned by `put` are passed as values."""

    class Reference:
        def __init__(self, value):
            self.pickled = pickle.dumps(value)

    def __init__(self):
        super().__init__("ray")
        self.pending_max, self.pending = 0, []

    def is_initialized(self):
        return True

    def cluster_resources(self):
        return {"CPU": 2.0}

    def put(self, value):
        return self.Reference(value)

    def get(self, reference):
        return pickle.loads(reference.pickled)

    def remote(self, function):
        def submit(*arguments):
            given = [self.get(a) if isinstance(a, self.Reference) else pickle.loads(pickle.dumps(a))
                     for a in arguments]  # fmt: skip
            reference = self.Reference(function(*given))
            self.pending.append(reference)
            self.pending_max = max(self.pending_max, len(self.pending))
            return reference

        return types.SimpleNamespace(remote=submit)

    def wait(self, references, num_returns):
        # The last one first: results may come in any order.
        done = references[-num_returns:]
        self.pending = [one for one in self.pending if one not in done]
        return done, [one for one in references if one not in done]


def test_whoever_makes_the_runs_they_are_the_same(short, monkeypatch):
    def made(**how):
        return columns(knee.sweep(short, VARY, repeat=2, **how))

    serial = made(executor="serial")
    assert len(serial["seed"]) == 8
    assert serial["link.bottleneck.rate_bps"] == [5e6] * 4 + [2e7] * 4
    # Every repeat has its own seed, and with it its own losses.
    assert len(set(serial["seed"])) == 2
    assert len(set(serial["goodput_bps"])) == 8
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    assert made(executor="ray", batch=1) == serial
    assert 1 < ray.pending_max <= 8
    assert made(executor="processes", workers=2) == serial
    assert made(executor="processes", workers=1, batch=3) == serial
    with ThreadPoolExecutor(2) as threads:
        assert made(executor=threads, batch=2) == serial
    with pytest.raises(ValueError, match='"processes", "serial"'):
        made(executor="cluster")


def test_a_scheduler_draws_the_same_whoever_makes_the_runs(two_paths):
    short = two_paths.replace('"10 s"', '"1 s"')
    vary = {"link.slow.rate": ["2 Mbit/s", "5 Mbit/s"], "flow.flow.scheduler": ["dice"]}

    def made(**how):
        how["schedulers"] = {"dice": Dice}
        return columns(knee.sweep(short, vary, repeat=2, **how))

    serial = made(executor="serial")
    assert len(set(serial["goodput_bps"])) > 1
    assert made(executor="processes", workers=2, batch=1) == serial
    assert made(executor="processes", workers=1, batch=3) == serial


def test_numbers_of_other_libraries_are_values():
    from knee._given import value

    class Scalar:
        shape = ()

        def __init__(self, inner):
            self.inner = inner

        def item(self):
            return self.inner

    class Double(float):
        def __repr__(self):
            return f"Double({float(self)})"

    these = [Scalar(3), Scalar(0.5), Scalar(True), Scalar("20 ms"), Double(0.25)]
    assert [value(this) for this in these] == ["3", "0.5", "true", "20 ms", "0.25"]
    assert value([Scalar(3), Double(0.25)]) == "[3, 0.25]"


def test_a_sweep_with_a_class_goes_to_processes(short):
    how = {"controllers": {"mine": Reno}, "executor": "processes", "workers": 1, "batch": 1}
    sweep = knee.sweep(short, {"flow.flow.cc": ["reno", "mine"]}, **how)
    table = columns(sweep)
    assert table["goodput_bps"][0] == table["goodput_bps"][1] > 1e6
    assert table["flow.flow.cc"] == ["reno", "mine"]
    assert [key["name"] for key in sweep.summary["keys"]] == ["flow.flow.cc"]


def test_what_is_wrong_with_a_sweep_is_said_before_it_runs(short):
    with pytest.raises(knee.ScenarioError, match="cubik"):
        knee.sweep(short, {"flow.flow.cc": ["cubic", "cubik"]})
    with pytest.raises(TypeError, match="a list of values, not 'bbr'"):
        knee.sweep(short, {"flow.flow.cc": "bbr"})


def test_a_script_without_a_guard_is_told_in_one_line(short, tmp_path):
    script = tmp_path / "plain.py"
    call = f"knee.sweep({short!r}, {{'flow.flow.cc': ['reno', 'cubic']}}, workers=2)"
    script.write_text(f"import knee\nprint('once')\nprint(len({call}.table))\n")
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert plain.returncode == 1 and plain.stdout == "once\n"
    *_, last = plain.stderr.strip().splitlines()
    assert "if __name__ == '__main__':" in last and "plain.py" in last, plain.stderr
    assert len(plain.stderr.splitlines()) < 20
    script.write_text(f"import knee\nif __name__ == '__main__':\n    print(len({call}.table))\n")
    guarded = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert guarded.stdout == "2\n", guarded.stderr


def test_an_exception_in_a_process_arrives(short):
    with pytest.raises(ZeroDivisionError):
        knee.sweep(
            short,
            {"link.bottleneck.rate": ["5 Mbit/s", "6 Mbit/s", "7 Mbit/s"]},
            set={"flow.flow.cc": "mine"},
            controllers={"mine": Dividing},
            workers=1,
            batch=1,
        )


class Dividing(knee.Controller):
    """Fails on all but the slowest link, so that the first run succeeds."""

    def on_ack(self, ack):
        if (ack.delivery_rate_bps or 0) > 5_500_000:
            raise ZeroDivisionError
        return 100 * ack.mss_bytes


def test_a_controller_is_ranked(short, tmp_path):
    own = {"mine": Reno}
    ranking = knee.rank(short, controllers=own, cc=["mine", "reno"], against=["cubic"], repeat=2,
                        out=tmp_path / "rank")  # fmt: skip
    by_name = {row["controller"]: row for row in ranking.rows}
    assert set(by_name) == {"mine", "reno"}
    # The same algorithm with the same random draws.
    assert by_name["mine"]["power"] == by_name["reno"]["power"] > 0.0
    assert isinstance(by_name["mine"]["on_front"], bool)
    assert by_name["mine"]["rtt_p95_over_empty"] >= 1.0
    # A controller has no interval over itself.
    assert all(value is None or value != "" for row in ranking.rows for value in row.values())
    assert ranking.says
    assert (tmp_path / "rank" / "report.html").exists()


def test_a_study_with_its_claims():
    study = knee.study("retransmission-cost")
    assert study.claims
    assert all(claim["agrees"] for claim in study.claims)
