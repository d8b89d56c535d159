"""ECCO by small examples: the worked examples of the specification's section 7 that are no conformance cases, and corners."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.api import detect
from coincide.engines.embedded import Engine
from coincide.expr.print import expression_text
from coincide.model.event import Event, primitive
from coincide.rulebook import load, loads
from coincide.source import SourceText
from coincide.testing.check import check_detector
from coincide.testing.expected import read_records


def run(rules: str, events: str | list[dict[str, Any]], until: Any = None) -> list[str]:
    """Events as `a1@5` or `a1@3..5`; detections as `type lo..hi ids`."""
    records = [_event(word) for word in events.split()] if isinstance(events, str) else events
    return [_shown(d) for d in detect(loads(rules, "ecco"), records, until)]


def _event(word: str) -> dict[str, Any]:
    name, _, time = word.partition("@")
    lo, _, hi = time.partition("..")
    return {"type": name.rstrip("0123456789"), "id": name, "time": [float(lo), float(hi)] if hi else float(lo)}


def _shown(detection: dict[str, Any]) -> str:
    time = detection["time"]
    stamp = f"{time[0]}..{time[1]}" if isinstance(time, list) else str(time)
    return " ".join([detection["type"], stamp, *detection["from"]])


def attributes(rules: str, events: list[dict[str, Any]], until: Any = None) -> list[dict[str, Any]]:
    made = detect(loads(rules, "ecco"), events, until)
    return [{k: v for k, v in d.items() if k not in ("type", "time", "from")} for d in made]


FIGURE_7 = "a1@1 a2@2 b1@3 b2@4"


@pytest.mark.parametrize(
    ("policy", "pairs"),
    [
        ("unrestricted", ["a1 b1", "a2 b1", "a1 b2", "a2 b2"]),
        ("recent", ["a2 b1", "a2 b2"]),
        ("chronicle", ["a1 b1", "a2 b2"]),
        ("continuous", ["a1 b1", "a2 b1"]),
        ("cumulative", ["a1 a2 b1"]),
        ("subset", ["a2 b1", "a2 b2"]),
    ],
)
def test_policies_on_one_stream(policy: str, pairs: list[str]) -> None:
    made = run(f"detect d = a ; b with {policy}", FIGURE_7)
    assert [" ".join(line.split()[2:]) for line in made] == pairs
    assert run(f"option policy {policy}\ndetect d = a ; b", FIGURE_7) == made


@pytest.mark.parametrize(
    ("definition", "events", "made"),
    [
        ("(x ; y) ; z", "x@1 y@3 z@3", ["d 1..3 x y z"]),
        ("x ; y ; z", "x@1 y@3 z@3", []),
        ("(x ; y) ; z", "x@1 y@3 z@2..9", []),
        ("((a ; b) ; c) within 5", "a1@1 b1@4 c1@6 c2@7", ["d 1..6 a1 b1 c1"]),
        ("(a ; b) ; c within 3", "a1@1 b1@4 c1@6 c2@7", ["d 1..6 a1 b1 c1", "d 1..7 a1 b1 c2"]),
        ("a ; NULL ; b", "a1@1 c1@2 a2@3 b1@4", ["d 3..4 a2 b1"]),
        ("a ; b", "a1@1..4 b1@3..6", []),
        ("a || b", "a1@1..4 b1@3..6", ["d 1..6 a1 b1"]),
        ("not a over 5", "x1@0 a1@3 x2@20", ["d 3..8"]),
        ("a ; not b over 3", "a1@1 b1@4 a2@10 x1@20", ["d 10..13 a2"]),
        ("a*{2} with chronicle", "a1@1 a2@2 a3@3 a4@4", ["d 1..2 a1 a2", "d 3..4 a3 a4"]),
        ("a - b", "a1@1..5 b1@2 a2@6..9", ["d 6..9 a2"]),
        ("any{id = 'a2'}", "a1@1 a2@2", ["d 2 a2"]),
        ("a ; not c ; b", "a1@1 c1@2 b1@3 a2@4 b2@5", ["d 4..5 a2 b2"]),
        ("`where` ; b", [{"type": "where", "id": "w", "time": 1}, {"type": "b", "id": "b", "time": 2}], ["d 1..2 w b"]),
    ],
)
def test_examples(definition: str, events: Any, made: list[str]) -> None:
    assert run(f"detect d = {definition}", events) == made


def test_negation_within_waits_for_its_time() -> None:
    rules = "detect d = (a - b) within 5"
    assert run(rules, "a1@1 b1@6 a2@10") == []
    assert run(rules, "a1@1 b1@6 a2@10", until=14) == []
    assert run(rules, "a1@1 b1@6 a2@10", until=15) == ["d 10..15 a2"]
    assert run(rules, "a1@1 b1@6 a2@10", until="inf") == ["d 10..15 a2"]


def test_endless_clock_closes_no_empty_windows_after_the_last_event() -> None:
    """5.8: a window is closed if it holds an occurrence or begins before the last event's hi."""
    assert run("detect n = a^COUNT over 10", "a1@5 x1@31", until="inf") == [
        "n 0..10 a1",
        "n 10..20",
        "n 20..30",
        "n 30..40",
    ]
    assert run("detect n = (a + 100)^COUNT over 10", "a1@5", until="inf") == ["n 0..10", "n 100..110 a1"]


def test_a_window_may_end_at_the_start_of_observation() -> None:
    assert run("detect n = a^COUNT over 10", "x1@10 x2@20") == ["n 0..10", "n 10..20"]
    assert run("detect n = a^COUNT over 10", "a1@10 x2@15") == ["n 0..10 a1"]


def test_hopping_windows() -> None:
    assert run("detect n = a^MORE 1 over 10 every 5", "a1@3 a2@7 x@30") == ["n 0..10 a1 a2"]


def test_last_copy_replaces_what_was_built_on_older_ones() -> None:
    rules = "duplicates last p by tag within 10\ndetect d = p^SUM(v) over 100\ndetect e = p ; q\ndetect f = p + 5"
    events = [
        {"type": "p", "id": "p1", "time": 1, "tag": "t", "v": 1},
        {"type": "p", "id": "p2", "time": 4, "tag": "t", "v": 2},
        {"type": "q", "id": "q1", "time": 5},
        {"type": "p", "id": "p3", "time": 40, "tag": "t", "v": 4},
        {"type": "x", "id": "x1", "time": 100},
    ]
    assert run(rules, events) == ["e 4..5 p2 q1", "f 4..9 p2", "f 40..45 p3", "d 0..100 p2 p3"]
    assert attributes(rules, events)[-1] == {"sum": 6, "tag": "t"}


def test_only_the_last_of_copies_in_one_instant_is_seen() -> None:
    events = [{"type": "p", "id": i, "time": 1, "tag": "t"} for i in ("p1", "p2")]
    assert run("duplicates last p by tag\ndetect d = p", events) == ["d 1 p2"]
    assert run("duplicates first p by tag\ndetect d = p", events) == ["d 1 p1"]


def test_maybe_is_an_attribute_only_across_definitions() -> None:
    rules = "option maybe keep\nlet p = (a ; b) within 100\ndetect d = p ; c\ndetect e = p{certainty = 'maybe'}"
    made = detect(loads(rules, "ecco"), [_event(w) for w in ["a1@0..10", "b1@95..110", "c1@120"]])
    assert [(d["type"], d.get("certainty")) for d in made] == [("e", "maybe"), ("d", "maybe")]


def test_keys_are_observed_each_from_its_first_event() -> None:
    rules = "detect quiet per k = not beat over 5"
    events = [{"type": "beat", "id": f"b{k}{t}", "time": t, "k": k} for k, t in ((1, 0), (2, 3), (1, 4), (1, 30))]
    assert attributes(rules, events) == [{"k": 2}, {"k": 1}]
    assert run(rules, events) == ["quiet 3..8", "quiet 4..9"]


def test_true_and_one_are_different_keys() -> None:
    events = [
        {"type": "a", "id": "a1", "time": 1, "k": True},
        {"type": "b", "id": "b1", "time": 2, "k": 1},
        {"type": "b", "id": "b2", "time": 3, "k": True},
    ]
    assert run("detect d per k = a ; b", events) == ["d 1..3 a1 b2"]


def test_correlated_gap_group_and_silence() -> None:
    def event(name: str, time: int, k: int) -> dict[str, Any]:
        return {"type": name[0], "id": name, "time": time, "k": k}

    events = [event("a1", 1, 1), event("c1", 2, 2), event("c2", 3, 1), event("b1", 4, 1), event("x1", 30, 0)]
    assert run("detect d = a ; not c ; b where c.k = 3", events) == ["d 1..4 a1 b1"]
    assert run("detect d = a ; not c ; b where c.k = a.k", events) == []
    assert run("detect d = a ; c* ; b where c.k = a.k", events) == ["d 1..4 a1 c2 b1"]
    assert run("detect d = a ; c*{2} as g ; b where c.k >= a.k and g.count = 2", events) == ["d 1..4 a1 c1 c2 b1"]
    assert run("detect d = a ; not b over 10 where b.k = a.k", events) == []
    assert run("detect d = a ; not b over 10 where b.k > a.k", events) == ["d 1..11 a1"]


def test_agreement_of_attributes() -> None:
    events = [
        {"type": "a", "id": "a1", "time": 1, "k": 1, "v": 1, "s": "x"},
        {"type": "b", "id": "b1", "time": 2, "k": 1, "v": 2},
    ]
    assert attributes("detect d = a ; b", events) == [{"k": 1, "s": "x"}]
    assert attributes("detect d = (a ; b) give total = coalesce(v, a.v + b.v), k", events) == [{"total": 3, "k": 1}]


def test_stamps_reach_back_over_batches() -> None:
    """What was long on the way comes before what arrived earlier; with 'max' it need not wait for the end of input."""
    events = [
        {"type": "b", "id": "b1", "time": 9_500},
        {"type": "a", "id": "a1", "time": 10_000, "path": 2_000},
    ]
    for maximum in ("", " max 3s"):
        rules = f"stamp a hops path{maximum} drift 0ppm\ndetect d = a ; b"
        assert run(rules, events) == ["d 8000..9500 a1 b1"]


def test_the_last_event_may_end_after_its_record() -> None:
    assert run("stamp a error 3\ndetect d = a\ndetect e = b + 5", "b1@2 a1@10") == ["e 2..7 b1", "d 7..13 a1"]
    assert run("stamp a error 3\ndetect e = a + 5", "a1@10", until=17) == []
    assert run("stamp a error 3\ndetect e = a + 5", "a1@10", until="inf") == ["e 7..18 a1"]
    assert run("stamp a hops p\ndetect e = a + 5", "a1@10", until="inf") == ["e 10..15 a1"]


def test_another_language_between_two_definitions() -> None:
    """`p` is read by itself and through a monitor: the definitions then stand in different stages."""
    ecco = SourceText("r.ecco", "detect p = a ; b\ndetect both = p ; seen")
    ecl = SourceText("m.ecl", "monitor m = repeat { push(seen) { sequential { p, c } } }")
    events = [_event(word) for word in ["a1@1", "b1@2", "c1@3", "b2@4", "c2@5"]]
    made = [_shown(d) for d in detect(load(ecco, ecl), events)]
    assert made == [
        "p 1..2 a1 b1",
        "seen 3 c1",
        "both 1..3 a1 b1 c1",
        "p 1..4 a1 b2",
        "seen 5 c2",
        "both 1..5 a1 b1 c2",
        "both 1..5 a1 b2 c2",
    ]


def test_what_is_referred_to_comes_first() -> None:
    """In file order or not, in one plan or two, over any cut and snapshot."""
    case = Path(__file__).parents[2] / "conformance/cases/ecco/found-order-of-references"
    book = load(case / "rules.ecco")
    events = [event_of(item, DEFAULT, n) for n, item in enumerate(read_records(case / "events.jsonl"), 1)]
    made = check_detector(book, events, [3, 7])
    assert made == read_records(case / "expected.jsonl")
    first, *_ = (list(group) for _, group in groupby(made, lambda d: d["time"][1]))  # type: ignore[index]
    assert [d["type"] for d in first] == ["quiet", "pair", "early", "late", "both"]


def test_definitions_that_are_unchanged_keep_their_state() -> None:
    engine = Engine(loads("detect d = a ; b", "ecco"))
    engine.process([_primitive("a1@1"), _primitive("x1@2")])
    engine.change_rules(loads("detect e = a ; b\ndetect d = a ; b", "ecco"))
    made = [*engine.process([_primitive("b1@3")]).events, *engine.finish().events]
    assert [event.type for event in made] == ["d"]


def _primitive(word: str) -> Event:
    record = _event(word)
    time = round(record["time"] * 1000)
    return primitive(record["type"], time, time, record["id"], {})


def test_a_long_sequence() -> None:
    types = [f"e{n}" for n in range(300)]
    events = [{"type": name, "id": name, "time": time} for time, name in enumerate(types)]
    assert run(f"detect d = {' ; '.join(types)}", events)[0].startswith("d 0..299 e0 e1 ")


def test_irrelevant_events_can_be_left_out() -> None:
    rules = "detect d = a{v > 1} ; b\ndetect e = c^COUNT over 10"
    plan = loads(rules, "ecco").plans()[0]
    assert plan.relevant is not None
    assert expression_text(plan.relevant) == "type in ('a') and v > 1 or type in ('b') or type in ('c')"
    assert loads("detect d per k = a{v > 1}", "ecco").plans()[0].partition == ("k",)
    assert loads("detect d = a ; NULL ; b", "ecco").plans()[0].relevant is None


def test_what_other_languages_make_in_time_is_not_kept_for_ever() -> None:
    """A monitor's detections end when they are made, so those that are too old to be followed can go. (The kernel looks for them
    only when there are tens of thousands.)"""
    book = load(
        SourceText("m.ecl", "monitor m = parallel { repeat { push(x) { a } }, repeat { push(y) { b } } }"),
        SourceText("r.ecco", "detect step = (x ; y) within 5"),
    )
    sizes = []
    for count in (300, 3000):
        engine = Engine(book, "interpreter")
        engine.process([{"type": "a", "time": 10 * number} for number in range(count)])
        sizes.append(len(engine.snapshot()))
    assert sizes[1] < 2 * sizes[0]


def test_a_sphere_further_away_than_can_be_squared() -> None:
    records = [{"type": "a", "time": 1, "space": {"x": 0, "y": 0, "z": 0}}]
    assert list(detect(loads("detect x = a @ sphere(0, 0, 1e200, 5)", "ecco"), records)) == []
