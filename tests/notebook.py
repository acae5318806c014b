#!/usr/bin/env python3
"""Executes docs/notebook.ipynb in a folder of its own:

    tests/notebook.py [OUT]

Needs knee, matplotlib, nbclient and ipykernel. Fails if a cell raises, prints to the
standard error, or does not draw when it should, and if the notebook in the repository has
outputs, which would differ with each release of matplotlib. OUT is where to write the
notebook with its outputs.
"""
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parent.parent / "docs" / "notebook.ipynb"
SECONDS_MAX = 60


def main(out):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in cells:
        assert not cell.outputs and cell.execution_count is None, "clear the notebook's outputs"
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        # An exception in a cell is raised here, with its traceback.
        NotebookClient(
            notebook, timeout=SECONDS_MAX, resources={"metadata": {"path": folder}}
        ).execute()
        assert (Path(folder) / "figure.pdf").read_bytes().startswith(b"%PDF")
    took = time.monotonic() - began
    pictures = 0
    for cell in cells:
        for output in cell.outputs:
            said = output.get("text", "") if output.get("name") == "stderr" else ""
            assert not said, f"on the standard error: {said}\n{cell.source}"
            pictures += "image/png" in output.get("data", {})
    drawn = sum("pyplot.subplots" in cell.source for cell in cells)
    assert pictures == drawn > 2, f"{pictures} pictures of {drawn}"
    assert took < SECONDS_MAX, f"{took:.0f} s"
    print(f"{len(cells)} cells, {pictures} pictures, {took:.1f} s")
    if out:
        nbformat.write(notebook, out)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
