"""Files of EQL queries from text (section 2), with the places of whatever is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.expr.quantities import UNIT_HINT, UNITS
from coincide.expr.tokens import name_of
from coincide.lang.eql.check import check_query
from coincide.lang.eql.conditions import Conditions
from coincide.lang.eql.definition import FILTER, JOIN, SAMPLE, SEQUENCE, File, Filter, Item, Key, Pipe, Query
from coincide.lang.eql.tokens import KEYWORDS, Directive, EqlTokens, Spans, text_value
from coincide.lang.eql.toml import is_toml, rule_of
from coincide.lang.shared.about import is_of_level, made_name
from coincide.model.stamp import LIMIT, MILLISECOND
from coincide.source import SourceText, room_for_recursion

PIPES = ("head", "tail")
MOST_RUNS = 100

_is_name = re.compile(r"[^\W\d][\w.-]*").fullmatch
_is_category = re.compile(r"\w+", re.ASCII).fullmatch
_FIELD = r"(?:@?[^\W\d]\w*|`(?:[^`]|``)+`)(?:\.(?:[^\W\d]\w*|`(?:[^`]|``)+`))*"
_are_fields = re.compile(rf"{_FIELD}(?:\s*,\s*{_FIELD})*").fullmatch
_fields = re.compile(_FIELD).findall


def parse(source: SourceText) -> File:
    """The queries of a file. Raises RuleError at the first error, unless it is to be left out then."""
    try:
        return _parsed(source)
    except RuleError as error:
        if not source.reading.keep_going:
            raise
        return File((), fault=error.diagnostics[0])


def _parsed(source: SourceText) -> File:
    if is_toml(source.name):
        rule = rule_of(source)
        if rule.skipped is not None:
            return File((), rule.skipped, True, source.span(0, 0))
        if not is_of_level(rule.about.level if rule.about else None, source.reading.level):
            return File((), in_toml=True)
        found = _queries(rule.query, rule.spans, made_name(rule.name))
        return replace(found, queries=tuple(replace(query, about=rule.about) for query in found.queries), in_toml=True)
    return _queries(source.text, source.span, made_name(_stem(source.name)))


def _queries(text: str, spans: Spans, name: str) -> File:
    with room_for_recursion():
        queries = list(Parser(text, spans).queries())
    numbered = len(queries) > 1
    named = [q if q.name else replace(q, name=f"{name}_{n}" if numbered else name) for n, q in enumerate(queries, 1)]
    return File(tuple(named))


def _stem(path: str) -> str:
    return PurePath(path).name.removesuffix(".eql")


class Parser(Conditions):
    """One method a rule of the grammar."""

    def __init__(self, text: str, spans: Spans) -> None:
        super().__init__(EqlTokens(text, spans))
        self._directives = self.tokens.directives

    def queries(self) -> Iterator[Query]:
        """A file has one query at least."""
        if self.peek().kind == "end":
            raise self.unexpected("a query")
        while True:
            yield self._query()
            if self.peek().kind == "end":
                return
            self.expect(";")
            if self.peek().kind == "end":
                return

    def _query(self) -> Query:
        start = self.peek()
        kinds = {SEQUENCE: self._sequence, SAMPLE: self._sample, JOIN: self._join}
        rule = kinds.get(start.text) if start.kind == "name" else None
        query = Query("", FILTER, (Item(self._filter()),)) if rule is None else rule()
        query = replace(query, pipes=tuple(self._pipes(query.kind)), span=self.span(start))
        if self.peek().kind != "end" and not self.at(";"):
            raise self.unexpected("';'")
        return check_query(self._with_directives(query))

    def _with_directives(self, query: Query) -> Query:
        """With what the comments say that stand before its end."""
        own = [directive for number, directive in self._directives if number <= self.tokens.position]
        self._directives = [pair for pair in self._directives if pair[0] > self.tokens.position]
        fields: dict[str, None] = {}
        for directive in own:
            if directive.word == "name":
                query = replace(query, name=_checked_name(directive), name_span=directive.span)
            else:
                fields.update(dict.fromkeys(_checked_fields(directive)))
        return replace(query, fields=tuple(fields))

    def _filter(self) -> Filter:
        start = self.peek()
        category, place = self._category(), self.span(start)
        self.expect("where")
        return Filter(category, self.condition(), place)

    def _category(self) -> str | None:
        token = self.peek()
        if token.kind in ("text", "raw"):
            return text_value(self.next())
        if self.take("any"):
            return None
        if token.kind != "name" or token.text in KEYWORDS or not _is_category(token.text):
            raise self.unexpected("an event category")
        return self.next().text

    def _sequence(self) -> Query:
        self.next()
        keys = self._by()
        maxspan = None
        if self.take("with"):
            self.expect("maxspan")
            self.expect("=")
            maxspan = self._maxspan()
            if self.at("by"):
                raise self.fail(self.peek(), "'by' goes before 'with maxspan'")
        items = tuple(self._items(SEQUENCE))
        return Query("", SEQUENCE, items, keys, maxspan, self._until())

    def _sample(self) -> Query:
        self.next()
        keys = self._by()
        self._refuse("with", SAMPLE)
        items = tuple(self._items(SAMPLE))
        self._refuse("until", SAMPLE)
        return Query("", SAMPLE, items, keys)

    def _join(self) -> Query:
        self.next()
        keys = self._by()
        self._refuse("with", JOIN)
        items = tuple(self._items(JOIN))
        return Query("", JOIN, items, keys, None, self._until())

    def _items(self, kind: str) -> Iterator[Item]:
        while self.at("[", "!["):
            item = self._item(kind == SEQUENCE)
            if kind != SEQUENCE:
                self._refuse("with", kind)
            elif self.take("with"):
                item = replace(item, runs=self._runs())
            if self.at("fork"):
                raise self.fail(self.peek(), "'fork' is not supported")
            yield item

    def _item(self, may_be_missing: bool) -> Item:
        if not self.at("[", "!["):
            raise self.unexpected("'['")
        bracket = self.next()
        missing = bracket.text == "!["
        if missing and not may_be_missing:
            raise self.fail(bracket, "only an item of a sequence can be missing")
        found = self._filter()
        self.expect("]")
        return Item(found, self._by(), missing, span=self.span(bracket))

    def _until(self) -> Item | None:
        return self._item(False) if self.take("until") else None

    def _refuse(self, word: str, kind: str) -> None:
        if self.at(word):
            raise self.fail(self.peek(), f"'{word}' is not supported in a {kind}")

    def _by(self) -> tuple[Key, ...]:
        if not self.take("by"):
            return ()
        return tuple(self.listed(self._key))

    def _key(self) -> Key:
        """`?` in front of the whole value, which is a field then."""
        optional = self.at("?")
        start = self.tokens.position
        value = self.value()
        return Key(value, optional and self.tokens.position == start + 2)

    def _maxspan(self) -> int:
        token = self.next()
        digits = token.text.lstrip("0")
        if token.kind != "number" or not digits.isdecimal():
            raise self.fail(token, "'maxspan' must be a whole number from 1")
        unit = self.peek()
        if unit.kind not in ("name", "field"):
            raise self.fail(token, "'maxspan' needs a unit, as in 5s")
        if unit.text not in UNITS:
            near = nearest(unit.text, UNITS) if len(unit.text) > 2 else None
            raise self.fail(unit, f"unknown unit of time '{unit.text}'; {UNIT_HINT}", near)
        self.next()
        microseconds = int(digits) * round(UNITS[unit.text] * MILLISECOND) if len(digits) < 20 else LIMIT + 1
        if microseconds > LIMIT:
            raise self.fail(token, "'maxspan' is too long")
        return microseconds

    def _runs(self) -> int:
        self.expect("runs")
        self.expect("=")
        token = self.next()
        digits = token.text.lstrip("0")
        if token.kind != "number" or not digits.isdecimal() or len(digits) > 3 or int(digits) > MOST_RUNS:
            raise self.fail(token, f"'runs' must be a whole number from 1 to {MOST_RUNS}")
        return int(digits)

    def _pipes(self, kind: str) -> Iterator[Pipe]:
        while self.at("|"):
            bar = self.next()
            if kind == SAMPLE:
                raise self.fail(bar, "a sample takes no pipes")
            name = self.next()
            if name.kind != "name":
                raise self.fail(name, f"expected 'head' or 'tail', found {name.shown}")
            if name.text not in PIPES:
                raise self.fail(name, f"pipe '{name.text}' is not supported", nearest(name.text, PIPES))
            yield Pipe(name.text, self._count(name.text))

    def _count(self, pipe: str) -> int:
        token = self.next()
        digits = token.text.lstrip("0")
        if token.kind != "number" or not digits.isdecimal() or len(digits) > 18:
            raise self.fail(token, f"'{pipe}' takes a whole number from 1")
        return int(digits)


def _checked_name(directive: Directive) -> str:
    if not _is_name(directive.text):
        raise RuleError(Diagnostic(f"'{directive.text}' is not a name", directive.span))
    return directive.text


def _checked_fields(directive: Directive) -> Sequence[str]:
    if not _are_fields(directive.text):
        raise RuleError(Diagnostic("expected names of fields after '@fields'", directive.span))
    return [name_of(name).text for name in _fields(directive.text)]
