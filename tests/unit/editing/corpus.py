"""Rule files that are there already: the conformance cases and the examples."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from coincide.errors import CoincideError
from coincide.languages.registry import MODULES
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText

ROOT = Path(__file__).parents[3]
FOLDERS = ("tests/conformance/cases", "examples")


@cache
def sources(errors: bool = False) -> list[SourceText]:
    """Those that are meant to be right, or all."""
    files = (file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*")) if file.name.endswith(tuple(MODULES)))
    kept = (file for file in files if errors or "errors" not in str(file))
    return [text for file in kept if (text := _read(file)) is not None and file.name not in ("mapping.yml",)]


def _read(file: Path) -> SourceText | None:
    try:
        return SourceText(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        return None


def loaded(source: SourceText) -> Rulebook | None:
    try:
        return load(source)
    except CoincideError:
        return None
