"""Live detection from Python: generators, asyncio, time that passes, callbacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import coincide
from coincide.errors import CoincideError, InputError

RULES = coincide.loads(
    """
    detect Pair = [a] ; [b]
    detect Silent = ([a], [T in {T, b}]) T = 5ms
    """,
    "opera",
)


def test_a_generator_is_dealt_with_event_by_event() -> None:
    asked: list[int] = []

    def events() -> Iterator[dict[str, Any]]:
        for n in range(100):
            asked.append(n)
            yield {"type": "ab"[n % 2], "time": n}

    found = coincide.run(RULES, events())
    assert next(found)["time"] == [0, 1]
    assert asked == [0, 1]


def test_what_a_generator_gives_too_late_is_told() -> None:
    events = [{"type": "a", "time": 1}, {"type": "a", "time": 4}, {"type": "b", "time": 2}, {"type": "b", "time": 5}]
    with pytest.warns(coincide.DataWarning, match=r"1 event came too late: left out(.|\n)*a delay of 2ms would have sufficed"):
        late = [d["time"] for d in coincide.run(RULES, iter(events))]
    assert late == [[1, 5], [4, 5]]
    assert (
        [*coincide.run(RULES, iter(events), delay="2ms")]
        == coincide.detect(RULES, events)
        == coincide.detect(RULES, iter(events))
    )


def test_time_passes_without_an_event() -> None:
    engine = coincide.Engine(RULES)
    assert len(engine.advance(1)) == 0  # nothing has begun
    engine.process({"type": "a", "time": 10})
    assert len(engine.advance(15)) == 0  # a `b` at 15 could still come
    assert [d["type"] for d in engine.advance(datetime.fromtimestamp(0.016, UTC)).records()] == ["Silent"]
    engine.process({"type": "b", "time": 12})
    assert engine.late == 1
    with pytest.raises(InputError, match="up to an instant"):
        engine.advance("inf")


def test_callbacks_by_type() -> None:
    engine = coincide.Engine(RULES)
    told: list[str] = []
    engine.on("Silent", lambda d: told.append(f"silent {d['time']}"))
    engine.on("Pair", lambda d: told.append(f"pair {d['time']}"))
    engine.process([{"type": "a", "time": 1}, {"type": "b", "time": 2}, {"type": "a", "time": 3}])
    engine.advance(100)
    assert told == ["pair [1, 2]", "silent [3, 8]"]
    with pytest.raises(CoincideError, match="did you mean 'Pair'"):
        engine.on("Pear", print)


async def given(*steps: dict[str, Any] | asyncio.Event) -> AsyncIterator[dict[str, Any]]:
    for step in steps:
        if isinstance(step, asyncio.Event):
            await step.wait()
        else:
            yield step


def test_detections_are_waited_for() -> None:
    async def found() -> list[Any]:
        source = given({"type": "a", "time": 1}, {"type": "b", "time": 2})
        return [d["time"] async for d in coincide.stream(RULES, source)]

    assert asyncio.run(found()) == [[1, 2]]


def test_absence_shows_while_nothing_comes() -> None:
    async def first() -> Any:
        never = asyncio.Event()
        async for d in coincide.stream(RULES, given({"type": "a", "time": 1}, never), clock="wall"):
            return d["type"]

    assert asyncio.run(first()) == "Silent"


def test_a_url_is_a_source(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"type": "a", "time": 1}\n{"type": "b", "time": 2}\n')

    async def first() -> Any:
        async for d in coincide.stream(RULES, f"tail:{log}", keys=True):
            return d["time"], len(d["_key"])

    assert asyncio.run(first()) == ([1, 2], 16)


def test_a_bad_record_and_a_wrong_url_are_told() -> None:
    async def run(source: Any, **options: Any) -> None:
        async for _ in coincide.stream(RULES, source, **options):
            pass

    with pytest.raises(InputError, match="record 1: missing type"):
        asyncio.run(run(given({"time": 1})))
    with pytest.raises(CoincideError, match="no streams of the kind 'gnats'"):
        asyncio.run(run("gnats://x/y"))
    with pytest.raises(CoincideError, match="unknown clock 'wal'"):
        asyncio.run(run(given(), clock="wal"))
