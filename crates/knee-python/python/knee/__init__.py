"""Congestion controllers and multipath schedulers, simulated packet by packet.

Units stand at the end of names: nanoseconds (`_ns`), bytes (`_bytes`), bits per
second (`_bps`). Sizes are payload, without headers, unless a name says otherwise.
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
    """A base for controllers; any class with `on_ack` is one.

    A controller has `on_ack(self, ack: Ack) -> Decision | int`, an int being a
    window in bytes. It may have `on_event(self, event: str, connection:
    Connection) -> Decision | int | None`, with the events `established`,
    `sent_after_idle`, `recovery_start`, `congestion_echo`, `recovery_end`,
    `timeout`, `spurious_recovery` and `penalised`; `None` leaves the decision as
    it is. What it shows of itself is recorded: `phase` (a text),
    `bandwidth_bps`, `min_rtt_ns`, `slow_start_threshold_bytes`.
    """

    per_round: bool = False
    """One call a round trip, with the sums since the last one."""
    pacing: bool = False
    """Segments must be paced; otherwise the scenario says whether they are."""
    proportional_rate_reduction: bool = True
    """In recovery the window falls to that of the decision by PRR (RFC 6937)."""

    def __init__(self, init: Init) -> None:
        self.mss_bytes: int = init.mss_bytes
        self.initial_window_bytes: int = init.initial_window_bytes
        self.random: random.Random = init.random


class Scheduler:
    """A base for schedulers; any class with `schedule` is one.

    A scheduler has `schedule(self, view: View) -> Send | Duplicate | Repeat |
    Wait`. It is asked again until it waits or no path is ready.
    """

    def __init__(self, random: random.Random) -> None:
        self.random = random


class _Table:
    """What has a table hands it on."""

    table: Table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self.table)


class Sweep(_Table):
    """What came of a sweep: `table` has a row per run and group of flows, a column
    per key that varies and per measure; `summary` is the document
    `sweep.json`."""

    def __init__(self, table: Table, summary: dict[str, Any]) -> None:
        self.table, self.summary = table, summary


class Ranking:
    """What came of a ranking: `says` in a sentence, `rows` with a dict of texts per
    controller, `summary` the document `rank.json`."""

    def __init__(self, summary: dict[str, Any], rows: list[dict[str, str]]) -> None:
        self.summary, self.rows = summary, rows

    @property
    def says(self) -> str:
        """The answer in a sentence."""
        return self.summary["says"]


class Study:
    """What came of studies: `claims`, each with its `id`, `outcome` and
    `measured_text`; `summary` the document `reproduce.json`."""

    def __init__(self, summary: dict[str, Any]) -> None:
        self.summary = summary

    @property
    def claims(self) -> list[dict[str, Any]]:
        """The claims of all studies."""
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
    """Runs a scenario: the path of a file, a text in TOML, or a dict of the same.

    `set` changes keys as `--set` does: `{"link.bottleneck.rate": "20 Mbit/s"}`.
    `controllers` and `schedulers` are classes by the name that the scenario has
    for them: `{"mine": Mine}` for `cc = "mine"`. With `out` the run is kept in
    that directory, with its page; `force` replaces an earlier one.

    Raises `ScenarioError` with all that is wrong with the scenario, and whatever
    a controller or scheduler raises, as it was raised: what ran before is kept
    in `out`.
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
    """Runs a scenario at every combination of the values of `vary`, `repeat` times
    each with seeds of its own.

    `executor` makes the runs: `"processes"` (as many as `workers`, one per CPU),
    `"serial"` (this process), `"ray"` (a cluster; `pip install knee[ray]`), or an
    executor of `concurrent.futures`. `batch` runs go to it at a time; by default
    as many as take about half a second, for Ray two. Neither changes a byte of
    the result. Processes import classes by their module, and the main module
    anew: a script needs `if __name__ == "__main__":`.
    """
    from ._sweep import drive

    keys = _settings(set)
    if seed is not None:
        keys.append(("seed", str(seed)))
    own = _factories(controllers, "on_ack"), _factories(schedulers, "schedule")
    given = _given(scenario)
    plan = _knee.SweepPlan(given, _values(vary), keys, repeat, skip_invalid, own)
    table, summary = plan.gather(drive(plan.tasks, given, own, executor, workers, batch))
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
    """Ranks the controllers `cc` over scenarios: each alone, beside itself, and
    beside those of `against`, with `repeat` seeds.

    Without `cc`: those of `controllers` and of `against`, or without
    `controllers` all that Knee has. With `out` the ranking is kept there, with
    its page.
    """
    import json

    own = _factories(controllers, "on_ack")
    if cc is None and own:
        cc = [*own, *against]
    one = isinstance(scenarios, (str, dict)) or hasattr(scenarios, "__fspath__")
    texts = [_given(scenario) for scenario in ([scenarios] if one else scenarios)]
    with _directory(out) as directory:
        names = None if cc is None else list(cc)
        summary, rows = _knee.rank(
            texts, names, list(against), _settings(set), flow, repeat, (directory, force), (own, {})
        )
    heads, *rows = rows
    return Ranking(json.loads(summary), [dict(zip(heads, row)) for row in rows])


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
    out: str | PathLike[str] | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Runs a controller through the criteria of RFC 9743, beside Reno, CUBIC and BBR
    on the same seeds; gives what `knee evaluate --format json` prints.

    `candidate` is a class, or a name: one of Knee's or of `controllers`. `sections`
    are numbers such as `"5.1.2"`, or `"5.2"` for all below it; `quick` takes the few
    cases that show most. `set` has keys of the candidate's flows alone. With `search`
    as many scenarios are tried for the worst case of each metric. `traces` are
    recorded links in Mahimahi's format, over which section 6.4 runs too. With `out`
    the evaluation is kept there, with its page.

    What a class raises fails the run in which it does so: the lines of that run say
    so, the others stand.
    """
    import json

    own = dict(controllers or {})
    if not isinstance(candidate, str):
        name = getattr(candidate, "__name__", type(candidate).__name__)
        own[name], candidate = candidate, name
    with _directory(out) as directory:
        text = _knee.evaluate(
            candidate,
            list(sections),
            repeat,
            quick,
            search,
            list(traces),
            _settings(set),
            (directory, force),
            _factories(own, "on_ack"),
        )
    return json.loads(text)


def study(
    *names: str | PathLike[str], out: str | PathLike[str] | None = None, force: bool = False
) -> Study:
    """Runs published studies and tells which of their claims hold: built-in ones
    by name, others by their folder; without a name all built-in ones. With `out`
    they are kept there, with their page."""
    import json
    import os

    with _directory(out) as directory:
        texts = [os.fspath(name) for name in names]
        return Study(json.loads(_knee.study(texts, (directory, force))))


def figure(of: Run | Ranking, what: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draws what came of a run or of a ranking by matplotlib; gives the axes.

    Of a run `what` is `"throughput"` (goodput of each flow, Mbit/s; the default),
    `"delay"` (round-trip time, ms), `"window"` or `"in-flight"` (kB), or `"queue"`
    (queueing delay of each link, ms), over time. Of a ranking it is
    `"delay-throughput"`: each controller alone, with 95 % intervals, filled where it
    is on the Pareto front. `ax` draws into axes that are there.

    Raises `ImportError` without matplotlib (`pip install knee[figures]`), and
    `ValueError` where there is nothing to draw.
    """
    from ._figure import draw

    return draw(of, what, ax)


def _directory(out: str | PathLike[str] | None):
    """That one, or one that goes when it is no longer needed."""
    if out is None:
        import tempfile

        return tempfile.TemporaryDirectory(prefix="knee-")
    from contextlib import nullcontext

    return nullcontext(out)
