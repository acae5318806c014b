"""The shared module. Names end with their unit."""

import random
from os import PathLike
from typing import Any

__version__: str

class KneeError(Exception): ...
class ScenarioError(KneeError): ...

class Table:
    @property
    def columns(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, column: str) -> list[Any]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_polars(self) -> Any: ...
    def to_pandas(self) -> Any: ...

class Run:
    flows: Table
    samples: Table
    links: Table
    classes: Table
    paths: Table
    path_samples: Table
    objects: Table
    connections: Table
    summary_json: str
    scenario: str
    directory: str | None
    @property
    def summary(self) -> dict[str, Any]: ...

class Init:
    mss_bytes: int
    mtu_bytes: int
    initial_window_bytes: int
    random: random.Random

class Connection:
    now_ns: int
    mss_bytes: int
    in_flight_bytes: int
    delivered_bytes: int
    lost_bytes: int
    acknowledged_bytes: int
    sent_bytes: int
    srtt_ns: int
    min_rtt_ns: int
    recovery: str
    window_limited: bool
    app_limited: bool

class Ack:
    now_ns: int
    mss_bytes: int
    newly_acked_bytes: int
    newly_lost_bytes: int
    newly_marked_bytes: int
    rtt_ns: int | None
    delivered_over_interval_bytes: int
    interval_ns: int
    prior_delivered_bytes: int
    prior_in_flight_bytes: int
    in_flight_at_send_bytes: int
    lost_since_send_bytes: int
    sample_app_limited: bool
    in_flight_bytes: int
    delivered_bytes: int
    lost_bytes: int
    acknowledged_bytes: int
    sent_bytes: int
    srtt_ns: int
    min_rtt_ns: int
    recovery: str
    window_limited: bool
    app_limited: bool
    @property
    def delivery_rate_bps(self) -> int | None: ...

class Decision:
    def __init__(
        self,
        window_bytes: int,
        pacing_rate_bps: int | None = None,
        send_quantum_bytes: int | None = None,
    ) -> None: ...
    @property
    def window_bytes(self) -> int: ...
    @property
    def pacing_rate_bps(self) -> int | None: ...
    @property
    def send_quantum_bytes(self) -> int | None: ...

class Path:
    index: int
    status: str
    ready: bool
    srtt_ns: int
    rtt_variation_ns: int
    min_rtt_ns: int
    window_bytes: int
    in_flight_bytes: int
    rate_bps: int | None
    sent_bytes: int

class View:
    now_ns: int
    mss_bytes: int
    unsent_bytes: int
    window_left_bytes: int
    outstanding_bytes: int
    has_new: bool
    is_blocked: bool
    oldest_holder: int | None
    oldest_sent_on: list[int]
    can_repeat: list[int]
    paths: list[Path]

class Send:
    path: int
    def __init__(self, path: int) -> None: ...

class Duplicate:
    paths: list[int]
    def __init__(self, paths: list[int]) -> None: ...

class Repeat:
    path: int
    def __init__(self, path: int) -> None: ...

class Wait:
    def __init__(self) -> None: ...

_Given = tuple[str, str | PathLike[str]]
_Settings = list[tuple[str, str]]
_Task = tuple[str, str, int, _Settings]
_Factories = tuple[dict[str, Any], dict[str, Any]]
_Directory = tuple[str | PathLike[str], bool]
_EvaluationRow = tuple[int, int, int, int, int, float | None, str]

class SweepPlan:
    def __init__(
        self,
        given: _Given,
        vary: list[tuple[str, list[str]]],
        set: _Settings,
        repeat: int,
        skip_invalid: bool,
        factories: _Factories,
    ) -> None: ...
    @property
    def tasks(self) -> list[_Task]: ...
    @staticmethod
    def make(given: _Given, tasks: list[_Task], factories: _Factories) -> list[str]: ...
    def gather(self, made: list[str]) -> tuple[Table, str]: ...
    def __len__(self) -> int: ...

def run(
    given: _Given, set: _Settings, on: str, directory: _Directory | None, factories: _Factories
) -> Run: ...
def rank(
    scenarios: list[_Given],
    candidates: list[str] | None,
    rivals: list[str] | None,
    set: _Settings,
    flow: str | None,
    repeat: int,
    directory: _Directory,
    factories: _Factories,
) -> tuple[str, tuple[list[str], list[list[tuple[Any, ...]]]]]: ...
def study(names: list[str], directory: _Directory) -> str: ...
def evaluate(
    asked: dict[str, Any],
    directory: _Directory,
    factories: dict[str, Any],
    rows: list[_EvaluationRow] | None,
) -> str: ...
def evaluation_runs(
    asked: dict[str, Any], directory: _Directory, factories: dict[str, Any]
) -> list[int]: ...
def evaluation_rows(
    asked: dict[str, Any], numbers: list[int], factories: dict[str, Any]
) -> list[_EvaluationRow]: ...
def command(typed: list[str], load: Any) -> int: ...
def set_program_file(path: str) -> None: ...
