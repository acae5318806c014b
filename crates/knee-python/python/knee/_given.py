"""Converts arguments to the form that the shared module expects."""

from __future__ import annotations

import os
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


class Factory:
    """A class or another factory with its metadata; pickled whole for processes."""

    __slots__ = ("class_", "make", "module", "place", "sha256")

    def __init__(self, make: Callable[[Any], Any], method: str) -> None:
        told = make
        while hasattr(told, "func"):  # functools.partial
            told = told.func
        if not callable(told):
            raise TypeError(f"{told!r} makes nothing: give a class with a method {method}")
        self.make = make
        self.class_ = getattr(told, "__qualname__", type(told).__qualname__)
        self.module = getattr(told, "__module__", None) or "?"
        self.sha256, where = _source(told)
        self.place = f"{self.module}.{self.class_}{where}"
        if isinstance(told, type) and not callable(getattr(told, method, None)):
            needs = {
                "on_ack": "a controller needs a method on_ack(self, ack) -> Decision",
                "schedule": "a scheduler needs a method schedule(self, view) -> "
                "Send | Wait | Duplicate",
            }
            raise TypeError(f"{self.place}: {needs[method]}")

    def __getstate__(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        for name, value in zip(self.__slots__, state):
            setattr(self, name, value)


_sources: weakref.WeakKeyDictionary[type, tuple[str | None, str]] = weakref.WeakKeyDictionary()
"""Cache by class: finding a source takes a millisecond, as long as a short run."""


def _source(told: Any) -> tuple[str | None, str]:
    """Returns the hash of the source, and its location."""
    if not isinstance(told, type):
        return _read_source(told)
    if told not in _sources:
        _sources[told] = _read_source(told)
    return _sources[told]


def _read_source(told: Any) -> tuple[str | None, str]:
    import hashlib
    import inspect

    try:
        lines, first = inspect.getsourcelines(told)
        file = inspect.getsourcefile(told)
    except (OSError, TypeError):
        # Typed into an interpreter.
        return None, ""
    text = "".join(lines).encode()
    return hashlib.sha256(text).hexdigest(), f" ({file}, line {first})"


def factories(by_name: Mapping[str, Callable[[Any], Any]] | None, method: str) -> dict[str, Factory]:
    """Makes factories from classes by name, which must have `method`."""
    return {name: Factory(make, method) for name, make in (by_name or {}).items()}


def given(scenario: Any) -> tuple[str, str]:
    """Returns the kind of a scenario argument, and the scenario."""
    if isinstance(scenario, str):
        is_text = "\n" in scenario or "=" in scenario
        return ("toml" if is_text else "path", scenario)
    if hasattr(scenario, "__fspath__"):
        return ("path", os.fspath(scenario))
    if hasattr(scenario, "keys"):
        import json

        return ("json", json.dumps(scenario))
    what = "give the path of a file, a text in TOML or a dict"
    raise TypeError(f"{type(scenario).__name__} is no scenario: {what}")


def value(this: Any) -> str:
    """Formats a value as for `--set`."""
    if getattr(this, "shape", None) == () and hasattr(this, "item"):
        this = this.item()  # a scalar of NumPy
    if isinstance(this, str):
        return this
    if isinstance(this, bool):
        return "true" if this else "false"
    if isinstance(this, int):
        return repr(int(this))
    if isinstance(this, float):
        return repr(float(this))
    if hasattr(this, "keys"):
        return "{ " + ", ".join(f"{key} = {_inner(this[key])}" for key in this) + " }"
    if isinstance(this, (list, tuple)):
        return "[" + ", ".join(_inner(one) for one in this) + "]"
    raise TypeError(f"{this!r} is no value of a scenario: write a text such as '20 ms'")


def _inner(this: Any) -> str:
    """Formats a value within another, where texts are quoted."""
    if isinstance(this, str):
        import json

        return json.dumps(this)
    return value(this)


def settings(keys: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Formats the keys to set."""
    return [(key, value(this)) for key, this in (keys or {}).items()]


def values(keys: Mapping[str, Iterable[Any]]) -> list[tuple[str, list[str]]]:
    """Formats the keys to vary, with their values."""
    for key, these in keys.items():
        if isinstance(these, str):
            raise TypeError(f"{key} varies over a list of values, not {these!r}")
    return [(key, [value(this) for this in these]) for key, these in keys.items()]
