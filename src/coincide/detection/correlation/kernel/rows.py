"""Messages as columns: which rows of a batch a source matches on its own, and what is kept of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.correlation.kernel.trees import SPECIAL, Aggregated, Computed, Looked, Mapped, Order, Special, Trees
from coincide.detection.correlation.values import matched
from coincide.detection.correlation.view import ENVELOPE
from coincide.expr.vector import Microseconds, Rows, Spaces, evaluate_joined, holds_joined, milliseconds_of, spaces_of
from coincide.lang.cdl.definition import TimeEvent
from coincide.model.column import Column, column_of, concatenated
from coincide.model.event import Value
from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NEVER = np.int64(2**62)
"""When a message expires that has no maximum age."""


def typed(column: Column, kind: str, cut: bool) -> Column:
    """The values as those of a declared type, null where they are none; `cut`: computed ones lose their fractions."""
    if kind == "string":
        return Column(column.length, codes=column.codes, texts=column.texts)
    if kind == "boolean":
        return Column(column.length, flags=column.flags)
    numbers = column.numbers
    if kind == "time_t" and column.codes is not None:
        instants = [matched(text, kind) for text in column.texts]
        parsed = np.array([*(i if isinstance(i, float) else np.nan for i in instants), np.nan])[column.codes]
        numbers = parsed if numbers is None else np.where(np.isnan(numbers), parsed, numbers)
    if kind == "int" and numbers is not None:
        whole = np.trunc(numbers)
        numbers = whole if cut else np.where(numbers == whole, numbers, np.nan)
    return Column(column.length, numbers, rests=column.rests)


def compacted(column: Column) -> Column:
    """Without texts that no row has, once these are most of them."""
    if column.codes is None or len(column.texts) < 2 * column.length + 64:
        return column
    used, codes = np.unique(column.codes, return_inverse=True)
    if len(used) and used[0] < 0:
        used, codes = used[1:], codes - 1
    return replace(column, codes=codes.astype(np.int32), texts=tuple(column.texts[code] for code in used.tolist()))


class Texts(tuple[str, ...]):
    """Distinct texts that know their numbers."""

    numbers: dict[str, int]


def numbered_texts(texts: tuple[str, ...]) -> Texts:
    """Numbers are handed on to those that go on from these (`appended`)."""
    if isinstance(texts, Texts) and len(texts.numbers) == len(texts):
        return texts
    found = Texts(texts)
    found.numbers = {text: number for number, text in enumerate(texts)}
    return found


def appended(old: Column | None, new: Column) -> Column:
    """One after the other; of texts that are there nothing but their number is looked at."""
    if old is None or not len(old):
        return new
    if old.codes is None or (new.codes is None and len(new)):
        return concatenated([old, new]) if len(new) else old
    before = numbered_texts(old.texts)
    known, more = before.numbers, [text for text in new.texts if text not in before.numbers]
    texts = Texts((*before, *more)) if more else before
    known.update((text, number) for number, text in enumerate(more, len(before)))
    texts.numbers = known
    numbers = np.array([*(known[text] for text in new.texts), -1], np.int32)
    codes = old.codes if new.codes is None else np.concatenate((old.codes, numbers[new.codes]))
    return Column(len(codes), codes=codes, texts=texts)


@dataclass(eq=False)
class Messages:
    """Messages of one source: rows of a table, with the declared attributes as their types."""

    table: EventTable
    rows: Numbers
    columns: dict[str, Column] = field(default_factory=dict)
    _envelope: dict[str, Column] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Column | None:
        if name in self.columns or name not in ENVELOPE:
            return self.columns.get(name)
        if name not in self._envelope:
            is_time = name == "time"
            times = Column(len(self), milliseconds_of(self.table.hi[self.rows])) if is_time else None
            self._envelope[name] = times or self.table.column(name).take(self.rows)
        return self._envelope[name]

    def take(self, index: Any) -> Messages:
        return Messages(self.table, self.rows[index], {name: c.take(index) for name, c in self.columns.items()})


class Gathered:
    """Messages of a source picked for combinations: the rows that expressions read."""

    def __init__(self, messages: Messages, at: Numbers) -> None:
        self.messages = messages
        self.at = at
        self._columns: dict[str, Column | None] = {}

    @property
    def length(self) -> int:
        return len(self.at)

    @property
    def lo(self) -> Microseconds:
        return self.messages.table.lo[self.messages.rows[self.at]]

    @property
    def hi(self) -> Microseconds:
        return self.messages.table.hi[self.messages.rows[self.at]]

    @property
    def space(self) -> Spaces | None:
        if "space" not in self.messages.table.fields:
            return None
        spaces = self.messages.table.spaces()
        return spaces_of([spaces[row] for row in self.messages.rows[self.at].tolist()])

    def column(self, name: str) -> Column | None:
        if name not in self._columns:
            column = self.messages.column(name)
            self._columns[name] = None if column is None else column.take(self.at)
        return self._columns[name]


class Scope:
    """What expressions about combinations read: each mapped source's messages, and specials, each worked out once."""

    def __init__(self, trees: Trees, sources: dict[int, Gathered], length: int, known: dict[int, Column]) -> None:
        self.trees = trees
        self.sources = sources
        self.length = length
        self.known = known
        self.lo, self.hi, self.space = np.zeros(0, np.int64), np.zeros(0, np.int64), None
        self._aliases: dict[str | None, Rows] = {str(s): rows for s, rows in sources.items()}
        self._aliases[SPECIAL] = self

    def holds(self, tree: Any) -> Mask:
        return holds_joined(tree, self._aliases, self.length)

    def evaluate(self, tree: Any) -> Column:
        return evaluate_joined(tree, self._aliases, self.length)

    def column(self, name: str) -> Column:
        """A special; what needs a source that is not mapped yet is not kept."""
        number = int(name)
        if number in self.known:
            return self.known[number]
        special = self.trees.specials[number]
        column = self._worked_out(special)
        if special.sources <= self.sources.keys():
            self.known[number] = column
        return column

    def _worked_out(self, special: Special) -> Column:
        if isinstance(special, Computed):
            return typed(self.evaluate(special.tree), special.kind, cut=True)
        if isinstance(special, Mapped):
            return Column(self.length, flags=np.full(self.length, special.source in self.sources, np.int8))
        if isinstance(special, Looked):
            return self._looked_up(special)
        if isinstance(special, Aggregated):
            return Column(self.length)  # of collections that are not filled
        return self._order(special)

    def _order(self, special: Order) -> Column:
        if not special.sources <= self.sources.keys():
            return Column(self.length)
        found = np.ones(self.length, np.bool_)
        events = [self.sources[s] for s in special.events]
        for a, b in itertools.pairwise(events):
            found &= a.hi < b.lo if special.name == "before" else ~((a.hi < b.lo) | (b.hi < a.lo))
        return Column(self.length, flags=found.astype(np.int8))

    def _looked_up(self, special: Looked) -> Column:
        columns, keys = self.evaluate(special.column), self.evaluate(special.key)
        found: dict[tuple[Value, Value], Value] = {}
        pairs = [(columns.value(row), keys.value(row)) for row in range(self.length)]
        for column, key in {(type(k), c, k): (c, k) for c, k in pairs}.values():
            there = isinstance(column, str) and key is not None
            found[column, (type(key), key)] = special.provider.find(key, column) if there else None  # type: ignore[index,arg-type]
        return column_of([found[c, (type(k), k)] for c, k in pairs])  # type: ignore[index]


def match(trees: Trees, number: int, table: EventTable, now: Numbers, within: int | None) -> Messages:
    """The rows that a source matches on its own (4.2): class, access, attributes with look-ups, filters, age."""
    rows = np.flatnonzero(_admitted(trees, number, table))
    if within is not None:
        rows = rows[now[rows] - table.lo[rows] <= within]
    messages = Messages(table, rows)
    for attribute in trees.declared[number]:
        if attribute.lookup is not None:
            column: Column | None = _scope(trees, number, messages).evaluate(attribute.lookup)
        elif attribute.name in ENVELOPE:
            column = messages.column(attribute.name)
        else:
            column = table.column(attribute.name).take(messages.rows) if attribute.name in table.attributes else None
        messages.columns[attribute.name] = typed(column or Column(len(messages)), attribute.kind, cut=False)
        if not attribute.optional and (missing := messages.columns[attribute.name].is_null).any():
            messages = messages.take(np.flatnonzero(~missing))
    for tree in trees.filters[number]:
        messages = messages.take(np.flatnonzero(_scope(trees, number, messages).holds(tree)))
    return messages


def _scope(trees: Trees, number: int, messages: Messages) -> Scope:
    return Scope(trees, {number: Gathered(messages, np.arange(len(messages)))}, len(messages), {})


def _admitted(trees: Trees, number: int, table: EventTable) -> Mask:
    node = trees.sources[number]
    if isinstance(node, TimeEvent):
        return np.zeros(len(table), np.bool_)
    external = table.generation == 0
    found = np.ones(len(table), np.bool_) if node.message_class == "*" else _is(table.column("type"), node.message_class)
    if node.message_class == "*" or node.access == "external":
        found = found & external
    elif node.access == "internal":
        found = found & ~external
    if node.access not in ("any", "external", "internal"):
        found = found & _is(table.column("source"), node.access)
    return found


def _is(column: Column, text: str) -> Mask:
    if column.codes is None or text not in column.texts:
        return np.zeros(column.length, np.bool_)
    return np.asarray(column.codes == column.texts.index(text))


def expiries(messages: Messages, within: int | None) -> Numbers:
    """After these instants they are too old."""
    lo = messages.table.lo[messages.rows]
    return np.full(len(lo), NEVER) if within is None else lo + within


def clocks(table: EventTable, rows: slice = slice(None)) -> Numbers:
    """The clock at rows: that of their roots, or their own ends where these are later."""
    places = table.places
    return table.hi[rows] if places is None else np.maximum(places[rows, 0], table.hi[rows])
