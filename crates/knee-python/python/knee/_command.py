"""The console script: the command line of Knee, in the same shared module."""

import sys

from . import _knee


def main() -> None:
    """Does what the arguments say and ends with the exit code of `knee`."""
    typed = sys.argv[1:]
    controllers = {}
    if typed[:1] == ["evaluate"]:
        from ._candidate import named

        controllers = named(typed[1:])
    sys.exit(_knee.command(["knee", *typed], controllers))
