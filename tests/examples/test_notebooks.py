"""The notebooks among the examples run, and show what is kept in them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"


def shown(notebook: Any) -> list[tuple[str, str, str]]:
    """Of every output: what it is, its text, and if it is ours what a browser shows; tables of others differ by version."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [(o.output_type, _text(o), _html(o)) for o in outputs]


def _text(output: Any) -> str:
    return str(output.get("text") or output.get("evalue") or output.data["text/plain"])


def _html(output: Any) -> str:
    html = str(output.get("data", {}).get("text/html", ""))
    return html if 'class="coincide"' in html else ""


@pytest.mark.parametrize(
    "name",
    [
        "pandas",
        pytest.param("polars", marks=pytest.mark.matrix),
        pytest.param("pyspark", marks=[pytest.mark.spark, pytest.mark.matrix]),
    ],
)
def test_notebook(name: str) -> None:
    """If this fails and the notebook is right: make notebooks."""
    kept = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    again = runpy.run_path(str(FOLDER / "execute.py"))["executed"](FOLDER / f"{name}.ipynb")
    assert sum(bool(html) for _, _, html in shown(kept)) > 0
    assert shown(again) == shown(kept)


def test_all_notebooks_are_run() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == ["pandas", "polars", "pyspark"]
