"""Amit's definitions as data (Adi, Etzion: "Amit - The Situation Manager"). Spans do not count in comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coincide.expr.tree import Expr, Literal
from coincide.lang.shared.xml import Element
from coincide.source import Span


@dataclass(frozen=True)
class Placed:
    """Something that stands in a rule file."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class EventAttribute(Placed):
    name: str
    type: str  # string, number, boolean


@dataclass(frozen=True)
class EventType(Placed):
    name: str
    attributes: tuple[EventAttribute, ...] = ()


@dataclass(frozen=True)
class EventKey(Placed):
    event: str
    attribute: str


@dataclass(frozen=True)
class Key(Placed):
    """Attributes of several event types that mean the same thing."""

    name: str
    members: tuple[EventKey, ...]
    type: str | None = None


@dataclass(frozen=True)
class KeyBy(Placed):
    """Partitions by a key, or by an attribute that all events concerned have."""

    name: str | None = None
    attribute: str | None = None


@dataclass(frozen=True)
class Initiator(Placed):
    event: str
    alias: str | None = None
    correlate: str = "ignore"
    where: Expr | None = None


@dataclass(frozen=True)
class Terminator(Placed):
    event: str
    alias: str | None = None
    quantifier: str = "each"
    termination: str = "terminate"
    where: Expr | None = None


@dataclass(frozen=True)
class Expiration(Placed):
    interval: int  # microseconds, as all durations here
    termination: str = "terminate"


@dataclass(frozen=True)
class Lifespan(Placed):
    """Without terminators and expiration it never ends (`noTerminator`)."""

    name: str
    startup: bool = False
    initiators: tuple[Initiator, ...] = ()
    terminators: tuple[Terminator, ...] = ()
    expiration: Expiration | None = None
    keys: tuple[KeyBy, ...] = ()

    @property
    def roles(self) -> tuple[Initiator | Terminator, ...]:
        return (*self.initiators, *self.terminators)

    @property
    def endless(self) -> bool:
        return not self.terminators and self.expiration is None


@dataclass(frozen=True)
class Operand(Placed):
    """`retain` keeps used candidates where it is true; `consumption` lets them go only where it is true. `distinct`: of events
    for which this has the same value one is a candidate, and none for which it is null."""

    event: str
    alias: str | None = None
    threshold: Expr | None = None
    quantifier: str = "each"
    strict: bool = False  # quantifierType absolute
    override: Expr | None = None
    retain: Expr | None = None
    consumption: Expr | None = None
    weight: int = 1
    counted: bool = True
    distinct: Expr | None = None

    @property
    def label(self) -> str:
        return self.alias or self.event

    @property
    def keeping(self) -> tuple[Expr, bool] | None:
        """A test of a candidate that has been used, and whether it stays if that is true, or if it is not (decision 1: kept only
        if retain is true, removed only if consumption is true). None: it never stays."""
        if self.consumption is not None:
            return self.consumption, False
        return None if self.retain is None else (self.retain, True)

    @property
    def may_retain(self) -> bool:
        """May a candidate stay when it has been used?"""
        if self.keeping is None:
            return False
        test, stays = self.keeping
        return not isinstance(test, Literal) or (test.value is True) is stays


@dataclass(frozen=True)
class Operator(Placed):
    """One of Amit's operators (operators.py), by its name; what a kind does not have keeps its default."""

    kind: str
    operands: tuple[Operand, ...] = ()
    keys: tuple[KeyBy, ...] = ()
    mode: str = "immediate"  # delayed, deferred
    where: Expr | None = None
    repeat: str = "always"  # once
    quantity: int = 1
    interval: int = 0
    pattern: str = ""
    correlate: str = "ignore"


@dataclass(frozen=True)
class SituationAttribute(Placed):
    """Without an expression, its own name is the expression."""

    name: str
    type: str
    expression: Expr | None = None


@dataclass(frozen=True)
class Situation(Placed):
    name: str
    lifespan: str
    operator: Operator
    attributes: tuple[SituationAttribute, ...] = ()
    internal: bool = False


@dataclass(frozen=True)
class Template(Placed):
    """Elements that are copied at each use, parameters replaced; so they are checked only there."""

    name: str
    parameters: tuple[str, ...] = ()
    body: tuple[Element, ...] = ()


@dataclass(frozen=True)
class Use(Placed):
    template: str
    arguments: Mapping[str, str] = field(default_factory=dict)


Definition = EventType | Key | Lifespan | Situation
Item = Definition | Template | Use


@dataclass(frozen=True)
class File:
    """One file's items, in order, and the form that they were written in."""

    items: tuple[Item, ...]
    form: str = field(default="xml", compare=False)  # yaml
