"""Several cases in one YAML file (`NAME.test.yaml`):

    rules: doors.ecl                  # for all cases: a path, several, or {ecl: TEXT}
    cases:
      - name: a door is opened and closed
        events:                       # records, or the path of a file
          - {type: open, time: 2026-03-01T12:00Z, door: a}
          - {type: close, time: 2026-03-01T12:05Z, door: a}
        expected:
          - {type: pair, time: 2026-03-01T12:05Z, ...}
        until: inf                    # optional; also `policy`, and rules of its own

For Sigma, `mapping` is the path of a mapping file, or the name of one that comes with the package. Paths begin at the folder of
the file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.mappingfile import load_mapping
from coincide.adapters.records import BadRecord, event_of
from coincide.errors import Diagnostic, InputError, nearest
from coincide.languages.registry import CASES, MODULES, ending_of, is_rule_file, language_of
from coincide.model.event import Event
from coincide.rulebook import RuleSource, load, mapping_path
from coincide.source import SourceText, Span
from coincide.testing.cases import CaseResult, Problem, Setup, result_of
from coincide.testing.compare import Record
from coincide.testing.expected import expectation
from coincide.testing.kinds import compared
from coincide.yaml import Entries, Items, Node, Scalar, parse_yaml

FILE_KEYS = ("rules", "mapping", "cases")
CASE_KEYS = ("name", "rules", "mapping", "events", "expected", "until", "policy")


@dataclass(frozen=True)
class SuiteCase:
    """One case of a file. `written` are its expectations as they stand there, with their places."""

    file: Path
    name: str
    span: Span = field(repr=False)
    rules: tuple[RuleSource, ...]
    events: tuple[Event, ...] | tuple[Path, ...]
    written: tuple[tuple[Record, Span], ...]
    expected_at: Span | None = field(repr=False)
    until: str | None = None
    policy: str | None = None
    mapping: Path | None = None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.span.line}: {self.name}"

    @property
    def expected(self) -> list[Record]:
        return [expectation(record) for record, _ in self.written]

    def detections(self, setup: Setup) -> list[Record]:
        from coincide.api import run

        ways = {"engine": setup.engine, "tier": setup.tier, "policy": self.policy}
        book = load(*self.rules, sigma_mapping=self.mapping)
        return list(run(book, self.events, self.until, mapping=_fields(self.mapping, self.rules), **ways))  # type: ignore[arg-type]


def run_suite_case(case: SuiteCase, engine: str = "embedded", tier: str = "auto") -> CaseResult:
    def check() -> list[Problem]:
        if case.expected_at is None:
            return [Problem("!", "it does not say what is expected: `expected: […]`, or --accept")]
        return compared(case.expected, case.detections(Setup(engine, tier)))

    return result_of(case, "detections", check)


def find_suites(path: Path) -> list[Path]:
    """Files of cases in a folder and everywhere below it, or this one."""
    if path.is_file():
        if path.suffix not in (".yaml", ".yml"):
            raise InputError(f"{path}: not a folder of cases, and no YAML file of them")
        return [path]
    files = (file for ending in CASES for file in path.rglob(f"*{ending}"))
    return sorted(f for f in files if not any(part.startswith(".") for part in f.relative_to(path).parts))


def read_suite(file: Path) -> list[SuiteCase]:
    """Raises InputError, with the place, for a file that is not as it should be."""
    try:
        source = SourceText(str(file), file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not a text file (byte {error.start + 1} is not UTF-8)") from error
    top = _entries(parse_yaml(source), "a file of cases", FILE_KEYS)
    if "cases" not in top:
        _fail(source.span(0, 1), "a file of cases needs 'cases'")
    shared = _rules(top["rules"], file) if "rules" in top else ()
    mapping = _mapping_file(top.get("mapping"), file)
    return [_case(node, file, shared, mapping) for node in _items(top["cases"], "'cases'")]


def _case(node: Node, file: Path, shared: tuple[RuleSource, ...], common: Path | None) -> SuiteCase:
    parts = _entries(node, "a case", CASE_KEYS)
    rules = _rules(parts["rules"], file) if "rules" in parts else shared
    if not rules:
        _fail(node.span, "the case has no rules, and the file has none for all cases")
    if "events" not in parts:
        _fail(node.span, "the case has no 'events'")
    name, expected = parts.get("name"), parts.get("expected")
    mapping = _mapping_file(parts.get("mapping"), file) or common
    return SuiteCase(
        file=file,
        name=_text(name, "'name'") if name is not None else f"case {node.span.line}",
        span=node.span,
        rules=rules,
        events=_events(parts["events"], file, _fields(mapping, rules)),
        written=() if expected is None else tuple(map(_expectation, _items(expected, "'expected'"))),
        expected_at=None if expected is None else expected.span,
        until=_text(parts["until"], "'until'") if "until" in parts else None,
        policy=_text(parts["policy"], "'policy'") if "policy" in parts else None,
        mapping=mapping,
    )


def _mapping_file(node: Node | None, file: Path) -> Path | None:
    if node is None:
        return None
    name = _text(node, "'mapping'")
    path = file.parent / name if (file.parent / name).exists() else mapping_path(name)
    if not path.is_file():
        _fail(node.span, f"there is no mapping file '{name}'")
    return path


def _fields(mapping: Path | None, rules: Sequence[RuleSource]) -> FieldMapping:
    """How records are read: as the mapping file says; without a type, if a language of the rules knows such."""
    fields = DEFAULT if mapping is None else load_mapping(mapping)
    names = [rule.name if isinstance(rule, SourceText) else str(rule) for rule in rules]
    untyped = any(Path(name).is_dir() or (is_rule_file(name) and language_of(name).untyped) for name in names)
    return replace(fields, untyped=fields.untyped or untyped)


def _rules(node: Node, file: Path) -> tuple[RuleSource, ...]:
    if isinstance(node, Entries):
        return tuple(_inline(key, _text(value, "rules"), value.span, file) for key, value in node.pairs)
    nodes = node.nodes if isinstance(node, Items) else (node,)
    return tuple(file.parent / _text(each, "a rule file") for each in nodes)


def _inline(key: Scalar, text: str, span: Span, file: Path) -> SourceText:
    """Rules that stand in the file itself, moved down so that their lines have the numbers that they have there."""
    ending = ending_of(key.text)
    if ending not in MODULES:
        known = dict.fromkeys([*(module.split(".")[2] for module in MODULES.values()), *MODULES])
        _fail(key.span, f"unknown language '{key.text}'", nearest(key.text, known) or f"there are {', '.join(known)}")
    above = span.line if span.text[:1] in ("|", ">") else span.line - 1
    return SourceText(f"{file}:rules{ending}", "\n" * above + text)


def _events(node: Node, file: Path, fields: FieldMapping) -> tuple[Event, ...] | tuple[Path, ...]:
    if isinstance(node, Scalar):
        return (_path(node, file),)
    nodes = _items(node, "'events'")
    if nodes and all(isinstance(each, Scalar) for each in nodes):
        return tuple(_path(each, file) for each in nodes)
    return tuple(_placed(partial(event_of, _record(each), fields, n), each) for n, each in enumerate(nodes, 1))


def _path(node: Node, file: Path) -> Path:
    path = file.parent / _text(node, "a file of events")
    if not path.is_file():
        _fail(node.span, f"there is no file '{path}'")
    return path


def _expectation(node: Node) -> tuple[Record, Span]:
    record = _record(node)
    _placed(partial(expectation, record), node)
    return record, node.span


def _placed(make: Any, node: Node) -> Any:
    try:
        return make()
    except BadRecord as bad:
        _fail(node.span, str(bad))


def _record(node: Node) -> dict[str, Any]:
    if not isinstance(node, Entries):
        _fail(node.span, "expected a record: {type: NAME, time: TIME, …}")
    return _mapping(node)


def _mapping(node: Entries) -> dict[str, Any]:
    names = [key.text for key, _ in node.pairs]
    for number, (key, _) in enumerate(node.pairs):
        if key.text in names[:number]:
            _fail(key.span, f"'{key.text}' is given twice")
    return {key.text: _value(value) for key, value in node.pairs}


def _value(node: Node) -> Any:
    """As JSON has it: what is not a number, true, false or null is text, a time for instance."""
    if isinstance(node, Entries):
        return _mapping(node)
    if isinstance(node, Items):
        return [_value(each) for each in node.nodes]
    if not node.plain:
        return node.text
    if node.is_empty or node.text == "~":
        return None
    try:
        value = json.loads(node.text)
    except ValueError:
        return node.text
    return value if isinstance(value, (bool, int, float)) or value is None else node.text


def _entries(node: Node, what: str, known: Sequence[str]) -> Mapping[str, Node]:
    if not isinstance(node, Entries):
        _fail(node.span, f"{what} has {', '.join(known)}")
    found: dict[str, Node] = {}
    for key, value in node.pairs:
        if key.text not in known:
            _fail(key.span, f"{what} has no '{key.text}'", nearest(key.text, known) or f"there are {', '.join(known)}")
        if key.text in found:
            _fail(key.span, f"'{key.text}' is given twice")
        found[key.text] = value
    return found


def _items(node: Node, what: str) -> tuple[Node, ...]:
    if isinstance(node, Scalar) and node.is_empty:
        return ()
    if not isinstance(node, Items):
        _fail(node.span, f"{what} must be a list")
    return node.nodes


def _text(node: Node, what: str) -> str:
    if not isinstance(node, Scalar) or node.is_empty:
        _fail(node.span, f"{what} must be one text")
    return node.text


def _fail(span: Span, message: str, hint: str | None = None) -> NoReturn:
    raise InputError(Diagnostic(message, span, hint=hint))
