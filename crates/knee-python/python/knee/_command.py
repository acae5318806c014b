"""The console script: the command line of Knee, in the same shared module."""

import sys

from . import _knee


def main() -> None:
    """Does what the arguments say and ends with the exit code of `knee`."""
    sys.exit(_knee.command(["knee", *sys.argv[1:]]))
