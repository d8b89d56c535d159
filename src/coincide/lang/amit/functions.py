"""Functions beyond those that all languages share: aggregates (AMIT-61) and those of a host program (AMIT-62)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coincide.attachments import attached, attachment
from coincide.errors import RuleError, RunError
from coincide.expr.functions import ANY, BOOLEAN, FUNCTIONS, NUMBER, TEXT, Function
from coincide.model.event import Value, as_value

AGGREGATES: dict[str, Function] = {
    f.name: f
    for f in (
        Function("count", 1, 1, (ANY,), NUMBER, None),
        Function("sum", 1, 1, (NUMBER,), NUMBER, None),
        Function("avg", 1, 1, (NUMBER,), NUMBER, None),
        Function("lowest", 1, 1, ("number or string, the same",), "the same", None),
        Function("highest", 1, 1, ("number or string, the same",), "the same", None),
        Function("first", 1, 1, ("the same",), "the same", None),
        Function("last", 1, 1, ("the same",), "the same", None),
        Function("distinct", 1, 1, (ANY,), NUMBER, None),
        Function("total", 0, 0, (ANY,), NUMBER, None),
    )
}
"""Usable in attribute expressions only, over the selected candidates of one operand."""

KINDS = {"number": NUMBER, "string": TEXT, "boolean": BOOLEAN, "unknown": ANY}
RESULTS: dict[str, tuple[type, ...]] = {NUMBER: (float,), TEXT: (str,), BOOLEAN: (bool,), ANY: (float, str, bool)}

_registered: dict[str, Function] = {}
HOST = "function"
"""The kind of attachment that they are."""


def register(name: str, function: Callable[..., Any], arguments: Sequence[str], result: str) -> None:
    """Make a host program's function usable in rules that are loaded from now on.

    Types are `number`, `string`, `boolean` or `unknown`. The function must depend on its arguments alone: it may be
    called any number of times, in any order and process."""
    if name in FUNCTIONS or name in AGGREGATES or name in _registered:
        raise RuleError(f"function '{name}' exists already")
    types = tuple(KINDS[kind] for kind in arguments) or (ANY,)
    guarded = _Guarded(name, function, KINDS[result])
    _registered[name] = Function(name, len(arguments), len(arguments), types, KINDS[result], guarded)


def unregister(name: str) -> None:
    _registered.pop(name, None)


class _Guarded:
    """The host's function: a result of another type is null, a failure stops the run. A class, so that it can travel."""

    def __init__(self, name: str, function: Callable[..., Any], result: str) -> None:
        self.name = name
        self.function = function
        self.result = result

    def __call__(self, *arguments: Value) -> Value:
        try:
            answer = self.function(*arguments)
        except Exception as error:
            raise RunError(f"function '{self.name}' failed: {error}") from error
        try:
            value = as_value(answer)
        except TypeError:
            return None
        return value if type(value) in RESULTS[self.result] else None


def condition_functions() -> dict[str, Function]:
    return {**FUNCTIONS, **registered()}


def expression_functions() -> dict[str, Function]:
    return {**condition_functions(), **AGGREGATES}


def registered() -> dict[str, Function]:
    """Those of the host program, or that travelled with the rules from there."""
    return {**_registered, **attached(HOST)}


def used(name: str) -> Function:
    """A function that is registered: it travels with the rules that call it."""
    return attachment((HOST, name), lambda: _registered[name])
