"""Event correlation (complex event processing) for Python and Spark: five published languages, one engine.

>>> import coincide
>>> rules = coincide.loads("monitor pairs = repeat { push(pair) { sequential { open, close } } }")
>>> coincide.detect(rules, [{"type": "open", "time": 1}, {"type": "close", "time": 5}])
[{'type': 'pair', 'time': 5, 'from': ['2']}]
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coincide.api import detect, explain, run
    from coincide.engines.embedded import Engine
    from coincide.rulebook import Rulebook, load, loads

__version__ = "0.1.0"
__all__ = ["Engine", "Rulebook", "__version__", "detect", "explain", "load", "loads", "run"]

# Imported when first asked for: whoever wants one part does not wait for all.
_HOMES = {
    "detect": "coincide.api",
    "explain": "coincide.api",
    "run": "coincide.api",
    "Engine": "coincide.engines.embedded",
    "Rulebook": "coincide.rulebook",
    "load": "coincide.rulebook",
    "loads": "coincide.rulebook",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'coincide' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """The import of the folder `coincide/detect` would put it in the place of the function `detect`."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
