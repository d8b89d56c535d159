"""Keys of detections: the same in every tier, however the input is cut, after a restart; never twice the same."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest

import coincide
from coincide.engines import identity
from coincide.engines.embedded import Engine
from coincide.engines.identity import Keys, digests_of, maker, makers
from coincide.model.batch import EventBatch
from coincide.model.table import table_of
from coincide.rulebook import Rulebook

CASES = Path(__file__).parents[1] / "conformance" / "cases"
RULES = """monitor m by k = repeat { push(x, v: v) { a } }
monitor n by k = repeat { push(x, v: v) { a } }
monitor o = repeat { parallel { push(y) { b }, push(y) { b } } }
monitor p by k = repeat { push(z, w: v) { sequential { x, x } } }"""
ABSENT = "detect Left = ([a(k = ?k, v = ?v)], [T in {T, b}]) T = 1s"
EVENTS = [{"type": "ab"[n % 3 == 0], "id": f"e{n}", "time": n // 2, "k": n % 4, "v": n / 2} for n in range(60)]


def keys(tier: str = "interpreter", rules: str = RULES, **options: Any) -> list[str]:
    found = coincide.detect(coincide.loads(rules), EVENTS, tier=tier, keys=True, **options)
    return [d["_key"] for d in found]


def test_the_same_in_both_tiers_and_never_twice() -> None:
    found = keys()
    assert found == keys("kernel")
    assert len(set(found)) == len(found) > 60
    assert {len(key) for key in found} == {16}
    assert all(int(key, 16) >= 0 for key in found)


def test_equal_detections_of_one_event_differ_in_number_only() -> None:
    book = coincide.loads("monitor o = repeat { push(y) { b } }\nmonitor o2 = repeat { push(y) { b } }")
    made = Engine(book).process([{"type": "b", "time": 1}])
    assert len(made.records()) == 2
    one, two = Keys(digests_of(book)).of(made)
    assert one != two
    again = Keys(digests_of(book))
    assert again.of(made) != again.of(made)  # the third and fourth of the kind


def test_the_same_however_the_input_is_cut_and_after_a_restart() -> None:
    book = coincide.loads(RULES)
    whole = [d["_key"] for d in coincide.detect(book, EVENTS, keys=True)]
    for cut in (1, 17, 30):
        engine, found = Engine(book), []
        for start in range(0, len(EVENTS), cut):
            state = engine.snapshot()
            engine = Engine(book)
            engine.restore(state)
            found += Keys(digests_of(book)).of(engine.process(EVENTS[start : start + cut]))
        assert found == whole


def test_a_key_changes_with_the_definition_and_not_with_how_it_is_written() -> None:
    named = "high = v > 3\nmonitor m = push(x, w: 'p') { a and high }"
    assert keys(rules=named) == keys(rules='monitor m = push(x, w: ("p")) { a and (v > 3) }')
    assert keys(rules=named) != keys(rules=named.replace("> 3", "> 4"))
    assert keys(rules="monitor m = push(x) { a }") == keys(rules="# a comment\nmonitor m =\n    push(x) { a }")
    assert keys(rules="monitor m = push(x) { a }") != keys(rules="monitor m = push(x) { a or a }")


@pytest.mark.parametrize("language", ["ecl", "amit", "opera", "pretty", "ecco", "cdl"])
def test_the_place_tells_who_made_a_detection(language: str) -> None:
    """In both tiers, for conformance cases of every language."""
    seen = 0
    for case in sorted((CASES / language).iterdir())[:8]:
        rules = [*case.glob("rules.*")]
        events = case / "events.jsonl"
        if len(rules) == 1 and events.exists():
            book = coincide.load(rules[0])
            records = [json.loads(line) for line in events.read_text().splitlines() if line.strip()]
            tiers = [_checked(book, records, tier) for tier in ("interpreter", "kernel")]
            assert sorted(tiers[0]) == sorted(tiers[1]), case
            seen += len(tiers[0])
    assert seen > 5


def _checked(book: Rulebook, records: list[dict[str, Any]], tier: str) -> list[str]:
    from coincide.api import in_order
    from coincide.engines.embedded import run

    outputs = {d.order: d.outputs for d in book.detectors}
    told, found = Keys(digests_of(book)), []
    for batch in run(book, in_order(records, strict=False), None, tier):
        assert all(event.type in outputs[maker(event)] for event in batch.events)
        found += told.of(batch)
    return found


def test_columns_have_the_keys_and_makers_of_the_objects_that_they_are() -> None:
    """Also where values are missing, mixed, too long for doubles, or compound, and where timers made detections."""
    odd: list[Any] = [1, 0.5, -0.0, 2**53 + 1, 2**63 - 1, 1e300, "t", True, None, [1, 2], {"set": ["a", "b"]}]
    records = [{"type": "a", "time": n * 500, "k": n % 3, "v": odd[n % len(odd)], "w": n} for n in range(60)]
    for book in (coincide.loads(RULES), coincide.loads(ABSENT, ".ce")):
        made = Engine(book, "interpreter").process(records)
        as_columns = EventBatch(table=table_of(made.events))
        assert len(made) > 20
        assert makers(as_columns) == [maker(event) for event in made.events]
        assert Keys(digests_of(book)).of(as_columns) == Keys(digests_of(book)).of(EventBatch(made.events))


def test_old_detections_are_forgotten_and_what_is_told_of_it_suffices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "REMEMBERED", 20)
    book = coincide.loads(RULES)
    keys, kept, whole = Keys(digests_of(book)), b"", True
    engine, dice = Engine(book), Random(3)
    for round_ in range(40):
        made = engine.process(
            [{"type": dice.choice("ab"), "time": round_ // 4, "k": 1, "v": 1} for _ in range(dice.randrange(9))]
        )
        keys.of(made)
        told, anew = keys.changes(round_ % 11 == 0)
        kept = told if anew else kept + told
        whole &= anew
        again = Keys(digests_of(book))
        again.restore(kept)
        assert again.state() == keys.state()
        assert len(keys.state()) <= 20 * identity.ENTRY
        assert again.of(made) == deepcopy(keys).of(made)
    assert not whole
