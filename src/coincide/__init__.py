"""Event correlation (complex event processing) for Python and Spark: eight published languages, one engine.

>>> import coincide
>>> rules = coincide.loads("monitor pairs = repeat { push(pair) { sequential { open, close } } }")
>>> coincide.detect(rules, [{"type": "open", "time": 1}, {"type": "close", "time": 5}])
[{'type': 'pair', 'time': 5, 'from': ['2']}]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coincide.api import detect, explain, held, run, why
    from coincide.engines.embedded import Engine
    from coincide.errors import DataWarning
    from coincide.rulebook import Rulebook, load, loads
    from coincide.streams.actions import action
    from coincide.streams.asynchronous import stream
    from coincide.tables.api import match_recognize, sql

__version__ = "0.1.0"
__all__ = [
    "DataWarning",
    "Engine",
    "Rulebook",
    "__version__",
    "action",
    "detect",
    "explain",
    "held",
    "load",
    "loads",
    "match_recognize",
    "run",
    "sql",
    "stream",
    "why",
]

# Imported when first asked for: whoever wants one part does not wait for all.
_HOMES = {
    "DataWarning": "coincide.errors",
    "detect": "coincide.api",
    "explain": "coincide.api",
    "held": "coincide.api",
    "run": "coincide.api",
    "why": "coincide.api",
    "Engine": "coincide.engines.embedded",
    "Rulebook": "coincide.rulebook",
    "load": "coincide.rulebook",
    "loads": "coincide.rulebook",
    "match_recognize": "coincide.tables.api",
    "sql": "coincide.tables.api",
    "action": "coincide.streams.actions",
    "stream": "coincide.streams.asynchronous",
}


def load_ipython_extension(shell: object) -> None:
    """`%load_ext coincide`: the cell magic `%%coincide`."""
    from coincide.magic import register

    register(shell)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'coincide' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
