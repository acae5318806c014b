"""Controllers that a scenario or an argument names as `FILE.py` or `FILE.py:CLASS`."""

from __future__ import annotations

import sys
import traceback
import types
from pathlib import Path

from ._given import Factory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Refused(Exception):
    """Why a class cannot be used, and what to write instead."""


def load(name: str, class_: str | None, source: bytes, place: Path | None) -> Factory:
    """Makes a factory from a class of a file, by default its only controller.

    `name` is what records call it, `source` the contents of the file, and `place` where it
    is on disk, if it is there.
    """
    file = name.partition(":")[0]
    # No standard module has such a name, whatever the file is called.
    module = types.ModuleType(f"{file.removesuffix('.py')} (candidate)")
    path = str(Path(place).resolve()) if place else file
    module.__file__ = path
    if place:
        # Standard modules come before those next to the file.
        sys.path.append(str(Path(path).parent))
    _keep_lines(path, source)
    # `inspect` looks here for the source of a class.
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    except SyntaxError as error:
        raise Refused(
            f"{file}, line {error.lineno}: {error.msg}", "correct the file"
        ) from error
    except (Exception, SystemExit) as error:
        raise Refused(f"{file}{_line(error, path)}: {_said(error)}", "correct the file") from error
    own = {
        one.__name__: one
        for one in vars(module).values()
        if isinstance(one, type) and one.__module__ == module.__name__ and hasattr(one, "on_ack")
    }
    return Factory(_chosen(own, file, class_), "on_ack")


def _chosen(own: dict[str, Any], file: str, class_: str | None) -> Any:
    """Returns the class of that name, or the only one."""
    if class_ in own:
        return own[class_]
    if class_ is None and len(own) == 1:
        return next(iter(own.values()))
    known = ", ".join(own)
    if not own:
        raise Refused(
            f"{file} has no controller", "write a class with a method on_ack(self, ack) in it"
        )
    if class_ is None:
        raise Refused(f"{file} has several controllers: {known}", f"write {file}:CLASS")
    raise Refused(f"{file} has no controller {class_}", f"it has {known}")


def _keep_lines(path: str, source: bytes) -> None:
    """Makes the source known to `inspect` and to tracebacks, also of a file that is not on
    this machine."""
    import linecache

    lines = source.decode(errors="replace").splitlines(keepends=True)
    linecache.cache[path] = (len(source), None, lines, path)


def _line(error: BaseException, path: str) -> str:
    """Returns the last line of the file that the error came from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if frame.filename == path]
    return f", line {own[-1]}" if own else ""


def _said(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()[-1]
