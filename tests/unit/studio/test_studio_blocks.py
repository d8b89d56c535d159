"""Rules as blocks and back: what blocks can say, they say as the text does."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.detection.automaton.starts import start_can_fail
from coincide.errors import CoincideError, InputError
from coincide.lang.pretty.parse import parse
from coincide.source import SourceText
from coincide.studio.blocks import Block, Rule, composed, drawn_rules, rule_text

CASES = Path(__file__).parents[2] / "conformance" / "cases"
FILES = sorted(CASES.rglob("*.say"))


def readable(path: Path) -> SourceText | None:
    source = SourceText(path.name, path.read_text(encoding="utf-8"))
    try:
        parse(source, start_can_fail)
    except CoincideError:
        return None
    return source


def test_what_is_drawn_means_what_was_written() -> None:
    drawn = 0
    for source in filter(None, map(readable, FILES)):
        before = parse(source, start_can_fail)
        for number, rule in enumerate(drawn_rules(source)):
            if rule.pattern is None:
                assert rule.why
                continue
            drawn += 1
            after = parse(SourceText(source.name, composed(source, number, rule)), start_can_fail)
            assert after.statements == before.statements, (source.name, rule_text(rule))
    assert drawn >= 30


def test_text_around_a_rule_stays() -> None:
    text = "# first\nReport a when x.   # behind\n\n# second\nReport b when y or z.\n"
    source = SourceText("f.say", text)
    rules = drawn_rules(source)
    assert rules[1].pattern == Block("either", [Block("event", type="y"), Block("event", type="z")])
    assert composed(source, 1, rules[1]) == text
    changed = Rule(
        "b", Block("sequence", [Block("event", type="y", where="n > 3"), Block("event", type="z")], within="5 min"), ["k"]
    )
    assert composed(source, 1, changed) == text.replace(
        "Report b when y or z.", 'Report b when y where n > 3 followed by z within "5 min" for the same k.'
    )
    assert composed(source, 2, Rule("c", Block("event", type="w"))) == f"{text}\nReport c when w.\n"
    assert composed(SourceText("f.say", ""), 0, Rule("c", Block("event", type="w"))) == "Report c when w.\n"


@pytest.mark.parametrize(
    "block",
    [
        Block("event"),
        Block("sequence", [Block("event", type="a")]),
        Block("absent", [Block("event", type="a")]),
        Block("nonsense"),
        Block("event", type="a when b"),
        Block("event", type="a", where=") or ("),
    ],
)
def test_what_cannot_be_said_is_refused(block: Block) -> None:
    with pytest.raises(CoincideError):
        composed(SourceText("f.say", ""), 0, Rule("r", block))


def test_long_sequences_with_a_time() -> None:
    parts = [Block("event", type=name) for name in "abc"]
    text = rule_text(Rule("r", Block("sequence", parts, word="followed by", within="1h")))
    assert text == 'Report r when a followed by b followed by c within "1h".'
    with pytest.raises(InputError):
        rule_text(Rule("r", None, why="text only"))
