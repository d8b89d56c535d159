"""Why a rule made no detection: near misses of every language, in words, and put right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import coincide
from coincide.cli.main import main
from coincide.errors import InputError
from coincide.misses.answer import Answer, Miss
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText

AMIT = """<amit><event name="open"/><event name="a"><eventAttribute name="v" type="number"/></event><event name="close"/>
<lifespan name="l"><initiator><eventInitiator event="open"/></initiator>
  <terminator><eventTerminator event="close"/></terminator></lifespan>
<situation name="s" lifespan="l">
  <atleast quantity="2"><operandAtleast event="a" threshold="v &gt; 10"/></atleast></situation></amit>"""
CDL = """<cd id="c"><sources>
  <source class="a" anchor="A"><attribute name="k" type="int"/></source>
  <source class="b" anchor="B"><attribute name="k" type="int"/></source></sources>
<predicates><predicate anchor="same">A.k = B.k</predicate></predicates>
<expressions><expression anchor="e">same</expression></expressions>
<events><event class="found" trigger="e"/></events></cd>"""
SIGMA = """name: brute
logsource: {category: login}
detection: {s: {status: failed}, condition: s}
---
name: many
correlation: {type: event_count, rules: [brute], group-by: [user], timespan: 5s, condition: {gte: 3}}
"""
ROWS = """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY time MEASURES last(down.v) AS low ONE ROW PER MATCH
PATTERN (start down up) DEFINE down AS v < prev(v), up AS v > prev(v)) AS t"""


def rules(text: str, ending: str) -> Rulebook:
    return load(SourceText(f"rules{ending}", text))


def events(text: str) -> list[dict[str, Any]]:
    """`a1 b2:v=3`: types with times in seconds, and attributes."""
    return [_event(word, number) for number, word in enumerate(text.split(), 1)]


def _event(word: str, number: int) -> dict[str, Any]:
    head, *rest = word.split(":")
    name = head.rstrip("0123456789")
    given = {name: int(value) if value.isdecimal() else value for name, value in (each.split("=") for each in rest)}
    return {"type": name, "time": 1000 * int(head.removeprefix(name)), "id": str(number), **given}


def check(book: Rulebook, miss: Miss, answer: Answer) -> None:
    """With the edits the detection is there; what is named is what the data has."""
    found = [d for d in coincide.detect(book, miss.repaired()) if d["type"] == miss.detection.type]
    assert miss.record["detection"] in found
    assert answer.record["misses"][answer.misses.index(miss)]["text"] == miss.text


CASES = {
    "opera": ("detect X = [a(u = ?u)] ; [b(u = ?u)] ; [c(u = ?u, v > 3)]", ".ce", "a1:u=x b2:u=x c3:u=x:v=2"),
    "pretty": ("Report X when a followed by b.", ".say", "b1 a2"),
    "ecl": ("monitor m by h = repeat { do { push(X) { sequential { a, b } } } unless { r } }", ".ecl", "a1:h=1 r2:h=1 b3:h=1"),
    "ecco": ("detect X per u = (a ; b) within 5s", ".ecco", "a1:u=1 b9:u=1"),
    "amit": (AMIT, ".amit.xml", "open1 a2:v=11 a3:v=9 close4"),
    "cdl": (CDL, ".cdl.xml", "a1:k=1 b2:k=2"),
    "eql": ('sequence by k with maxspan=5s [a where v > 3] [b where s == "x"]', ".eql", "a1:k=1:v=4 b2:k=1:s=y"),
    "sigma": (SIGMA, ".yml", "login1:user=u:status=failed login2:user=u:status=failed login9:user=u:status=failed"),
    "rows": (ROWS, ".mr.sql", "e1:k=1:v=5 e2:k=1:v=3 e3:k=1:v=3"),
}
TOLD = {
    "opera": "a at 1000, b at 2000; c at 3000 came, but v 2 is not above 3",
    "ecl": "a at 1000, b at 3000; r at 2000 stops it",
    "ecco": "a at 1000; b at 9000 is 3 s too late",
    "amit": "a at 2000; a at 3000 came, but v 9 is not above 10",
    "cdl": "a at 1000; b at 2000 came, but k is 2, not 1",
    "eql": "a at 1000; b at 2000 came, but s is 'y', not 'x'",
    "sigma": "login at 1000, login at 2000; login at 9000 is 3 s too late",
    "rows": "e at 1000, e at 2000; e at 3000 came, but v 3 is not above 3",
}


@pytest.mark.parametrize("language", CASES)
def test_every_language_tells_what_stopped_it(language: str) -> None:
    text, ending, given = CASES[language]
    book = rules(text, ending)
    rule = book.detectors[-1].name
    answer = coincide.why(book, events(given), rule=rule)
    assert isinstance(answer, Answer)
    assert answer.misses
    assert not answer.detections
    for miss in answer.misses:
        check(book, miss, answer)
    if language in TOLD:
        assert TOLD[language] in [miss.text for miss in answer.misses]
    assert [miss.distance for miss in answer.misses] == sorted(miss.distance for miss in answer.misses)


def test_a_change_that_is_not_in_the_events_is_not_needed() -> None:
    """None of the edits of a miss can be left out."""
    book = rules("detect X per u = (a ; b ; c{v > 3}) within 5s", ".ecco")
    (miss, *_) = coincide.why(book, events("a1:u=1 b2:u=1 c9:u=1:v=2"), key=1).misses
    assert miss.text == "a at 1000, b at 2000; c at 9000 is 3 s too late; c at 9000 came, but v 2 is not above 3"
    assert miss.conditions == ("v > 3",)
    assert [edit["edit"] for edit in miss.record["lacks"]] == ["move", "change"]


def test_what_lacks_altogether() -> None:
    book = rules("detect X = [a] ; [b] ; [c(v > 3)]", ".ce")
    answer = coincide.why(book, events("a1"))
    assert answer.lacking == ("b", "c")
    assert answer.misses[0].text == "a at 1000; no event of type b; no event of type c with v > 3"
    assert coincide.why(book, []).misses[0].text == "no event of type a; no event of type b; no event of type c with v > 3"


def test_times_are_as_fine_as_those_that_are_told() -> None:
    """Not as that of an event that is not there."""
    book = rules("detect X = (a ; b) within 10min", ".ecco")
    (miss, *_) = coincide.why(book, [{"type": "a", "time": "2026-03-01T10:02:00Z"}]).misses
    assert miss.text == "a at 10:02:00; no event of type b"


def test_events_without_a_type_stay_without_one() -> None:
    """Such an event is of any log source; one whose record has the type `event` is not."""
    book = rules(SIGMA.replace("category: login", "category: login, product: windows"), ".yml")
    given = [{"time": 1000 * n, "id": str(n), "user": "u", "status": "failed"} for n in (1, 2)]
    answer = coincide.why(book, given, rule="many")
    assert (
        answer.misses[0].text == "event at 1000, event at 2000; no other event with user 'u', status 'failed' from -3000 to 6000"
    )
    assert not any("type" in one for one in answer.misses[0].repaired())
    for miss in answer.misses:
        check(book, miss, answer)


def test_a_certain_event_or_instant_is_asked_for() -> None:
    book = rules('any where id == "7" and @timestamp > 5000', ".eql")
    (miss, *_) = coincide.why(book, events("a1")).misses
    check(book, miss, coincide.why(book, events("a1")))
    assert miss.record["lacks"][0]["event"]["id"] == "7"


def test_time_that_has_not_come() -> None:
    book = rules("detect stuck per u = a ; not b over 5s", ".ecco")
    (miss, *_) = coincide.why(book, events("a1:u=1 z4"), key=1).misses
    assert miss.text == "a at 1000; it is due at 6000, and time has come to 4000 only"


def test_the_time_asked_about() -> None:
    book = rules("detect X per u = (a ; b) within 5s", ".ecco")
    given = events("a1:u=1 b2:u=1 a20:u=1 b29:u=1 a60:u=2 b61:u=2")
    assert [cause.event.hi for cause in coincide.why(book, given, key=1).detections] == [2_000_000]
    answer = coincide.why(book, given, key=1, at=(15_000, 40_000))
    assert not answer.detections
    assert answer.misses[0].text == "a at 20000; b at 29000 is 4 s too late"
    assert answer.record["time"] == [15_000, 40_000]
    assert str(answer).splitlines()[0] == "X for u=1 made no detection from 15000 to 40000"
    assert coincide.why(book, given, key=1, at=27_000).misses[0].text == "a at 20000; b at 29000 is 4 s too late"
    assert [cause.event.hi for cause in coincide.why(book, given, key={"u": 2}, at=60_000).detections] == [61_000_000]


def test_what_feeds_a_rule_counts() -> None:
    book = rules("detect P = [a(k = ?k)] ; [b(k = ?k)]\ndetect Q = [P(k = ?k)] ; [c(k = ?k)]", ".ce")
    (miss, *_) = coincide.why(book, events("a1:k=1 c3:k=1"), rule="Q", key=1).misses
    assert miss.text == "a at 1000, c at 3000; no event of type b"


def test_what_cannot_be_asked() -> None:
    book = rules("detect X = [a] ; [b]", ".ce")
    with pytest.raises(InputError, match="there is no rule 'Z'"):
        coincide.why(book, [], rule="Z")
    with pytest.raises(InputError, match="has no key of its own"):
        coincide.why(book, [], key="eve")
    two = rules("detect X = [a] ; [b]\ndetect Y = [a] ; [c]", ".ce")
    with pytest.raises(InputError, match="which rule is meant"):
        coincide.why(two, [])


def test_by_the_key_of_a_detection() -> None:
    book = rules("detect X = [a(k = ?k)] ; [b(k = ?k)]", ".ce")
    given = events("a1:k=1 a2:k=2 b3:k=1 b4:k=2")
    for found in coincide.detect(book, given, keys=True):
        cause = coincide.why(book, given, detection=found["_key"])
        assert [part.record["id"] for part in cause.parts] == found["from"]
        assert cause.tree["event"]["k"] == found["k"]
    with pytest.raises(InputError, match="no detection has the key 'nothing'"):
        coincide.why(book, given, detection="nothing")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, data = tmp_path / "x.ecco", tmp_path / "events.jsonl"
    file.write_text("detect X per u = (a ; b) within 5s", encoding="utf-8")
    given = events("a1:u=eve b9:u=eve a20:u=ann b21:u=ann")
    data.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in given))
    command = ["why", str(file), "--events", str(data)]
    assert main([*command, "--rule", "X", "--key", "u=eve"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "  1. a at 1000; b at 9000 is 3 s too late"
    assert main([*command, "--key", "eve", "--at", "0", "10000", "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["misses"][0]["lacks"][0]["by"] == -3000
    assert main([*command, "--key", "ann"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "21000  X  u=ann"
    (found,) = coincide.detect(file, given, keys=True)
    assert main([*command, "--detection", found["_key"]]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "  ├ 20000  a  u=ann"
    assert main([*command, "--detection", found["_key"], "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["event"]["from"] == ["3", "4"]
    assert main([*command, "--detection", found["_key"], "--rule", "X"]) == 2
    assert main([*command, "--at", "1", "2", "3"]) == 2
    assert main(["why", "--events", str(data)]) == 2
