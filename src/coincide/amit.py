"""Amit in Python: lifespans and situations from calls.

    from coincide.amit import event, lifespan, operand, rules, situation

    quote = event("quote", symbol="string", change="number")
    hour = lifespan("hour").opened_by(quote, where="change > 5").expires("1h")
    surge = situation("surge").within(hour).at_least(10, operand(quote, where="change > 0"))

    coincide.detect(rules(quote, hour, surge).book, events)

Objects never change; `rules(...)` gives them as a rulebook, as XML or as YAML. What is wrong in them is seen then, by the
checks that rule files undergo. There are no templates: Python has functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

from coincide.lang.amit.elements import new_element
from coincide.lang.amit.functions import register, unregister
from coincide.lang.amit.operators import OPERATORS
from coincide.lang.amit.print import print_elements
from coincide.lang.shared.xml import Element
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText

__all__ = [
    "Lifespan", "Operand", "Rule", "Rules", "Situation", "event", "key", "lifespan", "operand", "register", "rules", "situation",
    "unregister",
]  # fmt: skip

Type = Literal["string", "number", "boolean"]
Mode = Literal["immediate", "delayed", "deferred"]
Repeat = Literal["once", "always"]
Quantifier = Literal["first", "last", "each"]
Correlate = Literal["add", "ignore", "replace"]
Values = dict[str, str | int | None]


@dataclass(frozen=True)
class Rule:
    """A definition, as an element of the XML."""

    element: Element

    @property
    def name(self) -> str:
        return self.element.attributes["name"]

    def _with(self, *children: Element) -> Self:
        return replace(self, element=replace(self.element, children=(*self.element.children, *children)))


Named = str | Rule
"""A definition, or its name."""


def event(name: str, /, **attributes: Type) -> Rule:
    """A type of events and the types of its attributes."""
    members = [new_element("eventAttribute", {"name": a, "type": kind}) for a, kind in attributes.items()]
    return Rule(new_element("event", {"name": name}, members))


def key(name: str, attributes: Mapping[str, str], type: Type | None = None) -> Rule:
    """Attributes of several types of events, `{event: attribute}`, that mean the same thing."""
    members = [new_element("eventKey", {"event": e, "attribute": a}) for e, a in attributes.items()]
    return Rule(new_element("key", {"name": name, "type": type}, members))


@dataclass(frozen=True)
class Lifespan(Rule):
    """When situations are looked for. Without an end that is given, it never ends."""

    initiators: tuple[Element, ...] = ()
    terminators: tuple[Element, ...] = ()
    keys: tuple[Element, ...] = ()

    def opened_at_startup(self) -> Lifespan:
        return replace(self, initiators=(*self.initiators, new_element("startup", {})))

    def opened_by(
        self, event: Named, where: str | None = None, *, as_: str | None = None, correlate: Correlate | None = None
    ) -> Lifespan:
        """`correlate`: with `add`, the event opens one more, even if one is open."""
        values = {"event": _name(event), "as": as_, "correlate": correlate, "where": where}
        return replace(self, initiators=(*self.initiators, new_element("eventInitiator", values)))

    def closed_by(
        self,
        event: Named,
        where: str | None = None,
        *,
        as_: str | None = None,
        quantifier: Quantifier | None = None,
        discard: bool = False,
    ) -> Lifespan:
        """`discard`: what would be detected at the end is not."""
        values = {"event": _name(event), "as": as_, "quantifier": quantifier, **_discarded(discard), "where": where}
        return replace(self, terminators=(*self.terminators, new_element("eventTerminator", values)))

    def expires(self, after: str | int, *, discard: bool = False) -> Lifespan:
        """After a time from its opening: '90 min', or milliseconds."""
        values = {"timeInterval": after, **_discarded(discard)}
        return replace(self, terminators=(*self.terminators, new_element("expirationInterval", values)))

    def keyed_by(self, *attributes: str, key: Named | None = None) -> Lifespan:
        """One for each value of attributes that all its events have, or of a key."""
        return replace(self, keys=(*self.keys, *_keys(attributes, key)))

    def whole(self) -> Rule:
        """With its parts in the order that the language wants."""
        ends = self.terminators or (new_element("noTerminator", {}),)
        roles = (new_element("initiator", {}, self.initiators), new_element("terminator", {}, ends))
        return Rule(self.element)._with(*roles, *self.keys)


def lifespan(name: str) -> Lifespan:
    return Lifespan(new_element("lifespan", {"name": name}))


@dataclass(frozen=True)
class Operand:
    """Which events are candidates, and what becomes of them."""

    values: Mapping[str, str | int | None]


def operand(
    event: Named,
    where: str | None = None,
    *,
    as_: str | None = None,
    quantifier: Quantifier | None = None,
    strict: bool = False,
    override: str | None = None,
    retain: str | None = None,
    consumption: str | None = None,
    weight: int | None = None,
    counted: bool = True,
    distinct: str | None = None,
) -> Operand:
    """Events of a type that satisfy a condition (`threshold` in the XML); the rest is as there."""
    values: Values = {"event": _name(event), "as": as_, "threshold": where, "quantifier": quantifier}
    values |= {"quantifierType": "absolute" if strict else None, "override": override, "retain": retain}
    values |= {"consumption": consumption, "weight": weight, "counted": None if counted else "false"}
    values |= {"distinct": distinct}
    return Operand(values)


Candidates = Operand | Named


@dataclass(frozen=True)
class Unplaced:
    """A situation of which only the name is known."""

    name: str

    def within(self, lifespan: Named, *, internal: bool = False) -> Open:
        """`internal`: it is fed to other situations, not reported."""
        return Open({"name": self.name, "lifespan": _name(lifespan), "internal": "true" if internal else None})


def situation(name: str) -> Unplaced:
    return Unplaced(name)


@dataclass(frozen=True)
class Open:
    """A situation that lacks its operator."""

    values: Mapping[str, str | None]

    def all(self, *operands: Candidates) -> Situation:
        return self._of("all", {}, operands)

    def sequence(self, *operands: Candidates) -> Situation:
        return self._of("sequence", {}, operands)

    def at_least(self, quantity: int, *operands: Candidates) -> Situation:
        return self._of("atleast", {"quantity": quantity}, operands)

    def at_most(self, quantity: int, *operands: Candidates) -> Situation:
        """Fewer than the quantity, at the end of the lifespan."""
        return self._of("atmost", {"quantity": quantity}, operands)

    def nth(self, quantity: int, *operands: Candidates) -> Situation:
        return self._of("nth", {"quantity": quantity}, operands)

    def none(self, *operands: Candidates) -> Situation:
        """`not`: no such event until the end of the lifespan."""
        return self._of("not", {}, operands)

    def unless(self, expected: Candidates, blocking: Candidates) -> Situation:
        return self._of("unless", {}, (expected, blocking))

    def every(self, interval: str | int) -> Situation:
        return self._of("every", {"interval": interval}, ())

    def at(self, pattern: str) -> Situation:
        """`dd/mm/yyyy hh:mm:ss.mmm`, a field of `*` for any value."""
        return self._of("at", {"timePattern": pattern}, ())

    def after(self, interval: str | int, *operands: Candidates, correlate: Correlate | None = None) -> Situation:
        return self._of("after", {"interval": interval, "correlate": correlate}, operands)

    def _of(self, kind: str, values: Values, operands: tuple[Candidates, ...]) -> Situation:
        form = OPERATORS[kind]
        given = [o if isinstance(o, Operand) else operand(o) for o in operands]
        parts = [new_element(form.operand_element(n), o.values) for n, o in enumerate(given)]
        return Situation(new_element("situation", self.values), new_element(kind, values, parts))


@dataclass(frozen=True)
class Situation(Rule):
    """A situation, whose operator may still be refined, and its attributes."""

    operator: Element
    attributes: tuple[Element, ...] = ()

    def where(self, condition: str) -> Situation:
        """A condition across operands."""
        return self._refined(where=condition)

    def mode(self, mode: Mode) -> Situation:
        return self._refined(detectionMode=mode)

    def repeated(self, repeat: Repeat) -> Situation:
        return self._refined(repeatMode=repeat)

    def keyed_by(self, *attributes: str, key: Named | None = None) -> Situation:
        """Detected for each value of attributes that all operands have, or of a key."""
        children = (*self.operator.children, *_keys(attributes, key))
        return replace(self, operator=replace(self.operator, children=children))

    def having(self, type: Type, /, *names: str, **expressions: str) -> Situation:
        """Attributes of a type: each by an expression or, its name alone, what an operand calls so."""
        given: dict[str, str | None] = {**dict.fromkeys(names), **expressions}
        made = (new_element("situationAttribute", {"name": n, "type": type, "expression": e}) for n, e in given.items())
        return replace(self, attributes=(*self.attributes, *made))

    def whole(self) -> Rule:
        return Rule(self.element)._with(self.operator, *self.attributes)

    def _refined(self, **values: str) -> Situation:
        attributes = {**self.operator.attributes, **values}
        return replace(self, operator=replace(self.operator, attributes=attributes))


@dataclass(frozen=True)
class Rules:
    """Definitions as one file. Its `source` can be loaded like a rule file, together with others."""

    definitions: tuple[Rule, ...]
    name: str = "rules"

    def xml(self) -> str:
        return print_elements(self._elements)

    def yaml(self) -> str:
        from coincide.lang.amit.print_yaml import print_elements

        return print_elements(self._elements)

    def __str__(self) -> str:
        return self.xml()

    @cached_property
    def source(self) -> SourceText:
        return SourceText(f"{self.name}.amit.xml", self.xml())

    @cached_property
    def book(self) -> Rulebook:
        """The rules, checked and planned. RuleError at the first error."""
        return load(self.source)

    @property
    def _elements(self) -> list[Element]:
        return [d.whole().element if isinstance(d, (Lifespan, Situation)) else d.element for d in self.definitions]


def rules(*definitions: Rule, name: str = "rules") -> Rules:
    """Definitions in their order, which is that of situations detected by one event."""
    return Rules(definitions, name)


def _name(named: Named) -> str:
    return named if isinstance(named, str) else named.name


def _discarded(discard: bool) -> dict[str, str | None]:
    return {"terminationType": "discard" if discard else None}


def _keys(attributes: tuple[str, ...], key: Named | None) -> list[Element]:
    named = [] if key is None else [new_element("keyBy", {"name": _name(key)})]
    return [*(new_element("keyBy", {"attribute": a}) for a in attributes), *named]
