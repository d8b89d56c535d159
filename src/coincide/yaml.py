"""YAML as nodes with their places, read safely: no tags, one document, depth and number of nodes bounded (aliases counted
as what they stand for). Scalars are texts as they are written, so `no` and `1e3` mean nothing but themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import yaml

from coincide.errors import Diagnostic, RuleError
from coincide.source import MAXIMUM_DEPTH, MAXIMUM_SIZE, SourceText, Span

MAXIMUM_NODES = 200_000

Content = TypeVar("Content")


@dataclass(frozen=True)
class Scalar:
    """A text; `plain` if it stands without quotes."""

    text: str
    span: Span = field(compare=False, repr=False)
    plain: bool = True
    size = 1

    @property
    def is_empty(self) -> bool:
        return self.plain and not self.text


@dataclass(frozen=True)
class Items:
    """A list."""

    nodes: tuple[Node, ...]
    span: Span = field(compare=False, repr=False)
    size: int = 1


@dataclass(frozen=True)
class Entries:
    """A mapping; keys may be given twice, in the order in which they stand."""

    pairs: tuple[tuple[Scalar, Node], ...]
    span: Span = field(compare=False, repr=False)
    size: int = 1


Node = Scalar | Items | Entries


def parse_yaml(source: SourceText) -> Node:
    """The document, an empty scalar if there is none. RuleError `not well-formed YAML: …` with its place."""
    return _Reader(source).read(_Reader.only_document)


def parse_documents(source: SourceText, refusal: str) -> list[Node]:
    """All documents of a file; RuleError with the `refusal` and the reason. Folders hold thousands of files: they are parsed by
    PyYAML's C library where it is there, which is ten times as fast but tells less of what it expected."""
    return _Reader(source, refusal, getattr(yaml, "CSafeLoader", yaml.SafeLoader)).read(_Reader.documents)


class _Reader:
    """Composes nodes from the parser's events."""

    def __init__(self, source: SourceText, refusal: str = "not well-formed YAML", loader: Any = yaml.SafeLoader) -> None:
        self.source = source
        self.refusal = refusal
        self.events: Iterator[Any] = iter(yaml.parse(source.text, Loader=loader))
        self.anchors: dict[str, Node | None] = {}
        self.count = 0

    def read(self, content: Callable[[_Reader], Content]) -> Content:
        if len(self.source.text) > MAXIMUM_SIZE:
            self._refuse(f"larger than {MAXIMUM_SIZE // 1024**2} MB", 0)
        try:
            return content(self)
        except yaml.MarkedYAMLError as error:
            reason, place = error.problem or "cannot be read", error.problem_mark.index if error.problem_mark else 0
        except yaml.reader.ReaderError as error:
            reason, place = str(error.reason), error.position
        self._refuse(reason, place)

    def documents(self) -> list[Node]:
        next(self.events)  # the beginning of the stream
        found = []
        while not isinstance(next(self.events), yaml.StreamEndEvent):
            self.anchors.clear()
            found.append(self._node(next(self.events), 1))
            next(self.events)  # the end of the document
        return found

    def only_document(self) -> Node:
        next(self.events)  # the beginning of the stream
        first = next(self.events)
        if isinstance(first, yaml.StreamEndEvent):
            return Scalar("", self.source.span(0, 0))
        found = self._node(next(self.events), 1)
        next(self.events)  # the end of the document
        more = next(self.events)
        if not isinstance(more, yaml.StreamEndEvent):
            self._refuse("a second document", more.start_mark.index)
        return found

    def _node(self, event: Any, depth: int) -> Node:
        if depth > MAXIMUM_DEPTH:
            self._refuse(f"nested more than {MAXIMUM_DEPTH} deep", event.start_mark.index)
        if isinstance(event, yaml.AliasEvent):
            return self._counted(self._aliased(event), event)
        if event.tag not in (None, "!"):
            self._refuse(f"tags are not allowed ('{event.tag}')", event.start_mark.index)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        found = self._counted(self._content(event, depth), event)
        if event.anchor is not None:
            self.anchors[event.anchor] = found
        return found

    def _content(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(event.value, self._span(event), not event.style)
        parts: list[Node] = []
        end: Any = next(self.events)
        while not isinstance(end, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            parts.append(self._node(end, depth + 1))
            end = next(self.events)
        span = self.source.span(event.start_mark.index, end.end_mark.index)  # type: ignore[union-attr]
        size = 1 + sum(part.size for part in parts)
        if isinstance(event, yaml.SequenceStartEvent):
            return Items(tuple(parts), span, size)
        return Entries(tuple((self._key(k), v) for k, v in zip(parts[::2], parts[1::2], strict=True)), span, size)

    def _key(self, node: Node) -> Scalar:
        if not isinstance(node, Scalar):
            self._refuse("a key must be one value", node.span.start)
        return node

    def _aliased(self, event: Any) -> Node:
        found = self.anchors.get(event.anchor)
        if found is None:
            self._refuse(f"'*{event.anchor}' stands for nothing that ends before it", event.start_mark.index)
        return found

    def _counted(self, node: Node, event: Any) -> Node:
        """Parts were counted before; an alias brings all of what it stands for."""
        self.count += node.size if isinstance(event, yaml.AliasEvent) else 1
        if self.count > MAXIMUM_NODES:
            self._refuse(f"more than {MAXIMUM_NODES:,} nodes", event.start_mark.index)
        return node

    def _span(self, event: Any) -> Span:
        return self.source.span(event.start_mark.index, event.end_mark.index)

    def _refuse(self, reason: str, offset: int) -> NoReturn:
        offset = min(max(offset, 0), len(self.source.text))
        hint = "YAML is indented with spaces, not tabs" if self.source.text[offset : offset + 1] == "\t" else None
        raise RuleError(Diagnostic(f"{self.refusal}: {reason}", self.source.span(offset, offset + 1), hint=hint))


def several(node: Node) -> Sequence[Node]:
    """The items of a list; of anything else, itself; of nothing, none."""
    if isinstance(node, Scalar) and node.is_empty:
        return ()
    return node.nodes if isinstance(node, Items) else (node,)
