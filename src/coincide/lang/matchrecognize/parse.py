"""Files of MATCH_RECOGNIZE queries from text (section 2), with the places of whatever is wrong."""

from __future__ import annotations

from typing import Any

from coincide.expr.tokens import Token
from coincide.expr.tree import Reference
from coincide.lang.matchrecognize.definition import (
    Alternation,
    Anchor,
    Clause,
    Column,
    Concatenation,
    Condition,
    Empty,
    Exclusion,
    File,
    Item,
    Measure,
    OrderKey,
    Pattern,
    Permutation,
    Query,
    Repetition,
    Skip,
    Source,
    Subset,
    Variable,
)
from coincide.lang.matchrecognize.expressions import LEFT_TO_SPARK, SqlExpressions, folded, spelt
from coincide.lang.matchrecognize.resolve import check_query
from coincide.lang.matchrecognize.tokens import SqlTokens
from coincide.source import SourceText, Span, room_for_recursion

CLAUSES = ("PARTITION BY", "ORDER BY", "MEASURES", "ROWS", "AFTER MATCH SKIP", "PATTERN", "WITHIN", "SUBSET", "DEFINE")
"""In the order in which they must stand."""

STARTS = {
    "partition": "PARTITION BY",
    "order": "ORDER BY",
    "measures": "MEASURES",
    "one": "ROWS",
    "all": "ROWS",
    "after": "AFTER MATCH SKIP",
    "pattern": "PATTERN",
    "within": "WITHIN",
    "subset": "SUBSET",
    "define": "DEFINE",
}
MOST_PERMUTED = 8
LEFT = "is left to Spark SQL: here a query is SELECT … FROM … MATCH_RECOGNIZE (…) [WHERE …]"
CLAUSE_ONLY = "what stands in the parentheses of MATCH_RECOGNIZE is enough; `sql` takes a whole query"
QUERY_ONLY = "`match_recognize` takes a clause alone"
LEFT_HINT = "hand what coincide.match_recognize(table, clause) gives to DuckDB, Polars or Spark"


def parse(source: SourceText) -> File:
    """The queries of a file. Raises RuleError at the first error."""
    with room_for_recursion():
        return Parser(SqlTokens(source)).file()


def parse_clause(source: SourceText, foreign: bool = False) -> Query:
    """A query over the table `table` from the text of a clause alone, all columns of which are given out. With `foreign`, calls
    of functions that are not ours are left to the engine around us."""
    with room_for_recursion():
        parser = Parser(SqlTokens(source))
        parser.foreign = foreign
        clause = parser.clause("end")
        query = Query("match", False, None, Source("table"), clause, span=source.span(0, 0))
        return check_query(query, plain_table=True)


def parse_query(source: SourceText, foreign: bool = False) -> Query:
    """One query over a plain table; `foreign` as with a clause."""
    with room_for_recursion():
        parser = Parser(SqlTokens(source))
        parser.foreign = foreign
        if parser.tokens.peek().text.lower() in STARTS:
            raise parser.unexpected("'SELECT'", hint=QUERY_ONLY)
        query = parser.statement(plain_table=True)
        parser.tokens.take(";")
        if parser.tokens.peek().kind != "end":
            raise parser.unexpected("the end of the query")
        return query


class Parser(SqlExpressions):
    """One method a rule of the grammar."""

    def __init__(self, tokens: SqlTokens) -> None:
        super().__init__(tokens)
        self._source_name = ""
        self._unmatched_rows = False

    def file(self) -> File:
        queries: list[Query] = []
        while True:
            while self.tokens.take(";"):
                pass
            if self.tokens.peek().kind == "end":
                return File(tuple(queries))
            queries.append(self.statement())
            if self.tokens.peek().kind != "end" and not self.tokens.at(";"):
                self._not_left_to_spark()
                raise self.unexpected("';'")

    def statement(self, plain_table: bool = False) -> Query:
        view: tuple[str, Token] | None = None
        if self.tokens.take("create"):
            if self.tokens.take("or"):
                self.expect("REPLACE")
            if not self.tokens.take("temp"):
                self.tokens.take("temporary")
            self.expect("VIEW")
            view = self.name("a name")
            self.expect("AS")
        return check_query(self.query(view), plain_table)

    def query(self, view: tuple[str, Token] | None) -> Query:
        start = self.expect("SELECT")
        items, star_of = self._select_list()
        self.expect("FROM")
        source = self._source()
        self._not_left_to_spark()
        self.expect("MATCH_RECOGNIZE")
        self.expect("(")
        self._source_name = source.known_as
        clause = self.clause(")")
        alias = self._alias()
        where = self.scoped("WHERE") if self.tokens.take("where") else None
        self._not_left_to_spark()
        name, token = view or alias or ("match", start)
        return Query(
            name,
            view is not None,
            items,
            source,
            clause,
            None if alias is None else alias[0],
            where,
            star_of,
            span=self.tokens.span(token),
        )

    def _select_list(self) -> tuple[tuple[Item, ...] | None, Column | None]:
        """The items (None for all), and the table that stands before `.*`."""
        token, follows = self.tokens.peek(), self.tokens.peek(1)
        follows_item = follows.kind in ("name", "quoted", "number", "text") and not self.tokens.is_one(follows, "from", "as")
        if self.tokens.is_one(token, "distinct") and follows_item:
            raise self.tokens.fail(token, f"'{token.text}' {LEFT}", LEFT_HINT)
        if self.tokens.take("*"):
            return None, None
        if self.is_name(token) and follows.text == "." and self.tokens.peek(2).text == "*":
            self._pass(3)
            return None, Column(spelt(token), span=self.tokens.span(token))
        items = [self._item()]
        while self.tokens.take(","):
            items.append(self._item())
        return tuple(items), None

    def _item(self) -> Item:
        value = self.scoped("SELECT")
        if (alias := self._alias()) is not None:
            return Item(alias[0], value, span=self.tokens.span(alias[1]))
        if not isinstance(value, Reference):
            raise self.tokens.fail(self.tokens.peek(), "an expression in the SELECT list needs a name (AS)")
        return Item(value.name, value, span=value.span)

    def _alias(self) -> tuple[str, Token] | None:
        if self.tokens.take("as"):
            return self.name("a name")
        token = self.tokens.peek()
        left = token.kind == "name" and (token.text.lower() in LEFT_TO_SPARK or token.text.lower() == "match_recognize")
        return self.name("a name") if self.is_name(token) and not left else None

    def _source(self) -> Source:
        start = self.tokens.peek()
        if self.tokens.take("("):
            self.expect("SELECT")
            self.expect("*")
            self.expect("FROM")
            table, _ = self.name("a table")
            where = self.scoped("FROM") if self.tokens.take("where") else None
            if not self.tokens.take(")"):
                raise self.unexpected("')'")
        else:
            table, _ = self.name("a table")
            where = None
        alias = self._alias()
        return Source(table, where, None if alias is None else alias[0], span=self.tokens.span(start))

    def _not_left_to_spark(self) -> None:
        token = self.tokens.peek()
        if token.text == "," or (token.kind == "name" and token.text.lower() in LEFT_TO_SPARK):
            raise self.tokens.fail(token, f"'{token.text}' {LEFT}", LEFT_HINT)

    # The clause

    def clause(self, closing: str) -> Clause:
        """Up to `)`, which is taken, or to the end of the text."""
        found: dict[str, Any] = {}
        given: list[tuple[str, str]] = []  # the clause, and how it is called
        while not self._closes(closing):
            name = self._next_clause(given)
            shown = self._words(name)
            getattr(self, "_clause_" + name.split()[0].lower())(found)
            given.append((name, shown))
        end = self.tokens.peek()
        for name in ("PATTERN", "DEFINE"):
            if name not in (n for n, _ in given):
                raise self.tokens.fail(end, f"the clause '{name}' is missing")
        self.tokens.next()
        all_rows, empty_matches, unmatched_rows, timed_out = found.get("rows", (False, True, False, False))
        return Clause(
            found.get("partition", ()),
            found.get("order", ()),
            found.get("measures", ()),
            all_rows,
            empty_matches,
            unmatched_rows,
            timed_out,
            found.get("skip", Skip()),
            found["pattern"],
            found.get("within"),
            found.get("subsets", ()),
            found["conditions"],
            within_span=found.get("within_span"),
            timed_out_span=found.get("timed_out_span"),
            pattern_span=found["pattern_span"],
        )

    def _closes(self, closing: str) -> bool:
        return self.tokens.peek().kind == "end" if closing == "end" else self.tokens.at(closing)

    def _next_clause(self, given: list[tuple[str, str]]) -> str:
        token = self.tokens.peek()
        if self.tokens.at("seek", "initial"):
            raise self.tokens.fail(token, f"'{token.text.upper()}' belongs to row patterns in a window")
        name = STARTS.get(token.text.lower()) if token.kind == "name" else None
        if name is None:
            wanted = f"',' or a clause after '{given[-1][1]}'" if given else "a clause of MATCH_RECOGNIZE"
            whole = not given and self.tokens.at("select", "with", "match_recognize")
            raise self.unexpected(wanted, hint=CLAUSE_ONLY if whole else None)
        for other, shown in given:
            if other == name:
                raise self.tokens.fail(token, f"'{self._words(name)}' is given twice")
            if CLAUSES.index(other) > CLAUSES.index(name):
                raise self.tokens.fail(token, f"'{self._words(name)}' must come before '{shown}'")
        return name

    def _words(self, name: str) -> str:
        if name != "ROWS":
            return name
        return "ONE ROW PER MATCH" if self.tokens.at("one") else "ALL ROWS PER MATCH"

    def _words_of(self, *words: str) -> Token:
        first = self.expect(words[0])
        for word in words[1:]:
            self.expect(word)
        return first

    def _clause_partition(self, found: dict[str, Any]) -> None:
        self._words_of("PARTITION", "BY")
        columns = [Column(name, span=span) for name, span in self._columns("PARTITION BY")]
        found["partition"] = tuple(columns)

    def _columns(self, clause: str) -> list[tuple[str, Span]]:
        columns = [self._key_column(clause)]
        while self.tokens.take(","):
            columns.append(self._key_column(clause))
        return columns

    def _key_column(self, clause: str) -> tuple[str, Span]:
        """A column, with dots, without the name of the table before it."""
        start = self.tokens.peek()
        plain = self.tokens.fail(start, f"{clause} takes plain columns only")
        if start.kind in ("number", "text") or start.text in ("(", "-"):
            raise plain
        parts = [self.name("a column")[0]]
        while self.tokens.take("."):
            parts.append(self.name("a column")[0])
        follows = self.tokens.peek()
        if follows.kind in ("number", "text") or (follows.kind == "op" and follows.text not in (",", ")")):
            raise plain
        if len(parts) > 1 and parts[0] == self._source_name:
            del parts[0]
        assert self.tokens.last is not None
        return ".".join(parts), self.tokens.source.span(start.start, self.tokens.last.end)

    def _clause_order(self, found: dict[str, Any]) -> None:
        self._words_of("ORDER", "BY")
        keys = [self._order_key()]
        while self.tokens.take(","):
            keys.append(self._order_key())
        found["order"] = tuple(keys)

    def _order_key(self) -> OrderKey:
        name, span = self._key_column("ORDER BY")
        descending = self.tokens.take("desc") is not None
        if not descending:
            self.tokens.take("asc")
        nulls_first = not descending
        if self.tokens.take("nulls"):
            nulls_first = self.tokens.take("first") is not None
            if not nulls_first and not self.tokens.take("last"):
                raise self.unexpected("'FIRST' or 'LAST'")
        return OrderKey(name, descending, nulls_first, span=span)

    def _clause_measures(self, found: dict[str, Any]) -> None:
        self.expect("MEASURES")
        measures = [self._measure()]
        while self.tokens.take(","):
            measures.append(self._measure())
        found["measures"] = tuple(measures)

    def _measure(self) -> Measure:
        value = self.scoped("MEASURES")
        self.expect("AS")
        name, token = self.name("a name")
        return Measure(name, value, span=self.tokens.span(token))

    def _clause_rows(self, found: dict[str, Any]) -> None:
        """Found are: all rows, empty matches, unmatched rows, timed-out matches."""
        if self.tokens.at("one"):
            self._words_of("ONE", "ROW", "PER", "MATCH")
            token = self.tokens.take("with")
            if token is not None:
                self._words_of("TIMED", "OUT", "MATCHES")
                found["timed_out_span"] = self.tokens.span(token)
            found["rows"] = (False, True, False, token is not None)
            return
        self._words_of("ALL", "ROWS", "PER", "MATCH")
        empty, unmatched = True, False
        if self.tokens.at("show", "omit"):
            empty = self.tokens.next().text.lower() == "show"
            self._words_of("EMPTY", "MATCHES")
        elif self.tokens.take("with"):
            self._words_of("UNMATCHED", "ROWS")
            unmatched = True
        found["rows"] = (True, empty, unmatched, False)

    def _clause_after(self, found: dict[str, Any]) -> None:
        self._words_of("AFTER", "MATCH", "SKIP")
        if self.tokens.take("past"):
            self._words_of("LAST", "ROW")
            found["skip"] = Skip()
            return
        if not self.tokens.take("to"):
            raise self.unexpected("'PAST' or 'TO'")
        if self.tokens.at_words("next", "row"):
            self._words_of("NEXT", "ROW")
            found["skip"] = Skip("NEXT")
            return
        to = "LAST"
        if self.tokens.at("first", "last") and not self.tokens.is_one(self.tokens.peek(1), "pattern"):
            to = self.tokens.next().text.upper()
        variable, token = self.variable()
        found["skip"] = Skip(to, variable, span=self.tokens.span(token))

    def _clause_subset(self, found: dict[str, Any]) -> None:
        self.expect("SUBSET")
        subsets = [self._subset()]
        while self.tokens.take(","):
            subsets.append(self._subset())
        found["subsets"] = tuple(subsets)

    def _subset(self) -> Subset:
        name, token = self.variable()
        self.expect("=")
        self.expect("(")
        members = [self._member()]
        while self.tokens.take(","):
            members.append(self._member())
        self._close()
        return Subset(name, tuple(members), span=self.tokens.span(token))

    def _member(self) -> Variable:
        name, token = self.variable()
        return Variable(name, span=self.tokens.span(token))

    def _clause_define(self, found: dict[str, Any]) -> None:
        self.expect("DEFINE")
        conditions = [self._condition()]
        while self.tokens.take(","):
            conditions.append(self._condition())
        found["conditions"] = tuple(conditions)

    def _condition(self) -> Condition:
        name, token = self.variable()
        self.expect("AS")
        return Condition(name, self.scoped("DEFINE"), span=self.tokens.span(token))

    def _clause_within(self, found: dict[str, Any]) -> None:
        self.expect("WITHIN")
        start = self.tokens.peek()
        found["within"] = self.interval()
        assert self.tokens.last is not None
        found["within_span"] = self.tokens.source.span(start.start, self.tokens.last.end)

    # The pattern

    def _clause_pattern(self, found: dict[str, Any]) -> None:
        found["pattern_span"] = self.tokens.span(self.expect("PATTERN"))
        self.expect("(")
        self._unmatched_rows = found.get("rows", (False,) * 4)[2]
        found["pattern"] = self._pattern()
        if not self.tokens.take(")"):
            raise self.unexpected("')'")

    def _pattern(self) -> Pattern:
        options = [self._sequence()]
        while self.tokens.take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def _sequence(self) -> Pattern:
        parts = [self._factor()]
        while self.tokens.peek().text not in ("|", ")", "-}", ","):
            parts.append(self._factor())
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _factor(self) -> Pattern:
        start = self.tokens.peek()
        body = self._primary_pattern()
        token = self.tokens.peek()
        bounds: tuple[int, int | None] | None = None
        if self.tokens.at("*", "+", "?"):
            bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.tokens.next().text]
        elif self.tokens.at("{"):
            bounds = self._bounds(token)
        if bounds is None:
            return body
        reluctant = self.tokens.take("?") is not None
        assert self.tokens.last is not None
        return Repetition(body, *bounds, reluctant, span=self.tokens.source.span(start.start, self.tokens.last.end))

    def _bounds(self, brace: Token) -> tuple[int, int | None]:
        self.tokens.next()
        least = self.whole_number() if self.tokens.peek().kind == "number" else None
        most = least
        if self.tokens.take(","):
            most = self.whole_number() if self.tokens.peek().kind == "number" else None
        elif least is None:
            raise self.unexpected("a whole number or ','")
        if not self.tokens.take("}"):
            raise self.unexpected("'}'")
        if most == 0:
            raise self.tokens.fail(brace, "the upper bound of a quantifier must be at least 1")
        if most is not None and (least or 0) > most:
            raise self.tokens.fail(brace, f"the lower bound {least} of the quantifier exceeds its upper bound {most}")
        return least or 0, most

    def _primary_pattern(self) -> Pattern:
        token = self.tokens.peek()
        if self.tokens.at("permute") and self.tokens.peek(1).text == "(":
            return self._permutation(token)
        if self.tokens.take("("):
            if self.tokens.take(")"):
                return Empty(span=self.tokens.span(token))
            with self.deeper(token, "pattern"):
                body = self._pattern()
            self.expect(")")
            return body
        if self.tokens.take("{-"):
            return self._exclusion(token)
        if self.tokens.at("^", "$"):
            return Anchor(self.tokens.next().text == "$", span=self.tokens.span(token))
        if not self.is_name(token):
            raise self.unexpected("a pattern variable")
        self.tokens.next()
        return Variable(folded(token), span=self.tokens.span(token))

    def _exclusion(self, token: Token) -> Pattern:
        if self._unmatched_rows:
            message = "exclusion {- -} cannot be used with ALL ROWS PER MATCH WITH UNMATCHED ROWS"
            raise self.tokens.fail(token, message)
        with self.deeper(token, "pattern"):
            body = self._pattern()
        self.expect("-}")
        return Exclusion(body, span=self.tokens.span(token))

    def _permutation(self, token: Token) -> Pattern:
        self.tokens.next()
        self.expect("(")
        with self.deeper(token, "pattern"):
            members = self.listed(self._pattern)
        if not self.tokens.take(")"):
            raise self.unexpected("',' or ')'")
        if len(members) > MOST_PERMUTED:
            raise self.tokens.fail(token, f"PERMUTE takes at most {MOST_PERMUTED} members")
        return Permutation(tuple(members), span=self.tokens.span(token))
