"""Congestion controllers and multipath schedulers, simulated packet by packet.

Names end with their unit: nanoseconds (`_ns`), bytes (`_bytes`), bits per second
(`_bps`). Sizes are payload, without headers, unless a name says otherwise.
"""

from __future__ import annotations

from . import _knee
from ._given import factories as _factories
from ._given import given as _given
from ._given import settings as _settings
from ._given import values as _values
from ._knee import (
    Ack,
    Connection,
    Decision,
    Duplicate,
    Init,
    KneeError,
    Path,
    Repeat,
    Run,
    ScenarioError,
    Send,
    Table,
    View,
    Wait,
    __version__,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Executor
    from os import PathLike
    from typing import Any

    from matplotlib.axes import Axes

    Scenario = str | PathLike[str] | Mapping[str, Any]
    Factories = Mapping[str, Callable[[Any], Any]]

__all__ = [
    "Ack",
    "Connection",
    "Controller",
    "Decision",
    "Duplicate",
    "Init",
    "KneeError",
    "Path",
    "Ranking",
    "Repeat",
    "Run",
    "ScenarioError",
    "Scheduler",
    "Send",
    "Study",
    "Sweep",
    "Table",
    "View",
    "Wait",
    "__version__",
    "evaluate",
    "figure",
    "rank",
    "run",
    "study",
    "sweep",
]

# The program is this module, not the interpreter.
_knee.set_program_file(_knee.__file__)


class Controller:
    """A base class for controllers; any class with `on_ack` is a controller.

    A controller has `on_ack(self, ack: Ack) -> Decision | int`, where an int is a
    window in bytes. It may have `on_event(self, event: str, connection: Connection) ->
    Decision | int | None`, with the events `established`, `sent_after_idle`,
    `recovery_start`, `congestion_echo`, `recovery_end`, `timeout`, `spurious_recovery`
    and `penalised`; `None` keeps the decision. `sent_after_idle` follows a pause of the
    application only if `connection.app_limited`; otherwise less than a segment fits into
    each round trip. These attributes are recorded if
    present: `phase` (a text), `bandwidth_bps`, `min_rtt_ns`,
    `slow_start_threshold_bytes`.
    """

    per_round: bool = False
    """Call `on_ack` once per round trip, with the sums since the last call."""
    pacing: bool = False
    """Pace segments; otherwise the scenario decides whether to pace."""
    proportional_rate_reduction: bool = True
    """In recovery, reduce the window to that of the decision by PRR (RFC 6937)."""

    def __init__(self, init: Init) -> None:
        self.mss_bytes: int = init.mss_bytes
        self.initial_window_bytes: int = init.initial_window_bytes
        self.random: random.Random = init.random


class Scheduler:
    """A base class for schedulers; any class with `schedule` is a scheduler.

    A scheduler has `schedule(self, view: View) -> Send | Duplicate | Repeat | Wait`. It
    is called again until it waits or no path is ready.
    """

    def __init__(self, random: random.Random) -> None:
        self.random = random


class _Table:
    """A result that passes on the Arrow stream of its table."""

    table: Table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self.table)


class Sweep(_Table):
    """Result of a sweep: `table` has a row per run and group of flows, a column per
    varied key and per measure; `summary` is the document `sweep.json`."""

    def __init__(self, table: Table, summary: dict[str, Any]) -> None:
        self.table, self.summary = table, summary


class Ranking:
    """Result of a ranking: `says` is a one-sentence summary, `rows` has a dict per
    controller with numbers (`None` where there is no value) and words, `summary` is the
    document `rank.json`."""

    def __init__(self, summary: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        self.summary, self.rows = summary, rows

    @property
    def says(self) -> str:
        """Returns the result in one sentence."""
        return self.summary["says"]


class Study:
    """Result of studies: `claims`, each with its `id`, `outcome` and
    `measured_text`; `summary` is the document `reproduce.json`."""

    def __init__(self, summary: dict[str, Any]) -> None:
        self.summary = summary

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Returns the claims of all studies."""
        return [claim for study in self.summary["studies"] for claim in study["claims"]]


def run(
    scenario: Scenario,
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    controllers: Factories | None = None,
    schedulers: Factories | None = None,
    on: str = "sim",
    out: str | PathLike[str] | None = None,
    force: bool = False,
) -> Run:
    """Runs a scenario: the path of a file, a text in TOML, or the same as a dict.

    `set` changes keys as `--set` does: `{"link.bottleneck.rate": "20 Mbit/s"}`.
    `controllers` and `schedulers` map names used in the scenario to classes:
    `{"mine": Mine}` for `cc = "mine"`. `out` keeps the run in that directory, with its
    page; `force` replaces an earlier run.

    Raises `ScenarioError` with everything that is wrong with the scenario, and passes
    on exceptions of a controller or scheduler unchanged; what ran before is kept in
    `out`.
    """
    keys = _settings(set)
    if seed is not None:
        keys.append(("seed", str(seed)))
    directory = None if out is None else (out, force)
    own = _factories(controllers, "on_ack"), _factories(schedulers, "schedule")
    return _knee.run(_given(scenario), keys, on, directory, own)


def sweep(
    scenario: Scenario,
    vary: Mapping[str, Iterable[Any]],
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    repeat: int = 1,
    controllers: Factories | None = None,
    schedulers: Factories | None = None,
    executor: str | Executor = "processes",
    workers: int | None = None,
    batch: int | None = None,
    skip_invalid: bool = False,
) -> Sweep:
    """Runs a scenario at every combination of the values in `vary`, `repeat` times
    each with different seeds.

    `executor` makes the runs: `"processes"` (as many as `workers`, by default one per
    CPU), `"serial"` (this process), `"ray"` (a cluster; `pip install knee[ray]`), or an
    executor of `concurrent.futures`. `batch` runs are submitted at a time; by default
    as many as take about half a second, for Ray two. Neither changes a byte of the
    result. Processes import classes from their module, and import the main module
    again: a script needs `if __name__ == "__main__":`.
    """
    from ._executors import drive

    keys = _settings(set)
    if seed is not None:
        keys.append(("seed", str(seed)))
    own = _factories(controllers, "on_ack"), _factories(schedulers, "schedule")
    given = _given(scenario)
    plan = _knee.SweepPlan(given, _values(vary), keys, repeat, skip_invalid, own)
    made = drive(_sweep_runs, (given, own), plan.tasks, executor, workers, batch)
    table, summary = plan.gather(made)
    import json

    return Sweep(table, json.loads(summary))


def rank(
    scenarios: Scenario | Sequence[Scenario],
    *,
    cc: Sequence[str] | None = None,
    against: Sequence[str] = ("cubic", "bbr"),
    repeat: int = 1,
    set: Mapping[str, Any] | None = None,
    flow: str | None = None,
    controllers: Factories | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
) -> Ranking:
    """Ranks the controllers `cc` over scenarios: each alone, against itself, and
    against those in `against`, with `repeat` seeds.

    Without `cc`, ranks those in `controllers` and `against`, or without `controllers`
    all built-in ones. `out` keeps the ranking in that directory, with its page.
    """
    import json

    own = _factories(controllers, "on_ack")
    if cc is None and own:
        cc = [*own, *against]
    one = isinstance(scenarios, (str, dict)) or hasattr(scenarios, "__fspath__")
    texts = [_given(scenario) for scenario in ([scenarios] if one else scenarios)]
    with _directory(out) as directory:
        names = None if cc is None else list(cc)
        summary, (heads, rows) = _knee.rank(
            texts, names, list(against), _settings(set), flow, repeat, (directory, force), (own, {})
        )
    return Ranking(json.loads(summary), [dict(zip(heads, map(_value, row))) for row in rows])


def evaluate(
    candidate: str | Callable[[Any], Any],
    *,
    sections: Sequence[str] = (),
    quick: bool = False,
    repeat: int | None = None,
    search: int | None = None,
    traces: Sequence[str | PathLike[str]] = (),
    set: Mapping[str, Any] | None = None,
    controllers: Factories | None = None,
    executor: str | Executor = "threads",
    workers: int | None = None,
    batch: int | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Evaluates a controller by the criteria of RFC 9743, next to Reno, CUBIC and
    BBR on the same seeds. Returns what `knee evaluate --format json` prints.

    `candidate` is a class, or a name: a built-in one or one in `controllers`.
    `sections` are numbers such as `"5.1.2"`, or `"5.2"` for all below it; `quick` runs
    only the few most informative cases. `set` changes keys of the candidate's flows
    only. `search` is the number of scenarios tried for the worst case of each metric.
    `traces` are recorded links in Mahimahi's format, over which section 6.4 also runs.
    `out` keeps the evaluation in that directory, with its page.

    `executor` makes the runs: `"threads"` (this process, one thread per CPU, but one for
    a class, of which Python runs one at a time), or as in `knee.sweep`. It does not change a
    byte of the result. The search, and the further seeds of lines that would be worse than
    all, always run in this process.

    An exception of a class fails only the run in which it is raised, and is reported in
    the lines of that run.
    """
    import json
    from pathlib import Path

    from ._executors import check, drive

    if executor != "threads":
        check(executor)
    own = dict(controllers or {})
    if not isinstance(candidate, str):
        name = getattr(candidate, "__name__", type(candidate).__name__)
        own[name], candidate = candidate, name
    asked = {
        "candidate": candidate,
        "sections": list(sections),
        "repeat": repeat,
        "quick": quick,
        "search": search,
        "traces": [(str(path), Path(path).read_bytes()) for path in traces],
        "set": _settings(set),
    }
    factories = _factories(own, "on_ack")
    with _directory(out) as directory:
        rows = None
        if executor != "threads":
            runs = _knee.evaluation_runs(asked, (directory, force), factories)
            given = asked, factories
            rows = drive(_evaluation_rows, given, runs, executor, workers, batch)
        return json.loads(_knee.evaluate(asked, (directory, force), factories, rows))


def study(
    *names: str | PathLike[str], out: str | PathLike[str] | None = None, force: bool = False
) -> Study:
    """Reproduces published studies, and reports which of their claims hold: built-in
    ones by name, others by their folder; without a name all built-in ones. `out`
    keeps them in that directory, with their page."""
    import json
    import os

    with _directory(out) as directory:
        texts = [os.fspath(name) for name in names]
        return Study(json.loads(_knee.study(texts, (directory, force))))


def figure(of: Run | Ranking, what: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Plots the result of a run or a ranking with matplotlib; returns the axes.

    For a run, `what` is `"throughput"` (goodput of each flow, Mbit/s; the default),
    `"delay"` (round-trip time, ms), `"window"` or `"in-flight"` (kB), or `"queue"`
    (queueing delay of each link, ms), over time. For a ranking it is
    `"delay-throughput"`: each controller alone, with 95 % intervals, filled if it is on
    the Pareto front. `ax` draws into existing axes.

    Raises `ImportError` without matplotlib (`pip install knee[figures]`), and
    `ValueError` if there is nothing to draw.
    """
    from ._figure import draw

    return draw(of, what, ax)


def _sweep_runs(shared: Any, tasks: list[Any]) -> list[str]:
    """Performs some runs of a sweep."""
    given, own = shared
    return _knee.SweepPlan.make(given, tasks, own)


def _evaluation_rows(shared: Any, runs: list[int]) -> list[Any]:
    """Performs some runs of an evaluation."""
    asked, factories = shared
    return _knee.evaluation_rows(asked, runs, factories)


def _value(parts: tuple[Any, ...]) -> Any:
    """Returns the part that is there."""
    return next((part for part in parts if part is not None), None)


def _directory(out: str | PathLike[str] | None):
    """Returns a context manager for that directory, or for a temporary one."""
    if out is None:
        import tempfile

        return tempfile.TemporaryDirectory(prefix="knee-")
    from contextlib import nullcontext

    return nullcontext(out)
