"""The server: what clients ask, answered from the texts of their folders."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from coincide import __version__, editing
from coincide.errors import CoincideError
from coincide.lsp.folders import Folders, settings_of
from coincide.lsp.terms import LEGEND, Terms
from coincide.source import SourceText

PAUSE = 0.1
"""Seconds without a change before a text is checked."""
TRIGGERS = [".", "<", '"', "'", "|", "[", "(", "{", " "]


class Server(LanguageServer):
    """Answers one client."""

    def __init__(self) -> None:
        super().__init__("coincide", __version__)
        self.folders = Folders(self.tell)
        self.waiting: dict[str, asyncio.Task[None]] = {}

    @property
    def terms(self) -> Terms:
        return Terms(self.workspace.position_codec.client_num_units)

    def tell(self, message: str) -> None:
        self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Warning, message))

    def source(self, uri: str) -> SourceText:
        path = path_of(uri)
        return self.folders.text(path) or SourceText(path, "")

    def at(self, params: Any) -> tuple[SourceText, int, list[SourceText]]:
        """The text, the place in it, and the texts beside it."""
        source = self.source(params.text_document.uri)
        return source, self.terms.offset(source, params.position), list(self.folders.beside(source.name))

    # Texts and what is wrong with them

    def changed(self, uri: str) -> None:
        """The text is checked in a moment, with those that are open beside it: what one defines another may need."""
        path = path_of(uri)
        self.folders.opened[path] = SourceText(path, self.workspace.get_text_document(uri).source)
        root = self.folders.root(path)
        for name in self.folders.opened:
            if self.folders.root(name) == root:
                self.check_soon(name)

    def check_soon(self, path: str) -> None:
        if path in self.waiting:
            self.waiting[path].cancel()
        self.waiting[path] = asyncio.get_running_loop().create_task(self._check_later(path))

    async def _check_later(self, path: str) -> None:
        await asyncio.sleep(PAUSE)
        source = self.folders.opened.get(path)
        if source is not None:
            found = editing.diagnostics(source, self.folders.beside(path), self.folders.mapping(path))
            self.publish(path, [self.terms.diagnostic(diagnostic, source) for diagnostic in found])

    def publish(self, path: str, diagnostics: list[lsp.Diagnostic]) -> None:
        uri = next((uri for uri in self.workspace.text_documents if path_of(uri) == path), None)
        if uri is not None:
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics))

    def configured(self, given: object) -> None:
        base = Path(self.workspace.root_path) if self.workspace.root_path else Path()
        options = given.get("coincide", given) if isinstance(given, dict) else given
        if options:  # some editors tell that they have no settings, after they have given those of the start
            self.folders.settings = settings_of(options, base)


def path_of(uri: str) -> str:
    return to_fs_path(uri) or uri


def serve() -> None:
    """Over standard input and output, until the client closes them. Whatever else is printed goes to standard error."""
    with os.fdopen(os.dup(0), "rb") as read, os.fdopen(os.dup(1), "wb") as written, redirect_stdout(sys.stderr):
        made_server().start_io(read, written)


def made_server() -> Server:
    server = Server()
    _add_texts(server)
    _add_questions(server)
    _add_changes(server)
    return server


def _add_texts(server: Server) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        server.configured(params.initialization_options)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def reconfigured(params: lsp.DidChangeConfigurationParams) -> None:
        server.configured(params.settings)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def on_disk(_: lsp.DidChangeWatchedFilesParams) -> None:
        for path in server.folders.opened:
            server.check_soon(path)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        server.folders.opened.pop(path, None)
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))


def _add_questions(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=TRIGGERS))
    def completion(params: lsp.CompletionParams) -> lsp.CompletionList:
        source, offset, others = server.at(params)
        found = editing.completions(source, offset, others, server.folders.names(source.name))
        return lsp.CompletionList(is_incomplete=False, items=[server.terms.completion(item) for item in found])

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        source, offset, others = server.at(params)
        found = editing.hover(source, offset, others, server.folders.names(source.name))
        if found is None:
            return None
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text), server.terms.range(found.span))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> list[lsp.Location]:
        return [server.terms.location(span) for span in editing.definition(*server.at(params))]

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        found = editing.references(*server.at(params))
        defining = [] if params.context.include_declaration else editing.definition(*server.at(params))
        return [server.terms.location(span) for span in found if span not in defining]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        return [server.terms.symbol(symbol) for symbol in editing.symbols(server.source(params.text_document.uri))]

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    def tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        source = server.source(params.text_document.uri)
        return lsp.SemanticTokens(server.terms.tokens(source, editing.tokens(source)))


def _add_changes(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare(params: lsp.PrepareRenameParams) -> lsp.Range | None:
        source, offset, _ = server.at(params)
        mark = editing.name_at(source, offset)
        return None if mark is None else server.terms.range(source.span(mark.start, mark.end))

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        source, offset, others = server.at(params)
        try:
            return server.terms.edits(editing.rename(source, offset, params.new_name, others))
        except CoincideError as error:
            raise JsonRpcInvalidParams(error.diagnostics[0].message) from None

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        source = server.source(params.text_document.uri)
        try:
            made = editing.formatted(source)
        except CoincideError as error:
            server.tell(f"{Path(source.name).name} keeps its layout: {error.diagnostics[0].head}")
            return []
        everything = server.terms.range(source.span(0, len(source.text)))
        return [] if made == source.text else [lsp.TextEdit(everything, made)]
