"""Why a detection was made: the events that it was built from, and the detections between, as a tree.

What is known of a detection are its `from`, and its place, which tells what completed it. Which earlier detections it was
built from follows from their own `from`. ECL keeps no events, and some detections (nothing came) have none: there the
events are shown that the rule looked at, for the detection's key, since its last detection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import chain, permutations
from typing import Any

from coincide.detection.base import Detector
from coincide.expr.print import expression_text
from coincide.expr.scalar import AliasScope, EventScope, condition, event_field
from coincide.expr.tree import Expr, Reference, conjuncts, without_aliases
from coincide.lang.shared.wants import Wants, holds
from coincide.model.batch import EventBatch
from coincide.model.event import Event, Place, Value, plain, primitive, record
from coincide.model.stamp import OrderKey, format_instant, milliseconds
from coincide.rulebook import Rulebook
from coincide.syntax import walk

SHOWN = 5
"""Causes of one detection that are told; of more, the last ones."""

YEAR = 365 * 86_400_000_000  # earlier times are counters of a test, not dates
SECOND = 1_000_000
DAY = 10  # where the time of day begins in ISO-8601

Words = list[tuple[str, str]]
"""A line: texts, each with its style (of rich; empty for none)."""

Form = Callable[[Event], str]
"""How the time of an event is told."""

Key = tuple[Value, ...]


@dataclass(frozen=True)
class Met:
    """A condition of the rule that is true, with the values that make it so."""

    text: str
    values: Mapping[str, Value]

    @property
    def record(self) -> dict[str, Any]:
        return {"condition": self.text, "values": {name: plain(value) for name, value in self.values.items()}}


@dataclass(frozen=True)
class Due:
    """What made a detection due: a timer, a lifespan … (`what`) that was set by an event, if it is known by which."""

    what: str
    time: int
    set_by: Event | None = None

    @property
    def record(self) -> dict[str, Any]:
        fields = {"what": self.what, "time": milliseconds(self.time)}
        return fields if self.set_by is None else {**fields, "set_by": record(self.set_by)}


@dataclass(frozen=True)
class Cause:
    """An event or a detection, with what brought it about. `str` of it is the tree."""

    event: Event
    parts: tuple[Cause, ...] = ()
    note: str = ""
    known: bool = True  # or only by its id: it was read before this run began
    conditions: tuple[Met, ...] = ()
    due: Due | None = None

    @property
    def record(self) -> dict[str, Any]:
        """As a record of JSON Lines."""
        return record(self.event)

    @property
    def tree(self) -> dict[str, Any]:
        """All of it as plain data."""
        tree: dict[str, Any] = {"event": self.record, "note": self.note}
        tree["due"] = None if self.due is None else self.due.record
        tree["conditions"] = [met.record for met in self.conditions]
        tree["parts"] = [part.tree for part in self.parts]
        return {name: value for name, value in tree.items() if value} | ({} if self.known else {"known": False})

    @property
    def events(self) -> list[Event]:
        """The external events at the ends of the tree, in order of time."""
        found = self._ends()
        return sorted({event.origin[0]: event for event in found}.values(), key=lambda event: event.origin)

    def _ends(self) -> Iterator[Event]:
        if self.event.id is not None:
            yield self.event
        for part in self.parts:
            yield from part._ends()

    def lines(self) -> Iterator[Words]:
        """The tree, line by line, first the detection itself."""
        form = _clock([self.event, *self._everything()])
        yield [
            (form(self.event), "dim"),
            (f"  {self.event.type}", "bold red"),
            (_attributes(self.event), ""),
            *self._conditions_met(),
        ]
        yield from self._below("  ", form, set())
        if self.due is not None and self.due.set_by is not None:
            set_by = self.due.set_by
            yield [(f"  due by {self.due.what}, set by {set_by.type} at {form(set_by)}", "dim")]

    def _conditions_met(self) -> Words:
        """The conditions that it meets: their values stand before."""
        return [(f"  [{', '.join(met.text for met in self.conditions)}]", "dim")] if self.conditions else []

    def _everything(self) -> Iterator[Event]:
        for part in self.parts:
            yield part.event
            yield from part._everything()

    def _below(self, indent: str, form: Form, shown_before: set[int]) -> Iterator[Words]:
        shown = self.parts[-SHOWN:]
        if (left_out := len(self.parts) - len(shown)) > 0:
            yield [(f"{indent}┆ … after {left_out:,} other{'s' if left_out > 1 else ''}", "dim")]
        for part in shown:
            last, again = part is shown[-1], bool(part.parts) and id(part.event) in shown_before
            shown_before.add(id(part.event))
            yield part._line(f"{indent}{'└' if last else '├'} ", form, self.event, len(indent) == 2, again)
            if not again:
                yield from part._below(f"{indent}{' ' if last else '│'}   ", form, shown_before)

    def _line(self, begin: str, form: Form, whole: Event, outer: bool, again: bool) -> Words:
        what = f"  {self.event.type}" if self.known else f"  event {self.event.id}, of before this run"
        style = "red" if self.event.id is None else ""
        words: Words = [
            (f"{begin}{form(self.event)}", "dim"),
            (what, style),
            (_attributes(self.event), ""),
            *self._conditions_met(),
        ]
        if self.note and (outer or self.event.hi != whole.hi):
            words.append((f"  ← {self.note}{'' if self.event.hi == whole.hi else f' {form(whole)}'}", "green"))
        return [*words, ("  (as above)", "dim")] if again else words

    def __str__(self) -> str:
        return "\n".join("".join(text for text, _ in line) for line in self.lines())

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """At the prompt of IPython."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """In a notebook. What makes it stands above this module, so it is found by name when it is asked for."""
        page = import_module("coincide.display.page")
        html: str = page.shown(page.tree(self))
        return html


class Observed:
    """A run that goes by: what it reads and what it makes is kept."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.detections: list[Event] = []

    def reading(self, batches: Iterable[EventBatch]) -> Iterator[EventBatch]:
        for batch in batches:
            self.events += batch.events
            yield batch

    def making(self, batches: Iterable[EventBatch]) -> Iterator[EventBatch]:
        for batch in batches:
            self.detections += batch.events
            yield batch

    def causes(self, book: Rulebook, *, whole: bool = True) -> Causes:
        """`whole`: the run began with these events, and consumed them in total order."""
        return Causes(book, sorted(self.events, key=lambda event: event.origin), self.detections, 0 if whole else None)


class Causes:
    """What a run read and what it made: `of` tells why."""

    def __init__(self, book: Rulebook, events: Iterable[Event], detections: Iterable[Event], first: int | None = 0) -> None:
        """`events` as they were consumed, the first of them as the one with this number (None: that is not known)."""
        self.book = book
        self.events = list(events) if first is None else [event.placed(n) for n, event in enumerate(events, first)]
        self.detections = list(detections)
        self._trees: dict[int, Cause] = {}

    def all(self) -> list[Cause]:
        """The tree of each detection, in the order made."""
        return [self.of(detection) for detection in self.detections]

    def explained(self) -> list[dict[str, Any]]:
        """The detections as records that know why they were made."""
        return [Explained(self, detection) for detection in self.detections]

    def of(self, detection: Event) -> Cause:
        if id(detection) not in self._trees:
            parts = tuple(self._parts(detection))
            met = tuple(self._met_together(detection, [part.event for part in parts]))
            self._trees[id(detection)] = Cause(detection, parts, conditions=met, due=self._due(detection))
        return self._trees[id(detection)]

    def constituents(self, detection: Event) -> list[Event]:
        """The events that it names, as far as they are known."""
        return [self._by_key[key] for key in detection.origin if key in self._by_key]

    def detector_of(self, detection: Event) -> Detector:
        return self._detectors[detection.place[-2]]

    def _parts(self, detection: Event) -> list[Cause]:
        detector = self.detector_of(detection)
        if self.book.compiled.languages[detector.language].forgetful or not detection.origin:
            return self._noted(self._looked_at(detection, detector), detection, detector, "nothing more until")
        built_of = self._built_of(detection, detector)
        end = self._completing(detection)
        if end is not None and _closes(end, detection, detector) and end not in built_of:
            built_of.append(end)
        return self._noted(built_of, detection, detector, "then time passed until")

    def _noted(self, built_of: Sequence[Event], detection: Event, detector: Detector, waiting: str) -> list[Cause]:
        """With a word on what completed it."""
        if not built_of:
            return []
        completing = self._completing(detection)
        last = next((event for event in built_of if event is completing), built_of[-1])
        note = "completes it" if last.hi == detection.hi else waiting
        return [self._part(event, note if event is last else "", detector) for event in built_of]

    def _part(self, event: Event, note: str, detector: Detector) -> Cause:
        if event.id is not None:
            return Cause(event, (), note, self._is_known(event), tuple(self._met_alone(event, detector)))
        return replace(self.of(event), note=note)

    # What made it due, and the conditions that are met.

    def _due(self, detection: Event) -> Due | None:
        """By its place: that of a timer tells where it was set."""
        due, is_timer, setting, generation, *_ = detection.place
        if not is_timer or generation > 1:
            return None
        detector = self.detector_of(detection)
        what = self.book.compiled.languages[detector.language].waits_by(detector)
        return Due(what, due, self._by_place.get(setting[:-3]))

    def _wants(self, detector: Detector) -> Wants:
        if detector.order not in self._wanted:
            self._wanted[detector.order] = self.book.compiled.languages[detector.language].wants(detector)
        return self._wanted[detector.order]

    @cached_property
    def _wanted(self) -> dict[int, Wants]:
        return {}

    def _met_alone(self, event: Event, detector: Detector) -> Iterator[Met]:
        """Tests of one event, of the first that the rule waits for and that this one is."""
        for slot in self._wants(detector).slots:
            if slot.type in (None, event.type) and not slot.refused and all(holds(test, event) for test in slot.tests):
                for test in (part for tree in slot.tests for part in conjuncts(tree)):
                    values = {n.name: event_field(n.name)(event) for n in walk(test) if isinstance(n, Reference)}
                    if values.keys() - {"type"}:
                        yield Met(expression_text(without_aliases(test)), values)
                return

    def _met_together(self, detection: Event, events: Sequence[Event]) -> Iterator[Met]:
        """Tests of several events, with those of them for which they are true."""
        for test in (part for tree in self._wants(self.detector_of(detection)).tests for part in conjuncts(tree)):
            aliases = sorted({n.alias for n in walk(test) if isinstance(n, Reference) and n.alias is not None})
            if 1 < len(aliases) <= len(events) <= SHOWN and (chosen := _chosen(test, aliases, events)) is not None:
                read = {n.text: event_field(n.name)(chosen[n.alias]) for n in walk(test) if isinstance(n, Reference)}
                yield Met(expression_text(test), read)

    def _completing(self, detection: Event) -> Event | None:
        """The detection, if there is one, or the event at which it was made."""
        return self._by_place.get(_cause_of(detection.place))

    # Of what a detection that knows its events was built.

    def _built_of(self, detection: Event, detector: Detector) -> list[Event]:
        """Detections that its rule reads and whose events are among its own, as few as account for most; other events."""
        left = set(detection.origin)
        inner: list[Event] = []
        candidates = self._candidates(detection, detector)
        if (completing := self._completing(detection)) in candidates and completing is not None:
            inner.append(completing)
            left -= set(completing.origin)
        for apart in (True, False):  # first those that share no events with others
            while (found := _best(candidates, left, apart)) is not None:
                inner.append(found)
                left -= set(found.origin)
            read = detector.inputs.external
            if read is None or all(self._primitive(key).type in read for key in left):
                break
        direct = [self._primitive(key) for key in left]
        return sorted((*inner, *direct), key=_in_order)

    def _candidates(self, detection: Event, detector: Detector) -> list[Event]:
        own = set(detection.origin)
        return [
            other
            for key in detection.origin
            for other in self._by_last_event.get(key, ())
            if other.type in detector.inputs.detections and other.place < detection.place and own.issuperset(other.origin)
        ]

    def _primitive(self, key: OrderKey) -> Event:
        return self._by_key.get(key) or primitive("event", key[1], key[0], key[4], {})

    def _is_known(self, event: Event) -> bool:
        return event.origin[0] in self._by_key

    # What a rule that keeps no events has looked at.

    def _looked_at(self, detection: Event, detector: Detector) -> list[Event]:
        if detector.order not in self._looked:
            self._looked[detector.order] = dict(_leads(self.book, detector, self._stream))
        looked_at = self._looked[detector.order].get(id(detection), [])
        covered = {key for event in looked_at for key in event.origin}
        within = [self._primitive(key) for key in detection.origin if key not in covered]  # of detections that nobody is shown
        return sorted((*looked_at, *within), key=_in_order) if within else looked_at

    @cached_property
    def _looked(self) -> dict[int, dict[int, list[Event]]]:
        return {}

    @cached_property
    def _stream(self) -> list[Event]:
        return sorted(chain(self.events, self.detections), key=lambda event: event.hi)  # stable: events before detections

    # What is where.

    @cached_property
    def _detectors(self) -> Mapping[int, Detector]:
        return {detector.order: detector for detector in self.book.detectors}

    @cached_property
    def _by_key(self) -> Mapping[OrderKey, Event]:
        return {event.origin[0]: event for event in reversed(self.events)}

    @cached_property
    def _by_last_event(self) -> Mapping[OrderKey, list[Event]]:
        found: dict[OrderKey, list[Event]] = {}
        for detection in self.detections:
            if detection.origin:
                found.setdefault(detection.origin[-1], []).append(detection)
        return found

    @cached_property
    def _by_place(self) -> Mapping[Place, Event]:
        return {event.place: event for event in chain(self.events, self.detections)}


class Explained(dict[str, Any]):
    """A detection as a record, with the run that made it."""

    def __init__(self, causes: Causes, detection: Event) -> None:
        super().__init__(record(detection))
        self._causes = causes
        self._detection = detection

    def cause(self) -> Cause:
        return self._causes.of(self._detection)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)  # what it knows does not travel


def _chosen(test: Expr, aliases: Sequence[str], events: Sequence[Event]) -> dict[str | None, Event] | None:
    """The events that the aliases can stand for: the test is true of them."""
    try:
        is_true = condition(test, AliasScope())
        ways = (dict[str | None, Event](zip(aliases, some, strict=True)) for some in permutations(events, len(aliases)))
        return next((way for way in ways if is_true(way)), None)
    except Exception:  # a function, or a node, that the shared language does not have
        return None


def _closes(end: Event, detection: Event, detector: Detector) -> bool:
    """Was it an event other than those that it was built from, such as the end of a lifespan, that completed it?"""
    read = detector.inputs.external
    return end.id is not None and end.hi == detection.hi and (read is None or end.type in read)


def _best(candidates: Sequence[Event], left: set[OrderKey], apart: bool) -> Event | None:
    """The candidate that accounts for most of what is left, of equals the latest."""
    useful = [c for c in candidates if (left.issuperset(c.origin) if apart else not left.isdisjoint(c.origin))]
    return max(useful, key=lambda c: (len(left.intersection(c.origin)), c.place), default=None)


def _in_order(event: Event) -> tuple[Any, ...]:
    return event.hi, event.id is None, event.place


def _cause_of(place: Place) -> Place:
    """The place of the event, timer or detection at which something was made."""
    return (*place[:3], place[3] - 1, *place[4:-2])


def _leads(book: Rulebook, detector: Detector, stream: Sequence[Event]) -> Iterator[tuple[int, list[Event]]]:
    """For each detection the events of its key that its rule looks at, since the rule's last detection for that key."""
    (plan,) = book.compiled.languages[detector.language].plans([detector])
    looks_at = condition(plan.relevant, EventScope()) if plan.relevant is not None else bool
    fields = [event_field(name) for name in detector.partition or ()]
    seen: dict[Key, list[Event]] = {}
    last: dict[Key, tuple[Place, list[Event]]] = {}
    for event in stream:
        key = tuple(field(event) for field in fields)
        if event.id is None and event.place[-2] == detector.order:
            at = _cause_of(event.place)
            if key not in last or last[key][0] != at:  # several detections of one event have the same causes
                before = seen.pop(key, [])
                last[key] = at, [other for other in before if other.place <= at]
                seen[key] = [other for other in before if other.place > at]
            yield id(event), last[key][1]
        elif (event.id is not None or event.type in detector.inputs.detections) and looks_at(event):
            seen.setdefault(key, []).append(event)


def _attributes(event: Event) -> str:
    return "".join(f"  {name}={value_text(value)}" for name, value in event.attributes.items() if value is not None)


def value_text(value: Value) -> str:
    shown = plain(value)
    return str(shown).lower() if isinstance(shown, bool) else str(shown)


def _clock(events: Iterable[Event]) -> Form:
    spell = clock([event.hi for event in events])
    return lambda event: spell(event.hi)


def clock(instants: Sequence[int]) -> Callable[[int], str]:
    """How instants are told: as the time of day where all are of one, as counters where they are not dates."""
    if max(instants) < YEAR:
        return lambda instant: str(milliseconds(instant))
    days = {format_instant(instant)[:DAY] for instant in instants}
    fine = len({instant // SECOND for instant in instants}) < len(set(instants))
    return lambda instant: _shortened(format_instant(instant), len(days) == 1, fine)


def _shortened(text: str, of_day: bool, fine: bool) -> str:
    begin, end = (DAY + 1 if of_day else 0), 23 if fine else 19
    return text[begin:end]
