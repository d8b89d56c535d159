"""Executes the notebooks of this folder, and keeps what they give: `make notebooks`, or `python execute.py pandas`."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with what its cells give now. Where it runs and how long it took is not kept."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(HERE)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_noise(output)]
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def _is_noise(output: nbformat.NotebookNode) -> bool:
    """What Java says when it starts; the mistake of a cell is none."""
    return output.get("name") == "stderr" and "UsageError" not in output.text


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.ipynb")):
        nbformat.write(executed(HERE / f"{name}.ipynb"), HERE / f"{name}.ipynb")
        print(f"{name}.ipynb")
