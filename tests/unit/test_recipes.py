"""The recipes of CONTRIBUTING.md, walked: a language is added in a package of its own, an operator beside those of Amit, an
aggregate and a selection beside those of ECCO, each as its recipe says and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import find, given, settings

import coincide
from coincide import amit
from coincide.cli.main import main
from coincide.detection.algebra import aggregates
from coincide.detection.algebra.construction.build import Builder
from coincide.detection.algebra.construction.chains import SELECTED
from coincide.detection.algebra.construction.surroundings import Surroundings
from coincide.detection.algebra.kernel.rows import Numbers
from coincide.detection.algebra.nodes.base import Instant, Node
from coincide.detection.algebra.nodes.selection import selected
from coincide.detection.algebra.occurrence import Occurrence
from coincide.detection.algebra.window.totals import TOTALS, Totals
from coincide.detection.situation.operators import BEHAVIOURS, Behaviour
from coincide.detection.situation.select import Decision
from coincide.draw.rules import drawing
from coincide.errors import RuleError
from coincide.explanation import explanation
from coincide.lang.amit.definition import File
from coincide.lang.amit.operators import CONSUMED, OPERAND, OPERATORS, QUANTIFIED, WEIGHTED, OperatorKind
from coincide.lang.amit.print import print_file as print_xml
from coincide.lang.amit.schema import schema
from coincide.lang.ecco.aggregates import AGGREGATES, Aggregate
from coincide.lang.ecco.definition import Sel
from coincide.lang.ecco.selections import SELECTIONS, Selection
from coincide.languages import registry
from coincide.languages.registry import ending_of
from coincide.model.column import Column
from coincide.model.event import Event, Value, primitive
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing import amit as random_amit
from coincide.testing import ecco as random_ecco
from coincide.testing.check import check_detector

ROOT = Path(__file__).parents[2]

# A language

PACKAGE = {
    "__init__.py": "",
    "definition.py": '''
        """`NAME: A then B`: events of these types, one after another."""

        from __future__ import annotations

        from dataclasses import dataclass, field

        from coincide.source import Span


        @dataclass(frozen=True)
        class Following:
            name: str
            types: tuple[str, ...]
            span: Span | None = field(default=None, compare=False, repr=False)
    ''',
    "parse.py": """
        from __future__ import annotations

        from follow.definition import Following

        from coincide.errors import Diagnostic, RuleError
        from coincide.source import SourceText


        def parse(source: SourceText) -> tuple[Following, ...]:
            found, start = [], 0
            for line in source.text.splitlines(keepends=True):
                span = source.span(start, start + len(line.rstrip()))
                start += len(line)
                name, colon, types = line.partition(":")
                if not colon:
                    raise RuleError(Diagnostic("expected NAME: TYPE then TYPE", span))
                found.append(Following(name.strip(), tuple(word.strip() for word in types.split(" then ")), span))
            return tuple(found)
    """,
    "print.py": """
        from __future__ import annotations

        from collections.abc import Iterable

        from follow.definition import Following


        def print_file(file: Iterable[Following]) -> str:
            return "".join(f"{d.name}: {' then '.join(d.types)}\\n" for d in file)
    """,
    "language.py": '''
        from __future__ import annotations

        from collections.abc import Iterator, Sequence
        from functools import partial

        from follow.definition import Following
        from follow.parse import parse
        from follow.print import print_file

        from coincide.detection.automaton.plan import plans
        from coincide.detection.base import Detector, DetectorPlan, Inputs
        from coincide.errors import Diagnostic
        from coincide.lang.opera.definition import Atom, Definition, Item, OfType
        from coincide.lang.opera.definition import Sequence as Succession
        from coincide.lang.shared.reads import TYPE, Mention, Reads
        from coincide.languages.base import Language
        from coincide.source import SourceText


        class Follow(Language):
            name = "follow"

            def parse(self, source: SourceText) -> tuple[Following, ...]:
                return parse(source)

            def print_file(self, file: tuple[Following, ...]) -> str:
                return print_file(file)

            def names(self, file: tuple[Following, ...]) -> Iterator[Diagnostic]:
                for d in file:
                    yield Diagnostic(f"'{d.name}' is already defined", d.span, name=d.name)

            def detectors(self, files: Sequence[tuple[SourceText, tuple[Following, ...]]]) -> list[list[Detector]]:
                return [[_detector(d) for d in file] for _, file in files]

            def plans(self, detectors: Sequence[Detector]) -> list[DetectorPlan]:
                return plans(detectors)

            def warnings(self, detectors: Sequence[Detector]) -> list[Diagnostic]:
                return []

            def reads(self, detector: Detector) -> Reads:
                return Reads(tuple(Mention(TYPE, name, detector.span) for name in sorted(detector.inputs.detections)))


        def _detector(following: Following) -> Detector:
            """As a definition of the model that it is detected by: an automaton."""
            types = frozenset(following.types)
            parts = tuple(Atom((Item(OfType(name)),), span=following.span) for name in following.types)
            return Detector(
                name=following.name,
                language="follow",
                definition=Definition(following.name, Succession(parts), False, None, (), ()),
                inputs=Inputs(types, types),
                outputs=(following.name,),
                partition=None,
                text=partial(print_file, (following,)),
                span=following.span,
            )


        LANGUAGE = Follow()
    ''',
}
RULES = "entry: knock then open\nvisit: entry then close\n"
EVENTS = [{"type": kind, "time": time, "id": str(time)} for time, kind in enumerate(("knock", "open", "noise", "close"), 1)]
FOUND = [("entry", [1, 2], ["1", "2"]), ("visit", [1, 4], ["1", "2", "4"])]


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A language: definition, parser, printer, the class that binds them to a model, and the line in the registry."""
    folder = tmp_path / "packages" / "follow"
    folder.mkdir(parents=True)
    for name, text in PACKAGE.items():
        (folder / name).write_text(dedent(text), encoding="utf-8")
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setitem(registry.MODULES, ".follow", "follow.language")
    return ".follow"


def test_a_language_added_by_the_recipe_detects(follow: str) -> None:
    book = load(SourceText("rules.follow", RULES))
    found = coincide.detect(book, EVENTS)
    assert [(d["type"], d["time"], d["from"]) for d in found] == FOUND
    events = [primitive(e["type"], e["time"] * 1000, e["time"] * 1000, e["id"], {}) for e in EVENTS]  # type: ignore[operator, arg-type]
    assert len(check_detector(book, events, (1, 3))) == len(FOUND)


def test_it_works_together_with_another_language(follow: str) -> None:
    monitor = SourceText("rules.ecl", "monitor visits = repeat { push(twice) { sequential { visit, visit } } }")
    book = load(monitor, SourceText("rules.follow", RULES))
    later = [{**event, "time": event["time"] + 10, "id": f"b{event['id']}"} for event in EVENTS]  # type: ignore[operator]
    assert "twice" in [d["type"] for d in coincide.detect(book, [*EVENTS, *later])]


def test_its_files_are_printed_and_refused_like_others(follow: str) -> None:
    language = registry.language_of("rules.follow")
    assert language.print_file(language.parse(SourceText("rules.follow", RULES))) == RULES
    with pytest.raises(RuleError, match="expected NAME: TYPE then TYPE"):
        load(SourceText("rules.follow", "nothing\n"))
    with pytest.raises(RuleError, match="'a' is already defined"):
        load(SourceText("rules.follow", "a: x then y\na: y then z\n"))
    assert ending_of("follow") == ".follow"
    assert ending_of("opera") == ".ce"


def test_commands_know_it(follow: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A conformance case is a folder; nothing is said twice about the language."""
    case = tmp_path / "cases" / "follow" / "visit"
    case.mkdir(parents=True)
    (case / "rules.follow").write_text(RULES)
    (case / "events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in EVENTS))
    found = ({"type": kind, "time": time, "from": ids} for kind, time, ids in FOUND)
    (case / "expected.jsonl").write_text("".join(f"{json.dumps(detection)}\n" for detection in found))
    for command in (["test", str(case)], ["check", str(case / "rules.follow")], ["explain", str(case / "rules.follow")]):
        assert main(command) == 0, capsys.readouterr()
    assert "visit" in capsys.readouterr().out


# An operator of Amit

MULTIPLE = OperatorKind(
    "multiple",
    ("quantity", "detectionMode", "where", "repeatMode"),
    ("operandMultiple",),
    (*OPERAND, *QUANTIFIED, *CONSUMED, *WEIGHTED),
    quantity=2,
    quantities=(1, 2, 3),
    leading="quantity",
    fault=lambda operator: "'quantity' must be positive" if operator.quantity <= 0 else None,
    label="a multiple of {quantity}",
)
EACH_THIRD = """
    events: {A: {x: number}}
    lifespans: {always: {initiator: startup, terminator: noTerminator}}
    situations: {third: {lifespan: always, multiple: {quantity: 3, operands: A}}}
"""


def _multiple(self: amit.Open, quantity: int, *operands: amit.Candidates) -> amit.Situation:
    return self._of("multiple", {"quantity": quantity}, operands)


@pytest.fixture
def multiple(monkeypatch: pytest.MonkeyPatch) -> Rulebook:
    """An operator: how it is written, what it does, and its method in Python."""
    does = Behaviour(
        Decision.count,
        satisfied=lambda total, quantity: total > 0 and total % quantity == 0,
        without_kernel="which divides",
    )
    monkeypatch.setitem(OPERATORS, "multiple", MULTIPLE)
    monkeypatch.setitem(BEHAVIOURS, "multiple", does)
    monkeypatch.setattr(amit.Open, "multiple", _multiple, raising=False)
    return load(SourceText("rules.amit.yaml", EACH_THIRD))


def test_an_operator_added_by_the_recipe_detects(multiple: Rulebook) -> None:
    events = [{"type": "A", "time": time, "id": str(time)} for time in range(1, 8)]
    assert [d["from"] for d in coincide.detect(multiple, events)] == [["1", "2", "3"], ["4", "5", "6"]]


def test_it_is_written_in_every_form(multiple: Rulebook) -> None:
    language = registry.language_of("rules.amit.xml")
    ((_, file),) = multiple.files
    for form in ("xml", "yaml"):
        assert language.parse(SourceText(f"rules.amit.{form}", language.printed(file, form))) == file
    space: dict[str, Any] = {}
    exec(language.printed(file, "python"), space)
    assert space["book"].detectors[0].definition == multiple.detectors[0].definition
    assert "operator-multiple" in schema()["$defs"]


def test_it_is_checked_warned_of_drawn_and_explained(multiple: Rulebook) -> None:
    with pytest.raises(RuleError, match="'quantity' must be positive"):
        load(SourceText("rules.amit.yaml", EACH_THIRD.replace("quantity: 3", "quantity: 0")))
    assert [w.message for w in multiple.warnings] == ["candidates of 'A' may pile up: lifespan 'always' never ends"]
    picture = drawing(multiple.detectors[0])
    assert picture is not None
    assert "a multiple of 3" in str(picture)
    assert "because of operator 'multiple', which divides" in explanation(multiple)


def test_it_is_among_random_rules_and_both_tiers_agree(multiple: Rulebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_amit, "OPERATORS", {"multiple": MULTIPLE})
    found = []

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(random_amit.rule_files(2, cycles=False), random_amit.event_lists())
    def tiers_agree(file: File, events: list[Event]) -> None:
        found.extend(check_detector(load(SourceText("rules.amit.xml", print_xml(file))), events, (3, 9)))

    tiers_agree()
    assert found


# An aggregate of ECCO

SPREAD = Aggregate("SPREAD", "spread")
SWING = "detect swing = temp^SPREAD(v) over 10ms\n"


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> Rulebook:
    """An aggregate: how it is written, what it does, and what it does to columns."""

    def of_values(values: Sequence[Value]) -> float | None:
        numbers = [value for value in values if isinstance(value, float | int)]
        return max(numbers) - min(numbers) if numbers else None

    def of_columns(column: Column, offsets: Numbers) -> Totals:
        (most, there), (least, _) = (TOTALS[name](column, offsets) for name in ("greatest", "least"))
        assert most.numbers is not None
        assert least.numbers is not None
        return Column(len(most), most.numbers - least.numbers), there

    monkeypatch.setitem(AGGREGATES, SPREAD.name, SPREAD)
    monkeypatch.setitem(aggregates.BEHAVIOURS, SPREAD.name, aggregates.Behaviour(of_values, kernel="spread"))
    monkeypatch.setitem(TOTALS, "spread", of_columns)
    return load(SourceText("rules.ecco", SWING))


def test_an_aggregate_added_by_the_recipe_detects_in_both_tiers(spread: Rulebook) -> None:
    events = [primitive("temp", time * 1000, time * 1000, str(time), {"v": float(time % 7)}) for time in (1, 5, 9, 13, 16, 25)]
    assert not spread.plans()[0].tier_reasons()
    found = check_detector(spread, events, (2, 5))
    assert [(d["spread"], d["from"]) for d in found] == [(4, ["1", "5", "9"]), (4, ["13", "16"])]


def test_it_is_printed_refused_drawn_and_among_random_rules(spread: Rulebook, monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.language_of("rules.ecco").print_file(spread.files[0][1]) == SWING
    with pytest.raises(RuleError, match=r"expected '\('"):
        load(SourceText("rules.ecco", "detect swing = temp^SPREAD over 10ms"))
    assert "spread of v over 10ms" in str(drawing(spread.detectors[0]))
    find(random_ecco.all_expressions(1), lambda body: isinstance(body, Sel) and body.function == SPREAD.name)
    without = replace(aggregates.BEHAVIOURS[SPREAD.name], kernel="", without_kernel="which needs all values")
    monkeypatch.setitem(aggregates.BEHAVIOURS, SPREAD.name, without)
    assert "uses SPREAD, which needs all values" in explanation(load(SourceText("rules.ecco", SWING)))


# A selection of ECCO

OTHER = Selection("OTHER")
OTHERS = "detect other = temp^OTHER\n"


class Counted(msgspec.Struct, array_like=True):
    number: int = 0


@dataclass(eq=False)
class Other(Node):
    """Every second one."""

    state_type: ClassVar[type | None] = Counted

    def made(self, instant: Instant) -> Iterator[Occurrence]:
        state: Counted = self.state(instant)
        for occurrence in selected(self, instant):
            state.number += 1
            if state.number % 2 == 0:
                yield occurrence


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Rulebook:
    """A selection: how it is written, and the node that is built of it."""

    def build(builder: Builder, node: Sel, child: Node, around: Surroundings) -> Node:
        made: Node = builder.add(Other, (child,), **builder.usual(node, around))
        return made

    monkeypatch.setitem(SELECTIONS, OTHER.name, OTHER)
    monkeypatch.setitem(SELECTED, OTHER.name, build)
    return load(SourceText("rules.ecco", OTHERS))


def test_a_selection_added_by_the_recipe_detects(other: Rulebook) -> None:
    events = [primitive("temp", time, time, str(time), {"v": float(time)}) for time in range(1, 6)]
    assert [(d["v"], d["from"]) for d in check_detector(other, events, (1, 4))] == [(2, ["2"]), (4, ["4"])]


def test_it_is_printed_drawn_explained_and_among_random_rules_too(other: Rulebook) -> None:
    assert registry.language_of("rules.ecco").print_file(other.files[0][1]) == OTHERS
    with pytest.raises(RuleError, match="'other'"):  # among what is expected
        load(SourceText("rules.ecco", "detect other = temp^THIRD"))
    assert "other" in str(drawing(other.detectors[0]))
    assert "uses an operator other than" in explanation(other)  # until a kernel knows its node
    find(random_ecco.all_expressions(1), lambda body: isinstance(body, Sel) and body.function == OTHER.name)


def test_recipes_name_files_that_are_there() -> None:
    """Paths in the recipes, from the root or from the package."""
    recipes = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Adding things")[2].partition("\n## ")[0]
    paths = re.findall(r"`((?:src|tests|docs)/[\w./-]+)`", recipes)
    assert len(paths) > 15
    assert not [path for path in paths if not (ROOT / path).exists()]
