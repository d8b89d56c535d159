"""What `coincide explain` says of descriptions: keys, what could be divided, memory, which tier runs from how many events on."""

from __future__ import annotations

import pytest

from coincide.api import explain
from coincide.detection.correlation.plan import PAYS_FROM
from coincide.engines.embedded import Engine
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText

ABC = """\
  A: {class: a, attributes: {k: int, r: int}}
  B: {class: b, attributes: {k: int, r: int}}
  C: {class: c, attributes: {r: int}}
"""


def rules(predicates: str, expression: str, more: str = "", sources: str = ABC) -> Rulebook:
    text = f"cd: c\n{more}sources:\n{sources}predicates:\n{predicates}expressions:\n  X: {expression}\n"
    return load(SourceText("r.cdl.yaml", text + "events: {e: {trigger: X}}\n"))


def rows(book: Rulebook) -> dict[str, str]:
    lines = [line for line in explain(book).splitlines() if line.startswith("    ")]
    return {line[4:13].strip(): line[14:] for line in lines}


def test_a_key_of_all_sources() -> None:
    found = rows(rules("  P: A.r = B.r\n  Q: B.r = C.r\n", "P and Q", "within: 1 min\n"))
    assert found["key"] == "r: independent for each value"
    assert "parts" not in found
    assert found["memory"].startswith("what it waits for")


def test_groups_that_could_be_divided() -> None:
    found = rows(rules("  P: A.k = B.k\n  Q: B.r = C.r\n", "P and Q"))
    reason = "no attribute of one name is demanded to be equal in all sources"
    assert found["key"] == f"none, so there is one state for the whole stream: {reason}"
    assert found["parts"] == "could be divided by key, if they were descriptions of their own: A, B by k; B, C by r"
    assert found["memory"].startswith(
        "not bounded: nothing ends the wait of A, B, C; give it a maximum age, such as within: 1 hour, or"
    )


def test_attributes_of_different_names() -> None:
    found = rows(rules("  P: A.k = B.r\n  Q: B.r = C.r\n", "P and Q"))
    assert found["parts"].endswith(": A.k = B.r = C.r")


def test_an_equality_must_hold_in_all_terms() -> None:
    found = rows(rules("  P: A.k = B.k\n  Q: A.r = B.r\n  S: A.r < B.k\n", "P and (Q or S)"))
    assert found["key"].startswith("k: ")
    found = rows(rules("  P: A.k = B.k\n  Q: A.r < B.r\n", "P or Q"))
    assert found["parts"] == "none: no equality connects two sources"


def test_a_preference_that_spans_keys() -> None:
    more = "preferences: [{better: Y}]\n"
    text = rules("  P: A.k = B.k\n  Q: {preferLess: [A.time, other.A.time]}\n", "P\n  Y: Q", more)
    assert rows(text)["key"].endswith("a preference compares combinations of different keys")


def test_collections_alone_and_publishers() -> None:
    only = rules("  P: count(F) >= 3\n", "P", sources="  F: {collection: f}\n")
    assert rows(only)["key"].endswith("a group of collections alone is tried at every message")
    assert "memory" in rows(only)
    heartbeats = "  A: {class: a, duplicates: unchanged, attributes: {k: int}}\n  B: {class: b, attributes: {k: int}}\n"
    assert "publisher" in rows(rules("  P: A.k = B.k\n", "P", sources=heartbeats))["key"]


@pytest.mark.parametrize(
    ("expression", "least"), [("P", PAYS_FROM[2]), ("P and Q", PAYS_FROM[3]), ("P or P and Q", PAYS_FROM[3]), ("R", PAYS_FROM[1])]
)
def test_each_plan_has_its_own_threshold(expression: str, least: int) -> None:
    book = rules("  P: A.k = B.k\n  Q: B.r = C.r\n  R: A.k > 5\n", expression, "within: 1 min\n")
    assert f"from {least:,} events on" in rows(book)["tier"]
    (plan,) = book.plans("auto", least - 1)
    assert plan.tier == "interpreter"  # type: ignore[attr-defined]
    (plan,) = book.plans("auto", least)
    assert plan.tier == "kernel"  # type: ignore[attr-defined]


def test_snapshots_hold_messages_not_combinations() -> None:
    """Any of sixty A with any of sixty B waits for a C."""
    book = rules("  P: A.k <= B.k\n  Q: B.r = C.r\n", "P and Q", "within: 1 hour\n")
    events = [{"type": kind, "time": n, "id": f"{kind}{n}", "k": 1, "r": 2} for n in range(60) for kind in "ab"]
    last = [{"type": "c", "time": 200, "r": 2}]
    engines = {tier: Engine(book, tier) for tier in ("interpreter", "kernel")}
    kept = {}
    for tier, engine in engines.items():
        engine.process(events)
        kept[tier] = engine.snapshot()
    assert max(map(len, kept.values())) < 200 * len(events)  # there are 3,600 combinations
    for tier in engines:
        for data in kept.values():
            engine = Engine(book, tier)
            engine.restore(data)
            assert len(engine.process(last)) == 60 * 60
