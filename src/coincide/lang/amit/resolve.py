"""Situations with every name resolved and every type checked: what detection needs to know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from coincide.expr.functions import Function
from coincide.expr.print import expression_text
from coincide.expr.tree import Call, Expr, Reference
from coincide.lang.amit.attributes import error, inside_expression
from coincide.lang.amit.catalogue import Catalogue
from coincide.lang.amit.definition import (
    Definition,
    Initiator,
    Lifespan,
    Operand,
    Operator,
    Situation,
    SituationAttribute,
    Terminator,
)
from coincide.lang.amit.functions import condition_functions, expression_functions, registered, used
from coincide.lang.amit.names import GLOBAL_KEY, INITIATOR, LOCAL_KEY, OPERAND, TERMINATOR, EventNames, SituationNames
from coincide.lang.amit.operators import OPERATORS
from coincide.source import SourceText, Span
from coincide.syntax import walk

SELECTING = frozenset({"lowest", "highest", "first", "last"})
"""Aggregates that hand on one of their values."""

KeyTable = tuple[tuple[str, str], ...]
"""Of one key: (event type, attribute)."""


@dataclass(frozen=True)
class Resolved:
    """A situation with its lifespan; expressions refer to slots (names.py)."""

    situation: Situation
    lifespan: Lifespan
    types: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # event types it reads, with their attributes and types
    global_keys: tuple[KeyTable, ...]
    local_keys: tuple[KeyTable, ...]
    # How it stands among the others; no part of what it is.
    lifespan_number: int = field(default=0, compare=False, repr=False)  # below zero: lifespans come before situations
    counts_lifespan: bool = field(default=True, compare=False, repr=False)  # the first of its lifespan, for statistics
    component: tuple[str, ...] = field(default=(), compare=False, repr=False)  # situations on cycles with it, itself too
    cyclic: frozenset[str] = field(default=frozenset(), compare=False, repr=False)  # situations on any cycle
    functions: tuple[Function, ...] = field(default=(), compare=False, repr=False)  # of the host program

    @property
    def name(self) -> str:
        return self.situation.name

    @property
    def operator(self) -> Operator:
        return self.situation.operator

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(event for event, _ in self.types)

    def hands_on(self, key: str) -> bool:
        """Is this attribute of its detections just the key of the same name, of an operand, initiator or terminator?"""
        tree = next((a.expression for a in self.situation.attributes if a.name == key), None)
        if not isinstance(tree, Reference) or tree.alias is None:
            return False
        if tree.alias in (GLOBAL_KEY, LOCAL_KEY):
            tables = self.global_keys if tree.alias == GLOBAL_KEY else self.local_keys
            return {attribute for _, attribute in tables[int(tree.name)]} == {key}
        return tree.alias.startswith((INITIATOR, TERMINATOR)) and tree.name == key

    def copied(self, tree: Expr | None) -> Expr | None:
        """The attributes of events that an expression hands on as they are."""
        if isinstance(tree, Call) and tree.name in SELECTING and len(tree.arguments) == 1:
            tree = tree.arguments[0]
        if not isinstance(tree, Reference) or tree.alias is None:
            return None
        if tree.alias in (GLOBAL_KEY, LOCAL_KEY):
            tables = self.global_keys if tree.alias == GLOBAL_KEY else self.local_keys
            names = sorted({attribute for _, attribute in tables[int(tree.name)]})
            return Call("coalesce", tuple(map(Reference, names)))
        return Reference(tree.name) if tree.alias.startswith((OPERAND, INITIATOR, TERMINATOR)) else None

    def former_digest(self) -> str:
        return sha256(repr(self).encode("utf-8", "backslashreplace")).hexdigest()


def resolve(definitions: Sequence[Definition]) -> list[Resolved]:
    """All situations, in order. Raises RuleError at the first error."""
    catalogue = Catalogue(definitions)
    lifespans = {name: _Lifespan(lifespan, catalogue).resolved() for name, lifespan in catalogue.lifespans.items()}
    return [_Situation(s, lifespans, catalogue).resolved() for s in catalogue.situations.values()]


class _Lifespan:
    def __init__(self, lifespan: Lifespan, catalogue: Catalogue) -> None:
        self.lifespan = lifespan
        self.catalogue = catalogue

    def resolved(self) -> Lifespan:
        lifespan = self.lifespan
        initiators = tuple(replace(i, where=self._where(i)) for i in lifespan.initiators)
        terminators = tuple(replace(t, where=self._where(t)) for t in lifespan.terminators)
        if lifespan.startup and lifespan.keys:
            raise error(lifespan.span, f"lifespan '{lifespan.name}' cannot have both 'startup' and a key")
        for key_by in lifespan.keys:
            self.catalogue.key_attributes(key_by, [role.event for role in lifespan.roles])
        return replace(lifespan, initiators=initiators, terminators=terminators)

    def _where(self, role: Initiator | Terminator) -> Expr | None:
        self.catalogue.check_event(role.event, role.span)
        return event_condition(role.where, role.event, role.alias, self.catalogue, role.span)


def event_condition(tree: Expr | None, event: str, alias: str | None, catalogue: Catalogue, span: Span | None) -> Expr | None:
    if tree is None:
        return None
    with inside_expression(span, text_of(tree)):
        return EventNames(event, alias, catalogue.attributes(event)).condition(tree, condition_functions())


def text_of(tree: Expr) -> str:
    """The expression as it was written."""
    return tree.span.source.text if tree.span is not None else expression_text(tree)


class _Situation:
    """One situation in the making."""

    def __init__(self, situation: Situation, lifespans: Mapping[str, Lifespan], catalogue: Catalogue) -> None:
        self.situation = situation
        self.operator = situation.operator
        self.catalogue = catalogue
        self.lifespan = lifespans[catalogue.lifespan_of(situation).name]

    def resolved(self) -> Resolved:
        operands = tuple(self._operand(o) for o in self.operator.operands)
        self._check_operator()
        roles = [role.event for role in self.lifespan.roles]
        events = list(dict.fromkeys([*roles, *(o.event for o in operands)]))
        self.global_keys = [self.catalogue.key_attributes(k, events) for k in self.lifespan.keys]
        self.local_keys = [self.catalogue.key_attributes(k, [o.event for o in operands]) for k in self.operator.keys]
        names = self._names(operands)
        operator = replace(self.operator, operands=operands, where=self._where(names))
        attributes = tuple(self._attribute(a, names) for a in self.situation.attributes)
        situation = replace(self.situation, operator=operator, attributes=attributes)
        return Resolved(
            situation,
            self.lifespan,
            tuple((event, tuple(sorted(self.catalogue.attributes(event).items()))) for event in sorted(events)),
            tuple(tuple(sorted(key.items())) for key in self.global_keys),
            tuple(tuple(sorted(key.items())) for key in self.local_keys),
            functions=_used(situation, self.lifespan),
        )

    def _operand(self, operand: Operand) -> Operand:
        self.catalogue.check_event(operand.event, operand.span)

        def condition(tree: Expr | None) -> Expr | None:
            return event_condition(tree, operand.event, operand.alias, self.catalogue, operand.span)

        return replace(
            operand,
            threshold=condition(operand.threshold),
            override=condition(operand.override),
            retain=condition(operand.retain),
            consumption=condition(operand.consumption),
            distinct=self._distinct(operand),
        )

    def _distinct(self, operand: Operand) -> Expr | None:
        if operand.distinct is None:
            return None
        with inside_expression(operand.span, text_of(operand.distinct)):
            names = EventNames(operand.event, operand.alias, self.catalogue.attributes(operand.event))
            return names.value(operand.distinct, condition_functions())

    def _check_operator(self) -> None:
        fault = OPERATORS[self.operator.kind].fault(self.operator)
        if fault is not None:
            raise error(self.operator.span, fault)

    def _names(self, operands: Sequence[Operand]) -> SituationNames:
        return SituationNames(
            self.situation.name,
            operands,
            self.lifespan.initiators,
            self.lifespan.terminators,
            self.catalogue.attributes,
            self.local_keys,
            self.global_keys,
        )

    def _where(self, names: SituationNames) -> Expr | None:
        tree = self.operator.where
        if tree is None:
            return None
        with inside_expression(self.operator.span, text_of(tree)):
            return names.condition(tree, condition_functions())

    def _attribute(self, attribute: SituationAttribute, names: SituationNames) -> SituationAttribute:
        """Without an expression, the attribute's own name as a bare name."""
        tree = attribute.expression
        if tree is None:
            written = SourceText("expression", attribute.name)
            tree = Reference(attribute.name, span=written.span(0, len(attribute.name)))
        with inside_expression(attribute.span, text_of(tree)):
            expression, kind = names.value(tree, expression_functions())
        if kind not in (None, attribute.type):
            raise error(attribute.span, f"attribute '{attribute.name}' is a {attribute.type}, its expression a {kind}")
        return replace(attribute, expression=expression)


def _used(situation: Situation, lifespan: Lifespan) -> tuple[Function, ...]:
    """Functions of the host program that the situation calls: they travel with it."""
    known = registered()
    names = {node.name for tree in trees(situation, lifespan) for node in walk(tree) if isinstance(node, Call)}
    return tuple(used(name) for name in sorted(names) if name in known)


def trees(situation: Situation, lifespan: Lifespan) -> list[Expr]:
    """Every expression of a situation and its lifespan."""
    operator = situation.operator
    found: list[Expr | None] = [operator.where, *(a.expression for a in situation.attributes)]
    for operand in operator.operands:
        found += [operand.threshold, operand.override, operand.retain, operand.consumption, operand.distinct]
    found += [role.where for role in lifespan.roles]
    return [tree for tree in found if tree is not None]
