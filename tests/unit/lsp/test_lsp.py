"""A real client and a real server process, which speak over standard input and output."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from coincide.editing import tokens
from coincide.lsp.terms import TOKEN_KINDS, TOKEN_TYPES
from coincide.source import SourceText

COMMAND = [sys.executable, "-c", "from coincide.cli.main import entry; entry()", "lsp"]
MAKES = "high = value > 6  # 🙂\nmonitor pairs by device = repeat { push(pair, at: value) { sequential { open, close } } }\n"
READS = "detect Busy = [pair] ; [pair]\n"
EVENTS = '{"type": "open", "time": 1, "device": "A", "value": 7}\n{"type": "close", "time": 2, "device": "A"}\n'


@pytest_lsp.fixture(config=ClientServerConfig(server_command=COMMAND))
async def client(lsp_client: LanguageClient, tmp_path: Path) -> AsyncIterator[None]:
    (tmp_path / "makes.ecl").write_text(MAKES, encoding="utf-8")
    (tmp_path / "reads.ce").write_text(READS, encoding="utf-8")
    (tmp_path / "sample.jsonl").write_text(EVENTS, encoding="utf-8")
    options = {"events": "sample.jsonl"}
    capabilities = client_capabilities("visual-studio-code")
    params = lsp.InitializeParams(capabilities, root_uri=tmp_path.as_uri(), initialization_options=options)
    await lsp_client.initialize_session(params)
    lsp_client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams({}))  # as Emacs does: it has none
    yield
    await lsp_client.shutdown_session()


def opened(client: LanguageClient, file: Path, text: str | None = None) -> str:
    uri = file.as_uri()
    content = file.read_text(encoding="utf-8") if text is None else text
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "coincide", 1, content)))
    return uri


def changed(client: LanguageClient, uri: str, text: str, version: int) -> None:
    document = lsp.VersionedTextDocumentIdentifier(version, uri)
    change = lsp.TextDocumentContentChangeWholeDocument(text)
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))


async def diagnosed(client: LanguageClient, uri: str, errors: bool, seconds: float = 180) -> list[lsp.Diagnostic]:
    """What the server says when it comes to this answer."""
    ended = time.monotonic() + seconds
    while time.monotonic() < ended:
        found = client.diagnostics.get(uri)
        if found is not None and any(d.severity == lsp.DiagnosticSeverity.Error for d in found) == errors:
            return list(found)
        await asyncio.sleep(0.02)
    raise AssertionError(f"no such answer: {client.diagnostics}")


def at(uri: str, line: int, character: int) -> dict[str, object]:
    return {"text_document": lsp.TextDocumentIdentifier(uri), "position": lsp.Position(line, character)}


def place(text: str, word: str, number: int = 0) -> tuple[int, int]:
    offset = -1
    for _ in range(number + 1):
        offset = text.index(word, offset + 1)
    line = text.count("\n", 0, offset)
    before = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line, len(before.encode("utf-16-le")) // 2


@pytest.mark.asyncio
async def test_errors_as_one_types(client: LanguageClient, tmp_path: Path) -> None:
    uri = opened(client, tmp_path / "makes.ecl")
    await diagnosed(client, uri, errors=False)
    changed(client, uri, "monitor m = repeat {\n  push(x) { secuential { a, b } }\n}\n", 2)
    (found,) = await diagnosed(client, uri, errors=True)
    assert found.message == "expected '}' after the expression, found '{'\ndid you mean 'sequential'?"
    assert (found.range.start.line, found.source, found.severity) == (1, "coincide", lsp.DiagnosticSeverity.Error)
    changed(client, uri, MAKES, 3)
    await diagnosed(client, uri, errors=False)


@pytest.mark.asyncio
async def test_a_file_of_the_folder_mends_another(client: LanguageClient, tmp_path: Path) -> None:
    situation = '<situation name="s" lifespan="l"><all><operandAll event="a"/></all></situation>'
    lifespan = '<lifespan name="l"><initiator><startup/></initiator><terminator><noTerminator/></terminator></lifespan>'
    uses = opened(client, tmp_path / "uses.amit.xml", f"<amit>{lifespan}{situation}</amit>")
    assert "unknown event 'a'" in (await diagnosed(client, uses, errors=True))[0].message
    opened(client, tmp_path / "types.amit.xml", '<amit><event name="a"/></amit>')
    await diagnosed(client, uses, errors=False)


@pytest.mark.asyncio
async def test_completion_knows_the_sample(client: LanguageClient, tmp_path: Path) -> None:
    text = "monitor m by de = repeat { push(x) { op } }\n"
    uri = opened(client, tmp_path / "new.ecl", text)
    found = await client.text_document_completion_async(lsp.CompletionParams(**at(uri, 0, text.index("de") + 2)))
    items = {item.label: item for item in found.items}
    assert items["device"].kind == lsp.CompletionItemKind.Property
    edit = items["device"].text_edit
    assert isinstance(edit, lsp.TextEdit)
    assert (edit.range.start.character, edit.range.end.character, edit.new_text) == (13, 15, "device")
    found = await client.text_document_completion_async(lsp.CompletionParams(**at(uri, 0, text.index("op }") + 2)))
    labels = {item.label: item.kind for item in found.items}
    assert labels["open"] == lsp.CompletionItemKind.Event
    assert labels["pair"] == lsp.CompletionItemKind.Event  # of the other file
    assert labels["sequential"] == lsp.CompletionItemKind.Keyword


@pytest.mark.matrix
@pytest.mark.asyncio
async def test_a_settings_file_names_the_sample(client: LanguageClient, tmp_path: Path) -> None:
    folder = tmp_path / "rules" / "deep"
    folder.mkdir(parents=True)
    (tmp_path / "rules" / "coincide.json").write_text(json.dumps({"events": ["../other.jsonl"]}), encoding="utf-8")
    (tmp_path / "other.jsonl").write_text('{"type": "tick", "time": 1, "price": 3}\n', encoding="utf-8")
    (tmp_path / "rules" / "a.ecco").write_text("detect jam = a ; b\n", encoding="utf-8")
    uri = opened(client, folder / "b.ecco", "detect x = \n")
    found = await client.text_document_completion_async(lsp.CompletionParams(**at(uri, 0, 11)))
    assert {"tick", "jam", "open"} <= {item.label for item in found.items}


@pytest.mark.matrix
@pytest.mark.asyncio
async def test_hover(client: LanguageClient, tmp_path: Path) -> None:
    uri = opened(client, tmp_path / "makes.ecl")
    found = await client.text_document_hover_async(lsp.HoverParams(**at(uri, *place(MAKES, "sequential"))))
    assert isinstance(found.contents, lsp.MarkupContent)
    assert "one after the other" in found.contents.value
    assert found.range == lsp.Range(lsp.Position(*place(MAKES, "sequential")), lsp.Position(*place(MAKES, " { open")))
    found = await client.text_document_hover_async(lsp.HoverParams(**at(uri, *place(MAKES, "open"))))
    assert "1 seen in the sample" in found.contents.value
    assert await client.text_document_hover_async(lsp.HoverParams(**at(uri, 1, 24))) is None


@pytest.mark.matrix
@pytest.mark.asyncio
async def test_definition_and_references_over_files(client: LanguageClient, tmp_path: Path) -> None:
    uri = opened(client, tmp_path / "reads.ce")
    (found,) = await client.text_document_definition_async(lsp.DefinitionParams(**at(uri, *place(READS, "pair"))))
    assert found.uri == (tmp_path / "makes.ecl").as_uri()
    assert (found.range.start.line, found.range.start.character) == place(MAKES, "pair, at")
    context = lsp.ReferenceContext(include_declaration=False)
    params = lsp.ReferenceParams(context=context, **at(uri, *place(READS, "pair")))
    assert [location.uri for location in await client.text_document_references_async(params)] == [uri, uri]


@pytest.mark.asyncio
async def test_rename_over_files(client: LanguageClient, tmp_path: Path) -> None:
    uri = opened(client, tmp_path / "reads.ce")
    ready = await client.text_document_prepare_rename_async(lsp.PrepareRenameParams(**at(uri, *place(READS, "pair"))))
    assert ready == lsp.Range(lsp.Position(0, 15), lsp.Position(0, 19))
    edit = await client.text_document_rename_async(lsp.RenameParams(new_name="couple", **at(uri, *place(READS, "pair"))))
    assert {Path(name).name: len(edits) for name, edits in edit.changes.items()} == {"makes.ecl": 1, "reads.ce": 2}
    with pytest.raises(JsonRpcException, match="named already"):
        await client.text_document_rename_async(lsp.RenameParams(new_name="Busy", **at(uri, *place(READS, "pair"))))


@pytest.mark.asyncio
async def test_formatting(client: LanguageClient, tmp_path: Path) -> None:
    uri = opened(client, tmp_path / "wild.ce", "# a\ndetect   X=[a]   [b]\n")
    options = lsp.FormattingOptions(4, True)
    params = lsp.DocumentFormattingParams(lsp.TextDocumentIdentifier(uri), options)
    (edit,) = await client.text_document_formatting_async(params)
    assert edit.new_text == "# a\ndetect X = [a] [b]\n"
    changed(client, uri, "detect X = [", 2)
    assert await client.text_document_formatting_async(params) == ()
    assert any("keeps its layout" in message.message for message in client.log_messages)


@pytest.mark.asyncio
async def test_symbols_and_semantic_tokens(client: LanguageClient, tmp_path: Path) -> None:
    uri = opened(client, tmp_path / "makes.ecl")
    document = lsp.TextDocumentIdentifier(uri)
    found = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
    assert [(symbol.name, symbol.detail) for symbol in found] == [("high", "predicate"), ("pairs", "detector"), ("pair", "event")]
    answer = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document))
    assert list(decoded(MAKES, answer.data)) == [
        (MAKES[mark.start : mark.end], TOKEN_KINDS.get(mark.kind, "variable")) for mark in tokens(SourceText("a.ecl", MAKES))
    ]


def decoded(text: str, data: list[int]) -> list[tuple[str, str]]:
    """Texts and types, by the protocol's relative places in UTF-16."""
    found, line, column = [], 0, 0
    lines = text.split("\n")
    for number in range(0, len(data), 5):
        down, right, length, kind, _ = data[number : number + 5]
        line, column = line + down, right if down else column + right
        units = lines[line].encode("utf-16-le")
        found.append((units[2 * column : 2 * (column + length)].decode("utf-16-le"), TOKEN_TYPES[kind]))
    return found


@pytest.mark.matrix
@pytest.mark.asyncio
async def test_texts_that_are_half_written_are_answered(client: LanguageClient, tmp_path: Path) -> None:
    """Character by character, as people type; the server stays."""
    uri = opened(client, tmp_path / "typed.ecl", "")
    text = MAKES + "monitor more = push(x) { type = 'a' and v in (1, 2) }"
    for version, end in enumerate(range(1, len(text) + 1, 3), 2):
        changed(client, uri, text[:end], version)
        line = text.count("\n", 0, end)
        column = len(text[:end].rpartition("\n")[2].encode("utf-16-le")) // 2
        await client.text_document_completion_async(lsp.CompletionParams(**at(uri, line, column)))
        await client.text_document_hover_async(lsp.HoverParams(**at(uri, line, max(0, column - 1))))
    changed(client, uri, text, 9999)
    await diagnosed(client, uri, errors=False)


LANGUAGES = [
    ("a.amit.xml", "<amit>\n  <event/>\n</amit>", "event"),
    ("a.amit.yaml", "events:\n  a: {x: text}\n", "events"),
    ("a.cdl.xml", "<cd><sources/></cd>", "sources"),
    ("a.cdl.yaml", "cd: a\nsources: {}\n", "sources"),
    ("a.say", "Report x when y followed z.", "when"),
    ("a.ecco", "detect x = a ;", "detect"),
    ("a.mr.sql", "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A))", "PATTERN"),
    ("a.eql", "sequence [a where true", "sequence"),
    ("a.toml", '[rule]\nlanguage = "eql"\nname = "n"\nquery = "any where x =="\n', ""),
    ("a.yml", "title: x\ndetection:\n  sel: {a: 1}\n", "detection"),
]


@pytest.mark.asyncio
async def test_every_language_is_served(client: LanguageClient, tmp_path: Path) -> None:
    for name, text, word in LANGUAGES:
        uri = opened(client, tmp_path / name, text)
        assert await diagnosed(client, uri, errors=True), name
        if word:
            found = await client.text_document_hover_async(lsp.HoverParams(**at(uri, *place(text, word))))
            assert word.rstrip("s") in found.contents.value, name
