"""What a situation reads of events. Types are declared, so no expression needs to be looked at for them."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.expr.tree import Expr, Reference
from coincide.lang.amit.definition import KeyBy
from coincide.lang.amit.names import GLOBAL_KEY, LOCAL_KEY
from coincide.lang.amit.operators import OPERATORS
from coincide.lang.amit.resolve import KeyTable, Resolved
from coincide.lang.shared.reads import ATTRIBUTE, KEY, TYPE, Mention, Reads, is_attribute
from coincide.source import Span
from coincide.syntax import walk


def reads_of(situation: Resolved) -> Reads:
    kinds = {name: kind for _, attributes in situation.types for name, kind in attributes}
    found = [*_types(situation)]
    found += _keys(situation.lifespan.keys, situation.global_keys, kinds)
    found += _keys(situation.operator.keys, situation.local_keys, kinds)
    for tree, span in _expressions(situation):
        for node in walk(tree):
            if isinstance(node, Reference) and node.alias not in (LOCAL_KEY, GLOBAL_KEY) and is_attribute(node.name):
                found.append(Mention(ATTRIBUTE, node.name, span, kinds.get(node.name)))
    return Reads(tuple(found), gives=frozenset(a.name for a in situation.situation.attributes))


def _types(situation: Resolved) -> Iterator[Mention]:
    """An end that never comes is no surprise, nor is what an operator wants not to come."""
    operator = situation.operator
    yield from (Mention(TYPE, i.event, i.span) for i in situation.lifespan.initiators)
    yield from (Mention(TYPE, t.event, t.span, None, True) for t in situation.lifespan.terminators)
    for number, operand in enumerate(operator.operands):
        yield Mention(TYPE, operand.event, operand.span, None, OPERATORS[operator.kind].refuses(number))


def _keys(written: tuple[KeyBy, ...], tables: tuple[KeyTable, ...], kinds: dict[str, str]) -> Iterator[Mention]:
    for key, table in zip(written, tables, strict=True):
        for name in dict.fromkeys(attribute for _, attribute in table if is_attribute(attribute)):
            yield Mention(KEY, name, key.span, kinds.get(name))


def _expressions(situation: Resolved) -> Iterator[tuple[Expr, Span | None]]:
    """Each with the place of the element that it is written in."""
    operator = situation.operator
    written = [(operator.where, operator.span), *((a.expression, a.span) for a in situation.situation.attributes)]
    written += [(role.where, role.span) for role in situation.lifespan.roles]
    for o in operator.operands:
        written += [(tree, o.span) for tree in (o.threshold, o.override, o.retain, o.consumption, o.distinct)]
    return ((tree, span) for tree, span in written if tree is not None)
