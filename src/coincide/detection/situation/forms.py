"""What situations of one form have in common, each with a lifespan of its own: all but names, the types of their events, the
conditions on single events, and attributes that are constants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from coincide.detection.situation.operators import BEHAVIOURS
from coincide.expr.tree import Alias, Expr, Literal, Reference, transform
from coincide.lang.amit.definition import Initiator, Terminator
from coincide.lang.amit.names import INITIATOR, TERMINATOR
from coincide.lang.amit.resolve import KeyTable, Resolved
from coincide.syntax import walk

MOST = 62
"""Questions of a situation, as bits of a number."""
Question = tuple[str, Expr | None]
"""A type of events, and what else has to hold; None: nothing."""


def form_of(resolved: Resolved) -> object | None:
    """None: it is stepped with others as different as it is. What acts at instants of its own, or without an event, has places of
    its own; and partitions of one lifespan that are decided at its end are put in order."""
    operator, lifespan, attributes = resolved.operator, resolved.lifespan, resolved.situation.attributes
    behaviour, keys = BEHAVIOURS[operator.kind], [_attribute(table) for table in (*resolved.global_keys, *resolved.local_keys)]
    ordered = operator.mode == "deferred" and resolved.local_keys
    if behaviour.ticks or behaviour.delays or lifespan.startup or ordered or None in keys or len(questions(resolved)) > MOST:
        return None
    types, read = {event: number for number, event in enumerate(events_of(resolved))}, _Trees(resolved)
    operands = [
        (types[o.event], o.quantifier, o.strict, o.weight, o.counted, read(o.retain), read(o.consumption))
        for o in operator.operands
    ]
    return (
        operator.kind, operator.mode, operator.repeat, operator.quantity, read(operator.where), *operands,
        tuple((types[i.event], i.correlate) for i in lifespan.initiators),
        tuple((types[t.event], t.quantifier, t.termination) for t in lifespan.terminators),
        lifespan.expiration, *keys, len(resolved.local_keys), any(o.override is not None for o in operator.operands),
        tuple((a.name, a.type, read(None if isinstance(a.expression, Literal) else a.expression)) for a in attributes),
        _kinds(resolved, types, read.names.union(keys)),
    )  # fmt: skip


def events_of(resolved: Resolved) -> list[str]:
    """The types of its events, in an order that those of one form have in common."""
    roles = (*resolved.lifespan.roles, *resolved.operator.operands)
    return [*dict.fromkeys(role.event for role in roles)]


def questions(resolved: Resolved) -> list[Question]:
    """What is asked of single events: by initiators, by terminators and by operands; then whether candidates before are
    overridden, if one asks for that; and what makes partitions of a local key whatever else holds (decision 27)."""
    operands = resolved.operator.operands
    found = [(role.event, role.where) for role in resolved.lifespan.roles]
    found += [(o.event, o.threshold) for o in operands]
    if any(o.override is not None for o in operands):
        found += [(o.event, o.override or Literal(False)) for o in operands]
    if BEHAVIOURS[resolved.operator.kind].counts and resolved.local_keys:
        found += [(o.event, None) for o in operands]
    return [(event, None if test == Literal(True) else test) for event, test in found]


def _attribute(table: KeyTable) -> str | None:
    """The one that a key is read from, whatever the event."""
    names = {attribute for _, attribute in table}
    return names.pop() if len(names) == 1 else None


def _kinds(resolved: Resolved, types: dict[str, int], names: Iterable[str | None]) -> tuple[Any, ...]:
    """The declared types of these attributes, by type of events."""
    wanted = {*names}
    found = [(types[event], tuple(pair for pair in attributes if pair[0] in wanted)) for event, attributes in resolved.types]
    return tuple(sorted(found))


class _Trees:
    """Expressions, with the numbers of initiators and terminators in place of their aliases; and which attributes they read."""

    def __init__(self, resolved: Resolved) -> None:
        self._roles: dict[str, Sequence[Initiator | Terminator]] = {
            INITIATOR: resolved.lifespan.initiators, TERMINATOR: resolved.lifespan.terminators,
        }  # fmt: skip
        self.names: set[str] = set()

    def __call__(self, tree: Expr | None) -> Expr | None:
        if tree is None:
            return None
        self.names.update(node.name for node in walk(tree) if isinstance(node, Reference))
        return transform(tree, self._numbered)

    def _numbered(self, node: Expr) -> Expr:
        if isinstance(node, Reference) and node.alias is not None:
            return Reference(node.name, self._slot(node.alias))
        return Alias(self._slot(node.name)) if isinstance(node, Alias) and node.name is not None else node

    def _slot(self, slot: str) -> str:
        for start, roles in self._roles.items():
            if slot.startswith(start):
                label = slot.removeprefix(start)
                return f"{start}{[number for number, role in enumerate(roles) if (role.alias or role.event) == label]}"
        return slot
