"""`Engine`: events and times as a program has them, callbacks, state, and tiers that suit the size of what comes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from math import inf, nan
from pathlib import Path
from typing import Any

import msgspec
import pytest

import coincide
from coincide.detection import snapshots
from coincide.engines import embedded
from coincide.engines.policies import PolicyEngine
from coincide.errors import CoincideError, InputError
from coincide.model.event import primitive
from coincide.testing.cases import Case
from coincide.testing.expected import read_records

PAIRS = "monitor pairs by door = repeat { push(pair) { sequential { open, close } } }"
DEADLINE = "detect quiet = open as a ; not close over 10s"
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MS = 1_772_366_400_000


def opened(time: Any, door: str = "a", kind: str = "open") -> dict[str, Any]:
    return {"type": kind, "time": time, "door": door}


@pytest.mark.parametrize(
    "time",
    [
        MS,
        float(MS),
        "2026-03-01T12:00:00Z",
        "2026-03-01 13:00+01:00",
        START,
        START.replace(tzinfo=None),
        START.astimezone(timezone(timedelta(hours=-7))),
        primitive("open", MS * 1000, MS * 1000, "1", {"door": "a"}),
    ],
)
def test_events_and_times_of_every_form(time: Any) -> None:
    engine = coincide.Engine(coincide.loads(PAIRS))
    first = time if isinstance(time, msgspec.Struct) else opened(time)
    assert len(engine.process(first)) == 0
    made = engine.process([opened([MS + 1, START + timedelta(milliseconds=5)], kind="close")])
    assert made.records() == [{"type": "pair", "time": [MS + 1, MS + 5], "from": ["2"], "door": "a"}]


@pytest.mark.parametrize(
    ("until", "found"),
    [
        (None, 0),
        (MS + 9_999, 0),
        (MS + 10_000, 1),
        (str(MS + 10_000), 1),
        ("2026-03-01T12:00:09.999Z", 0),
        ("2026-03-01T12:00:10Z", 1),
        (START + timedelta(seconds=9), 0),
        (START + timedelta(seconds=10), 1),
        (START.replace(tzinfo=None) + timedelta(seconds=10), 1),
        ("inf", 1),
        (inf, 1),
    ],
)
def test_the_end_in_every_form(until: Any, found: int) -> None:
    engine = coincide.Engine(coincide.loads(DEADLINE, "ecco"))
    engine.process(opened(START))
    assert len(engine.finish(until)) == found


@pytest.mark.parametrize("until", ["soon", nan, -inf, 1e300, True, [1]])
def test_what_is_no_time(until: Any) -> None:
    with pytest.raises(CoincideError, match="is not a time"):
        coincide.Engine(coincide.loads(PAIRS)).finish(until)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"type": "open"}, "record 2: missing time"),
        ({"time": 3}, "record 2: missing type"),
        ({"type": "open", "time": "noon"}, "record 2: time must be a number, an ISO-8601 text"),
        (7, "record 2: not an object of fields"),
    ],
)
def test_a_bad_record_is_an_input_error_and_changes_nothing(record: Any, reason: str) -> None:
    engine = coincide.Engine(coincide.loads(PAIRS))
    before = engine.snapshot()
    with pytest.raises(InputError, match=reason):
        engine.process([opened(1), record])
    assert engine.snapshot() == before


def test_callbacks_get_detections_as_they_are_made() -> None:
    told: list[Any] = []
    engine = coincide.Engine(coincide.loads(DEADLINE, "ecco"), on_detection=told.append)
    engine.process(opened(0))
    engine.process(opened(1))
    assert told == []
    engine.process({"type": "heartbeat", "time": 10_001})
    assert [d["time"] for d in told] == [[0, 10_000]]
    engine.finish("inf")
    assert [d["time"] for d in told] == [[0, 10_000], [1, 10_001]]


# State.


def test_state_goes_on_in_another_engine() -> None:
    one, other = (coincide.Engine(coincide.loads(PAIRS)) for _ in range(2))
    one.process(opened(1))
    other.restore(one.snapshot())
    assert [d["time"] for d in other.process(opened(2, kind="close")).records()] == [2]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a snapshot"),
        (b"no such thing", "not a snapshot"),
        (msgspec.msgpack.encode([1, 2]), "not a snapshot"),
        (msgspec.msgpack.encode([99, 0, None, 0, {}]), "of version 99"),
        ("text", "a snapshot is bytes, not str"),
        (None, "a snapshot is bytes, not NoneType"),
        (PolicyEngine(coincide.loads(PAIRS), "guaranteed").snapshot(), "it was taken under a policy"),
        (coincide.Engine(coincide.loads(PAIRS.replace("close", "shut"))).snapshot(), "not a snapshot of these rules"),
    ],
)
@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_what_is_no_snapshot(data: Any, reason: str, tier: str) -> None:
    engine = coincide.Engine(coincide.loads(PAIRS), tier)
    engine.process(opened(1))
    with pytest.raises(InputError, match=reason):
        engine.restore(data)
    assert len(engine.process(opened(2, kind="close"))) == 1  # it goes on as if nothing had been tried


def test_a_part_that_cannot_be_read_is_an_input_error() -> None:
    engine = coincide.Engine(coincide.loads(PAIRS))
    version, consumed, start, hi, parts = msgspec.msgpack.decode(snapshots.opened(engine.snapshot()))
    broken = msgspec.msgpack.encode([version, consumed, start, hi, dict.fromkeys(parts, b"\xc1")])
    with pytest.raises(InputError, match="not a snapshot"):
        engine.restore(broken)


def test_rules_that_are_changed_in_part_keep_the_rest() -> None:
    more = "\nmonitor opens = repeat { push(opened) { open } }"
    one, other = coincide.Engine(coincide.loads(PAIRS + more)), coincide.Engine(coincide.loads(PAIRS))
    one.process(opened(1))
    other.restore(one.snapshot())
    assert len(other.process(opened(2, kind="close"))) == 1


def test_rules_that_are_changed_in_all_on_request() -> None:
    one, other = coincide.Engine(coincide.loads(PAIRS)), coincide.Engine(coincide.loads(DEADLINE, "ecco"))
    one.process(opened(5))
    other.restore(one.snapshot(), changed=True)
    other.process(opened(4))
    assert other.late == 1


# Tiers.


@pytest.mark.parametrize("rules", [PAIRS, "detect P = [open(door = ?d)] ; [close(door = ?d)]"], ids=["ecl", "opera"])
def test_tiers_follow_the_size_of_batches(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreters for single events, kernels from the first large batch on, interpreters again after some small ones."""
    monkeypatch.setattr("coincide.detection.base.LARGE", 4)
    monkeypatch.setattr(embedded, "PATIENCE", 2)
    book = coincide.loads(rules, "ecl" if rules == PAIRS else "opera")
    events = [opened(t, "abc"[t % 3], "open" if t % 5 < 3 else "close") for t in range(20)]
    engine = coincide.Engine(book)
    made, tiers = [], []
    for begin, end in [(0, 1), (1, 2), (2, 8), (8, 9), (9, 10), (10, 11), (11, 12), (12, 20)]:
        made += engine.process(events[begin:end]).records()
        tiers.append(engine._graph.plans[0].tier[0])  # type: ignore[attr-defined]
    assert "".join(tiers) == "iikkkiik"
    assert made == coincide.detect(book, events) != []


def test_unknown_tiers() -> None:
    with pytest.raises(CoincideError, match="did you mean 'kernel'"):
        coincide.Engine(coincide.loads(PAIRS), "kernal")


@pytest.mark.parametrize("name", ["amit/chain-limit", "amit/after", "mixed/limit-for-all-languages", "cdl/collection-aggregates"])
def test_events_one_by_one_leave_the_same_state(name: str) -> None:
    """Also where rules do not read them: what opens at the start opens at the first event, whatever it is."""
    case = Case(Path(__file__).parents[1] / "conformance" / "cases" / name)
    unread = [{"type": "nobody-reads-this", "time": t - 100} for t in range(100)]
    records = sorted(read_records(case.folder / "events.jsonl"), key=lambda r: r["time"])
    one, whole = (coincide.Engine(coincide.load(*case.rules)) for _ in range(2))
    for part in (unread, records):
        made = [d for event in part for d in one.process(event).records()]
        assert made == whole.process(part).records()
        assert one.snapshot() == whole.snapshot()
