"""Finds the smallest changes of the events that make a rule detect something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, islice

from coincide.misses.edits import Add, Change, Edit, Edits, Move, Remove, with_attributes
from coincide.misses.proposals import Hints, Proposals, value_of
from coincide.misses.trial import Spent, Trial
from coincide.model.event import HEARTBEAT
from coincide.model.numbers import is_number
from coincide.model.stamp import MILLISECOND

PER_KIND = 4
"""Of each kind of change, so many that work are looked at more closely."""

WITNESSES = 400
"""Chains of events that are tried where no single change works."""

ADOPTED = 4
"""Events that are there, and could be the one that lacks."""

EQUAL = 1e-9
"""Numbers that differ by less, relatively, are told as one."""


class Search:
    """Everything that works, made as small as it gets. `cut`: there were no tries left for more."""

    def __init__(self, trial: Trial, hints: Hints) -> None:
        self.trial = trial
        self.proposals = Proposals(trial, hints)
        self.cut = False
        self._found: list[Edits] = []

    def run(self) -> list[Edits]:
        steps: tuple[Callable[[], object], ...] = (self._single, self._several, self._adopt)
        for step in steps:
            self._within_tries(step)
        self.trial.tries += self.trial.tries // 2  # what was found is still made small
        found = list(self._found)
        self._found = []
        for edits in found:
            self._within_tries(lambda edits=edits: self._found.append(self._fewest(self._small(edits))))  # type: ignore[misc]
        return self._found

    def _within_tries(self, step: Callable[[], object]) -> None:
        try:
            step()
        except Spent:
            self.cut = True

    def works(self, edits: Edits) -> bool:
        return self.trial.detection(edits) is not None

    # Finding.

    def _single(self) -> None:
        p = self.proposals
        for kind in (p.removals(), p.changes(), p.from_other_keys()):
            self._found += islice((edits for edits in islice(kind, self._share) if self.works(edits)), PER_KIND)
        for groups in (p.waits(), p.moves(), p.additions()):
            firsts = (next((edits for edits in group if self.works(edits)), None) for group in groups)
            self._found += islice((edits for edits in firsts if edits is not None), PER_KIND)

    @property
    def _share(self) -> int:
        return self.trial.tries // 6

    def _several(self) -> None:
        """Only where no single change works: all that a rule waits for, among the events and instead of them."""
        if self._found:
            return
        instead = tuple(Remove(event) for event in self.trial.near)
        for base in ((), instead):
            for events in islice(self.proposals.witnesses(), WITNESSES):
                edits = (*base, *map(Add, events))
                if self.works(edits):
                    self._found.append(self._fewest(edits))
                    break
            if self._found:
                return

    def _adopt(self) -> None:
        """For an event that lacks, one that is there may be meant."""
        for edits in list(self._found):
            for added in (edit for edit in edits if isinstance(edit, Add) and edit.event.type != HEARTBEAT):
                others = tuple(edit for edit in edits if edit is not added)
                self._found += [found for found in map(lambda c: self._adopted(others, c), self._like(added)) if found]  # noqa: C417

    def _like(self, added: Add) -> Iterator[Edits]:
        """How events of its type would become what lacks."""
        event = added.event
        there = [other for other in chain(self.trial.near, self.trial.others) if other.type == event.type]
        for other in sorted(there, key=lambda other: abs(other.hi - event.hi))[:ADOPTED]:
            wanted = {**event.attributes, **({} if event.source is None else {"source": event.source})}
            yield (Move(other, event.hi - other.hi), *self.proposals.differences(other, wanted))

    def _adopted(self, others: Edits, changes: Edits) -> Edits | None:
        touched = {id(edit.event) for edit in others}
        if id(changes[0].event) in touched or not self.works((*others, *changes)):
            return None
        return self._fewest((*others, *changes))

    # Making small.

    def _fewest(self, edits: Edits) -> Edits:
        """None of these can be left out. Halves are tried first, then parts of them."""
        size = len(edits) // 2
        while size >= 1:
            start = 0
            while start < len(edits):
                rest = (*edits[:start], *edits[start + size :])
                if rest and self.works(rest):
                    edits = rest
                else:
                    start += size
            size //= 2
        return edits

    def _small(self, edits: Edits) -> Edits:
        """Each of them as small as it gets."""
        for n in range(len(edits)):

            def works(edit: Edit, n: int = n) -> bool:
                return self.works((*edits[:n], edit, *edits[n + 1 :]))  # noqa: B023

            edits = (*edits[:n], self._smaller(edits[n], works), *edits[n + 1 :])
        return edits

    def _smaller(self, edit: Edit, works: Callable[[Edit], bool]) -> Edit:
        if isinstance(edit, Move):
            return Move(edit.event, self._least(edit.by, lambda by: works(Move(edit.event, by))))
        if isinstance(edit, Change):
            return smaller_change(edit, works)
        if isinstance(edit, Add) and edit.event.type == HEARTBEAT:
            return self._soonest(edit, works)
        if isinstance(edit, Add):
            return self._placed(self._plainer(edit, works), works)
        return edit

    def _soonest(self, beat: Add, works: Callable[[Edit], bool]) -> Add:
        """Time goes on no longer than it has to."""
        wait = beat.event.hi - self.trial.end
        return shifted(beat, self._least(wait, lambda by: works(shifted(beat, by - wait))) - wait) if wait > 0 else beat

    @property
    def _grain(self) -> int:
        """Times are told as finely as those of the events."""
        whole = all(event.hi % MILLISECOND == 0 == event.lo % MILLISECOND for event in self.trial.near)
        return MILLISECOND if whole else 1

    def _least(self, good: int, works: Callable[[int], bool]) -> int:
        """The least shift in this direction, from nothing, which does not work, to one that does."""
        grain, sign = self._grain, 1 if good > 0 else -1
        bad, steps = 0, abs(good) // grain
        while steps - bad > 1:
            middle = (bad + steps) // 2
            bad, steps = (bad, middle) if works(sign * middle * grain) else (middle, steps)
        least = sign * steps * grain
        return least if abs(least) < abs(good) and works(least) else good

    def _plainer(self, added: Add, works: Callable[[Edit], bool]) -> Add:
        """Without attributes that make no difference."""
        for name in list(added.event.attributes):
            others = {other: value for other, value in added.event.attributes.items() if other != name}
            without = Add(with_attributes(added.event, others))
            added = without if works(without) else added
        return added

    def _placed(self, added: Add, works: Callable[[Edit], bool]) -> Add:
        """With the first and the last time at which it would do."""
        first, last = self.trial.span
        reach = self.trial.reach or max(last - first, MILLISECOND)

        def works_at(by: int) -> bool:
            return works(shifted(added, by))

        earliest, latest = (self._farthest(sign, reach, works_at) for sign in (-1, 1))
        hi = added.event.hi
        return replace(
            added, earliest=None if earliest is None else hi + earliest, latest=None if latest is None else hi + latest
        )

    def _farthest(self, sign: int, reach: int, works: Callable[[int], bool]) -> int | None:
        """The largest shift in a direction that still works, by doubling it and halving what is between; None: there is no end
        to it as far as one can see."""
        good, step = 0, self._grain
        while works(sign * step):
            good = step
            if step > 2 * reach:
                return None
            step *= 2
        bad = step
        while bad - good > self._grain:
            middle = (good + bad) // 2 // self._grain * self._grain
            good, bad = (middle, bad) if works(sign * middle) else (good, middle)
        return sign * good


def shifted(added: Add, by: int) -> Add:
    return Add(Move(added.event, by).changed(added.event))


def smaller_change(edit: Change, works: Callable[[Edit], bool]) -> Change:
    """Of numbers, the one nearest to the old that works, and the bound that decides."""
    old, new = value_of(edit.event, edit.attribute), edit.value
    if not (is_number(old) and is_number(new)):
        return edit

    def with_value(number: float) -> Change:
        return Change(edit.event, edit.attribute, number)

    bad, good = float(old), float(new)
    while abs(good - bad) > EQUAL * max(abs(good), abs(bad)):
        middle = (good + bad) / 2
        if middle in (good, bad):
            break
        bad, good = (bad, middle) if works(with_value(middle)) else (middle, good)
    bound, away = roundest(bad, good), 1.0 if new > old else -1.0
    if works(with_value(bound)):
        several = works(with_value(bound + away))  # or only this one number will do
        return Change(edit.event, edit.attribute, bound, bound if several else None, several)
    step = 1.0 if good > bound else -1.0
    nice = next((n for n in (bound + step, float(new)) if works(with_value(n))), good)
    return Change(edit.event, edit.attribute, nice, bound, False)


def roundest(one: float, other: float) -> float:
    """The number with the fewest digits between two, themselves among them."""
    low, high = min(one, other), max(one, other)
    for digits in range(-15, 16):
        number = round(high, digits)
        if low <= number <= high:
            return number + 0.0
        number = round(low, digits)
        if low <= number <= high:
            return number + 0.0
    return high
