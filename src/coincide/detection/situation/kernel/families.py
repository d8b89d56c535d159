"""Situations of one form, stepped as one: each with a lifespan of its own, they differ in names, types and conditions.

A row that a situation reads is a row of its own, and a key begins with the number of the situation: so the loop sees one
situation. They are numbered in the order in which their lifespans expire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coincide.detection.base import Clock, Detector, Pending
from coincide.detection.columns.asking import Answer, Asking, Question
from coincide.detection.columns.keys import key_codes
from coincide.detection.columns.splitting import by_number, owners_of, split
from coincide.detection.columns.tables import Numbers, taken
from coincide.detection.situation.forms import questions
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.kernel import LONG_AGO, KernelState, looped
from coincide.detection.situation.kernel.relations import COUNTED, relations_of
from coincide.detection.situation.kernel.rows import Prepared
from coincide.detection.situation.kernel.state import Tables
from coincide.detection.situation.kernel.tables import Program
from coincide.detection.situation.prefilter import FittedRows, declared, fitted
from coincide.detection.situation.program import KINDS, Group, KeyReader, references
from coincide.expr.tree import Reference
from coincide.expr.vector import holds
from coincide.model.batch import EMPTY, EventBatch, merged
from coincide.model.table import EventTable
from coincide.syntax import walk

if TYPE_CHECKING:
    from coincide.detection.situation.plan import SituationPlan


class Family:
    """`plans` are those of the situations by themselves, several in each."""

    def __init__(self, plans: Sequence[SituationPlan]) -> None:
        self._plans = plans
        own = [(detector, number) for number, plan in enumerate(plans) for detector in plan.detectors]
        own.sort(key=lambda pair: (pair[0].definition.lifespan_number, pair[0].order))
        self.detectors, self._plan_of = [detector for detector, _ in own], np.array([number for _, number in own])
        self.program = Program(Group(self.detectors[:1]), self.detectors)
        self.roles = Roles(self.program)
        self._asking = Asking([_questions(detector) for detector in self.detectors])

    def fresh(self) -> Tables:
        return Tables(self.program)

    def takes(self, batch: EventBatch, clock: Clock) -> bool:
        return clock.arrival is None and all(part.table.sortable for part in batch.parts)

    def pending(self, tables: Tables) -> Pending | None:
        return tables.pending()

    def step(self, tables: Tables, batch: EventBatch, clock: Clock) -> tuple[Tables, EventBatch]:
        tables.steps += 1  # it has begun, whatever has come
        if not len(batch):
            due = tables.next_due
            idle = due is None or due >= clock.bound
            return tables, EMPTY if idle else looped(Prepared(self.program, tables, None), clock.bound)
        *before, last = self._asking.cut(batch.table)
        made = [looped(self._read(tables, part), LONG_AGO) for part in before]
        return tables, merged([*made, looped(self._read(tables, last), clock.bound)])

    def _read(self, tables: Tables, table: EventTable) -> SharedRows:
        return SharedRows(self, tables, table, self._asked(tables, table))

    def _asked(self, tables: Tables, table: EventTable) -> Answer:
        """Rows as situations read them."""

        def tried(asked: Any, rows: Numbers) -> Any:
            test, kinds = asked
            tables.conditions += len(rows)
            tables.accesses += len(rows) * references(test)
            return holds(test, FittedRows(table, rows, dict(kinds)))

        return self._asking.of(table.column("type"), tried)

    # Each by itself.

    def apart(self, tables: Tables) -> list[KernelState]:
        if not tables.steps:
            return [plan.initial() for plan in self._plans]
        relations = relations_of(tables)
        owners = owners_of(relations)
        situations, lifespans = self._own_numbers()
        for name, column, numbers in (
            *((name, "definition", lifespans) for name in ("keys", "spans")),
            *((name, "situation", situations) for name in ("cells", "records", "timers", "held")),
        ):
            relations.rows[name].columns[column] = numbers[owners[name]]
        parts = split(relations, {name: self._plan_of[some] for name, some in owners.items()}, len(self._plans))
        found = []
        for number, (plan, mine, own) in enumerate(zip(self._plans, by_number(self._plan_of, len(parts)), parts, strict=True)):
            for name, (kind, column) in COUNTED.items():
                own.notes[name] = np.zeros(len(mine), np.int64)
                own.notes[name][(situations if kind == "situations" else lifespans)[mine]] = tables.counted[mine, column]
            own.notes["work"] = own.notes["work"] * (number == 0)  # the loop does not tell whose work it is
            found.append(plan.taken_up(own))
        return found

    def _own_numbers(self) -> tuple[Numbers, Numbers]:
        """Those that situations and lifespans have in their plans."""
        numbers = {
            id(situation.detector): (situation.number, situation.lifespan)
            for plan in self._plans
            for situation in plan.group.situations
        }
        situations, lifespans = np.array([numbers[id(detector)] for detector in self.detectors], np.int64).T
        return situations, lifespans


class Roles:
    """What bits of answers mean."""

    def __init__(self, program: Program) -> None:
        definition = program.detectors[0].definition
        lifespan, operands = definition.lifespan, definition.operator.operands
        sizes = len(lifespan.initiators), len(lifespan.terminators), len(operands)
        self.starts = np.concatenate(([0], np.cumsum(sizes))).tolist()
        self.masks = [(1 << size) - 1 for size in (*sizes, len(operands))]
        if not any(operand.override is not None for operand in operands):
            self.masks[3] = 0
        asked = [program.events.index(event) for event, _ in questions(definition)]
        self.types = np.array(asked, np.int64)
        self.of_operands = np.isin(np.arange(len(program.events)), [program.events.index(o.event) for o in operands])

    def of(self, bits: Numbers, role: int) -> Numbers:
        found: Numbers = (bits >> self.starts[role]) & self.masks[role]
        return found

    def type_of(self, bits: Numbers) -> Numbers:
        """By the lowest bit: all are of one type."""
        return self.types[np.log2((bits & -bits).astype(np.float64)).astype(np.int64)]


class SharedRows(Prepared):
    """Rows, each as often as situations read it."""

    def __init__(self, family: Family, tables: Tables, table: EventTable, answer: Answer) -> None:
        group, roles = family.program.group, family.roles
        self._roles = roles
        (situation,) = group.situations
        self._declared = declared(group)
        opens = roles.of(answer.bits, 0) > 0
        codes, keys = answer.keyed(*self._coded(situation.global_key, table), opens, tables.keys.known)
        read = np.flatnonzero(codes >= 0)
        self._bits, self._sources = answer.bits[read], answer.rows[read]
        self._keys = tables.key_rows(0, keys)[codes[read]]
        super().__init__(family.program, tables, table.narrowed(self._sources, ()) if len(read) else None)

    def _coded(self, reader: KeyReader, table: EventTable) -> tuple[Any, Sequence[Any]]:
        if not reader.size:
            return np.zeros(len(table), np.int32), [()]
        event, names = next(iter(reader.attributes.items()))
        codes, keys = key_codes([fitted(table.column(name), self._declared[event][name]) for name in names])
        return codes, [*keys]

    def _types(self) -> Any:
        return self._roles.type_of(self._bits)

    def _fill(self) -> None:
        (lifespan,), (situation,), roles = self.of_lifespan, self.of_situation, self._roles
        lifespan[:, at.ROLE.key] = self._keys
        lifespan[:, at.ROLE.initiators], lifespan[:, at.ROLE.terminators] = roles.of(self._bits, 0), roles.of(self._bits, 1)
        situation[:, at.ENTRY.entered], situation[:, at.ENTRY.overridden] = roles.of(self._bits, 2), roles.of(self._bits, 3)
        situation[:, at.ENTRY.cell] = np.where(roles.of_operands[self.types], self._cells_of_rows(), -1)

    def _cells_of_rows(self) -> Any:
        (situation,) = self.group.situations
        if not situation.local_key.size:
            return self.state.keys.rows[self._keys, at.KEY.parts]
        codes, keys = self._coded(situation.local_key, self.new)
        there = np.flatnonzero((codes >= 0) & self._roles.of_operands[self.types])
        used, index = np.unique(self._keys[there] * len(keys) + codes[there], return_inverse=True)
        found = np.full(len(self.new), -1, np.int64)
        rows = self.state.cell_rows(0, [(pair // len(keys), keys[pair % len(keys)]) for pair in used.tolist()])
        found[there] = np.array(rows, np.int64)[index]
        return found

    def in_order(self, made: Any, selected: Any) -> tuple[Any, Any]:
        """An event leads to detections in the order of situations, which may not be that of their lifespans."""
        orders = self.program.told.orders
        if (orders[1:] > orders[:-1]).all() or not len(self._sources):
            return made, selected
        by_event = made[:, at.MADE.by_timer] == at.BY_EVENT
        rows = self._sources[np.maximum(made[:, at.MADE.cause_ref] - self.first, 0)]
        source = np.where(by_event, rows, -1 - np.arange(len(made)))
        cause = np.cumsum(np.diff(source, prepend=source[:1]) != 0)
        order = np.lexsort((orders[self.whose(made)], cause))
        starts = made[:, at.MADE.chosen]
        sizes = np.diff(np.append(starts, len(selected)))[order]
        selected, made = selected[taken(starts[order], sizes)], made[order]
        made[:, at.MADE.chosen] = np.cumsum(sizes) - sizes
        return made, selected


def _questions(detector: Detector) -> list[Question]:
    """Attributes are of the types that are declared for the event."""
    definition = detector.definition
    types = {event: dict(attributes) for event, attributes in definition.types}
    found: list[Question] = []
    for event, test in questions(definition):
        if test is None:
            found.append((event, None))
            continue
        names = sorted({node.name for node in walk(test) if isinstance(node, Reference)} & types[event].keys())
        found.append((event, (test, tuple((name, KINDS[types[event][name]]) for name in names))))
    return found
