"""Our terms in those of the protocol: places, kinds, edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lsprotocol import types as lsp
from pygls.uris import from_fs_path

from coincide.editing import Completion, Edit, Mark, Symbol
from coincide.editing.marks import ATTRIBUTE, COMMENT, DETECTOR, EVENT, FUNCTION, KEYWORD, NUMBER, OPERATOR, TEXT
from coincide.errors import Diagnostic
from coincide.source import SourceText, Span

TOKEN_KINDS = {
    KEYWORD: "keyword",
    FUNCTION: "function",
    OPERATOR: "operator",
    NUMBER: "number",
    TEXT: "string",
    COMMENT: "comment",
    EVENT: "type",
    DETECTOR: "class",
    ATTRIBUTE: "property",
    "state": "enumMember",
    "transition": "enumMember",
    "alias": "parameter",
    "parameter": "parameter",
}
OTHER_NAME = "variable"
TOKEN_TYPES = [*dict.fromkeys((*TOKEN_KINDS.values(), OTHER_NAME))]
DEFINITION = "definition"
LEGEND = lsp.SemanticTokensLegend(token_types=TOKEN_TYPES, token_modifiers=[DEFINITION])

SYMBOL_KINDS = {EVENT: lsp.SymbolKind.Event, DETECTOR: lsp.SymbolKind.Class, ATTRIBUTE: lsp.SymbolKind.Property}
COMPLETION_KINDS = {
    EVENT: lsp.CompletionItemKind.Event,
    ATTRIBUTE: lsp.CompletionItemKind.Property,
    KEYWORD: lsp.CompletionItemKind.Keyword,
    FUNCTION: lsp.CompletionItemKind.Function,
}
SEVERITIES = {"error": lsp.DiagnosticSeverity.Error, "warning": lsp.DiagnosticSeverity.Warning}

Units = Callable[[str], int]
"""The length of a text as the client counts it."""


class Terms:
    """Places are counted in the units that client and server have agreed on."""

    def __init__(self, units: Units) -> None:
        self.units = units

    def position(self, source: SourceText, offset: int) -> lsp.Position:
        line, column = source.place(min(max(offset, 0), len(source.text)))
        return lsp.Position(line - 1, self.units(source.line(line)[: column - 1]))

    def offset(self, source: SourceText, position: lsp.Position) -> int:
        """Beyond the end of a line, its end."""
        lines = source.text.count("\n") + 1
        if position.line >= lines:
            return len(source.text)
        text = source.line(position.line + 1)
        start = source.line_span(position.line + 1).start
        column, counted = 0, 0
        while column < len(text) and counted < position.character:
            counted += self.units(text[column])
            column += 1
        return start + column

    def range(self, span: Span) -> lsp.Range:
        return lsp.Range(self.position(span.source, span.start), self.position(span.source, span.end))

    def location(self, span: Span) -> lsp.Location:
        return lsp.Location(uri_of(span.file), self.range(span))

    def diagnostic(self, diagnostic: Diagnostic, source: SourceText) -> lsp.Diagnostic:
        """One without a place stands at the beginning; one whose place is empty shows a character."""
        span = diagnostic.span if diagnostic.span is not None and diagnostic.span.file == source.name else source.span(0, 0)
        shown = span if span.end > span.start else source.span(span.start, min(span.start + 1, len(source.text)))
        message = f"{diagnostic.message}\n{diagnostic.hint}" if diagnostic.hint else diagnostic.message
        severity = SEVERITIES.get(diagnostic.severity, lsp.DiagnosticSeverity.Information)
        return lsp.Diagnostic(self.range(shown), message, severity, code=diagnostic.name, source="coincide")

    def completion(self, item: Completion) -> lsp.CompletionItem:
        return lsp.CompletionItem(
            label=item.name,
            kind=COMPLETION_KINDS.get(item.kind, lsp.CompletionItemKind.Variable),
            detail=item.kind,
            documentation=item.detail or None,
            sort_text=f"{item.rank}{item.name.lower()}",
            filter_text=item.text,
            text_edit=lsp.TextEdit(self.range(item.span), item.text),
        )

    def symbol(self, symbol: Symbol) -> lsp.DocumentSymbol:
        place = self.range(symbol.span)
        return lsp.DocumentSymbol(symbol.name, SYMBOL_KINDS.get(symbol.kind, lsp.SymbolKind.Variable), place, place, symbol.kind)

    def edits(self, edits: Iterable[Edit]) -> lsp.WorkspaceEdit:
        changes: dict[str, list[lsp.TextEdit]] = {}
        for edit in edits:
            changes.setdefault(uri_of(edit.span.file), []).append(lsp.TextEdit(self.range(edit.span), edit.text))
        return lsp.WorkspaceEdit(changes=dict(changes))

    def tokens(self, source: SourceText, marks: Iterable[Mark]) -> list[int]:
        """Five numbers each, relative to the one before; none goes over the end of a line."""
        data: list[int] = []
        last_line, last_column = 0, 0
        for mark in marks:
            kind = TOKEN_TYPES.index(TOKEN_KINDS.get(mark.kind, OTHER_NAME))
            for start, end in _lines(source.text, mark.start, mark.end):
                place = self.position(source, start)
                column = place.character - (last_column if place.line == last_line else 0)
                data += [place.line - last_line, column, self.units(source.text[start:end]), kind, int(mark.defines)]
                last_line, last_column = place.line, place.character
        return data


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        if stop > start:
            yield start, stop
        start = stop + 1


def uri_of(path: str) -> str:
    return from_fs_path(path) or path
