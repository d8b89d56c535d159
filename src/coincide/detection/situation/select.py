"""Which candidates an operator selects (section 4: `detect`, `pick`, and the paragraphs on each operator)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from coincide.detection.situation.scope import Ending, Selection, View
from coincide.detection.situation.state import Key, Lifespan, Partition
from coincide.model.event import Event, Place

if TYPE_CHECKING:
    from coincide.detection.situation.program import Conjunct, SituationProgram


class Decision:
    """One decision of a situation about one partition: at an arriving event, or at the end of the lifespan."""

    def __init__(
        self,
        situation: SituationProgram,
        lifespan: Lifespan,
        key: Key,
        partition: Partition,
        now: int,
        ending: Ending,
        counter: Counter[str],
        arriving: Event | None = None,
    ) -> None:
        self.situation = situation
        self.behaviour = situation.behaviour
        self.operands = situation.operands
        self.partition = partition
        self.arriving = arriving
        self.counter = counter
        self.view = View(lifespan, key, [None] * len(self.operands), now, ending)

    def detect(self) -> list[Selection]:
        """New selections; what they use is consumed."""
        if self.partition.done:
            return []
        assert self.behaviour.found is not None
        selections = self._new(self.behaviour.found(self))
        if selections and self.situation.operator.repeat == "once":
            selections = selections[:1]
            self.partition.done = True
        self._consume(selections)
        return selections

    def _new(self, found: list[Selection]) -> list[Selection]:
        """AMIT-47: the same selection is never reported twice."""
        deferred_join = self.behaviour.joins and self.arriving is None
        if not (self.situation.keeps_reported or deferred_join):
            return found
        selections: list[Selection] = []
        for selection in found:
            mark = fingerprint(selection)
            if mark not in self.partition.reported:
                self.partition.reported.add(mark)
                selections.append(selection)
        return selections

    def _consume(self, selections: list[Selection]) -> None:
        """Each used candidate leaves the list that it was used from, unless it is retained."""
        used: dict[int, dict[int, Event]] = {}
        for selection in selections:
            for operand, event in selection:
                if not self.operands[operand].keeps(event):
                    used.setdefault(operand, {})[id(event)] = event
        for operand, gone in used.items():
            remove(self.partition.candidates[operand], gone)

    # all, sequence

    def join(self) -> list[Selection]:
        if not all(self.partition.candidates):
            return []
        return list(self._pick(0, (), self.arriving))

    def _pick(self, position: int, chosen: tuple[Event, ...], wanted: Event | None) -> list[Selection]:
        """All completions of what is chosen for the first operands; `wanted` must be in them, unless it is None."""
        if position == len(self.operands):
            return [tuple(enumerate(chosen))] if wanted is None else []
        strict, one = self.operands[position].definition.strict, self.operands[position].quantifier.one
        found: list[Selection] = []
        for event in self._tried(position, wanted):
            fits = self._fits(position, chosen, event)
            following = None if wanted is None or event is wanted else wanted
            r = self._pick(position + 1, (*chosen, event), following) if fits else []
            if strict and not one and not r and not self._completes(position, chosen, event, fits):
                return []
            if r and one:
                return r
            found += r
        return found

    def _completes(self, position: int, chosen: tuple[Event, ...], event: Event, fits: bool) -> bool:
        """Strict each asks this of every candidate, whether the arriving event is in the selection or not."""
        return fits and bool(self._pick(position + 1, (*chosen, event), None))

    def _tried(self, position: int, wanted: Event | None) -> Sequence[Event]:
        """The candidates of an operand that are worth trying, in its quantifier's order."""
        quantifier, strict = self.operands[position].quantifier, self.operands[position].definition.strict
        candidates: Sequence[Event] = self.partition.candidates[position]
        if strict:
            candidates = quantifier.meant(candidates)
        if wanted is not None and not strict and not self._later_has(position, wanted):
            return [wanted] if candidates and candidates[-1] is wanted else []
        return quantifier.ordered(candidates)

    def _later_has(self, position: int, wanted: Event) -> bool:
        """Can a later operand still take the arriving event? It is the newest, so it is the last of any list it is in."""
        later = self.partition.candidates[position + 1 :]
        return any(candidates and candidates[-1] is wanted for candidates in later)

    def _fits(self, position: int, chosen: tuple[Event, ...], event: Event) -> bool:
        if self.behaviour.ordered:
            if chosen and event.place <= chosen[-1].place:
                return False
        elif any(event is other for other in chosen):
            return False
        conjuncts = self.situation.conjuncts[position]
        return not conjuncts or self._holds(conjuncts, (*chosen, event))

    def _holds(self, conjuncts: tuple[Conjunct, ...], chosen: tuple[Event, ...]) -> bool:
        self.view.latest = [*chosen, *[None] * (len(self.operands) - len(chosen))]
        for conjunct in conjuncts:
            self.counter["conditions"] += 1
            self.counter["accesses"] += conjunct.cost
            if not conjunct.holds(self.view):
                return False
        return True

    # atleast, atmost, nth

    def count(self) -> list[Selection]:
        """Without `where`, totals follow from the lengths of the lists; the selection is made only where they satisfy."""
        if self.situation.operator.where is not None:
            selection = self._joined()
            return [selection] if satisfied(self.situation, total(self.situation, selection)) else []
        reached = sum(self._weight(number) for number in range(len(self.operands)))
        return [tuple(self._quantified())] if satisfied(self.situation, reached) else []

    def _weight(self, number: int) -> int:
        """What an operand adds to the total; an instance in two lists counts twice."""
        operand, count = self.operands[number].definition, len(self.partition.candidates[number])
        if not operand.counted:
            return 0
        return operand.weight * (min(1, count) if self.operands[number].quantifier.one else count)

    def _quantified(self) -> Iterator[tuple[int, Event]]:
        for number, operand in enumerate(self.operands):
            for event in operand.quantifier.meant(self.partition.candidates[number]):
                yield number, event

    def _joined(self) -> Selection:
        """The union of all selections that `pick` gives."""
        found = self._pick(0, (), None) if all(self.partition.candidates) else []
        distinct = {(number, id(event)): (number, event) for selection in found for number, event in selection}
        return tuple(sorted(distinct.values(), key=lambda candidate: (candidate[0], candidate[1].place)))

    # not, unless

    def none(self) -> list[Selection]:
        return [] if any(self.partition.candidates) else [()]

    def unless(self) -> list[Selection]:
        quantifier, strict = self.operands[0].quantifier, self.operands[0].definition.strict
        candidates: Sequence[Event] = self.partition.candidates[0]
        tried = quantifier.ordered(quantifier.meant(candidates) if strict else candidates)
        free = [event for event in tried if self._free(event)]
        if quantifier.one:
            free = free[:1]
        elif strict and len(free) < len(tried):
            free = []
        return [((0, event),) for event in free]

    def _free(self, event: Event) -> bool:
        blocking = self.partition.candidates[1]
        if self.situation.operator.where is None:
            return not blocking
        return not any(self._blocks(event, other) for other in blocking)

    def _blocks(self, event: Event, other: Event) -> bool:
        first, second = self.situation.conjuncts
        return self._holds(first, (event, other)) and self._holds(second, (event, other))


def remove(candidates: list[Event], gone: dict[int, Event]) -> None:
    """Take some candidates (by identity) out of a list that is in order of arrival."""
    if len(gone) < 8:
        for event in gone.values():
            del candidates[_index(candidates, event)]
    else:
        candidates[:] = [event for event in candidates if id(event) not in gone]


def _index(candidates: list[Event], event: Event) -> int:
    """A state that somebody has written by hand may have an event from after the clock: then places do not tell the order."""
    index = bisect_left(candidates, event.place, key=_place)
    if index < len(candidates) and candidates[index] is event:
        return index
    return next(index for index, other in enumerate(candidates) if other is event)


def _place(event: Event) -> Place:
    return event.place


def satisfied(situation: SituationProgram, total: int) -> bool:
    enough = situation.behaviour.satisfied
    return enough is not None and enough(total, situation.operator.quantity)


def total(situation: SituationProgram, selection: Selection) -> int:
    """The total weight of the selected candidates of counted operands."""
    operands = situation.operator.operands
    return sum(operands[number].weight for number, _ in selection if operands[number].counted)


def fingerprint(selection: Selection) -> bytes:
    """A selection is a set of (operand, instance): operands come in order and instances by their places."""
    data = [(number, event.place) for number, event in selection]
    return blake2b(msgspec.msgpack.encode(data), digest_size=16).digest()
