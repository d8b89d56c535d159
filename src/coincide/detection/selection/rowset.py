"""Which rows of a table match a rule: sets of rows, small as a rule (sections 3 to 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from coincide.adapters.mapping import CATEGORY
from coincide.detection.columns.rowsets import NO_ROWS, Rows, in_any, in_both
from coincide.detection.selection.distinct import Distinct
from coincide.detection.selection.fieldtests import FieldTests
from coincide.detection.selection.matching import NO_KEYWORDS, OWN, is_untyped, of_type
from coincide.detection.selection.program import Program
from coincide.detection.selection.tests import TIMESTAMP, compared, members
from coincide.lang.sigma.definition import Absent, All, Exists, Formula, Item, Looked, Not, SameAs, Test, items_of
from coincide.model.column import Column
from coincide.model.compound import Single
from coincide.model.event import OWN_TYPE
from coincide.model.table import EventTable


@dataclass(frozen=True)
class Profile:
    """Is a row a detection, of which type (its own, although it would get it anyway?), and what does it say of its log source?"""

    is_detection: bool
    kind: str
    own: tuple[tuple[Single, ...], ...]
    categories: tuple[Single, ...]
    own_type: bool


@dataclass(frozen=True, eq=False)
class Node:
    """A formula whose items are numbered: `what` is item, all, any or not; members of `all` with the cheapest tests first."""

    what: str
    members: tuple[Node, ...] = ()
    item: int = -1


class Rules:
    """The tests of all rules, by field; formulas over numbered items."""

    def __init__(self, program: Program) -> None:
        self.items: dict[Item, int] = {}
        self.formulas = [self._node(rule.rule.condition) for rule in program.simple]
        self.looked: dict[Looked, int] = {}
        self.looked_of = [self.looked.setdefault(rule.rule.looked, len(self.looked)) for rule in program.simple]
        self.where = [None if looked.where is None else self._node(looked.where) for looked in self.looked]
        self.by_number = list(self.items)
        tests: dict[str | None, dict[Test, None]] = {}
        for item in self.by_number:
            plain = (t for value in item.values for t in value if not isinstance(t, (Absent, Exists, SameAs)))
            tests.setdefault(item.attribute, {}).update(dict.fromkeys(plain))
        self.tests = {name: FieldTests(own) for name, own in tests.items() if own}

    def _node(self, formula: Formula) -> Node:
        if isinstance(formula, Item):
            return Node("item", item=self.items.setdefault(formula, len(self.items)))
        if isinstance(formula, Not):
            return Node("not", (self._node(formula.member),))
        nodes = [self._node(member) for member in formula.members]
        if isinstance(formula, All):
            costs = [_cost(member) for member in formula.members]
            return Node("all", tuple(nodes[n] for n in sorted(range(len(nodes)), key=lambda n: costs[n])))
        return Node("any", tuple(nodes))


def _cost(formula: Formula) -> int:
    """Tests that few rows pass come first: what is denied, and what asks for nothing, is passed by many."""
    if isinstance(formula, Not):
        return 3
    many = (Absent, Exists)
    if any(item.negated or any(isinstance(t, many) for value in item.values for t in value) for item in items_of(formula)):
        return 2
    return 0 if isinstance(formula, Item) else 1


class Matches:
    """The rows of one table that match."""

    def __init__(self, rules: Rules, table: EventTable) -> None:
        self.rules = rules
        self.table = table
        self._distinct: dict[str, Distinct] = {}
        self._hits: dict[str, dict[Test, Rows]] = {}
        self._of_item: dict[int, Rows] = {}
        self._looked = [self._looked_at(looked, where) for looked, where in zip(rules.looked, rules.where, strict=True)]

    def of_rule(self, number: int) -> Rows:
        looked = self._looked[self.rules.looked_of[number]]
        return self._rows(self.rules.formulas[number], looked) if len(looked) else NO_ROWS

    # Formulas.

    def _rows(self, node: Node, among: Rows) -> Rows:
        if node.what == "item":
            return in_both(self._item(node.item), among)
        if node.what == "not":
            inner = self._rows(node.members[0], among)
            return np.setdiff1d(among, inner, assume_unique=True) if len(inner) else among
        if node.what == "all":
            for member in node.members:
                among = self._rows(member, among)
                if not len(among):
                    break
            return among
        pieces = [rows for member in node.members if len(rows := self._rows(member, among))]
        return in_any(pieces)

    def _item(self, number: int) -> Rows:
        rows = self._of_item.get(number)
        if rows is None:
            rows = self._of_item[number] = self._item_rows(self.rules.by_number[number])
        return rows

    def _item_rows(self, item: Item) -> Rows:
        found: Rows | None = None
        if item.every:
            for value in item.values:
                rows = self._tested(item.attribute, value)
                found = rows if found is None else in_both(rows, found)
        else:
            found = self._tested(item.attribute, [test for value in item.values for test in value])
        assert found is not None
        return np.setdiff1d(np.arange(len(self.table)), found, assume_unique=True) if item.negated else found

    def _tested(self, attribute: str | None, tests: Sequence[Test]) -> Rows:
        """Rows for which one of the tests holds."""
        if attribute is None:
            return in_any([rows for name in self._keyword_fields() if len(rows := self._by_values(name, tests, keyword=True))])
        pieces = []
        for test in tests:
            if isinstance(test, Absent) or (isinstance(test, Exists) and not test.value):
                pieces.append(np.setdiff1d(np.arange(len(self.table)), self.distinct(attribute).present, assume_unique=True))
            elif isinstance(test, Exists):
                pieces.append(self.distinct(attribute).present)
            elif isinstance(test, SameAs):
                pieces.append(self._same(attribute, test))
        plain = self._by_values(attribute, tests)
        return in_any([rows for rows in (*pieces, plain) if len(rows)])

    def _keyword_fields(self) -> list[str]:
        return [name for name in self.table.attributes if name not in NO_KEYWORDS]

    def _by_values(self, name: str, tests: Sequence[Test], keyword: bool = False) -> Rows:
        hits = self._hits_of(name, keyword)
        codes = [some for test in tests if (some := hits.get(test)) is not None]
        return self.distinct(name).rows_of(in_any(codes)) if codes else NO_ROWS

    def _hits_of(self, name: str, keyword: bool) -> dict[Test, Rows]:
        label = f"*{name}" if keyword else f".{name}"
        if label not in self._hits:
            tests = self.rules.tests.get(None if keyword else name)
            self._hits[label] = {} if tests is None else tests.hits(self.distinct(name).values)
        return self._hits[label]

    def distinct(self, name: str) -> Distinct:
        if name not in self._distinct:
            self._distinct[name] = Distinct(self._column(name))
        return self._distinct[name]

    def _column(self, name: str) -> Column:
        return self.table.column("time" if name == TIMESTAMP else name)

    def _same(self, attribute: str, test: SameAs) -> Rows:
        left, right = self._column(attribute), self._column(test.attribute)
        rows = np.intersect1d(self.distinct(attribute).present, self.distinct(test.attribute).present, assume_unique=True)
        pairs = ((row, members(left.value(row)), members(right.value(row))) for row in rows.tolist())
        holding = [row for row, a, b in pairs if any(compared(x, y, test.how, test.cased) for y in b for x in a)]
        return np.array(holding, np.int64)

    # Log sources.

    def _looked_at(self, looked: Looked, where: Node | None) -> Rows:
        codes, profiles = self._profiles
        wanted = np.array([_looks(looked, profile) for profile in profiles], np.bool_)
        rows = np.flatnonzero(wanted[codes])
        return rows if where is None or not len(rows) else self._rows(where, rows)

    @cached_property
    def _profiles(self) -> tuple[Rows, list[Profile]]:
        """Rows that are alike in all that log sources are about."""
        columns = [self.table.column(name) for name in ("type", *OWN, CATEGORY, OWN_TYPE)]
        codes = [np.asarray(self.table.generation > 0, np.int64), *(_alike(column) for column in columns)]
        kinds = _numbered(codes)
        first = np.zeros(int(kinds.max(initial=-1)) + 1, np.int64)
        first[kinds[::-1]] = np.arange(len(kinds))[::-1]
        made = []
        for row in first.tolist():
            kind, *own, categories, marked = (members(column.value(row)) for column in columns)
            made.append(Profile(bool(codes[0][row]), str(kind[0]) if kind else "", tuple(own), categories, bool(marked)))
        return kinds, made


def _numbered(codes: Sequence[Rows]) -> Rows:
    """A number for each row, equal where all codes (from -1 on) are."""
    found: Rows = np.zeros(len(codes[0]), np.int64)
    for code in codes:
        if len(code) and code.min() != code.max():
            mixed = found * (code.max() + 2) + code + 1
            found = pa.array(mixed).dictionary_encode().indices.to_numpy().astype(np.int64)
    return found


def _alike(column: Column) -> Rows:
    """A number for each row, equal for equal values."""
    if column.codes is not None and column.numbers is None and column.flags is None and column.compounds is None:
        return column.codes.astype(np.int64)
    if column.codes is None and column.numbers is None and column.flags is None and column.compounds is None:
        return np.full(len(column), -1, np.int64)
    known: dict[object, int] = {}
    return np.array([known.setdefault(column.value(row), len(known)) for row in range(len(column))], np.int64)


def _looks(looked: Looked, profile: Profile) -> bool:
    """What `matching.looked_at` says of an event, but for `where`."""
    if looked.mapped:
        return not profile.is_detection if looked.types is None else profile.kind in looked.types
    if profile.is_detection:
        return False
    if any(profile.own):
        given = dict(zip(("category", "product", "service"), profile.own, strict=True))
        return all(value in given[part] for part, value in looked.source.values)
    untyped = not profile.own_type and is_untyped(profile.kind, profile.categories)
    return untyped or of_type(looked.source, profile.kind)
