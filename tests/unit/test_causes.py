"""Why a detection was made: the tree of its causes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import coincide
from coincide.api import observed
from coincide.causes import Cause
from coincide.errors import InputError
from coincide.source import SourceText
from coincide.testing.cases import find_cases
from coincide.testing.expected import read_records

CASES = Path(__file__).parents[1] / "conformance" / "cases"


def events(text: str) -> list[dict[str, Any]]:
    """`a1 b2`: types with times; `a1x`: of the key x."""
    return [{"type": e[0], "time": int(e[1]), "id": e, **({"k": e[2]} if e[2:] else {})} for e in text.split()]


def tree(cause: Cause) -> Any:
    """Its ids, detections with what is below them."""
    return cause.event.id or {cause.event.type: [tree(part) for part in cause.parts]}


def trees(text: str, given: str, language: str = "opera", until: Any = None) -> list[Any]:
    return [tree(cause) for cause in observed(coincide.loads(text, language), events(given), until).all()]


def test_detections_are_inner_nodes() -> None:
    rules = "detect P = [a(k = ?k)] ; [b(k = ?k)]\ndetect Q = [P(k = ?k)] ; [P(k = ?k)]"
    found = trees(rules, "a1x a2y b3x b4y a5x b6x")
    first, other, second = {"P": ["a1x", "b3x"]}, {"P": ["a2y", "b4y"]}, {"P": ["a5x", "b6x"]}
    assert found == [first, other, second, {"Q": [first, second]}]


def test_what_a_rule_reads_directly_stands_beside() -> None:
    rules = "detect P = [a] ; [b]\ndetect Q = [P] ; [c]"
    assert trees(rules, "a1 b2 c3")[-1] == {"Q": [{"P": ["a1", "b2"]}, "c3"]}


def test_ecl_shows_what_it_looked_at_since_the_last_detection_of_the_key() -> None:
    rules = "monitor p by k = repeat { push(P) { sequential { a, b } } }"
    assert trees(rules, "a1x a2y b3x a4x b5y b6x", "ecl") == [{"P": ["a1x", "b3x"]}, {"P": ["a2y", "b5y"]}, {"P": ["a4x", "b6x"]}]


def test_nothing_came() -> None:
    rules = "detect quiet per k = a as x ; not b over 3"
    (cause,) = observed(coincide.loads(rules, "ecco"), events("a1x c2x"), "inf").all()
    assert str(cause).splitlines() == ["4  quiet  k=x", "  └ 1  a  k=x  ← then time passed until 4"]


def test_the_end_of_a_lifespan_is_told() -> None:
    """It is none of the events that the situation is built from."""
    rules = """<amit><event name="o"/><event name="a"/><event name="e"/>
    <lifespan name="l"><initiator><eventInitiator event="o"/></initiator>
      <terminator><eventTerminator event="e"/></terminator></lifespan>
    <situation name="s" lifespan="l">
      <atleast quantity="2" detectionMode="deferred"><operandAtleast event="a"/></atleast></situation>
    </amit>"""
    (cause,) = observed(coincide.load(SourceText("r.amit.xml", rules)), events("o1 a2 a3 e4")).all()
    assert str(cause).splitlines()[1:] == ["  ├ 2  a", "  ├ 3  a", "  └ 4  e  ← completes it"]


EXPIRING = """<amit><event name="o"/><event name="a"><eventAttribute name="v" type="number"/></event>
    <lifespan name="l"><initiator><eventInitiator event="o"/></initiator>
      <terminator><expirationInterval timeInterval="5"/></terminator></lifespan>
    <situation name="s" lifespan="l">
      <all detectionMode="deferred" where="x.v &lt; y.v">
        <operandAll event="a" as="x"/><operandAll event="a" as="y"/></all></situation>
    </amit>"""


@pytest.mark.parametrize(
    ("rules", "given", "what", "setter"),
    [
        (SourceText("r.ce", "detect X = ([a], [T in {T, b}]) T = 5ms"), "a1 c3", "timer", "a1"),
        (SourceText("r.eql", "sequence with maxspan=5ms [a where true] ![b where true]"), "a1 c9", "maxspan", "a1"),
        (SourceText("r.amit.xml", EXPIRING), "o1 a2 a3", "lifespan l", "o1"),
    ],
)
def test_what_made_it_due(rules: SourceText, given: str, what: str, setter: str) -> None:
    book = coincide.load(rules)
    (cause, *_) = observed(book, [{**e, "v": e["time"]} for e in events(given)], "inf").all()
    assert cause.due is not None
    assert (cause.due.what, cause.due.time) == (what, 6_000)
    assert cause.due.set_by is not None
    assert cause.due.set_by.id == setter
    assert cause.tree["due"] == {"what": what, "time": 6, "set_by": {"type": setter[0], "id": setter, "time": 1, "v": 1}}
    assert str(cause).splitlines()[-1] == f"  due by {what}, set by {setter[0]} at 1"


def test_conditions_with_their_values() -> None:
    """Those of one event stand beside it, those of several beside the detection."""
    given = [{**e, "v": e["time"]} for e in events("a1 b2 a4")]
    (cause, *_) = observed(coincide.loads("detect X = (b{v > 1} ; a{v >= 3 and v < 8})", "ecco"), given).all()
    assert [met.record for met in cause.parts[0].conditions] == [{"condition": "v > 1", "values": {"v": 2}}]
    assert [met.text for met in cause.parts[1].conditions] == ["v >= 3", "v < 8"]
    assert str(cause).splitlines()[1] == "  ├ 2  b  v=2  [v > 1]"
    (cause, *_) = observed(coincide.load(SourceText("r.amit.xml", EXPIRING)), [*given, {"type": "o", "time": 0}], "inf").all()
    assert cause.tree["conditions"] == [{"condition": "x.v < y.v", "values": {"x.v": 1, "y.v": 4}}]


def test_long_and_repeated_causes_are_told_in_short() -> None:
    rules = "detect A = [a]\ndetect B = [A] ; [A]\ndetect C = [B] [B]"
    assert "(as above)" in str(observed(coincide.loads(rules, "opera"), events("a1 a2 a3")).all()[-1])
    many = [{"type": "a", "time": t} for t in range(9)]
    (cause, *_) = observed(coincide.loads("detect C = a*{9} with chronicle", "ecco"), many, "inf").all()
    assert str(cause).splitlines()[1] == "  ┆ … after 4 others"
    assert len(cause.events) == 9


def test_times_are_dates_where_they_are() -> None:
    rules = coincide.loads("detect P = [a] ; [b]", "opera")
    for second, shown in (("12:00:05Z", "12:00:00"), ("12:00:00.5Z", "12:00:00.000"), ("12:00:05-12:00", "2026-03-01T12:00:00")):
        given = [{"type": "a", "time": "2026-03-01T12:00:00Z"}, {"type": "b", "time": f"2026-03-01T{second}"}]
        (cause,) = observed(rules, given).all()
        assert str(cause).splitlines()[1] == f"  ├ {shown}  a"


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_every_event_of_a_detection_is_in_its_tree(tier: str) -> None:
    """On all cases with several languages: whatever `from` names is told, and nothing that came later."""
    for case in find_cases(CASES / "mixed"):
        causes = observed(case.book(), case.events, case.text("until"), tier=tier)
        assert len(causes.detections) == len(read_records(case.folder / "expected.jsonl"))
        for cause in causes.all():
            assert set(cause.event.origin) <= {event.origin[0] for event in cause.events}
            assert all(event.hi <= cause.event.hi for event in cause.events)


# From Python.


def test_why() -> None:
    rules, given = coincide.loads("detect P = [a] ; [b]", "opera"), events("a1 b2")
    (found,) = coincide.detect(rules, given, why=True)
    assert found == coincide.detect(rules, given)[0]
    assert tree(coincide.why(found)) == {"P": ["a1", "b2"]}
    assert tree(coincide.why(dict(found), rules, given)) == {"P": ["a1", "b2"]}
    assert coincide.why(found).parts[0].record["type"] == "a"
    assert type(pickle.loads(pickle.dumps(found))) is dict


def test_what_cannot_be_told() -> None:
    rules, given = coincide.loads("detect P = [a] ; [b]", "opera"), events("a1 b2")
    (found,) = coincide.detect(rules, given)
    with pytest.raises(InputError, match="was not kept"):
        coincide.why(found)
    with pytest.raises(InputError, match="do not make this detection"):
        coincide.why(found, rules, given[:1])
    with pytest.raises(InputError, match="embedded engine only"):
        coincide.detect(rules, given, why=True, engine="spark")


def test_under_a_policy() -> None:
    rules = coincide.loads("sources s\ndetect P = [a] ; [b]", "opera")
    given = [{"type": "b", "time": 5, "source": "s", "arrival": 6}, {"type": "a", "time": 1, "source": "s", "arrival": 7}]
    given.append({"type": "b", "time": 9, "source": "s", "arrival": 10})
    (found,) = coincide.detect(rules, given, policy="best-effort", why=True)
    assert [part.event.hi for part in coincide.why(found).parts] == [1000, 9000]
