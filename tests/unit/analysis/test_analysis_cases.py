"""The conformance cases of the analysis, the worked examples of ecl.md (section 10.12), and the limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coincide.analysis.report import analyse, monitor_warnings
from coincide.lang.ecl.definition import File
from coincide.lang.ecl.parse import parse
from coincide.model.event import Event, attributes_of, primitive
from coincide.source import SourceText

CASES = sorted((Path(__file__).parents[2] / "conformance/cases/ecl-analysis").iterdir())


def rules(text: str) -> File:
    return parse(SourceText("rules.ecl", text))


def events_of(path: Path) -> list[Event]:
    return [event(json.loads(line), n) for n, line in enumerate(path.read_text().splitlines(), 1)]


def event(record: dict[str, Any], number: int) -> Event:
    time = round(record["time"] * 1000)
    return primitive(record["type"], time, time, str(record.get("id", number)), attributes_of(record), record.get("source"))


def differences(expected: Any, actual: Any, path: str = "") -> list[str]:
    """The comparison of section 7: every key that is expected, at any depth; null also means absent."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [d for key, value in expected.items() for d in differences(value, actual.get(key), f"{path}/{key}")]
    return [] if expected == actual and type(expected) is type(actual) else [f"{path}: {expected} expected, {actual} found"]


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_case(folder: Path) -> None:
    events = events_of(folder / "events.jsonl") if (folder / "events.jsonl").exists() else None
    other = rules((folder / "other.ecl").read_text()) if (folder / "other.ecl").exists() else None
    report = analyse(rules((folder / "rules.ecl").read_text()), events, other)
    assert differences(json.loads((folder / "expected.json").read_text()), json.loads(json.dumps(report))) == []


def monitor(text: str, **options: Any) -> dict[str, Any]:
    report: Any = analyse(rules(text), **options)
    (entry,) = report["monitors"].values()
    return dict(entry)


def test_example_12_once() -> None:
    entry = monitor("monitor m = push(x) { a }")
    assert entry == {
        "exact": True,
        "letters": 2,
        "states": 2,
        "vacuous": False,
        "trivial": False,
        "live": True,
        "recurrent": False,
        "outcomes": ["success"],
        "dead": [],
        "depends": {"x": ["a"]},
        "quenched": [[]],
        "quenched_always": [[]],
        "components": 1,
        "overlapping_guards": [],
        "warnings": ["bounded"],
    }


def test_example_12_always() -> None:
    entry = monitor("monitor m = repeat { push(x) { true } }")
    assert (entry["letters"], entry["states"]) == (1, 1)
    assert entry["trivial"]
    assert entry["live"]
    assert entry["recurrent"]


def test_example_12_depends_on_the_smallest_sets() -> None:
    entry = monitor("monitor m = parallel { repeat { push(x) { a } }, repeat { push(y) { a or b } }, repeat { push(z) { b } } }")
    assert entry["letters"] == 3
    assert entry["depends"] == {"x": ["a"], "y": ["a or b"], "z": ["b"]}


def test_symbols_have_attributes_in_any_order() -> None:
    report: Any = analyse(
        rules(
            "p = v > 1\n"
            "monitor a = repeat { push(x, n: v, big: not p) { t } }\n"
            "monitor b = repeat { push(x, big: not (v > 1), n: v) { t } }\n"
            "monitor c = repeat { push(x, n: v + 0, big: not p) { t } }"
        )
    )
    assert report["pairs"]["a,b"]["equivalent"]
    assert not report["pairs"]["a,c"]["equivalent"]
    assert report["pairs"]["a,c"]["covered"]


def test_no_system_where_a_monitor_mentions_an_output() -> None:
    assert "system" not in analyse(rules("monitor a = push(x) { t }\nmonitor b = push(y) { x }"))
    assert "system" not in analyse(rules("monitor a = push(x) { t }\nmonitor b by k = push(y) { t }"))
    assert "system" not in analyse(rules("p = a"))


def test_events_that_are_none_leave_the_start() -> None:
    text = "monitor m = repeat { push(x) { sequential { a, b } } }"
    assert "quenched_now" not in monitor(text)
    assert monitor(text, events=[])["quenched_now"] == [[], ["b"]]


def test_events_are_taken_in_total_order() -> None:
    late, early = event({"type": "b", "time": 2}, 1), event({"type": "a", "time": 1}, 2)
    entry = monitor("monitor m = repeat { push(x) { sequential { a, b } } }", events=[late, early])
    assert entry["quenched_now"] == [[], ["b"]]


def test_keys_of_different_types_differ() -> None:
    seen = [event({"type": "a", "time": 1, "k": 1}, 1), event({"type": "b", "time": 2, "k": True}, 2)]
    entry = monitor("monitor m by k = repeat { push(x) { sequential { a, b } } }", events=seen)
    assert entry["quenched_now"] == [[]]


def accumulate(count: int, leaf: str) -> str:
    return f"monitor m = repeat {{ push(x) {{ accumulate {{ {', '.join(leaf.format(i) for i in range(count))} }} }} }}"


def test_as_many_states_as_the_limit_allows() -> None:
    assert monitor(accumulate(12, "a{}"))["states"] == 4095
    assert monitor("monitor m = repeat(4095) { push(x) { a } }")["states"] == 4096


@pytest.mark.parametrize(
    "text",
    [
        accumulate(13, "a{}"),
        "monitor m = repeat(4096) { push(x) { a } }",
        "monitor m = parallel { " + ", ".join(f"v{i} > 1" for i in range(13)) + " }",
        "monitor m = parallel { " + ", ".join(f"v{i} > w" for i in range(200)) + " }",
        "monitor m = repeat(1000000000000) { push(x) { a } }",
    ],
)
def test_beyond_the_limit_there_is_nothing_else(text: str) -> None:
    assert monitor(text) == {"limit": True}
    assert monitor_warnings(rules(text).detectors[0]) == []


def test_single_modes_are_found_beyond_the_limit_too() -> None:
    (definition,) = rules("monitor m = in (p) do { repeat(5000) { push(x) { a } } }").detectors
    assert [warning.name for warning in monitor_warnings(definition)] == ["single-mode"]


def test_the_limit_of_two_files() -> None:
    text = "monitor m = repeat(70) { push(x) { a } }"
    report: Any = analyse(rules(text), other=rules("monitor n = repeat(70) { push(x) { b } }"))
    assert report["system"] == {"letters": 2, "states": 71, "other": {"limit": True}}
    assert report["unchanged"] == []


def test_a_thousand_monitors_as_one_system() -> None:
    """Grows with the letters, not with the product of all monitors' letters."""
    from coincide.analysis.compare import system
    from coincide.analysis.monitor import MonitorAnalysis

    text = "\n".join(f"monitor m{i} = repeat {{ push(x{i}) {{ a{i % 100} }} }}" for i in range(1000))
    assert system([MonitorAnalysis(d) for d in rules(text).detectors]) == {"letters": 101, "states": 1}
