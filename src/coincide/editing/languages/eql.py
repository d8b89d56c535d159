"""EQL: queries of a `.eql` file, or of a rule in TOML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from coincide.editing.lexing import COMMENT
from coincide.editing.marks import ATTRIBUTE, EVENT, FUNCTION, KEYWORD, Mark
from coincide.editing.walking import Role, Walk, role
from coincide.errors import RuleError
from coincide.expr.tokens import Token
from coincide.lang.eql.functions import SIGNATURES
from coincide.lang.eql.parse import PIPES
from coincide.lang.eql.tokens import DIRECTIVE, KEYWORDS, Spans, field_name, pieces, text_value
from coincide.lang.eql.toml import is_toml, rule_of
from coincide.lang.shared.about import made_name
from coincide.source import SourceText

_FIELD = re.compile(r"[^\s,]+")


def walk_of(source: SourceText) -> EqlWalk:
    return EqlWalk(_tokens(source.text))


def marks(source: SourceText) -> Iterator[Mark]:
    if not is_toml(source.name):
        yield from _marks(source.text, source.span)
        return
    try:
        rule = rule_of(source)
    except RuleError:
        return
    yield from _marks(rule.query, rule.spans)


def made_names(source: SourceText) -> Iterator[tuple[str, int, int]]:
    """Queries without `@name` have names that are made of the file's, or of the rule's: each with the place of its first word."""
    try:
        rule = rule_of(source) if is_toml(source.name) else None
    except RuleError:
        return
    text, spans = (source.text, source.span) if rule is None else (rule.query, rule.spans)
    walk = EqlWalk(_tokens(text))
    base = made_name(PurePath(source.name).name.removesuffix(".eql") if rule is None else rule.name)
    starts = sorted(set(walk.statements))
    named = [walk.tokens[start] for start in starts if walk.text(start) != ";"]
    given = [mark.start for mark in walk.directives() if mark.kind == EVENT]
    ends = [0, *(walk.tokens[start - 1].end for start in starts[1:]), len(text)]
    for number, token in enumerate(named, 1):
        begin, end = ends[number - 1], ends[number]
        if not any(begin <= start < end for start in given):
            span = spans(token.start, token.end)
            yield (base if len(named) == 1 else f"{base}_{number}"), span.start, span.end


def _tokens(text: str) -> list[Token]:
    return [piece._replace(kind=COMMENT) if piece.kind == "remark" else piece for piece in pieces(text) if piece.kind != "space"]


def _marks(text: str, spans: Spans) -> Iterator[Mark]:
    walk = EqlWalk(_tokens(text))
    for mark in (*walk.directives(), *walk.categories(), *walk.marks()):
        span = spans(mark.start, mark.end)
        yield mark._replace(start=span.start, end=span.end)


class EqlWalk(Walk):
    keywords = KEYWORDS

    def starts(self, at: int) -> bool:
        return at == 0 or self.text(at - 1) == ";"

    def is_keyword(self, at: int) -> bool:
        token = self.token(at)
        return token.kind == "name" and (token.text in KEYWORDS or self._is_pipe(at) or self._is_runs(at))

    def _is_pipe(self, at: int) -> bool:
        return self.text(at) in PIPES and self.text(at - 1) == "|"

    def _is_runs(self, at: int) -> bool:
        return self.text(at) == "runs" and self.text(at - 1) == "with"

    def directives(self) -> Iterator[Mark]:
        """`// @name NAME` and `// @fields NAMES`, which are comments to others."""
        for token in self.everything:
            found = DIRECTIVE.match(token.text) if token.kind == COMMENT else None
            if found is None:
                continue
            yield Mark(token.start + found.start(1) - 1, token.start + found.end(1), KEYWORD)
            for name in _FIELD.finditer(token.text, *found.span(2)):
                kind = EVENT if found[1] == "name" else ATTRIBUTE
                yield Mark(token.start + name.start(), token.start + name.end(), kind, name.group(), kind == EVENT)

    def categories(self) -> Iterator[Mark]:
        """Those in quotes."""
        for at, token in enumerate(self.tokens):
            if token.kind in ("text", "raw") and self.text(at + 1) == "where":
                quotes = 3 if token.kind == "raw" else 1
                yield Mark(token.start + quotes, token.end - quotes, EVENT, text_value(token))

    def role(self, at: int) -> Role | None:
        if self.text(at + 1) == "where":
            return role(EVENT)
        if self.text(at + 1) == "(" and self.word(at).rstrip("~") in SIGNATURES:
            return role(FUNCTION)
        return role(ATTRIBUTE)

    def marks(self) -> Iterator[Mark]:
        yield from super().marks()
        for token in self.tokens:
            if token.kind == "field":
                yield Mark(token.start, token.end, ATTRIBUTE, field_name(token))
