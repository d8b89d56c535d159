"""What is tried: changes that a rule's own words, and the events that are there, suggest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice, pairwise, permutations, product

from coincide.adapters.mapping import UNTYPED
from coincide.adapters.records import is_untyped
from coincide.expr.tree import Compare, Expr, Reference
from coincide.lang.shared.reads import ATTRIBUTE, KEY
from coincide.lang.shared.wants import Slot, Wants
from coincide.misses.edits import Add, Change, Edit, Edits, Move, Remove, with_attributes
from coincide.misses.trial import Trial, same
from coincide.misses.values import Assignment, constants, satisfying, ways
from coincide.model.event import HEARTBEAT, Event, Value, primitive
from coincide.model.numbers import is_number
from coincide.model.stamp import LIMIT, MILLISECOND
from coincide.rulebook import Rulebook
from coincide.syntax import walk

NEIGHBOURS = 12
"""Events, the last ones, around which things are tried."""

VALUES = 6
"""Other values of one attribute that are tried."""

DEFAULTS: dict[str | None, Value] = {"number": 1.0, "string": "a", "boolean": True}


@dataclass(frozen=True)
class Template:
    """An event that a rule waits for."""

    slot: Slot
    type: str
    attributes: Assignment


class Hints:
    """What a rule, and those that feed it, say of the events that they wait for."""

    def __init__(self, book: Rulebook) -> None:
        self._made = {output for detector in book.detectors for output in detector.outputs or (detector.name,)}
        self._wants: list[Wants] = [book.compiled.languages[d.language].wants(d) for d in book.detectors]
        self.mentions = [m for reads in book.reads for m in reads.mentions if m.what in (KEY, ATTRIBUTE)]

    @cached_property
    def slots(self) -> list[Slot]:
        """Of external events. A rule's own come after those of rules that feed it."""
        return [slot for wants in self._wants for slot in wants.slots if slot.type not in self._made]

    @cached_property
    def tests(self) -> list[Expr]:
        return [tree for wants in self._wants for tree in (*wants.tests, *(t for slot in wants.slots for t in slot.tests))]

    @cached_property
    def joint(self) -> list[Expr]:
        """Those of several events together."""
        return [tree for wants in self._wants for tree in wants.tests]

    @cached_property
    def bounds(self) -> list[int]:
        return sorted({bound for wants in self._wants for bound in wants.bounds if bound > 0})

    @cached_property
    def counts(self) -> list[int]:
        return sorted({number for wants in self._wants for number in wants.counts if 1 < number <= 50})

    @cached_property
    def names(self) -> list[str]:
        """Attributes that count."""
        tested = (node.name for tree in self.tests for node in walk(tree) if isinstance(node, Reference))
        mentioned = (mention.name for mention in self.mentions)
        return [name for name in dict.fromkeys((*mentioned, *tested)) if name not in ("type", "time", "id", "from", "space")]

    def is_key(self, name: str) -> bool:
        return any(mention.name == name and mention.what == KEY for mention in self.mentions)

    def kind(self, name: str) -> str | None:
        return next((mention.kind for mention in self.mentions if mention.name == name and mention.kind), None)

    @property
    def reach(self) -> int | None:
        """How far apart things are that have to do with one another; None: any time."""
        return 2 * max(self.bounds) if self.bounds else None


class Proposals:
    """Edits of the events of a trial, the most likely first."""

    def __init__(self, trial: Trial, hints: Hints) -> None:
        self.trial = trial
        self.hints = hints
        self._numbers = count(1)
        self._ids = {event.id for event in trial.events}

    # One event changed.

    def waits(self) -> Iterator[list[Edits]]:
        """Time that goes on until something is detected."""
        for detection in self.trial.endless()[:3]:
            yield [(self.heartbeat(detection.hi + later),) for later in (0, *self.hints.bounds)]

    def removals(self) -> Iterator[Edits]:
        yield from ((Remove(event),) for event in reversed(self.trial.near))

    def additions(self) -> Iterator[list[Edits]]:
        """Of each that is waited for, at different times."""
        for template in self.templates:
            yield [(self.added(template, time),) for time in self.times]

    def changes(self) -> Iterator[Edits]:
        """Of one attribute; then of all that a slot asks for."""
        for event in reversed(self.trial.near[-NEIGHBOURS:]):
            for name in self.hints.names:
                yield from ((Change(event, name, value),) for value in self.values(event, name))
        for event, template in product(reversed(self.trial.near[-NEIGHBOURS:]), self.templates):
            if event.type == template.type and len(edits := self.differences(event, template.attributes)) > 1:
                yield edits

    def from_other_keys(self) -> Iterator[Edits]:
        """Events that would have done, had they been of the key."""
        for event in reversed(self.trial.others):
            if edits := self.differences(event, dict(self.trial.independent)):
                yield edits

    def moves(self) -> Iterator[list[Edits]]:
        """Of each event, before or behind another, or just within a bound of it: the nearest first."""
        for event in reversed(self.trial.near[-NEIGHBOURS:]):
            others = [other.hi for other in self.trial.near[-NEIGHBOURS:] if other is not event]
            ways = {time - event.hi for time in (*self._tested_times, *(t for hi in others for t in self._around(hi)))} - {0}
            yield [(Move(event, by),) for by in sorted(ways, key=abs)]

    # Many events.

    def witnesses(self) -> Iterator[list[Event]]:
        """Events that should make a detection by themselves: those that a rule waits for, in order, so many of each as it
        asks for; then perhaps what ends it all."""
        for chain, step, slope in product(self._chains(), self._steps, self._slopes):
            length = step * len(chain)
            for end, beat in self._ends(length):
                first = end - length + step
                made = [self._sloping(self.event(template, first + step * n), slope * n) for n, template in enumerate(chain)]
                if len({event.id for event in made}) == len(made):
                    yield made if beat is None else [*made, self.heartbeat(beat).event]

    @cached_property
    def _slopes(self) -> tuple[int, ...]:
        """Where events are compared with one another, numbers that grow or fall from one to the next may be asked for."""
        return (0, 1, -1) if self._compared else (0,)

    @cached_property
    def _compared(self) -> frozenset[str]:
        """Attributes that stand in tests of several events."""
        return frozenset(node.name for tree in self.hints.joint for node in walk(tree) if isinstance(node, Reference))

    def _sloping(self, event: Event, by: int) -> Event:
        """The attributes that are compared, so much higher."""
        own = {name: v + by if name in self._compared and is_number(v) else v for name, v in event.attributes.items()}
        return with_attributes(event, own) if by else event

    def _chains(self) -> Iterator[list[Template]]:
        """Sequences of what is waited for."""
        wanted = [self._of(slot) for slot in self.hints.slots if not slot.refused]
        stopping = [self._of(slot) for slot in self.hints.slots if slot.refused]
        plain = [[templates[0]] * templates[0].slot.times for templates in wanted if templates]
        once = [template for group in plain for template in group]
        yield once
        yield from (list(some) for some in islice(permutations(once), 1, 7) if len(once) <= 3)
        yield [*once, *(templates[0] for templates in stopping if templates)]
        for number in (*self.hints.counts, 2, 3):
            yield [template for group in plain for template in group * number]
            yield [template for _ in range(number) for template in once]
        yield from (list(some) for some in islice(product(*[t for t in wanted if t]), 1, 16))
        yield from (list(some) for length in (2, 3) for some in islice(product(self.templates[:6], repeat=length), 216))

    @cached_property
    def _step(self) -> int:
        """What is just before or behind an event: a millisecond, or less where events are closer than that."""
        times = sorted({event.hi for event in self.trial.near})
        least = min((later - earlier for earlier, later in pairwise(times)), default=LIMIT)
        return MILLISECOND if least > MILLISECOND else max(1, least // 10)

    @cached_property
    def _steps(self) -> list[int]:
        """Between the events of a chain."""
        within = [bound // 10 for bound in self.hints.bounds if bound >= 10 * self._step]
        return list(dict.fromkeys((self._step, *within[:1])))

    def _ends(self, length: int) -> list[tuple[int, int | None]]:
        """When the last of a chain so long happens, and how far time goes on then."""
        first, last = self.trial.span
        behind = (self.trial.near[-1].hi if self.trial.near else first) + length
        question = self.trial.question
        ends = [e for e in dict.fromkeys((behind, last, (first + last) // 2)) if question.lo <= e <= question.hi] or [last]
        waits = [(e, e + bound) for e in ends for bound in self.hints.bounds if e + bound <= question.hi]
        before = [(e - bound, e) for e in ends for bound in self.hints.bounds]
        return [*((e, None) for e in ends), *waits, *before]

    # What an event could be.

    @cached_property
    def templates(self) -> list[Template]:
        """Those that are waited for first, then what stops, then such as are there."""
        slots = sorted(self.hints.slots, key=lambda slot: slot.refused)
        found = [template for slot in dict.fromkeys(slots) for template in self._of(slot)]
        found += [self._like(event) for event in reversed(self.trial.near[-NEIGHBOURS:])]
        return list({repr((t.type, sorted(t.attributes.items(), key=str))): t for t in found}.values())

    def _of(self, slot: Slot) -> list[Template]:
        """A slot's ways, with attributes as events near have them where it says nothing."""
        found = []
        for way in ways(slot.tests) or [{}]:
            kind = slot.type if slot.type is not None else str(way.get("type", self._usual_type))
            own = {name: value for name, value in way.items() if name != "type"}
            kinds = [each for each in dict.fromkeys((*self._untyped, kind)) if each not in self.hints._made]
            found += [Template(slot, each, {**base, **own}) for each in kinds for base in self._bases]
        return found

    @cached_property
    def _untyped(self) -> tuple[str, ...]:
        """Where events have no types of their own, one that lacks has none either."""
        near = self.trial.near
        return (UNTYPED,) if near and all(e.type == UNTYPED and is_untyped(e, self.trial.mapping) for e in near) else ()

    def _like(self, event: Event) -> Template:
        return Template(Slot(event.type), event.type, {n: v for n in self.hints.names if (v := value_of(event, n)) is not None})

    @cached_property
    def _usual_type(self) -> str:
        kinds = [event.type for event in self.trial.near or self.trial.events[-1:]]
        return max(set(kinds), key=kinds.count) if kinds else "event"

    @cached_property
    def _bases(self) -> list[Assignment]:
        """Attributes of an event as those near have them, the last first; and whatever they are."""
        known = {name: self._usual(name) for name in self.hints.names}
        plain = {name: DEFAULTS.get(self.hints.kind(name), 1.0) for name in self.hints.names if name != "source"}
        plain |= {"source": "a"} if self.hints.is_key("source") else {}
        given = self.trial.question.key
        bases = [{**plain, **{name: v for name, v in known.items() if v is not None}, **given}, {**plain, **given}]
        return bases if bases[0] != bases[1] else bases[:1]

    def _usual(self, name: str) -> Value:
        there = (value_of(event, name) for event in reversed(self.trial.near))
        return next((value for value in there if isinstance(value, str | float | int)), None)

    def values(self, event: Event, name: str) -> list[Value]:
        """Other values of an attribute: those that tests ask for, those that other events have, and around these."""
        old = value_of(event, name)
        tested = [
            way[name]
            for template in self.templates
            if template.type == event.type
            for way in [template.attributes]
            if name in way
        ]
        seen = [value_of(other, name) for other in reversed(self.trial.near)]
        bounds = [value for value in constants(self.hints.tests) if is_number(value) == is_number(old)] if old is not None else []
        around = [v for value in (*bounds, *seen) if is_number(value) for op in (">", "<") for v in satisfying(op, value)]
        given = [self.trial.question.key[name]] if name in self.trial.question.key else []
        every = [value for value in (*given, *tested, *seen, *bounds, *around) if value is not None and not same(value, old)]
        distinct: dict[object, Value] = {(type(value), value): value for value in every}
        return list(distinct.values())[:VALUES]

    def differences(self, event: Event, attributes: Assignment) -> Edits:
        """What would have to be changed for the event to have these."""
        return tuple(Change(event, name, value) for name, value in attributes.items() if not same(value_of(event, name), value))

    @cached_property
    def times(self) -> list[int]:
        """When another event could happen: around those that are there, the last of them first."""
        first, last = self.trial.span
        near = [event.hi for event in reversed(self.trial.near[-NEIGHBOURS:])]
        around = [time for hi in near for time in self._around(hi)]
        question = self.trial.question
        given = [time for time in (question.lo, question.hi) if abs(time) < LIMIT]
        found = [*around, *self._tested_times, last, *given, (first + last) // 2]
        return [time for time in dict.fromkeys(found) if time <= question.hi] or [last]

    @cached_property
    def _tested_times(self) -> list[int]:
        """Around instants that times are compared with."""
        tests = [node for tree in self.hints.tests for node in walk(tree) if isinstance(node, Compare) and _is_about_time(node)]
        instants = [round(value * MILLISECOND) for value in constants(tests) if is_number(value) and abs(value) < LIMIT]
        return [instant + by for instant in instants for by in (0, self._step, -self._step)]

    def _around(self, hi: int) -> Iterator[int]:
        step = self._step
        yield from (hi + step, hi - step, hi)
        for bound in self.hints.bounds:
            yield from (hi + bound, hi - bound, hi + bound - step, hi + bound + step, hi - bound + step)

    # Events that are not there.

    def added(self, template: Template, time: int) -> Edit:
        return Add(self.event(template, time))

    def heartbeat(self, time: int) -> Add:
        return Add(primitive(HEARTBEAT, time, time, self._id(), {}))

    def event(self, template: Template, time: int) -> Event:
        attributes = dict(template.attributes)
        source, asked = attributes.pop("source", None), attributes.pop("id", None)
        like = next((e for e in reversed(self.trial.near) if e.type == template.type), None)
        space = None if like is None else like.space
        name = asked if isinstance(asked, str) and asked not in self._ids else self._id()
        return primitive(template.type, time, time, name, attributes, source if isinstance(source, str) else None, space)

    def _id(self) -> str:
        """One that no event has; behind all others at the same time."""
        return next(name for n in self._numbers if (name := f"new-{n}") not in self._ids)


def _is_about_time(test: Compare) -> bool:
    return any(isinstance(side, Reference) and side.name in ("time", "@timestamp") for side in (test.left, test.right))


def value_of(event: Event, name: str) -> Value:
    return event.source if name == "source" else event.attributes.get(name)
