"""Imports go one way: down the list in docs/architecture.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "coincide"
MODELS = frozenset(p.name for p in (PACKAGE / "detection").iterdir() if (p / "interpreter.py").exists())


def imports(file: Path) -> Iterator[str]:
    """Every module of ours that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_models_of_detection_do_not_import_one_another() -> None:
    assert {"machine", "situation", "automaton", "algebra", "correlation"} <= MODELS
    found = [
        f"{model}: {name}"
        for model in sorted(MODELS)
        for file in (PACKAGE / "detection" / model).rglob("*.py")
        for name in imports(file)
        if name.startswith("coincide.detection.") and name.split(".")[2] in MODELS - {model}
    ]
    assert not found
