"""What a description compiles to: how sources match messages, what groups test and when, what is published (section 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from coincide.detection.correlation import values as cdl
from coincide.detection.correlation.live import Apart, Link, Links, Rivals
from coincide.detection.correlation.view import ENVELOPE, Evaluate, Message, View, message_of
from coincide.expr.tree import Expr
from coincide.lang.cdl.definition import Collection, Description, Source, TimeEvent
from coincide.model.event import Event, Value
from coincide.model.stamp import MILLISECOND

Test = Callable[[View], bool]


def microseconds(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds * MILLISECOND)


@dataclass(frozen=True, eq=False)
class SourceProgram:
    """One source, collection or time event."""

    number: int
    node: Source | Collection | TimeEvent
    within: int | None  # microseconds
    floor: int | None  # how old, by its hi, a remembered message can be and still count
    declared: tuple[tuple[str, str, bool, Evaluate | None], ...]  # name, type, optional, look-up
    own: tuple[Test, ...]  # filters that refer to no other source
    joins: tuple[tuple[frozenset[int], Expr], ...]  # join filters: all sources that they read, and the condition
    join_tests: tuple[Test, ...]
    join_key: Link | None  # an equality among them with an attribute of a single source
    in_history: bool
    triggers: tuple[int, ...]  # time events that it sets
    trigger: int  # of a time event: the source that sets it; otherwise -1

    @property
    def anchor(self) -> str:
        return self.node.anchor

    @cached_property
    def message_class(self) -> str | None:
        return None if isinstance(self.node, TimeEvent) else self.node.message_class

    @cached_property
    def duplicates(self) -> str:
        return "accept" if isinstance(self.node, TimeEvent) else self.node.duplicates

    @property
    def is_relative(self) -> bool:
        return isinstance(self.node, TimeEvent) and self.node.relative

    @property
    def is_collection(self) -> bool:
        return isinstance(self.node, Collection)

    @property
    def is_time(self) -> bool:
        return self.trigger >= 0

    def remembered_until(self, message: Message) -> int | None:
        """After this instant the message is forgotten."""
        bounds = (
            None if self.within is None else message.lo + self.within,
            None if self.floor is None else message.hi + self.floor,
        )
        return min((bound for bound in bounds if bound is not None), default=None)

    def content(self, message: Message) -> tuple[object, ...]:
        """What `duplicates` compares: declared attributes that are not the envelope's (section 4.7)."""
        return tuple(cdl.canonical(message.values.get(name)) for name, *_ in self.declared if name not in ENVELOPE)

    def match(self, event: Event, now: int, slots: int) -> Message | None:
        """The event as this source sees it, if it matches on its own."""
        if not self._admits(event):
            return None
        message = message_of(event)
        view = View((None,) * slots, now).with_message(self.number, message)
        for name, kind, optional, lookup in self.declared:
            envelope = ENVELOPE.get(name)
            raw = lookup(view) if lookup else envelope(message) if envelope else event.attributes.get(name)
            value = cdl.matched(raw, kind)
            if value is None and not optional:
                return None
            message.values[name] = value
        return message if all(test(view) for test in self.own) else None

    def declares(self, name: str, value: Value) -> bool:
        """Can a message that it has matched have this value?"""
        kinds = [(kind, optional) for declared, kind, optional, _ in self.declared if declared == name]
        if not kinds:
            return False
        kind, optional = kinds[0]
        return optional if value is None else cdl.matched(value, kind) == value

    def _admits(self, event: Event) -> bool:
        if isinstance(self.node, TimeEvent) or self.message_class not in (event.type, "*"):
            return False
        access = self.node.access
        if access == "external" or self.message_class == "*":
            return not event.is_detection and access in ("any", "external", event.source)
        return event.is_detection if access == "internal" else access in ("any", event.source)


@dataclass(frozen=True, eq=False)
class Absence:
    """`none(x)`: sources of x that are not mapped, for which there must be no choice that makes x non-null."""

    unmapped: tuple[int, ...]
    defined: Test


@dataclass(frozen=True, eq=False)
class TermProgram:
    """When each literal of a term is decided (section 3.3)."""

    early: tuple[tuple[frozenset[int], Test], ...]
    member: dict[int, tuple[Test, ...]]  # by collection
    late: tuple[Test, ...]
    presence: tuple[tuple[Absence, bool], ...]  # at completion: is there such a choice? must there be?


@dataclass(frozen=True, eq=False)
class GroupProgram:
    number: int
    trigger: str
    pos: frozenset[int]
    cols: tuple[int, ...]  # in the order in which they are filled
    terms: tuple[TermProgram, ...]
    consumed: frozenset[int]  # collections whose members a detection uses up
    times: tuple[int, ...]  # time events in pos
    links: Links  # equalities that every term demands
    apart: Apart  # bounds of time that every term demands of two sources


@dataclass(frozen=True, eq=False)
class PreferenceProgram:
    self_: Evaluate | None
    previous: Evaluate | None
    other: Evaluate | None
    better: Evaluate | None
    rivals: Rivals  # `other` holds for no other instances than these


@dataclass(frozen=True, eq=False)
class Publication:
    message_class: str
    source: str | None
    hidden: bool
    attributes: tuple[tuple[str, str, Evaluate], ...]

    def values(self, view: View) -> dict[str, Value]:
        return {name: cdl.computed(evaluate(view), kind) for name, kind, evaluate in self.attributes}


@dataclass(frozen=True, eq=False)
class Program:
    cd: Description
    sources: tuple[SourceProgram, ...]
    groups: tuple[GroupProgram, ...]
    preferences: tuple[PreferenceProgram, ...]
    publications: dict[str, tuple[Publication, ...]]  # by trigger
    dues: dict[int, Evaluate]  # by time event

    @property
    def slots(self) -> int:
        return len(self.sources)
