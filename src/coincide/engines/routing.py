"""Which events of a batch concern which plans: where there are many rules, only those are stepped that an event concerns, that
a detection feeds or a timer of whose is due; and each is shown its own events only.

A plan says what its events must have (`relevant`): their types, or a text of another attribute that its rules differ in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from coincide.detection.base import DetectorPlan
from coincide.expr.guards import Guarded, alternatives, texts_of, value_of
from coincide.expr.tree import And, Expr, In, Literal, Reference
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import ENVELOPE

if TYPE_CHECKING:
    from coincide.model.column import Column, Rows

MANY = 4
"""From so many plans on, looking for a plan's rows costs less than having it pass over those of others."""
FEW = 32
"""So few events are looked at even for fewer plans."""
HIDDEN = ENVELOPE - {"type"}
"""What is not looked up."""
SHARE = 4
"""A plan that reads more than one row in so many gets them all."""


class Router:
    """Plans by what their events must have."""

    def __init__(self, plans: Sequence[DetectorPlan]) -> None:
        self.plans = plans

    @cached_property
    def _guarded(self) -> tuple[dict[str, dict[str, list[int]]], list[int]]:
        """The numbers of plans by attribute and text, and of those of which nothing is known. A plan may stand under several
        attributes: EQL's categories are types or in an attribute."""
        tests = [_test(plan) for plan in self.plans]
        guarded = Guarded(tests, HIDDEN)
        others = []
        for number in guarded.others:
            test = tests[number]
            found = {} if test is None else alternatives(test)
            if not found or not HIDDEN.isdisjoint(found):
                others.append(number)
                continue
            for name, texts in found.items():
                for text in texts:
                    guarded.by_text.setdefault(name, {}).setdefault(text, []).append(number)
        return guarded.by_text, others

    @property
    def by_text(self) -> Mapping[str, Mapping[str, list[int]]]:
        return self._guarded[0]

    @property
    def others(self) -> list[int]:
        return self._guarded[1]

    def is_worth_it(self, batch: EventBatch) -> bool:
        few = batch.has_events and len(batch) <= FEW
        return len(self.plans) >= MANY or (few and len(self.plans) > 1)


def _test(plan: DetectorPlan) -> Expr | None:
    """What an event that concerns the plan satisfies. None: all that comes may matter, if only by its time."""
    types = plan.inputs.external
    if plan.relevant is None and (types is None or plan.timed):
        return None
    if types is None:
        return None if plan.counts_tests else plan.relevant
    of_types = In(Reference("type"), tuple(map(Literal, sorted(types))))
    return of_types if plan.relevant is None or plan.counts_tests else And((of_types, plan.relevant))


class Routes:
    """One batch on its way to the plans."""

    def __init__(self, batch: EventBatch, router: Router) -> None:
        self._batch = batch
        self._router = router
        self._is_worth_it = router.is_worth_it(batch)
        self._narrows = len(router.plans) >= MANY and len(batch) > 1
        self._has_events = batch.has_events or not batch.has_table  # once: a plan may make events of a table's rows meanwhile

    @cached_property
    def latest(self) -> int | None:
        """The hi of its last event, where a plan may not be shown it."""
        if not self._narrows:
            return None
        return max(event.hi for event in self._batch.events) if self._has_events else int(self._batch.table.hi.max())

    def concerned(self) -> set[int] | None:
        """The numbers of plans that some event concerns; None: maybe all."""
        return {*self._router.others, *self._found} if self._is_worth_it else None

    def to(self, number: int) -> EventBatch:
        """The events that concern a plan, others among them where that costs less."""
        plan = self._router.plans[number]
        if not self._narrows or plan.inputs.external is None or plan.relevant is None:
            return self._batch
        found = self._found.get(number, [])
        if self._has_events:
            return EventBatch([self._batch.events[row] for row in found]) if found else EMPTY
        return self._rows(plan, found) if self._batch.table.sortable and self._batch.table.hidden is None else self._batch

    def _rows(self, plan: DetectorPlan, found: Sequence[Rows]) -> EventBatch:
        import numpy as np

        size = sum(map(len, found))
        if size * SHARE > len(self._batch):
            return self._batch
        if not size:
            return EMPTY
        rows = found[0] if len(found) == 1 else np.sort(np.concatenate(found))
        return EventBatch(table=self._batch.table.narrowed(rows, ("type", *(plan.columns or ()))))

    @cached_property
    def _found(self) -> dict[int, list[Any]]:
        """By plan: the numbers of its events in order, or of a table the rows of each text."""
        found: dict[int, list[Any]] = {}
        for name, numbers in self._router.by_text.items():
            for text, rows in self._texts(name):
                for number in numbers.get(text, ()):
                    found.setdefault(number, []).append(rows)
        return found

    def _texts(self, name: str) -> Iterable[tuple[str, Any]]:
        if not self._has_events:
            return self._texts_of_rows(self._batch.table.column(name))
        return [(text, row) for row, event in enumerate(self._batch.events) for text in texts_of(value_of(event, name))]

    def _texts_of_rows(self, column: Column) -> Iterator[tuple[str, Any]]:
        yield from column.by_text().items()
        for row, value in enumerate(() if column.compounds is None else column.compounds):
            yield from ((text, [row]) for text in texts_of(value))


class Dues:
    """When plans have something to do of themselves."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, int]] = []
        self._of: dict[int, int] = {}

    def note(self, number: int, due: int | None) -> None:
        if due is None:
            self._of.pop(number, None)
        elif self._of.get(number) != due:
            self._of[number] = due
            heappush(self._queue, (due, number))

    def before(self, bound: int) -> list[int]:
        """The plans that are due before an instant: of these nothing is known then."""
        found = []
        while self._queue and self._queue[0][0] < bound:
            due, number = heappop(self._queue)
            if self._of.get(number) == due:
                del self._of[number]
                found.append(number)
        return found
