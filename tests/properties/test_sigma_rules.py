"""Random rules of Sigma over random events: however the input is cut, wherever a snapshot is taken, in each tier, the same
answer; and correlations against section 6, word by word."""

from __future__ import annotations

from math import fsum
from statistics import median
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coincide.adapters.mapping import FieldMapping
from coincide.adapters.records import event_of
from coincide.model.event import Event
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.check import check_detector, detections

SPAN = 3_000  # microseconds
VALUES = st.sampled_from([None, 1, 2, 1.5, "1", "ab", "Xab ", True, [1, "ab"], []])
ITEMS = (
    "a: 1", "a: '1'", "a: [ab, true]", "a|contains: B", "a|startswith|cased: X", "a|endswith: ['b', ' ']", "a: 'x*b?'", "a: null",
    "a|exists: false", "a|exists: true", "a|neq: 1", "a|re: '^[0-9]'", "a|re|i: 'XA'", "a|contains|all: [x, b]", "a|gte: 1.5",
    "a|fieldref: b", "a|fieldref|contains: b", "b|windash: '-x'", "b|cidr: 10.0.0.0/8", "type: x", "'|all': [ab, 1]", "a|lt: 2",
)  # fmt: skip
KINDS = (
    "event_count",
    "value_count",
    "value_sum",
    "value_avg",
    "value_median",
    "value_percentile",
    "temporal",
    "temporal_ordered",
)

selections = st.lists(
    st.lists(st.sampled_from(ITEMS), min_size=1, max_size=2, unique_by=lambda item: item.split(":")[0]), min_size=1, max_size=2
)
conditions = st.sampled_from(
    ["s0", "not s0", "s0 or s1", "s0 and not s1", "all of s*", "1 of them", "not (s0 and s1)", "[s1, s0]"]
)


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Two detection rules, correlations of them, and one of these, perhaps."""
    logsource = draw(st.sampled_from(["{category: x}", "{category: x}", "{category: y}"]))
    texts = [f"name: {name}\nlogsource: {logsource}\ndetection: {draw(_detections())}\nfields: [a]\n" for name in ("p", "q")]
    for name in draw(st.sampled_from([[], ["c"], ["c", "d"]])):
        known = ["p", "q", *(["c"] if name == "d" else [])]
        texts.append(f"name: {name}\ncorrelation: {draw(_correlations(known))}\n")
    return "---\n".join(draw(st.permutations(texts)))


@st.composite
def _detections(draw: st.DrawFn) -> str:
    parts = [f"s{n}: {{{', '.join(draw(selections)[0])}}}" for n in range(2)]
    return f"{{{', '.join(parts)}, condition: {draw(conditions)}}}"


@st.composite
def _correlations(draw: st.DrawFn, known: list[str]) -> str:
    kind = draw(st.sampled_from(KINDS))
    names = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
    parts = [f"type: {kind}", f"rules: [{', '.join(names)}]", "timespan: 3ms"]
    parts.append(draw(st.sampled_from(["group-by: []", "group-by: [k]", "group-by: [k, b]"])))
    parts.append(f"generate: {draw(st.sampled_from(['true', 'false']))}")
    field = ", field: a" if kind.startswith("value_") else ""
    percentile = ", percentile: 40" if kind == "value_percentile" and draw(st.booleans()) else ""
    if not kind.startswith("temporal"):
        parts.append(f"condition: {{{draw(st.sampled_from(['gte: 2', 'lt: 2', 'neq: 1', 'gt: 0, lte: 3']))}{field}{percentile}}}")
    return f"{{{', '.join(parts)}}}"


records = st.fixed_dictionaries(
    {"time": st.integers(1, 9)},
    optional={
        "type": st.sampled_from(["x", "w.x", "y"]),
        "a": VALUES,
        "b": st.sampled_from(["ab", "/x", "10.1.1.1", 1]),
        "k": VALUES,
    },
)


def book_of(text: str) -> Rulebook:
    return load(SourceText("r.yml", text))


def events_of(raw: list[dict[str, Any]]) -> list[Event]:
    mapping = FieldMapping(untyped=True)
    return [event_of(record, mapping, n) for n, record in enumerate(raw, 1)]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rules(), st.lists(records, max_size=10), st.lists(st.integers(1, 9), max_size=2))
def test_tiers_cuts_and_snapshots(text: str, raw: list[dict[str, Any]], cuts: list[int]) -> None:
    check_detector(book_of(text), events_of(raw), cuts)


def literal(events: list[Event], kind: str, names: list[str], least: float) -> list[tuple[list[str], float | None]]:
    """Section 6 for rules that are types, by the key k: what fires, made of which events, and its number."""
    groups: dict[object, list[Event]] = {}
    fired: dict[object, int] = {}
    made: list[tuple[list[str], float | None]] = []
    for e in sorted(events, key=lambda e: e.origin):
        key = e.attributes.get("k")
        if e.type not in names or key is None or (kind.startswith("value_") and e.attributes.get("v") is None):
            continue
        groups.setdefault(key, []).append(e)
        window = [u for u in groups[key] if u.hi >= e.hi - SPAN]
        number, used = outcome(kind, names, window)
        if used is None or (number is not None and number < least):
            continue
        if key not in fired or e.hi - fired[key] > SPAN:
            fired[key] = e.hi
            made.append(([str(u.id) for u in used], None if kind.startswith("temporal") else number))
    return made


def outcome(kind: str, names: list[str], window: list[Event]) -> tuple[float | None, list[Event] | None]:
    values = [float(u.attributes["v"]) for u in window] if kind.startswith("value_") else []  # type: ignore[arg-type]
    if kind == "temporal":
        latest = {u.type: u for u in window}
        return None, sorted(latest.values(), key=lambda u: u.origin) if set(latest) == set(names) else None
    if kind == "temporal_ordered":
        return None, chain(names, window)
    numbers = {
        "event_count": lambda: len(window),
        "value_count": lambda: len(set(values)),
        "value_sum": lambda: fsum(values),
        "value_avg": lambda: fsum(values) / len(values),
        "value_median": lambda: median(values),
    }
    return numbers[kind](), window


def chain(names: list[str], window: list[Event]) -> list[Event] | None:
    if window[-1].type != names[-1]:
        return None
    found, at = [window[-1]], len(window) - 1
    for name in reversed(names[:-1]):
        before = [n for n in range(at) if window[n].type == name]
        if not before:
            return None
        at = before[-1]
        found.append(window[at])
    return found[::-1]


plain = st.fixed_dictionaries(
    {"type": st.sampled_from("pqr"), "time": st.integers(1, 12), "k": st.sampled_from([1, 2, None])},
    optional={"v": st.sampled_from([1, 2, 0.1])},
)
compared = st.tuples(st.sampled_from(KINDS), st.lists(st.sampled_from("pq"), min_size=1, max_size=3), st.sampled_from([1, 2, 3]))


@settings(max_examples=100, deadline=None)
@given(st.lists(plain, max_size=14), compared)
def test_correlations_are_as_the_specification_says(raw: list[dict[str, Any]], given_rule: tuple[str, list[str], int]) -> None:
    kind, names, least = given_rule
    kind = "event_count" if kind == "value_percentile" else kind
    field = ", field: v" if kind.startswith("value_") else ""
    condition = "" if kind.startswith("temporal") else f", condition: {{gte: {least}{field}}}"
    text = f"name: c\ncorrelation: {{type: {kind}, rules: [{', '.join(names)}], group-by: k, timespan: 3ms{condition}}}\n"
    for name in "pq":
        text += f"---\nname: {name}\nlogsource: {{category: {name}}}\ndetection: {{s: {{k|exists: true}}, condition: s}}\n"
    events = events_of(raw)
    found = [d for d in detections(book_of(text), events) if d["type"] == "c"]
    assert [(d["from"], d.get("count", d.get("value"))) for d in found] == literal(events, kind, names, least)
