"""What a kept state holds, for people: of every model of detection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import coincide
from coincide.adapters.mapping import DEFAULT
from coincide.adapters.order import sort_batch
from coincide.adapters.read import open_events
from coincide.cli.main import main
from coincide.detection.base import Unfinished
from coincide.engines.embedded import Engine
from coincide.engines.holdings import snapshot_holdings
from coincide.engines.policies import PolicyEngine
from coincide.errors import InputError
from coincide.model.batch import EventBatch, merged
from coincide.model.event import primitive
from coincide.rulebook import loads
from coincide.testing.cases import Case, find_cases

CASES = Path(__file__).parents[1] / "conformance" / "cases"
LANGUAGES = ("amit", "cdl", "ecco", "ecl", "eql", "match-recognize", "opera", "sigma")
PIECES = 4


def held(case: Case) -> list[Unfinished]:
    """What is held after each quarter of the events."""
    book = case.book()
    assert case.events is not None
    whole = sort_batch(merged([*open_events(case.events, book.fields(DEFAULT))]))
    engine, found = Engine(book, "interpreter"), list[Unfinished]()
    for piece in range(PIECES):
        size = len(whole)
        engine.process(EventBatch(list(whole.events[piece * size // PIECES : (piece + 1) * size // PIECES])))
        (holding,) = snapshot_holdings(engine.snapshot(), book)
        found += holding.unfinished
    return found


def ids_of(case: Case) -> set[str]:
    assert case.events is not None
    return {str(event.id) for batch in open_events(case.events, case.book().fields(DEFAULT)) for event in batch.events}


@pytest.mark.parametrize("language", LANGUAGES)
def test_cases(language: str) -> None:
    """The rules that are named are those of the case, and times are those of its events or later."""
    cases = [c for c in find_cases(CASES / language) if c.events is not None and c.rules and not c.path("expected-error")]
    told = 0
    for case in cases[:12]:
        rules, ids = {d.name for d in case.book().detectors}, ids_of(case)
        for each in held(case):
            told += 1
            assert each.rule in rules
            assert each.due is None or each.since is None or each.due >= each.since
            assert {key[4] for key in each.origin} <= ids
    assert told


KEYED = {
    "amit": """<amit><event name="a"><eventAttribute name="k" type="string"/></event>
      <event name="b"><eventAttribute name="k" type="string"/></event>
      <key name="K"><eventKey event="a" attribute="k"/><eventKey event="b" attribute="k"/></key>
      <lifespan name="L"><initiator><eventInitiator event="a"/></initiator>
        <terminator><expirationInterval timeInterval="1000"/></terminator><keyBy name="K"/></lifespan>
      <situation name="x" lifespan="L"><not detectionMode="deferred"><operandNot event="b"/></not></situation></amit>""",
    "cdl": """<cd id="c" version="1" within="1 h"><sources>
        <source class="a" anchor="A"><attribute name="k" type="string"/></source>
        <source class="b" anchor="B"><attribute name="k" type="string"/></source></sources>
      <predicates><predicate name="equal" anchor="P">A.k, B.k</predicate></predicates>
      <expressions><expression anchor="X">P</expression></expressions><events><event class="x" trigger="X"/></events></cd>""",
    "ecco": "detect x per k = (a ; b) within 1h",
    "ecl": "monitor x by k = repeat { push(y) { sequential { a, b } } }",
    "eql": "sequence by k with maxspan=1h [a where true] [b where true]",
    "opera": "detect x = ([a(k = ?k)], [b(k = ?k)]) T = 1h",
    "matchrecognize": "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY time MEASURES B.time AS t PATTERN (A B) "
    "WITHIN INTERVAL '1' HOUR DEFINE A AS type = 'a', B AS type = 'b') AS x",
    "sigma": """name: s
logsource: {category: a}
detection: {s: {k|exists: true}, condition: s}
---
name: x
correlation: {type: temporal_ordered, rules: [s, s, s], group-by: [k], timespan: 1h}""",
}


@pytest.mark.parametrize("language", KEYED)
def test_keys_are_the_values_that_events_have(language: str) -> None:
    engine = Engine(loads(KEYED[language], language), "interpreter")
    engine.process([{"type": "a", "id": f"e{time}", "time": time, "k": "eve"} for time in (0, 1)])
    engine.process([{"type": "heartbeat", "time": 2}])
    assert {each.key for each in engine.unfinished()} == {("eve",)}
    assert language != "sigma" or [each.what for each in engine.unfinished()] == ["2 events in the window"]


def test_under_policies() -> None:
    book = loads("sources p, q\ndetect X = ([A(k = ?k)], [T in {T, B(k = ?k)}]) T = 10s", "ce")
    engine = PolicyEngine(book, "guaranteed")
    for number, source in enumerate("ppq"):
        engine.arrive(primitive("A", number * 1000, number * 1000, f"e{number}", {"k": number}, source))
    (holding,) = snapshot_holdings(engine.snapshot(), book)
    assert (holding.name, holding.clock, holding.waiting) == ("guaranteed", 2000, 2)
    assert [(each.rule, each.key, each.due) for each in holding.unfinished] == [("X", (0,), 10_000_000)]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, events, state = (tmp_path / name for name in ("pairs.ecl", "events.jsonl", "state.bin"))
    rules.write_text("monitor pairs by k = repeat { push(pair) { sequential { A, B } } }", encoding="utf-8")
    events.write_text("".join(f'{{"type": "A", "time": {k}, "k": {k}}}\n' for k in range(30)), encoding="utf-8")
    assert main(["run", str(rules), "--events", str(events), "--snapshot", str(state)]) == 0
    capsys.readouterr()
    assert main(["state", str(state), str(rules), "--limit", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "clock 1970-01-01T00:00:00.029Z, 0 events waiting",
        "  rule   key  what                    since  due  events",
        "  pairs  0    under way: waits for B",
        "  pairs  1    under way: waits for B",
        "  … of 30: pairs 30",
    ]
    assert main(["state", str(state), str(rules), "--json", "--rule", "pairs"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 30
    assert main(["state", str(state)]) == 2
    assert "give the rules" in capsys.readouterr().err
    assert main(["state", str(tmp_path), str(rules)]) == 2
    assert "holds no checkpoints" in capsys.readouterr().err
    assert main(["state", str(tmp_path / "typo")]) == 2
    assert "typo': No such file or directory" in capsys.readouterr().err


RULES = "detect pair = ([a(k = ?k)], [b(k = ?k)]) T = 10s"
GIVEN = [{"type": "a", "time": 0, "k": 1}, {"type": "a", "time": 4000, "k": 2}, {"type": "b", "time": 6000, "k": 1}]


def test_at_any_instant_of_a_run() -> None:
    """By rule and key; a timer that is due by then has been done."""
    book = loads(RULES, "ce")
    keys = {at: [each.key for each in coincide.held(book, GIVEN, at).unfinished] for at in (-1, 0, 5000, 6000, 13_999, 14_000)}
    assert keys == {-1: [], 0: [(1,)], 5000: [(1,), (2,)], 6000: [(2,)], 13_999: [(2,)], 14_000: []}
    assert coincide.held(book, GIVEN, 5000, key=[2]).record["held"] == [
        {
            "rule": "pair",
            "key": [2],
            "what": "1 event matched",
            "since": "1970-01-01T00:00:04.000Z",
            "due": "1970-01-01T00:00:14.000Z",
            "from": ["2"],
        }
    ]
    assert not coincide.held(book, GIVEN, 5000, rule="other").unfinished
    with pytest.raises(InputError, match="of an instant"):
        coincide.held(book, GIVEN, "inf")


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_of_a_live_engine(tier: str) -> None:
    engine = Engine(loads(RULES, "ce"), tier)
    engine.process(GIVEN[:2])
    assert [(each.key, each.due) for each in engine.unfinished()] == [((1,), 10_000_000), ((2,), 14_000_000)]
    assert not engine.unfinished("other")
    engine.process(GIVEN[2])
    assert [each.key for each in engine.unfinished("pair")] == [(2,)]


def test_the_command_with_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, events = tmp_path / "pair.ce", tmp_path / "events.jsonl"
    rules.write_text(RULES, encoding="utf-8")
    events.write_text("".join(f"{json.dumps(event)}\n" for event in GIVEN), encoding="utf-8")
    assert main(["state", str(rules), "--events", str(events), "--at", "5000", "--key", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "clock 1970-01-01T00:00:05.000Z, 0 events waiting",
        "  rule  key  what             since                     due                       events",
        "  pair  2    1 event matched  1970-01-01T00:00:04.000Z  1970-01-01T00:00:14.000Z  2",
    ]
    assert main(["state", str(rules), "--events", str(events), "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
