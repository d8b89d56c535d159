"""CDL definitions: correlation descriptions as they were written. Frozen data; spans do not count in comparisons.

Expressions keep references as names (`S3.room`, `other.C1`); names.py tells what a name means in a description."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from coincide.expr.tree import Expr
from coincide.lang.cdl.providers import Installed, read_provider
from coincide.source import Span

TYPES = ("int", "double", "string", "boolean", "time_t")
ENVELOPE_NAMES = ("time", "id", "type", "source")
"""Fields of the envelope that a reference may read without a declaration."""

Version = tuple[int, ...]


@dataclass(frozen=True)
class Node:
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Provider(Node):
    """Where enrichment or node context comes from. `base` is the folder of the rules, which `href` is relative to."""

    name: str
    kind: str
    href: str
    key: str | None = None
    base: str = field(default="", compare=False, repr=False)

    @cached_property
    def opened(self) -> Any:
        """A look-up or a context. It is read once."""
        return read_provider(self)


@dataclass(frozen=True)
class Filter(Node):
    """With `operators`, these predicates of (the attribute, *values); otherwise one condition."""

    operators: tuple[str, ...]
    values: tuple[Expr, ...]


@dataclass(frozen=True)
class Attribute(Node):
    """A declared attribute of a source. `lookup` replaces the message's own value."""

    name: str
    type: str
    anchor: str | None = None
    optional: bool = False
    lookup: Expr | None = None
    filters: tuple[Filter, ...] = ()


@dataclass(frozen=True)
class Source(Node):
    """A template for one message."""

    message_class: str
    anchor: str
    access: str = "any"
    within: float | None = None  # milliseconds
    duplicates: str = "accept"
    attributes: tuple[Attribute, ...] = ()


@dataclass(frozen=True)
class Collection(Source):
    """A set of messages, not addressable one by one."""

    reuse: bool | None = None


@dataclass(frozen=True)
class TimeEvent(Node):
    """Due `value` after its trigger (`relative`) or at `value`."""

    anchor: str
    trigger: str
    relative: bool
    value: Expr


AnySource = Source | Collection | TimeEvent


@dataclass(frozen=True)
class Computation(Node):
    anchor: str
    type: str
    value: Expr
    overhead: str | None = None


@dataclass(frozen=True)
class Predicate(Node):
    """A built-in or registered predicate of its arguments, or without a name one condition."""

    anchor: str
    name: str | None
    arguments: tuple[Expr, ...]
    of: str | None = None
    selectivity: str | None = None


@dataclass(frozen=True)
class Expression(Node):
    """and, or, not over references to predicates and expressions."""

    anchor: str
    logic: Expr


@dataclass(frozen=True)
class EventAttribute(Node):
    name: str
    type: str
    value: Expr


@dataclass(frozen=True)
class ComplexEvent(Node):
    """What is published when the trigger is true."""

    message_class: str
    trigger: str
    access: str = "public"
    attributes: tuple[EventAttribute, ...] = ()


@dataclass(frozen=True)
class Preference(Node):
    """Anchors of expressions; each is optional."""

    self_: str | None = None
    previous: str | None = None
    other: str | None = None
    better: str | None = None

    @property
    def expressions(self) -> Iterator[str]:
        return (e for e in (self.self_, self.previous, self.other, self.better) if e is not None)


@dataclass(frozen=True)
class Description(Node):
    """A correlation description. `shared` are the providers that its file gives to all."""

    id: str
    version: Version
    sources: tuple[AnySource, ...]
    expressions: tuple[Expression, ...]
    events: tuple[ComplexEvent, ...]
    computations: tuple[Computation, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    preferences: tuple[Preference, ...] = ()
    within: float | None = None
    disjoint: bool = False
    providers: tuple[Provider, ...] = ()
    shared: tuple[Provider, ...] = ()
    document_digest: str = field(default="", compare=False, repr=False)  # in older snapshots its name
    installed: Installed = field(default_factory=Installed, compare=False, repr=False)
    replaced: tuple[Description, ...] = field(default=(), compare=False, repr=False)  # lower versions of it that were loaded

    @cached_property
    def index(self) -> dict[str, int]:
        """Sources by anchor, as numbers in document order."""
        return {source.anchor: number for number, source in enumerate(self.sources)}

    def within_of(self, source: AnySource) -> float | None:
        own = None if isinstance(source, TimeEvent) else source.within
        return self.within if own is None else own

    @property
    def triggers(self) -> tuple[str, ...]:
        """Distinct triggers, in the order of the first event that uses them."""
        return tuple(dict.fromkeys(event.trigger for event in self.events))


@dataclass(frozen=True)
class File(Node):
    """The descriptions of one file; `single`: a <cd> is the root. `form`: what it was written in, xml or yaml."""

    descriptions: tuple[Description, ...]
    providers: tuple[Provider, ...] = ()
    single: bool = False
    form: str = field(default="xml", compare=False)


def version_text(version: Version) -> str:
    return ".".join(map(str, version))
