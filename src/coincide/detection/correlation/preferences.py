"""What CDL's predicates for preferences decide: true, false or unknown (CDL-19). The kernel has none of them: it knows no
instances. How they are written stands in `lang/cdl/preferences.py`, under the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coincide.detection.correlation.values import ternary
from coincide.detection.correlation.view import View
from coincide.model.event import Value

INSTANCES: dict[str, Callable[[View], View | None]] = {
    "self": lambda view: view,
    "other": lambda view: view.other,
    "previous": lambda view: view.previous,
}


def _ordering(better: str, worse: str) -> Callable[[View, Value, Value], bool | None]:
    """Ties are incomparable."""
    return lambda view, a, b: True if ternary(better, a, b) else False if ternary(worse, a, b) else None


def _complete(view: View, of: Value) -> bool | None:
    which = INSTANCES[str(of)](view)
    return None if which is None else which.complete


def _equivalent(view: View, of: Value) -> bool | None:
    return None if view.other is None else _mapped(view) == _mapped(view.other)


def _shares(view: View, of: Value) -> bool | None:
    return None if view.other is None else not _places(view).isdisjoint(_places(view.other))


DECISIONS: dict[str, Callable[..., bool | None]] = {
    "prefergreater": _ordering(">", "<"),
    "preferless": _ordering("<", ">"),
    "complete": _complete,
    "equivalent": _equivalent,
    "shares": _shares,
}
"""Of a view and the values of the arguments."""


def _mapped(view: View) -> list[bool]:
    return [message is not None for message in view.messages]


def _places(view: View) -> set[Any]:
    return {message.place for message in view.messages if message is not None}
