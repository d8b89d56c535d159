"""What rules may read: regular files below their folder, and more only where that is allowed."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import coincide
from coincide.access import allowing
from coincide.attachments import giving
from coincide.cli.main import main
from coincide.errors import RuleError

SOURCE = Path(coincide.__file__).parent
ZONE = (
    '{"type": "Feature", "properties": {"name": "z"}, '
    '"geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}}'
)
TABLE = "key,value,time,attribute\n"


def cdl(kind: str) -> Callable[[str], str]:
    key = "" if kind == "context" else ", key: key"
    rest = "sources: {D: door}\npredicates: {P: {any: D}}\nexpressions: {X: P}\nevents: {e: }\n"
    return lambda name: f"cd: c\nproviders: {{t: {{kind: {kind}, href: '{name}'{key}}}}}\n{rest}"


def ecco(name: str) -> str:
    return f"space from '{name}' by name\ndetect d = a @ 'z'\n"


READERS: list[tuple[str, str, Callable[[str], str]]] = [
    ("rules.ecco", ZONE, ecco),
    ("rules.cdl.yaml", TABLE, cdl("csv")),
    ("rules.cdl.yaml", TABLE, cdl("context")),
]
ALL = pytest.mark.parametrize(("file", "content", "rules"), READERS, ids=["ecco", "csv", "context"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules" / "below").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    return tmp_path / "rules"


def refusal(path: Path) -> str:
    with pytest.raises(RuleError) as raised:
        coincide.load(path)
    return raised.value.diagnostics[0].render()


@ALL
def test_below_the_folder_of_the_rules(folder: Path, file: str, content: str, rules: Callable[[str], str]) -> None:
    (folder / "below" / "data").write_text(content)
    (folder / "link").symlink_to(folder / "below" / "data")
    for name in ("below/data", "link", "../rules/below/data", str(folder / "below" / "data")):
        (folder / file).write_text(rules(name))
        assert coincide.load(folder / file).detectors


@ALL
def test_elsewhere_only_where_it_is_allowed(
    folder: Path, file: str, content: str, rules: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    other = folder.parent / "other"
    (other / "data").write_text(content)
    (folder / "link").symlink_to(other / "data")
    for name in ("../other/data", "link", str(other / "data"), "../other/not-there"):
        path = folder / file
        path.write_text(rules(name))
        text = refusal(path)
        assert re.search(rf"{re.escape(str(path))}:[12]:\d+: error: cannot read '{re.escape(name)}'", text)
        assert "hint: it is not below the folder of the rules; allow it with --allow-path DIR" in text
        assert main(["check", str(path)]) == 2
        if name != "../other/not-there":
            assert coincide.load(path, allow_paths=[other]).detectors
            assert coincide.loads(path.read_text(), file.partition(".")[2], str(folder / "text"), allow_paths=[str(other)])
            assert main(["check", str(path), "--allow-path", str(other)]) == 0
    capsys.readouterr()


@ALL
def test_only_regular_files(folder: Path, file: str, content: str, rules: Callable[[str], str]) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/dev/zero")
    for name in ("pipe", "below"):
        (folder / file).write_text(rules(name))
        assert "hint: it is not a regular file" in refusal(folder / file)
    (folder / file).write_text(rules("link"))
    with pytest.raises(RuleError, match="it is not a regular file"):
        coincide.load(folder / file, allow_paths=["/dev"])


def test_databases_only_where_they_are_allowed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sqlalchemy")
    for place in (folder, folder.parent / "other"):
        with sqlite3.connect(place / "t.db") as database:
            database.execute("create table t (key text)")
    path = folder / "rules.cdl.yaml"
    for name in ("sqlite:///t.db#t", "postgresql://host/db#t"):
        path.write_text(cdl("sql")(name))
        text = refusal(path)
        assert f"{path}:2:13: error: cannot read '{name}'" in text
        assert "hint: rules may ask a database only where that is allowed; allow it with --allow-db" in text
    path.write_text(cdl("sql")("sqlite:///t.db#t"))
    assert coincide.load(path, allow_db=True).detectors
    assert main(["check", str(path), "--allow-db"]) == 0
    capsys.readouterr()
    path.write_text(cdl("sql")("sqlite:///../other/t.db#t"))
    with pytest.raises(RuleError, match="not below the folder of the rules"):
        coincide.load(path, allow_db=True)
    assert coincide.load(path, allow_db=True, allow_paths=[folder.parent]).detectors


@ALL
def test_workers_read_nothing(folder: Path, file: str, content: str, rules: Callable[[str], str]) -> None:
    """What is loaded there has its tables with it: rules that a checkpoint holds cannot name files of the machine."""
    (folder / "data").write_text(content)
    (folder / file).write_text(rules("data"))
    book = coincide.load(folder / file)
    with giving(book.attachments):
        assert coincide.load(folder / file).detectors
    with allowing([folder]), giving({}), pytest.raises(RuleError, match="was not sent with them"):
        coincide.load(folder / file)


UNPICKLES = re.compile(
    r"\b(pickle|cloudpickle|dill|marshal|shelve|joblib)\b\.(loads?|Unpickler|open)|allow_pickle"
    r"|^\s*import (pickle|marshal|shelve|dill|joblib)\b|^\s*from (pickle|marshal|shelve|dill|joblib)\b(?! import PicklingError$)"
)
"""Readers that run code. Spark's own, by which it sends functions to its workers, is not ours."""


def lines_of_source() -> Iterator[tuple[str, str]]:
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        yield from ((name, line) for line in path.read_text(encoding="utf-8").splitlines())


def test_nothing_that_is_read_is_run() -> None:
    """Whoever can write a snapshot, a checkpoint or a message must not thereby run code."""
    assert [(file, line) for file, line in lines_of_source() if UNPICKLES.search(line)] == []


def test_there_is_one_reader_of_xml() -> None:
    """It takes no declarations of entities and fetches nothing: test_xml.py."""
    parses = re.compile(r"\b(lxml|xml\.etree|xml\.dom|xml\.sax|expat|xmltodict)\b(?!\.saxutils)")
    assert {file for file, line in lines_of_source() if parses.search(line)} == {"lang/shared/xml.py"}
