"""Random queries of EQL over random events: however the input is cut, wherever a snapshot is taken, in each tier, the same
answer; and sequences against sections 5 and 6, word by word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import coincide
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.records import event_of
from coincide.model.compound import ValueSet
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


# Sections 5 and 6 as they stand, over the whole input at once.


@dataclass(frozen=True)
class Sequence:
    """Items are types (`missing` ones stand with a `!`), the key is k, or ?k."""

    items: tuple[str, ...]
    runs: tuple[int, ...]
    maxspan: int
    until: str
    optional: bool

    def text(self) -> str:
        written = " ".join(
            f"![{item[1:]} where true]" if item[0] == "!" else f"[{item} where true] with runs={runs}"
            for item, runs in zip(self.items, self.runs, strict=True)
        )
        key = "?k" if self.optional else "k"
        return f"sequence by {key} with maxspan={self.maxspan}ms {written} until [{self.until} where true]"


def keys_of(event: Event, optional: bool) -> list[object]:
    value = event.attributes.get("k")
    values = list(value.members) if isinstance(value, ValueSet) else [value]
    return [v for v in dict.fromkeys(values or [None]) if v is not None or optional]


def literal(events: list[Event], rule: Sequence, end: int) -> list[tuple[list[str], object, int]]:
    """Detections: their events, key and time. `end` is how far the clock comes."""
    ordered = sorted(events, key=lambda e: e.origin)
    stages = [(n, item) for n, item in enumerate(rule.items) for _ in range(rule.runs[n]) if item[0] != "!"]
    pending: dict[tuple[object, int], list[Event]] = {}
    complete: list[tuple[object, list[Event]]] = []
    for e in ordered:
        for p in range(len(stages) - 1, -1, -1):
            for key in keys_of(e, rule.optional) if e.type == stages[p][1] else []:
                s = [] if p == 0 else pending.pop((key, p - 1), None)
                if s is None or (s and e.hi - s[0].hi > rule.maxspan * 1000):
                    continue
                if p == len(stages) - 1:
                    complete.append((key, [*s, e]))
                else:
                    pending[key, p] = [*s, e]
        if e.type == rule.until:
            dropped = keys_of(e, rule.optional)
            pending = {(key, p): s for (key, p), s in pending.items() if key not in dropped}
    found = [(key, s, time) for key, s in complete if (time := made_at(ordered, rule, key, s, end)) is not None]
    return [([str(e.id) for e in s], key, time) for key, s, time in found]


def made_at(events: list[Event], rule: Sequence, key: object, s: list[Event], end: int) -> int | None:
    """When the complete sequence becomes a detection; None: it does not."""
    there = [number for number, item in enumerate(rule.items) if item[0] != "!"]
    first, last = there[0], there[-1]
    maxspan = rule.maxspan * 1000

    def times(numbers: range) -> list[int]:
        kinds = [rule.items[n][1:] for n in numbers if rule.items[n][0] == "!"]
        return [e.hi for kind in kinds for e in events if e.type == kind and key in keys_of(e, rule.optional)]

    position = 0
    for number, item in enumerate(rule.items):
        if item[0] == "!":
            before, after = s[position - 1].hi if position else None, s[position].hi if position < len(s) else None
            if before is not None and after is not None and any(before < t < after for t in times(range(number, number + 1))):
                return None
        else:
            position += rule.runs[number]
    leading, trailing = times(range(first)), times(range(last + 1, len(rule.items)))
    lower = max((t for t in leading if t < s[0].hi), default=-FAR) if first else s[0].hi
    if last == len(rule.items) - 1:
        return s[-1].hi if not first or s[-1].hi - lower > maxspan else None
    upper = min((t for t in trailing if t > s[-1].hi), default=FAR)
    due = max(lower + maxspan, s[-1].hi)
    return (due if due > s[-1].hi else s[-1].hi) if upper - lower > maxspan and due <= end else None


FAR = 10**12

kinds = st.sampled_from("abm")


@st.composite
def sequences(draw: st.DrawFn) -> Sequence:
    items = [draw(kinds) for _ in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(0, 3)) or int(len(items) == 1)):
        items.insert(draw(st.integers(0, len(items))), f"!{draw(kinds)}")
    runs = tuple(1 if item[0] == "!" else draw(st.sampled_from([1, 1, 2])) for item in items)
    return Sequence(tuple(items), runs, draw(st.integers(1, 4)), draw(st.sampled_from("abmz")), draw(st.booleans()))


@settings(max_examples=150, deadline=None)
@given(
    sequences(),
    st.lists(st.tuples(kinds, st.integers(1, 9), st.sampled_from(["p", "p", "q", None, ["p", "q"]])), max_size=14),
    st.sampled_from([None, 30]),
)
def test_sequences_are_those_of_the_specification(rule: Sequence, rows: list[Any], until: int | None) -> None:
    events = events_of([{"type": kind, "time": time, "k": key} for kind, time, key in rows])
    rules = coincide.loads(rule.text(), "eql")
    end = max([e.hi for e in events] + ([until * 1000] if until and events else []), default=0)
    expected = sorted((ids, str(key), time // 1000) for ids, key, time in literal(events, rule, end))
    for tier in ("interpreter", "kernel"):
        found = detections(rules, events, tier=tier, until=None if until is None else until * 1000.0)
        made = [
            (one["from"], str(one.get("k")), one["time"][1] if isinstance(one["time"], list) else one["time"]) for one in found
        ]
        assert sorted(made) == expected, tier
