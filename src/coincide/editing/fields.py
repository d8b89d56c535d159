"""Texts of elements with attributes, in XML or as the YAML that stands for them: every value with its element. Texts that are
half written are read as far as they go."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from coincide.editing.marks import COMMENT, KEYWORD, Mark
from coincide.errors import RuleError
from coincide.lang.shared.xml import Element
from coincide.source import SourceText
from coincide.yaml import Entries, Items, Node, Scalar, parse_documents

CONTENT = ""
"""The attribute that an element's own text is."""
TAG = re.compile(
    r"<!--(?P<comment>.*?)(?:-->|\Z)|<\?.*?\?>|<![^>]*>"
    r"|<(?P<close>/?)(?P<name>[\w:.-]*)(?P<given>(?:[^<>\"']|\"[^\"<]*\"?|'[^'<]*'?)*)(?P<end>>?)",
    re.DOTALL,
)
GIVEN = re.compile(r"(?P<name>[^\s=/>\"'<]+)(?:\s*=\s*(?:\"(?P<double>[^\"<]*)\"?|'(?P<single>[^'<]*)'?))?")

Read = TypeVar("Read")
MOST_MENDED = 25


@dataclass(frozen=True)
class Field:
    """A value: of an attribute of the element that `path` ends with, or of its content. `item` is the place of the outermost
    element but the root that it stands in: what belongs together."""

    path: tuple[str, ...]
    attribute: str
    text: str
    start: int
    item: int

    @property
    def element(self) -> str:
        return self.path[-1]

    @property
    def parent(self) -> str:
        return self.path[-2] if len(self.path) > 1 else ""

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def xml_fields(text: str) -> Iterator[Field | Mark]:
    """Values, and marks of comments, tags and names of attributes."""
    open_: list[tuple[str, int]] = []
    at = 0
    for tag in TAG.finditer(text):
        if open_ and text[at : tag.start()].strip():
            yield _field(open_, CONTENT, text[at : tag.start()], at)
        at = tag.end()
        if tag["comment"] is not None:
            yield Mark(tag.start(), tag.end(), COMMENT)
        elif tag["close"]:
            while open_ and open_.pop()[0] != tag["name"]:
                pass
        elif tag["name"]:
            open_.append((tag["name"], tag.start()))
            yield from _opened(tag, open_)
            if tag["given"].endswith("/"):
                open_.pop()
        if tag["name"]:
            yield Mark(tag.start("name"), tag.end("name"), KEYWORD)


def _opened(tag: re.Match[str], open_: Sequence[tuple[str, int]]) -> Iterator[Field | Mark]:
    start = tag.start("given")
    for given in GIVEN.finditer(tag["given"]):
        yield Mark(start + given.start("name"), start + given.end("name"), KEYWORD)
        quote = "double" if given["double"] is not None else "single"
        if given[quote] is not None:
            yield _field(open_, given["name"], given[quote], start + given.start(quote))


def _field(open_: Sequence[tuple[str, int]], attribute: str, text: str, start: int) -> Field:
    item = open_[1][1] if len(open_) > 1 else open_[0][1]
    return Field(tuple(name for name, _ in open_), attribute, text, start, item)


def element_fields(roots: Iterable[Element], path: tuple[str, ...] = (), item: int | None = None) -> Iterator[Field]:
    """Of elements that YAML stands for: those values that have a place."""
    for element in roots:
        own = element.span.start if item is None else item
        for attribute, span in element.places.items():
            quoted = span.text[:1] in ("'", '"') and len(span.text) > 1
            written = span.text[1:-1] if quoted else span.text
            yield Field((*path, element.name), attribute, written, span.start + quoted, own)
        yield from element_fields(element.children, (*path, element.name), own)


def mended(source: SourceText, read: Callable[[SourceText], Read]) -> Read | None:
    """What is read of a text without the lines that are wrong: each is blanked, and the rest is read again. That a line is wrong
    is often seen in the next one only: of the two, the line goes without which more can be read."""
    text = source.text
    found, wrong = _attempt(source.name, text, read)
    for _ in range(MOST_MENDED):
        if wrong is None:
            return found
        attempts = [(blanked, *_attempt(source.name, blanked, read)) for blanked in _without_lines(text, wrong)]
        if not attempts:
            return None
        text, found, wrong = max(attempts, key=lambda attempt: len(text) + 1 if attempt[2] is None else attempt[2])
    return None


def _attempt(name: str, text: str, read: Callable[[SourceText], Read]) -> tuple[Read | None, int | None]:
    """What is read, or where something is wrong."""
    try:
        return read(SourceText(name, text)), None
    except RuleError as error:
        span = error.diagnostics[0].span
        return None, min(span.start, len(text)) if span is not None else 0


def _without_lines(text: str, offset: int) -> Iterator[str]:
    """With the line of a place blanked, and with the last one before it that is not blank."""
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    blanked = 0
    while end >= 0 and blanked < 2:
        start = text.rfind("\n", 0, end) + 1
        if text[start:end].strip():
            blanked += 1
            yield text[:start] + " " * (end - start) + text[end:]
        end = start - 1


def yaml_keys(source: SourceText) -> Iterator[tuple[tuple[str, ...], Scalar, Node]]:
    """Every key of all documents, behind the keys that lead to it, with its value."""
    documents = mended(source, lambda text: parse_documents(text, "not well-formed YAML"))
    for number, node in enumerate(documents or []):
        yield from _keys(node, (str(number),))


def _keys(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Scalar, Node]]:
    if isinstance(node, Items):
        for member in node.nodes:
            yield from _keys(member, path)
    elif isinstance(node, Entries):
        for key, value in node.pairs:
            yield path, key, value
            yield from _keys(value, (*path, key.text))


def inner(scalar: Scalar) -> tuple[int, str]:
    """Where the text of a scalar begins, quotes left out, and the text as it is written."""
    written = scalar.span.text
    quoted = not scalar.plain and written[:1] in ("'", '"') and len(written) > 1
    return (scalar.span.start + 1, written[1:-1]) if quoted else (scalar.span.start, written.rstrip())


def yaml_comments(text: str, ends: Iterable[tuple[int, int]]) -> Iterator[Mark]:
    """`#` at the beginning or behind a space, outside scalars."""
    taken = sorted(ends)
    for found in re.finditer(r"(?:^|(?<=\s))#[^\n]*", text, re.MULTILINE):
        if not any(start <= found.start() < end for start, end in taken):
            yield Mark(found.start(), found.end(), COMMENT)


def yaml_values(node: Node) -> Iterator[Scalar]:
    """A scalar, or those of a list."""
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Items):
        for member in node.nodes:
            yield from yaml_values(member)
