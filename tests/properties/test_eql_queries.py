"""Random queries of EQL over random events: however the input is cut, wherever a snapshot is taken, in each tier, the same
answer; and sequences without missing items against section 5, word by word."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import coincide
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.records import event_of
from coincide.model.event import Event
from coincide.testing.check import check_detector, detections

TYPES = "abm"
CONDITIONS = (
    "true", "v > 1", 'v == "1"', 'not s : "X*"', 's in~ ("x", "yy")', "v != w", "v % 2 == 1 or s == null",
    'concat(s, v) like "x?"', "length(s) > 1 and v < 3", "@timestamp > 3", 'id == "2"',
)  # fmt: skip
KEYS = ("", "by k", "by ?k", "by k, w", "by v * 2")
VALUES = st.sampled_from([None, 1, 2, "1", True, [1, 2], ["x", 1], []])

category = st.sampled_from([*TYPES, "any", "c"])
filters = st.builds("{} where {}".format, category, st.sampled_from(CONDITIONS))


@st.composite
def queries(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["filter", "sequence", "sequence", "sequence", "sample", "join"]))
    pipe = draw(st.sampled_from(["", "", " | head 2", " | tail 2", " | head 3 | tail 1"]))
    fields = draw(st.sampled_from(["", "// @fields s, v, tags\n"]))
    if kind == "filter":
        return f"{fields}{draw(filters)}{pipe}"
    keys = draw(st.sampled_from(KEYS[1:] if kind == "sample" else KEYS))
    items = [f"[{draw(filters)}]" for _ in range(draw(st.integers(2, 3)))]
    if kind != "sequence":
        until = f" until [{draw(filters)}]" if kind == "join" and draw(st.booleans()) else ""
        return f"{fields}{kind} {keys} {' '.join(items)}{until}{'' if kind == 'sample' else pipe}"
    maxspan = draw(st.sampled_from(["", "with maxspan=3ms"]))
    items = [item + draw(st.sampled_from(["", "", " with runs=2"])) for item in items]
    if maxspan:
        for _ in range(draw(st.integers(0, 2))):
            items.insert(draw(st.integers(0, len(items))), f"![{draw(filters)}]")
    until = f" until [{draw(filters)}]" if draw(st.booleans()) else ""
    return f"{fields}sequence {keys} {maxspan} {' '.join(items)}{until}{pipe}"


records = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES), "time": st.integers(1, 8)},
    optional={
        "k": VALUES,
        "v": st.integers(0, 3),
        "w": VALUES,
        "s": st.sampled_from(["x", "X1", "yy", ["x", "zz"]]),
        "tags": st.sampled_from(["t", ["t", "u"]]),
        "event.category": st.sampled_from(["a", ["b", "c"]]),
    },
)


def events_of(raw: list[dict[str, Any]]) -> list[Event]:
    mapping = FieldMapping(untyped=True)
    return [event_of(record, mapping, n) for n, record in enumerate(raw, 1)]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(queries(), st.lists(records, max_size=10), st.lists(st.integers(1, 9), max_size=2), st.sampled_from([None, 20_000.0]))
def test_tiers_cuts_and_snapshots(query: str, raw: list[dict[str, Any]], cuts: list[int], until: float | None) -> None:
    check_detector(coincide.loads(query, "eql"), events_of(raw), cuts, until)


def literal(events: list[Event], items: list[str], maxspan: int, until: str) -> list[list[str]]:
    """Section 5 for items that are types, by the key k."""
    stages: dict[tuple[object, int], list[Event]] = {}
    made: list[list[str]] = []
    for e in sorted(events, key=lambda e: e.origin):
        key = e.attributes.get("k")
        for p in range(len(items) - 1, -1, -1):
            if e.type != items[p] or key is None:
                continue
            s = [e] if p == 0 else [*stages.pop((key, p - 1), []), e]
            if (p > 0 and len(s) == 1) or e.hi - s[0].hi > maxspan * 1000:
                continue
            if p == len(items) - 1:
                made.append([str(one.id) for one in s])
            else:
                stages[key, p] = s
        if e.type == until:
            stages = {(other, p): s for (other, p), s in stages.items() if other != key}
    return made


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from("ab"), min_size=2, max_size=4),
    st.integers(1, 4),
    st.sampled_from("abm"),
    st.lists(st.tuples(st.sampled_from("abm"), st.integers(1, 8), st.sampled_from(["p", "q", None])), max_size=14),
)
def test_sequences_are_those_of_the_specification(items: list[str], maxspan: int, until: str, rows: list[Any]) -> None:
    raw = [{"type": kind, "time": time, "k": key} for kind, time, key in rows]
    events = events_of(raw)
    written = " ".join(f"[{item} where true]" for item in items)
    rules = coincide.loads(f"sequence by k with maxspan={maxspan}ms {written} until [{until} where true]", "eql")
    assert [found["from"] for found in detections(rules, events)] == literal(events, items, maxspan, until)
