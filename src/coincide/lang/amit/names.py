"""What names mean in expressions (section 2.3), and the types of what they mean.

A resolved expression refers to *slots*: `operand 0`, `initiator start`, `terminator stop`, `local key`, `global key` (the
reference's name is then the key's number) and `now`. No alias has a space in it, so slots and aliases are never confused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from coincide.errors import nearest
from coincide.expr.functions import NUMBER, TEXT, Function
from coincide.expr.tree import ALIAS_FUNCTIONS, Alias, Call, Expr, Literal, Reference, transform, with_aliases
from coincide.expr.typing import check_condition, infer
from coincide.lang.amit.attributes import error
from coincide.lang.amit.definition import Initiator, Operand, Terminator
from coincide.lang.amit.functions import AGGREGATES
from coincide.source import Span

ENVELOPE = {"type": TEXT, "id": TEXT, "source": TEXT, "time": NUMBER}
OPERAND, INITIATOR, TERMINATOR = "operand ", "initiator ", "terminator "
LOCAL_KEY, GLOBAL_KEY, NOW = "local key", "global key", "now"

AttributeTypes = Mapping[str, str]
KeyAttributes = Mapping[str, str]
"""Of one key: event type → attribute."""


def attribute_type(event: str, attributes: AttributeTypes, name: str, span: Span | None) -> str:
    kind = ENVELOPE.get(name) or attributes.get(name)
    if kind is None:
        raise error(span, f"event '{event}' has no attribute '{name}'", nearest(name, attributes))
    return kind


@dataclass(frozen=True)
class EventNames:
    """Names of an event condition: they see one event, bare or by its alias or type."""

    event: str
    alias: str | None
    attributes: AttributeTypes

    def condition(self, tree: Expr, functions: Mapping[str, Function]) -> Expr:
        aliased = with_aliases(tree, frozenset({self.event, self.alias or self.event}))
        check_condition(aliased, self._type, functions)
        return transform(aliased, _bare)

    def value(self, tree: Expr, functions: Mapping[str, Function]) -> Expr:
        aliased = with_aliases(tree, frozenset({self.event, self.alias or self.event}))
        infer(aliased, self._type, functions)
        return transform(aliased, _bare)

    def _type(self, node: Reference) -> str:
        return attribute_type(self.event, self.attributes, node.name, node.span)


def _bare(node: Expr) -> Expr:
    if isinstance(node, Reference):
        return replace(node, alias=None)
    return replace(node, name=None) if isinstance(node, Alias) else node


@dataclass(frozen=True)
class Slot:
    """What an alias stands for."""

    name: str
    event: str


class SituationNames:
    """Names of a situation's `where` and attribute expressions: operands, then initiators, then terminators."""

    def __init__(
        self,
        situation: str,
        operands: Sequence[Operand],
        initiators: Sequence[Initiator],
        terminators: Sequence[Terminator],
        attributes_of: Callable[[str], AttributeTypes],
        local_keys: Sequence[KeyAttributes],
        global_keys: Sequence[KeyAttributes],
    ) -> None:
        self.situation = situation
        self.attributes_of = attributes_of
        self.keys = [(LOCAL_KEY, local_keys), (GLOBAL_KEY, global_keys)]
        self.operands = [(o.label, Slot(f"{OPERAND}{n}", o.event)) for n, o in enumerate(operands)]
        labels = {label for label, _ in self.operands}
        self.initiators = _unhidden(INITIATOR, initiators, labels)
        self.terminators = _unhidden(TERMINATOR, terminators, labels | {label for label, _ in self.initiators})
        self.aliases = frozenset(label for tier in self._tiers for label, _ in tier)
        self._events = {slot.name: slot.event for tier in self._tiers for _, slot in tier}

    @property
    def _tiers(self) -> list[list[tuple[str, Slot]]]:
        return [self.operands, self.initiators, self.terminators]

    def condition(self, tree: Expr, functions: Mapping[str, Function]) -> Expr:
        aliased = self._aliased(tree)
        check_condition(aliased, self._type, functions)
        return transform(aliased, self._resolved)

    def value(self, tree: Expr, functions: Mapping[str, Function]) -> tuple[Expr, str | None]:
        """The resolved expression and its type."""
        aliased = self._aliased(tree)
        return transform(aliased, self._resolved), infer(aliased, self._type, functions)

    def _aliased(self, tree: Expr) -> Expr:
        return transform(with_aliases(tree, self.aliases), self._call)

    def _call(self, node: Expr) -> Expr:
        """Aggregates read an operand's candidates, so their argument is resolved here; other functions of events need one."""
        if isinstance(node, Call) and node.name in AGGREGATES and node.arguments:
            return replace(node, arguments=(self._aggregated(node, node.arguments[0]),))
        if isinstance(node, Call) and node.name in ALIAS_FUNCTIONS and not any(isinstance(a, Alias) for a in node.arguments):
            raise error(node.span, f"'{node.name}' wants an alias")
        return node

    def _aggregated(self, call: Call, argument: Expr) -> Expr:
        if not isinstance(argument, Reference) or (argument.alias is None and call.name != "count"):
            raise error(call.span, f"'{call.name}' wants alias.attribute")
        alias = argument.alias or argument.name
        found = [slot for label, slot in self.operands if label == alias]
        if not found:
            raise error(call.span, f"'{call.name}' wants an operand, not '{alias}'")
        slot = self._only(alias, found, argument.span)
        if argument.alias is None:
            return Alias(slot.name, span=argument.span)
        attribute_type(slot.event, self.attributes_of(slot.event), argument.name, argument.span)
        return replace(argument, alias=slot.name)

    def _type(self, node: Reference) -> str:
        if node.alias in self._events:
            slot: Slot | None = Slot(node.alias, self._events[node.alias])
        else:
            slot = self._slot(node)
        if slot is None:
            return ENVELOPE[node.name]
        return attribute_type(slot.event, self.attributes_of(slot.event), node.name, node.span)

    def _slot(self, node: Reference) -> Slot | None:
        """What the reference reads; None for the bare names of the situation itself."""
        if node.alias is not None:
            return self._by_alias(node.alias, node.span)
        if node.name in ("type", "time"):
            return None
        for tier in self._tiers:
            found = [slot for _, slot in tier if node.name in self.attributes_of(slot.event)]
            if len(set(found)) > 1:
                raise error(node.span, f"attribute '{node.name}' is ambiguous")
            if found:
                return found[0]
        raise error(node.span, f"unknown name '{node.name}'", nearest(node.name, self._names_in_scope()))

    def _by_alias(self, alias: str, span: Span | None) -> Slot:
        tiers = ([slot for label, slot in tier if label == alias] for tier in self._tiers)
        return self._only(alias, next(found for found in tiers if found), span)

    def _only(self, alias: str, found: Sequence[Slot], span: Span | None) -> Slot:
        """Several initiators (or terminators) of one alias are one slot, if their events are of one type."""
        if len(set(found)) > 1:
            raise error(span, f"alias '{alias}' is ambiguous")
        return found[0]

    def _names_in_scope(self) -> set[str]:
        attributes = {name for tier in self._tiers for _, slot in tier for name in self.attributes_of(slot.event)}
        return attributes | self.aliases

    def _resolved(self, node: Expr) -> Expr:
        if isinstance(node, Alias) and node.name is not None and node.name not in self._events:
            return replace(node, name=self._by_alias(node.name, node.span).name)
        if not isinstance(node, Reference) or node.alias in self._events:
            return node
        slot = self._slot(node)
        if slot is None:
            return Literal(self.situation, span=node.span) if node.name == "type" else replace(node, alias=NOW)
        return self._key_value(node, slot) or replace(node, alias=slot.name)

    def _key_value(self, node: Reference, slot: Slot) -> Reference | None:
        """A key attribute of an operand is known without a candidate; the operator's key goes before the lifespan's."""
        if not slot.name.startswith(OPERAND):
            return None
        for kind, keys in self.keys:
            for number, attributes in enumerate(keys):
                if attributes.get(slot.event) == node.name:
                    return replace(node, name=str(number), alias=kind)
        return None


def _unhidden(tier: str, roles: Sequence[Initiator] | Sequence[Terminator], hidden: set[str]) -> list[tuple[str, Slot]]:
    """Aliases of initiators or terminators that no earlier tier hides."""
    labelled = [(role.alias or role.event, role.event) for role in roles]
    return [(label, Slot(f"{tier}{label}", event)) for label, event in labelled if label not in hidden]
