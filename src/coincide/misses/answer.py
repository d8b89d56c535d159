"""Why a rule made no detection, as an answer: near misses, the nearest first, or the detections that there are after all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.records import record_for
from coincide.causes import Cause, Causes, clock
from coincide.misses.edits import Add, Change, Edit, Edits, Move, Remove, edited
from coincide.misses.proposals import Hints
from coincide.misses.search import Search
from coincide.misses.trial import Question, Trial, quietly
from coincide.misses.words import Words, value_text
from coincide.model.event import HEARTBEAT, Event, Value, plain, record
from coincide.model.numbers import is_number
from coincide.model.stamp import LIMIT, OrderKey, milliseconds
from coincide.rulebook import Rulebook

MOST = 5
"""Near misses that are told."""


@dataclass(frozen=True)
class Miss:
    """A match that did not come about: the events that it had, and what would have to be otherwise. It has been tried: with these
    `edits` the `detection` is made."""

    matched: tuple[Event, ...]
    edits: Edits
    detection: Event
    distance: float
    text: str
    lacks: tuple[str, ...]  # the edits in words, one by one
    conditions: tuple[str, ...] = ()  # of the rule, that do not hold
    _events: Sequence[Event] = field(default=(), repr=False, compare=False)
    _mapping: FieldMapping = field(default=DEFAULT, repr=False, compare=False)

    def repaired(self) -> list[dict[str, Any]]:
        """All events of the run as records, with the edits."""
        return [self._record(event) for event in edited(self._events, self.edits)]

    def _record(self, event: Event) -> dict[str, Any]:
        return record_for(event, self._mapping)

    @property
    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "text": self.text,
            "distance": round(self.distance, 6),
            "matched": [self._record(event) for event in self.matched],
            "lacks": [{**edit.as_data(self._record), "text": text} for edit, text in zip(self.edits, self.lacks, strict=True)],
            "conditions": list(self.conditions),
            "detection": record(self.detection),
        }

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Answer:
    """`detections` are there in the time asked about, with their causes; if there are none, `misses` tells how near it was.
    `cut`: more could be found with more tries, or among more events."""

    rule: str
    key: Mapping[str, Value]
    time: tuple[int, int]
    detections: tuple[Cause, ...]
    misses: tuple[Miss, ...]
    lacking: tuple[str, ...]  # types that the rule waits for and no event has
    tries: int
    cut: bool

    @property
    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "rule": self.rule,
            "key": {name: plain(value) for name, value in self.key.items()},
            "time": [None if abs(time) == LIMIT else milliseconds(time) for time in self.time],
            "detections": [cause.tree for cause in self.detections],
            "misses": [miss.record for miss in self.misses],
            "lacking": list(self.lacking),
            "tries": self.tries,
            "cut": self.cut,
        }

    def lines(self) -> Iterator[str]:
        if self.detections:
            for cause in self.detections:
                yield from str(cause).splitlines()
            return
        yield f"{self.rule}{self._of_key} made no detection{self._in_time}"
        for number, miss in enumerate(self.misses, 1):
            yield f"  {number}. {miss.text}"
            yield from (f"     {text}" for text in miss.conditions)
        yield from (f"  no event of type {name}" for name in self.lacking if not self.misses)
        if not self.misses:
            yield f"  no change of the events that would have made one was found in {self.tries:,} tries"
        elif self.cut:
            yield f"  (there may be others: the search ended after {self.tries:,} tries)"

    @property
    def _of_key(self) -> str:
        return f" for {', '.join(f'{name}={value_text(value)}' for name, value in self.key.items())}" if self.key else ""

    @property
    def _in_time(self) -> str:
        bounds = [time for time in self.time if abs(time) < LIMIT]
        if not bounds:
            return ""
        form = clock(bounds)
        if len(bounds) == 2:
            return f" from {form(bounds[0])} to {form(bounds[1])}"
        return f" {'until' if self.time[0] == -LIMIT else 'from'} {form(bounds[0])}{'' if self.time[0] == -LIMIT else ' on'}"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """At the prompt of IPython."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """In a notebook."""
        from coincide.display.page import shown, tree
        from coincide.report.markup import element

        return shown(*(map(tree, self.detections) if self.detections else [element("pre", str(self))]))


def why_not(
    book: Rulebook,
    events: Sequence[Event],
    question: Question,
    until: float | None = None,
    closed: bool = True,
    tries: int = 3_000,
    most: int = MOST,
) -> Answer:
    """`events` in total order."""
    return _Inquiry(book, events, question, until, closed, tries).answer(most)


class _Inquiry:
    def __init__(
        self, book: Rulebook, events: Sequence[Event], question: Question, until: float | None, closed: bool, tries: int
    ) -> None:
        self.question = question
        self.hints = Hints(book.needed_for({question.detector.order}))
        self.trial = Trial(book, events, question, until, closed, self.hints.reach, tries)

    def answer(self, most: int) -> Answer:
        everything, made = self.trial.whole(())
        causes = Causes(self.trial.book, everything, made)
        there = tuple(causes.of(detection) for detection in made if self._meets(causes, detection))
        misses: list[Miss] = []
        cut = False
        if not there:
            search = Search(self.trial, self.hints)
            found = [miss for edits in search.run() if (miss := self._miss(edits)) is not None]
            own = [miss for miss in found if not any(self._is_of_another_key(edit) for edit in miss.edits)]
            misses, cut = _nearest(own or found, most), search.cut or self.trial.cut
        q = self.question
        return Answer(q.detector.name, q.key, (q.lo, q.hi), there, tuple(misses), tuple(self._lacking()), self.trial.made, cut)

    def _is_of_another_key(self, edit: Edit) -> bool:
        """Such an event may have nothing to do with the question: it is told only where there is nothing else."""
        return isinstance(edit, Change) and edit.attribute in self.question.key

    def _meets(self, causes: Causes, detection: Event) -> bool:
        if not self.question.key:
            return self.question.is_met_by(detection, ())
        return self.question.is_met_by(detection, causes.constituents(detection))

    def _tried(self, edits: Edits) -> tuple[Event, set[OrderKey]] | None:
        """The detection that is made, and the events that it is made of: with all events, not only with those near."""
        with quietly():
            events, made = self.trial.whole(edits)
        causes = Causes(self.trial.book, events, made)
        detection = next((d for d in made if self._meets(causes, d)), None)
        return None if detection is None else (detection, {event.origin[0] for event in causes.of(detection).events})

    def _miss(self, edits: Edits) -> Miss | None:
        """What is told has been tried, and so has each part of it: nothing is made without one of the edits."""
        found = self._tried(edits)
        if found is None:
            return None
        detection, constituents = found
        if (instead := _removing(edits, constituents)) != edits and (miss := self._miss(instead)) is not None:
            return miss
        fewer = (tuple(e for e in edits if e is not left_out) for left_out in edits if len(edits) > 1)
        if (enough := next((rest for rest in fewer if self._tried(rest)), None)) is not None:
            return self._miss(enough)
        touched = {id(edit.event) for edit in edits}
        untouched = {event.origin[0]: event for event in self.trial.events if id(event) not in touched}
        matched = tuple(untouched[key] for key in sorted(constituents) if key in untouched)
        words = self._words(matched, edits)
        lacks = tuple(words.edit(edit, matched) for edit in edits)
        conditions = tuple(dict.fromkeys(text for edit in edits for text in words.broken(edit)))
        text, events, mapping = words.miss(matched, lacks), self.trial.events, self.trial.mapping
        return Miss(matched, edits, detection, self._distance(edits), text, lacks, conditions, events, mapping)

    def _words(self, matched: Sequence[Event], edits: Edits) -> Words:
        there = frozenset(event.type for event in self.trial.near)
        times = [*(event.hi for event in matched), *(time for edit in edits for time in _told_times(edit, there))]
        return Words(
            clock(times or [self.trial.end]), self.trial.end, there, self.question.key, self.hints.tests, self.trial.mapping
        )

    def _distance(self, edits: Edits) -> float:
        """A change of what is there is nearer than an event that is not; a small one nearer than a large one."""
        first, last = self.trial.span
        reach = max(1, self.trial.reach or last - first)
        touched = {id(edit.event) for edit in edits if isinstance(edit, Move | Change)}
        return len(touched) + sum(_size(edit, reach) for edit in edits)

    def _lacking(self) -> Iterator[str]:
        there = {event.type for event in self.trial.own}
        wanted = dict.fromkeys(slot.type for slot in self.hints.slots if not slot.refused)
        return (kind for kind in wanted if kind is not None and kind not in there)


def _told_times(edit: Edit, there: Collection[str]) -> Iterator[int]:
    """Of an event that is not there, only the bounds of its time are told, and these only where others of its type are there."""
    if not isinstance(edit, Add) or edit.event.type == HEARTBEAT:
        yield edit.event.hi
    elif edit.event.type in there:
        yield from (time for time in (edit.earliest, edit.latest) if time is not None)


def _removing(edits: Edits, constituents: Collection[OrderKey]) -> Edits:
    """An event that must be otherwise and is then no part of it stops it as it is."""
    changed: dict[int, Event] = {}
    for edit in edits:
        if isinstance(edit, Move | Change):
            changed[id(edit.event)] = edit.changed(changed.get(id(edit.event), edit.event))
    stopping = {number for number, event in changed.items() if event.origin[0] not in constituents}
    harmless = [edit for edit in edits if id(edit.event) not in stopping]
    gone = {id(edit.event): Remove(edit.event) for edit in edits if id(edit.event) in stopping}
    return (*harmless, *gone.values())


def _size(edit: object, reach: int) -> float:
    match edit:
        case Add(event) if event.type == HEARTBEAT:
            return 0.5
        case Move(by=by):
            return min(1.0, abs(by) / reach)
        case Change(old=old, value=value) if is_number(old) and is_number(value):
            return min(1.0, abs(value - old) / max(abs(value), abs(old), 1))
        case Change():
            return 0.5
        case Remove():
            return 1.2
    return 2.5


def _nearest(found: Sequence[Miss], most: int) -> list[Miss]:
    """Of misses of the same events, and of one kind, the nearest; nothing that is only the start of a nearer one."""
    nearest: list[Miss] = []
    for miss in sorted(found, key=lambda miss: (miss.distance, -len(miss.matched), [-edit.event.hi for edit in miss.edits])):
        if not any(_is_covered(miss, other) for other in nearest):
            nearest.append(miss)
    return nearest[:most]


def _is_covered(miss: Miss, nearer: Miss) -> bool:
    kinds, other = ({edit.kind for edit in each.edits} for each in (miss, nearer))
    return miss.text == nearer.text or (_about(miss) <= _about(nearer) and (kinds == other or "add" in kinds))


def _about(miss: Miss) -> frozenset[int]:
    """The events that are there and take part."""
    edited_ones = (edit.event for edit in miss.edits if not isinstance(edit, Add))
    return frozenset(id(event) for event in (*miss.matched, *edited_ones))
