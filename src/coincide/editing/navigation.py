"""Where names are defined and used, over all files of a folder; and what becomes of the texts when one is renamed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from xml.sax.saxutils import escape

from coincide.editing.marks import ATTRIBUTE, DETECTOR, EVENT, Mark, mark_at, marks_of
from coincide.editing.words import parts_of
from coincide.errors import Diagnostic, RuleError
from coincide.expr.tokens import back_quoted, name_text
from coincide.lang.amit.attributes import NAME
from coincide.languages.registry import language_name
from coincide.source import SourceText, Span

OUTLINED = frozenset(
    {EVENT, DETECTOR, "predicate", "set", "expression", "phrase", "space", "lifespan", "key", "template", "selection"}
)
"""Kinds of definitions that an outline of a file shows."""


@dataclass(frozen=True)
class Symbol:
    """A definition of a file."""

    name: str
    kind: str
    span: Span


@dataclass(frozen=True)
class Edit:
    """A stretch of a file, and what takes its place."""

    span: Span
    text: str


def name_at(source: SourceText, offset: int) -> Mark | None:
    mark = mark_at(source, offset)
    return mark if mark is not None and mark.is_name else None


def symbols(source: SourceText) -> list[Symbol]:
    """What a file defines, in the order of the text."""
    written = [Symbol(m.name, m.kind, source.span(m.start, m.end)) for m in marks_of(source) if m.defines and m.kind in OUTLINED]
    made = [Symbol(name, EVENT, span) for name, span in unwritten(source)]
    return sorted([*written, *made], key=lambda symbol: symbol.span.start)


def definition(source: SourceText, offset: int, others: Iterable[SourceText] = ()) -> list[Span]:
    """Where the name at a place is defined; one of a part of its file that is never defined, where it comes first."""
    mark = name_at(source, offset)
    if mark is None:
        return []
    found = list(_with_its_meaning(source, mark, others))
    defining = [text.span(m.start, m.end) for text, m in found if m.defines]
    if mark.kind == EVENT:
        defining += [span for text in _texts(source, mark, others) for name, span in unwritten(text) if name == mark.name]
    if not defining and mark.scope:
        defining = [text.span(m.start, m.end) for text, m in found[:1]]
    return defining


def references(source: SourceText, offset: int, others: Iterable[SourceText] = ()) -> list[Span]:
    """Every place that names what is named at this one, definitions too."""
    mark = name_at(source, offset)
    return [] if mark is None else [text.span(m.start, m.end) for text, m in _with_its_meaning(source, mark, others)]


def rename(source: SourceText, offset: int, name: str, others: Iterable[SourceText] = ()) -> list[Edit]:
    """The edits that give what is named at a place another name everywhere. RuleError, if that cannot be."""
    texts = list(others)
    mark = name_at(source, offset)
    if mark is None:
        raise RuleError(Diagnostic("there is no name here"))
    place = source.span(mark.start, mark.end)
    if not name.strip() or name != name.strip() or "\n" in name:
        raise RuleError(Diagnostic(f"'{name}' is not a name", place))
    if not mark.scope and not any(m.defines for _, m in _with_its_meaning(source, mark, texts)):
        raise RuleError(Diagnostic(f"'{mark.name}' is what events call it: no rule defines it", place))
    edits = [Edit(text.span(m.start, m.end), _written(text, m, name)) for text, m in _with_its_meaning(source, mark, texts)]
    _check(edits, mark, name, _texts(source, mark, texts))
    return edits


def applied(text: str, edits: Iterable[Edit]) -> str:
    for edit in sorted(edits, key=lambda e: -e.span.start):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def unwritten(source: SourceText) -> Iterator[tuple[str, Span]]:
    """Detections whose name stands nowhere, but is made of that of the file."""
    if language_name(source.name) == "eql":
        for name, start, end in import_module("coincide.editing.languages.eql").made_names(source):
            yield name, source.span(start, end)


def _texts(source: SourceText, mark: Mark, others: Iterable[SourceText]) -> list[SourceText]:
    """Those in which the name means the same."""
    return [source] if mark.scope else [source, *(other for other in others if other.name != source.name)]


def _with_its_meaning(source: SourceText, mark: Mark, others: Iterable[SourceText]) -> Iterator[tuple[SourceText, Mark]]:
    return ((text, m) for text in _texts(source, mark, others) for m in marks_of(text) if m.means(mark))


def _check(edits: Sequence[Edit], mark: Mark, name: str, texts: Iterable[SourceText]) -> None:
    """The new texts must say of the new name what the old ones said of the old one, and nothing else."""
    wanted = mark._replace(name=_folded(mark, name))
    for text in texts:
        own = [edit for edit in edits if edit.span.source is text]
        taken = next((m for m in marks_of(text) if m.means(wanted)), None)
        if taken is not None:
            raise RuleError(Diagnostic(f"'{name}' is named already", text.span(taken.start, taken.end)))
        made = SourceText(text.name, applied(text.text, own))
        if _count(made, wanted) != _count(text, wanted) + len(own):
            raise RuleError(Diagnostic(f"'{name}' cannot stand here", own[0].span if own else None))


def _count(source: SourceText, wanted: Mark) -> int:
    """How often it is named, in whatever scope: scopes are places, which move."""
    return sum((mark.kind, mark.name) == (wanted.kind, wanted.name) for mark in marks_of(source))


def _folded(mark: Mark, name: str) -> str:
    return name.upper() if mark.kind == "variable" and mark.name.isupper() else name


def _written(source: SourceText, mark: Mark, name: str) -> str:
    """The name as it must be written in this place."""
    language, old = language_name(source.name), source.text[mark.start : mark.end]
    before = source.text[mark.start - 1 : mark.start]
    if old.strip("`\"'") != mark.name and old.upper() != mark.name:
        raise RuleError(Diagnostic(f"'{mark.name}' is made of what stands here", source.span(mark.start, mark.end)))
    if source.name.endswith(".xml"):
        return escape(name if mark.kind == EVENT and language == "cdl" else _in_back_quotes(name), {'"': "&quot;"})
    if before in ("'", '"') and source.text[mark.end : mark.end + 1] == before:
        return name.replace(before, before * 2)
    if language == "matchrecognize":
        return name if name.isidentifier() and name.isascii() and old[:1] not in '"`' else '"' + name.replace('"', '""') + '"'
    if language in ("sigma", "cdl"):
        return name
    if language == "amit":
        return _in_back_quotes(name)
    if language == "eql":
        return back_quoted(name) if mark.kind == ATTRIBUTE and not name.replace(".", "_").isidentifier() else name
    return name_text(name, parts_of(language))


def _in_back_quotes(name: str) -> str:
    """If it could not stand without them."""
    return name if NAME.fullmatch(name) else back_quoted(name)
