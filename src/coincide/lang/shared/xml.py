"""XML elements with their places, read safely: no entities but the five, nothing fetched, depth and size bounded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn
from xml.parsers import expat

from coincide.errors import Diagnostic, RuleError
from coincide.source import MAXIMUM_DEPTH, MAXIMUM_SIZE, SourceText, Span


@dataclass(frozen=True)
class Element:
    """An element: its start tag's place, its attributes as they mean, its child elements, its own character data."""

    name: str
    attributes: Mapping[str, str]
    children: tuple[Element, ...]
    text: str
    span: Span = field(compare=False, repr=False)  # of the start tag
    content: str = field(default="", compare=False, repr=False)  # the character data with the white space around it
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)  # of values, where errors stand there

    def place(self, attribute: str) -> Span:
        """Where an error in an attribute's value is shown."""
        return self.places.get(attribute, self.span)

    def at(self, span: Span) -> Element:
        """The same element, with all below it, standing at another place."""
        return replace(self, span=span, places={}, children=tuple(child.at(span) for child in self.children))


UNKNOWN_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos|#\w+);)([^;\s]*);")
START_TAG = re.compile(r"<[^\s/>]+(?:[^>\"']|\"[^\"]*\"|'[^']*')*>?")


ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;", "\n": "&#10;"})


def parse_xml(source: SourceText) -> Element:
    """The root element. RuleError `not well-formed XML: …` with its place."""
    return _Reader(source).read()


def quoted(text: str) -> str:
    """White space other than a blank would be read as a blank if it were not written as a reference."""
    plain = escaped(text).replace("\t", "&#9;")
    if '"' not in plain:
        return f'"{plain}"'
    return f"'{plain}'" if "'" not in plain else '"' + plain.replace('"', "&quot;") + '"'


def escaped(text: str) -> str:
    """As character data; `xml.sax.saxutils` would do it, but imports what reads the web."""
    return text.translate(ESCAPES)


class _Open:
    """An element whose end tag has not come yet."""

    def __init__(self, name: str, attributes: dict[str, str], span: Span) -> None:
        self.name = name
        self.attributes = attributes
        self.span = span
        self.children: list[Element] = []
        self.text: list[str] = []

    def closed(self) -> Element:
        content = "".join(self.text)
        return Element(self.name, self.attributes, tuple(self.children), content.strip(), self.span, content)


class _Reader:
    """Handlers of the parser, and the elements that are open."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.data = source.text.encode("utf-8", "surrogatepass")
        self.open: list[_Open] = []
        self.root: Element | None = None
        self.has_doctype = False
        self._at = (0, 0)  # a byte and the character that begins there
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._entity
        self.parser.SkippedEntityHandler = self._skipped
        self.parser.ExternalEntityRefHandler = self._external

    def read(self) -> Element:
        if len(self.data) > MAXIMUM_SIZE:
            self._refuse(f"larger than {MAXIMUM_SIZE // 1024**2} MB", 0)
        try:
            self.parser.Parse(self.data, True)
        except expat.ExpatError as error:
            reason, byte = expat.errors.messages.get(error.code, "cannot be read"), self.parser.ErrorByteIndex
        else:
            root, self.root = self.root, None  # the parser and its handlers hold one another
            assert root is not None
            return root
        self._refuse(reason, self._character(byte))

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        start = self._here()
        if len(self.open) >= MAXIMUM_DEPTH:
            self._refuse(f"elements are nested more than {MAXIMUM_DEPTH} deep", start)
        tag = START_TAG.match(self.source.text, start)
        span = self.source.span(start, tag.end() if tag else start + 1)
        # With a DTD that is not read, the parser takes an unknown entity in an attribute for an empty text.
        if self.has_doctype and (unknown := UNKNOWN_ENTITY.search(span.text)):
            self._refuse(f"undefined entity '{unknown[1]}'", start + unknown.start())
        self.open.append(_Open(name, attributes, span))

    def _end(self, name: str) -> None:
        element = self.open.pop().closed()
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element

    def _characters(self, text: str) -> None:
        if self.open:
            self.open[-1].text.append(text)

    def _doctype(self, name: str, system: str | None, public: str | None, has_internal_subset: int) -> None:
        """A reference to a DTD is passed over (it is never fetched); declarations inside the file could define entities."""
        self.has_doctype = True
        if has_internal_subset:
            self._refuse("declarations in the document type are not allowed", self._here())

    def _entity(self, *declaration: object) -> None:
        self._refuse("entity declarations are not allowed", self._here())

    def _skipped(self, name: str, is_parameter: bool) -> None:
        self._refuse(f"undefined entity '{name}'", self._here())

    def _external(self, *reference: object) -> int:
        self._refuse("external entities are not allowed", self._here())

    def _here(self) -> int:
        return self._character(self.parser.CurrentByteIndex)

    def _character(self, byte: int) -> int:
        """Characters before a byte; bytes are asked for in order, so each stretch is counted once."""
        known, count = self._at
        if byte < known:
            known, count = 0, 0
        count += len(self.data[known:byte].decode("utf-8", "replace"))
        self._at = (byte, count)
        return count

    def _refuse(self, reason: str, offset: int) -> NoReturn:
        offset = min(max(offset, 0), len(self.source.text))
        raise RuleError(Diagnostic(f"not well-formed XML: {reason}", self.source.span(offset, offset + 1)))
