"""Controllers and schedulers written in Python."""

import hashlib
import inspect
import json
import traceback

import knee
import pytest
from reno import Reno
from schedulers import Blest, MinRtt, Sctc

TABLES = ["flows", "samples", "links", "classes", "paths", "path_samples", "objects", "connections"]


def rows(run):
    """Returns all tables, without the names of algorithms."""
    names = {"cc", "scheduler"}
    return {
        (table, column): getattr(run, table)[column]
        for table in TABLES
        for column in getattr(run, table).columns
        if column not in names
    }


SCENARIOS = {
    "plain": {},
    "loss": {"link.bottleneck.loss": "1 %", "link.bottleneck.buffer": "0.5 BDP"},
    "paced": {"transport.pacing": "on", "link.bottleneck.rate": "40 Mbit/s"},
    "outage": {"link.bottleneck.buffer": "20 packets", "link.bottleneck.loss": "8 %"},
    "bursts": {"flow.flow.workload": {"mix": {"arrival_interval": "300 ms", "sizes": "200 kB"}}},
}


@pytest.mark.parametrize("change", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_reno_gives_the_records_of_the_built_in_one(one_path, change):
    built_in = knee.run(one_path, set=change)
    own = knee.run(
        one_path, set={**change, "flow.flow.cc": "mine"}, controllers={"mine": Reno}
    )
    assert rows(own) == rows(built_in)
    assert len(own.samples) > 100


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("name", "own"), [("minrtt", MinRtt), ("blest", Blest), ("sctc", Sctc)]
)
def test_schedulers_decide_as_the_built_in_ones(two_paths, name, own, seed):
    built_in = knee.run(two_paths, set={"flow.flow.scheduler": name}, seed=seed)
    ours = knee.run(
        two_paths, set={"flow.flow.scheduler": "ours"}, seed=seed, schedulers={"ours": own}
    )
    assert rows(ours) == rows(built_in)
    # Both paths are used, so there was something to decide.
    assert min(built_in.paths["sent_bytes"]) > 100_000


class Raising(knee.Controller):
    def on_ack(self, ack):
        if ack.now_ns > 2_000_000_000:
            return self.divided(0)
        return 20 * ack.mss_bytes

    def divided(self, by):
        return 1 // by


def test_an_exception_arrives_as_itself(one_path, tmp_path):
    with pytest.raises(ZeroDivisionError) as raised:
        knee.run(
            one_path,
            set={"flow.flow.cc": "mine"},
            controllers={"mine": Raising},
            out=tmp_path / "run",
        )
    names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert names[-2:] == ["on_ack", "divided"]
    (note,) = raised.value.__notes__
    assert "Raising" in note and "test_controllers.py" in note and "2.0" in note
    # The part of the run before the exception is kept.
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["interrupted"] and 2e9 < manifest["end_ns"] < 20e9


class RaisingScheduler(knee.Scheduler):
    def schedule(self, view):
        raise KeyError("somewhere")


def test_an_exception_of_a_scheduler_arrives_as_itself(two_paths):
    with pytest.raises(KeyError, match="somewhere"):
        knee.run(
            two_paths, set={"flow.flow.scheduler": "s"}, schedulers={"s": RaisingScheduler}
        )


def deciding(answer):
    class Deciding(knee.Controller):
        def on_ack(self, ack):
            return answer

    return Deciding


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        (None, TypeError, "on_ack returned None: return a Decision"),
        ("fast", TypeError, "on_ack returned 'fast'"),
        (True, TypeError, "on_ack returned True"),
        (-5, TypeError, "on_ack returned -5"),
        (0, ValueError, "a window of 0 bytes: at least one segment, 1448 bytes"),
        (knee.Decision(1447), ValueError, "a window of 1447 bytes"),
        (knee.Decision(20_000, 0), ValueError, "a pacing rate of 0"),
        (knee.Decision(20_000, None, 100), ValueError, "a send quantum of 100 bytes"),
    ],
)
def test_a_wrong_decision_is_an_error_with_its_place(one_path, answer, error, told):
    with pytest.raises(error, match=told) as raised:
        knee.run(
            one_path, set={"flow.flow.cc": "mine"}, controllers={"mine": deciding(answer)}
        )
    assert "test_controllers.py, line" in str(raised.value)


def test_a_class_without_its_method_is_refused_before_anything_runs(one_path):
    class Nothing:
        pass

    with pytest.raises(TypeError, match=r"Nothing .*needs a method on_ack"):
        knee.run(one_path, controllers={"mine": Nothing})
    with pytest.raises(TypeError, match=r"Nothing .*needs a method schedule"):
        knee.run(one_path, schedulers={"mine": Nothing})
    with pytest.raises(TypeError, match="needs a method on_ack"):
        made = {"mine": lambda init: Nothing()}
        knee.run(one_path, set={"flow.flow.cc": "mine"}, controllers=made)
    with pytest.raises(knee.KneeError, match='a controller "reno" already'):
        knee.run(one_path, controllers={"reno": Reno})


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        (None, TypeError, "schedule returned None"),
        (knee.Send(7), ValueError, "path 7, which is not ready"),
        (knee.Duplicate([]), ValueError, "duplicates on no path"),
    ],
)
def test_a_wrong_answer_of_a_scheduler(two_paths, answer, error, told):
    class Wrong(knee.Scheduler):
        def schedule(self, view):
            return answer

    with pytest.raises(error, match=told):
        knee.run(two_paths, set={"flow.flow.scheduler": "s"}, schedulers={"s": Wrong})


class Both(knee.Scheduler):
    """Sends each new packet on every path that is ready."""

    def schedule(self, view):
        ready = [path.index for path in view.paths if path.ready]
        return knee.Duplicate(ready) if view.has_new and ready else knee.Wait()


def test_packets_are_duplicated(two_paths):
    run = knee.run(two_paths, set={"flow.flow.scheduler": "s"}, schedulers={"s": Both})
    assert run.flows["duplicate_bytes"][0] > 100_000


class Counting(knee.Controller):
    per_round = True
    calls = []

    def on_ack(self, ack):
        self.calls.append((ack.now_ns, ack.newly_acked_bytes, ack.delivered_bytes))
        return 30 * ack.mss_bytes


def test_once_a_round_trip(one_path):
    Counting.calls.clear()
    change = {"flow.flow.cc": "mine", "link.bottleneck.loss": "0 %"}
    run = knee.run(one_path, set=change, controllers={"mine": Counting})
    # 30 packets are less than the BDP of 34.5: the RTT is the path's 40 ms plus the
    # transmission time of the packet and of those in its burst.
    assert 20 / 0.055 < len(Counting.calls) < 20 / 0.040
    times = [now for now, _, _ in Counting.calls]
    assert min(b - a for a, b in zip(times, times[1:])) >= 40_000_000
    # The sums omit nothing.
    assert sum(acked for _, acked, _ in Counting.calls) == Counting.calls[-1][2]
    assert run.summary["flows"][0]["retransmit_ratio"] == 0


class Dicing(knee.Controller):
    def on_ack(self, ack):
        return self.random.randint(2, 60) * ack.mss_bytes


def test_chance_comes_from_the_seed(one_path):
    def windows(seed):
        change = {"flow.flow.cc": "mine"}
        run = knee.run(one_path, set=change, seed=seed, controllers={"mine": Dicing})
        return run.samples["window_bytes"]

    assert windows(5) == windows(5) != windows(6)
    assert len(set(windows(5))) > 20


def test_the_manifest_says_whose_controller_it_was(one_path, tmp_path):
    change = {"flow.flow.cc": "mine"}
    knee.run(one_path, set=change, controllers={"mine": Reno}, out=tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    source = hashlib.sha256(inspect.getsource(Reno).encode()).hexdigest()
    told = {"class": "Reno", "module": "reno", "sha256": source}
    assert manifest["brought"] == {"mine": told}
