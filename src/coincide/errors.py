"""Diagnostics, and the exceptions that carry them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from os import sep
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from coincide.source import Span

if TYPE_CHECKING:
    from coincide.model.batch import EventBatch
    from coincide.model.event import Place


@dataclass(frozen=True)
class Diagnostic:
    """One message to the author of rules or data, with its place and, where there is one, a hint."""

    message: str
    span: Span | None = None
    severity: str = "error"
    hint: str | None = None
    name: str | None = None  # a stable short name, such as 'vacuous'

    @property
    def head(self) -> str:
        place = f"{self.span}: " if self.span else ""
        return f"{place}{self.severity}: {self.message}"

    def render(self) -> str:
        """Head line, source line with caret, hint."""
        parts = [self.head]
        if self.span is not None:
            parts.append(self.span.excerpt())
        if self.hint:
            parts.append(f"    hint: {self.hint}")
        return "\n".join(parts)


class CoincideError(Exception):
    """Anything that the user can put right. The command line prints it and exits with `exit_code`."""

    exit_code = 2

    def __init__(self, *diagnostics: Diagnostic | str) -> None:
        self.diagnostics = tuple(Diagnostic(d) if isinstance(d, str) else d for d in diagnostics)
        super().__init__("\n".join(d.render() for d in self.diagnostics))

    def __reduce__(self) -> tuple[type, tuple[Diagnostic, ...]]:
        return type(self), self.diagnostics


class RuleError(CoincideError):
    """Rules that are refused before any event is read."""


class InputError(CoincideError):
    """Input that cannot be read, or a bad record under `strict`."""


class RunError(CoincideError):
    """Rules were accepted, but the run had to stop: at a place in the order of processing, if it is known; `detections` are
    those made before."""

    exit_code = 1
    place: Place | None = None
    detections: EventBatch | None = None


class DataWarning(UserWarning):
    """Rules and events that do not fit together: most likely not meant, and no reason to stop."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the nearest known name, if there is a near one."""
    found = nearest_name(name, known)
    return f"did you mean '{found}'?" if found is not None else None


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """One that differs in case only is the nearest."""
    from difflib import get_close_matches

    names = list(known)
    folded = name.casefold()
    same = next((other for other in names if other.casefold() == folded), None)
    found = [same] if same is not None else get_close_matches(name[:100], names, n=1, cutoff=0.6)
    return found[0] if found else None


def log_warning(text: str, *values: object) -> None:
    """Of what a run meets, to the log `coincide.run`."""
    import logging

    logging.getLogger("coincide.run").warning(text, *values)


def warn(found: Iterable[Diagnostic]) -> None:
    """To a Python program: as DataWarning, at the line that called this package."""
    for diagnostic in found:
        warnings.warn(diagnostic.render().removeprefix("warning: "), DataWarning, stacklevel=_levels())


def calling_line() -> tuple[str, int]:
    """The file and the line that called this package, for what is warned about later."""
    frame = sys._getframe(_levels() - 1)
    return frame.f_code.co_filename, frame.f_lineno


def _levels() -> int:
    """How many frames up the caller of the package is, from the caller of this; `df.transform` stands between."""
    between = tuple(f"{Path(module.__file__).parent}{sep}" for module in _passed_through() if module.__file__)
    levels, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(between):
        levels, frame = levels + 1, frame.f_back
    return levels


def _passed_through() -> list[ModuleType]:
    return [sys.modules[name] for name in ("coincide", "pyspark") if name in sys.modules]
