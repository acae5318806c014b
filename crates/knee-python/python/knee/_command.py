"""The console script: Knee's command line, in the same shared module."""

import sys

from . import _knee


def main() -> None:
    """Runs the command line, and exits with the exit code of `knee`."""
    typed = sys.argv[1:]
    controllers = {}
    if typed[:1] == ["evaluate"]:
        from ._candidate import named

        controllers = named(typed[1:])
    sys.exit(_knee.command(["knee", *typed], controllers))
