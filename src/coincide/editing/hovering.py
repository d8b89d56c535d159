"""What is said of the thing at a place: of a word the sentence of the reference and an example, of a name where it comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from coincide.editing.learning import Names
from coincide.editing.marks import ATTRIBUTE, EVENT, FUNCTION, KEYWORD, Mark, mark_at
from coincide.editing.navigation import definition
from coincide.editing.words import FUNCTION as FUNCTIONS
from coincide.editing.words import Word, words_of
from coincide.languages.registry import language_name
from coincide.source import SourceText, Span

MANY = 12


@dataclass(frozen=True)
class Hover:
    """Markdown about a stretch of the text."""

    text: str
    span: Span


def hover(source: SourceText, offset: int, others: Iterable[SourceText] = (), names: Names = Names()) -> Hover | None:
    mark = mark_at(source, offset)
    if mark is None:
        return None
    span = source.span(mark.start, mark.end)
    if mark.kind in (KEYWORD, FUNCTION):
        word = word_at(source, mark)
        return None if word is None else Hover(explained(word, language_name(source.name)), span)
    if not mark.is_name:
        return None
    return Hover("\n\n".join([f"`{mark.name}`, {_article(mark.kind)}", *_what_is_known(source, mark, others, names)]), span)


def explained(word: Word, language: str) -> str:
    """A word's sentence and example, as Markdown."""
    text, form = example_of(word, language)
    shown = f"\n\n```{form}\n{text.rstrip()}\n```" if text else ""
    return f"**{word.name}** ({word.group}): {word.sentence}{shown}"


def example_of(word: Word, language: str) -> tuple[str, str]:
    """Its own, or the first of the language that has the word in it."""
    if word.example:
        return word.example, word.form
    wanted = re.compile(rf"(?<![\w-]){re.escape(word.name)}(?![\w-])".replace(r"\ ", r"\s+"), re.IGNORECASE)
    found = next((other for other in words_of(language) if other.example and wanted.search(other.example)), None)
    return ("", "") if found is None else (found.example, found.form)


def word_at(source: SourceText, mark: Mark) -> Word | None:
    """The longest of the language's words that stands around the mark; the kind that fits its place first."""
    text = source.text[mark.start : mark.end].lower()
    found = [word for word in words_of(language_name(source.name)) if _stands(source.text, mark, word, text)]
    best = sorted(found, key=lambda word: (-len(word.name.split()), not _fits(source.text, mark, word)))
    return best[0] if best else None


def _stands(text: str, mark: Mark, word: Word, written: str) -> bool:
    parts = word.name.lower().split()
    if len(parts) == 1:
        return parts[0] == written
    if written not in parts:
        return False
    phrase = re.compile(r"\s+".join(map(re.escape, parts)), re.IGNORECASE)
    window = max(0, mark.start - 3 * len(word.name))
    return any(
        m.start() <= mark.start and mark.end <= m.end() for m in phrase.finditer(text, window, mark.end + 3 * len(word.name))
    )


def _fits(text: str, mark: Mark, word: Word) -> bool:
    if mark.kind == FUNCTION or word.group == FUNCTIONS:
        return (mark.kind == FUNCTION) == (word.group == FUNCTIONS)
    before = text[max(0, mark.start - 2) : mark.start]
    if word.group in ("element", "attribute", "value", "modifier"):
        wanted = "element" if before.endswith(("<", "</")) else "modifier" if before.endswith("|") else ""
        return word.group == wanted or (not wanted and word.group not in ("element", "modifier"))
    return True


def _article(kind: str) -> str:
    shown = {EVENT: "type of events"}.get(kind, kind)
    return f"{'an' if shown[0] in 'aeiou' else 'a'} {shown}"


def _what_is_known(source: SourceText, mark: Mark, others: Iterable[SourceText], names: Names) -> Iterator[str]:
    for span in definition(source, mark.start, others)[:3]:
        if (span.file, span.start) != (source.name, mark.start):
            line = span.source.line(span.line).strip()
            yield f"defined at {PurePath(span.file).name}:{span.line}:{span.column}:\n\n```text\n{line[:160]}\n```"
    if mark.kind == EVENT and mark.name in names.types:
        attributes = ", ".join(f"`{name}`" for name in sorted(names.types[mark.name])[:MANY])
        count = names.counts.get(mark.name)
        seen = f"{count:,} seen in the sample" if count else "in the schema"
        yield f"{seen}; attributes: {attributes or 'none'}"
    if mark.kind == ATTRIBUTE and (types := names.types_with(mark.name)):
        yield f"of {', '.join(f'`{kind}`' for kind in sorted(types)[:MANY])}"
