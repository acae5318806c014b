"""Controllers passed to `knee evaluate` as files: `FILE.py:CLASS`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from ._given import Factory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def named(words: Iterable[str]) -> dict[str, Factory]:
    """Returns the controllers of the arguments that name a Python file, by argument."""
    files = (word for word in words if not word.startswith("-"))
    return {
        word: Factory(_load(word), "on_ack")
        for word in files
        if word.partition(":")[0].endswith(".py")
    }


def _load(word: str) -> Any:
    """Loads the class that an argument names, by default the only controller of the file."""
    file, _, name = word.partition(":")
    path = Path(file).resolve()
    if not path.is_file():
        raise SystemExit(f"knee: there is no file {file}")
    # No standard module has such a name, whatever the file is called.
    module_name = f"{path.stem} (candidate)"
    spec = importlib.util.spec_from_file_location(module_name, path)
    module = importlib.util.module_from_spec(spec)
    # Standard modules come before those next to the file.
    sys.path.append(str(path.parent))
    # `inspect` looks here for the source of a class.
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    own = {
        one.__name__: one
        for one in vars(module).values()
        if isinstance(one, type) and one.__module__ == module_name and hasattr(one, "on_ack")
    }
    if name in own:
        return own[name]
    if not name and len(own) == 1:
        return own.popitem()[1]
    has = f"it has {', '.join(own)}" if own else "it has no class with a method on_ack"
    asked = f"no controller {name}" if name else "not one controller"
    raise SystemExit(f"knee: {file} has {asked} ({has}): write {file}:CLASS")
