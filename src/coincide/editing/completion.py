"""What may be written at a place. A name is put there, and what it would be says which names fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module

from coincide.editing import outlines
from coincide.editing.files import may_be_rules
from coincide.editing.learning import Names
from coincide.editing.marks import ATTRIBUTE, COMMENT, EVENT, FILE, FUNCTION, KEYWORD, NUMBER, TEXT, Mark, mark_at, marks_of
from coincide.editing.navigation import unwritten
from coincide.editing.walking import Walk
from coincide.editing.words import Word, words_of
from coincide.errors import RuleError
from coincide.expr.tokens import EXPRESSION_KEYWORDS, name_text
from coincide.languages.registry import language_name, language_of
from coincide.model.event import ENVELOPE
from coincide.source import SourceText, Span

HERE = "zzq"
"""The name that is put at the place."""
BESIDE_EVENTS = frozenset({EVENT, "predicate", "set", "expression", "timer"})
"""Kinds that stand where types of events do."""
STATEMENT = "statement"
_WORDS = re.compile(r"[\w~]+|[^\w\s]")


@dataclass(frozen=True)
class Completion:
    """`text` takes the place of `span`. Lower ranks come first."""

    name: str
    kind: str
    text: str
    span: Span
    detail: str = ""
    rank: int = 1


def completions(source: SourceText, offset: int, others: Iterable[SourceText] = (), names: Names = Names()) -> list[Completion]:
    if not may_be_rules(source):
        return []
    found = _Place(source, offset, list(others), names).found()
    best: dict[tuple[str, bool], Completion] = {}
    for item in sorted(found, key=lambda c: (c.rank, c.name.lower())):
        best.setdefault((item.name, item.kind in (KEYWORD, FUNCTION)), item)
    return list(best.values())


class _Place:
    def __init__(self, source: SourceText, offset: int, others: list[SourceText], names: Names) -> None:
        self.source, self.offset, self.others, self.names = source, offset, others, names
        self.language = language_name(source.name)
        self.marked = SourceText(source.name, source.text[:offset] + HERE + source.text[offset:])

    def found(self) -> Iterator[Completion]:
        asked = outlines.asked(self.source, self.offset)
        if asked is not None:
            yield from self._offered(asked)
            return
        if self.source.name.endswith((".yaml", ".yml")):
            self.marked = outlines.with_value(self.source, self.offset, HERE)
        mark = mark_at(self.marked, self.offset + 1)
        if mark is None or mark.kind in (COMMENT, NUMBER):
            return
        if mark.is_name:
            yield from self._names(mark)
        if self.language in outlines.LANGUAGES:
            yield from self._choices(mark)
        elif mark.kind != TEXT:
            yield from self._words(mark)

    def span(self, mark: Mark) -> Span:
        """What the name takes the place of: it may have begun, and go on behind the place."""
        start = mark.start + (self.marked.text[mark.start] in '`"' and mark.start < self.offset)
        return self.source.span(min(start, self.offset), max(self.offset, mark.end - len(HERE)))

    # Names. What is being written is none of those that are there.

    def _marks(self, text: SourceText) -> list[Mark]:
        own = text is self.source
        return [m for m in marks_of(text) if m.is_name and not (own and m.start <= self.offset <= m.end)]

    def _names(self, mark: Mark) -> Iterator[Completion]:
        span = self.span(mark)
        if mark.kind in BESIDE_EVENTS:
            yield from self._events(span)
            yield from self._locals(span, BESIDE_EVENTS | {"phrase"}, mark.scope)
        elif mark.kind == ATTRIBUTE:
            yield from self._attributes(span)
            yield from self._locals(span, {"alias", "anchor", "parameter", "variable"}, "")
        else:
            yield from self._locals(span, {mark.kind}, mark.scope)

    def _events(self, span: Span) -> Iterator[Completion]:
        for name, attributes in self.names.types.items():
            if name:
                count = self.names.counts.get(name)
                seen = f"{count:,} in the sample: " if count else ""
                yield self._name(name, EVENT, span, f"{seen}{', '.join(sorted(attributes)[:8])}", 0)
        for text in (self.source, *self.others):
            for name in (*(m.name for m in self._marks(text) if m.kind == EVENT), *(name for name, _ in unwritten(text))):
                yield self._name(name, EVENT, span, "" if text is self.source else f"in {text.name.rpartition('/')[2]}", 0)

    def _attributes(self, span: Span) -> Iterator[Completion]:
        """Those of the types that the file speaks of first."""
        own = self._marks(self.source)
        near = self.names.attributes_of({m.name for m in own if m.kind == EVENT}) | {m.name for m in own if m.kind == ATTRIBUTE}
        elsewhere = {m.name for text in self.others for m in self._marks(text) if m.kind == ATTRIBUTE}
        for name in near | elsewhere | self.names.attributes:
            types = ", ".join(self.names.types_with(name)[:4])
            yield self._name(name, ATTRIBUTE, span, f"of {types}" if types else "", 0 if name in near else 1)
        for name in sorted(ENVELOPE - {"from", "arrival"}):
            yield self._name(name, ATTRIBUTE, span, "of every event", 2)

    def _locals(self, span: Span, kinds: Iterable[str], scope: str) -> Iterator[Completion]:
        """Names that belong to the file or to a part of it; those that all files share, of all files."""
        wanted = frozenset(kinds)
        for text in (self.source, *self.others):
            for m in self._marks(text):
                reached = not m.scope or (text is self.source and (m.scope == FILE or not scope or m.scope == scope))
                if m.kind in wanted and reached and m.kind != EVENT:
                    yield self._name(m.name, m.kind, span, m.kind, 0)

    def _name(self, name: str, kind: str, span: Span, detail: str, rank: int) -> Completion:
        return Completion(name, kind, self._written(name, kind, span), span, detail, rank)

    def _written(self, name: str, kind: str, span: Span) -> str:
        if self.language in ("ecl", "opera", "pretty", "ecco"):
            quoted = span.start > 0 and self.source.text[span.start - 1] in "'\""
            return name if quoted or kind == "phrase" else name_text(name, _reserved(self.language))
        plain = self.language != "matchrecognize" or (name.isascii() and name.isidentifier())
        return name if plain else '"' + name.replace('"', '""') + '"'

    # Words

    def _words(self, mark: Mark) -> Iterator[Completion]:
        """Those that the parser takes here, behind what the statement says so far."""
        span = self.span(mark)
        before = self._statement(span.start)
        begins = not before.strip() or self._faultless(before)
        fault = self._fault(before + HERE)
        valued = mark.kind == ATTRIBUTE and (fault is None or fault >= len(before + HERE))  # any word may be a name here
        for word in words_of(self.language):
            function, statement = word.group == FUNCTION, word.group == STATEMENT
            possible = (statement and begins) or function or not valued or word.name.lower() in EXPRESSION_KEYWORDS
            rest = _rest(word.name, before)
            if possible and self._fits(before, replace(word, name=rest)):
                rank = 3 if function else 0 if statement or rest != word.name else 2
                yield Completion(word.name, FUNCTION if function else KEYWORD, rest, span, word.sentence, rank)

    def _statement(self, end: int) -> str:
        """The text of the statement up to a place: of the last one that begins before it."""
        walk: Walk = import_module(f"coincide.editing.languages.{self.language}").walk_of(SourceText("", self.source.text[:end]))
        start = walk.tokens[walk.statements[-1]].start if walk.tokens else end
        return self.source.text[start:end]

    def _fits(self, before: str, word: Word) -> bool:
        """It is read as the word that it is, and the parser finds no fault with it."""
        function = word.group == FUNCTION
        text = word.name + "(" * function
        mark = mark_at(SourceText(self.source.name, before + text), len(before) + 1)
        if mark is None or mark.kind != (FUNCTION if function else KEYWORD):
            return False
        return (word.group == STATEMENT and not before.strip()) or self._takes(before, text)

    def _takes(self, before: str, text: str) -> bool:
        """Does the parser go on behind this text?"""
        fault = self._fault(before + text)
        return fault is None or not len(before) <= fault < len(before + text.rstrip("("))

    def _faultless(self, text: str) -> bool:
        """Is nothing missing at the end?"""
        fault = self._fault(text)
        return fault is None or fault < len(text.rstrip())

    def _fault(self, text: str) -> int | None:
        """Where the parser stops."""
        tried = SourceText(self.source.name, text)
        try:
            language_of(tried.name).parse(tried)
        except RuleError as error:
            span = error.diagnostics[0].span
            return None if span is None else span.start
        return None

    # Elements, attributes and keys

    def _offered(self, asked: outlines.Asked) -> Iterator[Completion]:
        details = {word.name: word for word in words_of(self.language) if word.group != FUNCTION}
        span = self.source.span(asked.start, self.offset)
        for name in asked.names:
            yield Completion(name, KEYWORD, asked.written(name), span, details[name].sentence if name in details else "", 0)

    def _choices(self, mark: Mark) -> Iterator[Completion]:
        if mark.kind == ATTRIBUTE:
            yield from (_word(w, FUNCTION, self.span(mark), 3) for w in words_of(self.language) if w.group == FUNCTION)
        start = mark.start if mark.kind in (KEYWORD, TEXT) else self.offset
        span = self.source.span(min(start, self.offset), self.offset)
        for name in outlines.choices(self.source, self.offset, HERE):
            yield Completion(name, KEYWORD, name, span, "", 0)


def _rest(phrase: str, before: str) -> str:
    """What is missing of several words that belong together, where the first of them stand already."""
    parts, typed = phrase.split(), _WORDS.findall(before.lower())
    for count in range(len(parts) - 1, 0, -1):
        if typed[-count:] == [part.lower() for part in parts[:count]]:
            return " ".join(parts[count:])
    return phrase


def _word(word: Word, kind: str, span: Span, rank: int) -> Completion:
    return Completion(word.name, kind, word.name, span, word.sentence, rank)


def _reserved(language: str) -> frozenset[str]:
    keywords: frozenset[str] = import_module(f"coincide.editing.languages.{language}").walk_of(SourceText("", "")).keywords
    return keywords
