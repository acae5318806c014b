"""The console script: Knee's command line, in the same shared module."""

import sys

from . import _knee
from ._candidate import load


def main() -> None:
    """Runs the command line, and exits with the exit code of `knee`."""
    sys.exit(_knee.command(["knee", *sys.argv[1:]], load))
