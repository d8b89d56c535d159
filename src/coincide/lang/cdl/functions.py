"""The functions that CDL's expressions have in addition, and its built-in predicates (sections 2, 2.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coincide.attachments import attached, attachment
from coincide.expr.functions import ANY, BOOLEAN, NUMBER, TEXT, Function
from coincide.expr.functions import FUNCTIONS as SHARED
from coincide.lang.cdl.preferences import PREFERENCES

AGGREGATES = frozenset({"sum", "product", "avg", "count", "first", "last"})
"""These are aggregates always; one-argument `min`, `max` and `set` where they refer to a collection."""
MAYBE_AGGREGATES = frozenset({"min", "max", "set"})
PRESENCE = frozenset({"any", "none"})
ORDERS = frozenset({"before", "concurrent"})

FUNCTIONS: dict[str, Function] = SHARED | {
    f.name: f
    for f in (
        Function("range", 2, 2, (ANY,), ANY, None),
        Function("set", 0, None, (ANY,), ANY, None),
        Function("overlaps", 2, 2, (ANY,), BOOLEAN, None),
        Function("lookup", 3, 3, (TEXT, TEXT, ANY), ANY, None),
        Function("node", 1, 1, (TEXT,), ANY, None),
        Function("any", 1, 1, (ANY,), BOOLEAN, None),
        Function("none", 1, 1, (ANY,), BOOLEAN, None),
        Function("before", 2, None, (ANY,), BOOLEAN, None),
        Function("concurrent", 2, 2, (ANY,), BOOLEAN, None),
        *(Function(name, 1, 1, (NUMBER,), NUMBER, None) for name in ("sum", "product", "avg")),
        *(Function(name, 1, 1, (ANY,), ANY, None) for name in ("count", "first", "last")),
    )
}


@dataclass(frozen=True)
class PredicateKind:
    """How many arguments a predicate takes. `preference`: is it for preferences only? `test`: of a registered one, on values."""

    name: str
    least: int
    most: int | None
    preference: bool = False
    test: Callable[..., bool | None] | None = None

    @property
    def arity(self) -> str:
        return str(self.least) if self.most == self.least else f"{self.least} or more"

    def accepts(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)


def _kinds(names: str, least: int, most: int | None) -> dict[str, PredicateKind]:
    return {name.lower(): PredicateKind(name, least, most) for name in names.split()}


COMPARISONS = {"equal": "=", "less": "<", "lessequal": "<=", "greater": ">", "greaterequal": ">=", "notequal": "!="}
OPERATORS = {"=": "equal", "==": "equal", "!=": "notequal", "<>": "notequal"}
OPERATORS |= {"<": "less", "<=": "lessequal", ">": "greater", ">=": "greaterequal"}
TEXT_PREDICATES = {"like": "like", "matches": "matches", "contains": "contains"}
TEXT_PREDICATES |= {"startswith": "starts_with", "endswith": "ends_with"}

BUILT_IN: dict[str, PredicateKind] = {
    **_kinds("equal less lessequal greater greaterequal", 2, None),
    **_kinds("notequal", 2, 2),
    **_kinds("between", 3, 3),
    **_kinds("in notin", 2, None),
    **_kinds("like matches contains startswith endswith overlaps", 2, 2),
    **_kinds("any none holds", 1, 1),
    **_kinds("before", 2, None),
    **_kinds("concurrent", 2, 2),
    **_kinds("true false unknown", 0, 0),
    **{name: PredicateKind(p.name, p.arguments, p.arguments, not p.arguments) for name, p in PREFERENCES.items()},
}
_registered: dict[str, PredicateKind] = {}
PREDICATE = "predicate"
"""The kind of attachment that they are."""


def register_predicate(name: str, test: Callable[..., bool | None], least: int = 1, most: int | None = None) -> None:
    """A predicate of this installation: `test` gets values and says true, false or (None) unknown."""
    if name.lower() in BUILT_IN:
        raise ValueError(f"'{name}' is a built-in predicate")
    _registered[name.lower()] = PredicateKind(name, least, most, test=test)


def forget_predicate(name: str) -> None:
    _registered.pop(name.lower(), None)


def predicate_kind(name: str) -> PredicateKind | None:
    """By a name in any case, or by a sign of comparison."""
    known = OPERATORS.get(name, name.lower())
    if known in BUILT_IN:
        return BUILT_IN[known]
    return attachment((PREDICATE, known), lambda: _registered[known]) if known in registered_predicates() else None


def predicate_names() -> list[str]:
    return [kind.name for kind in (*BUILT_IN.values(), *registered_predicates().values())]


def registered_predicates() -> dict[str, PredicateKind]:
    """Those of this installation, or that travelled with the rules from there."""
    return {**_registered, **attached(PREDICATE)}
