"""Dirty events: the interpreter over objects, the kernel over columns and, if it is asked for, Spark must agree on every line."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from random import Random
from typing import Any

from coincide.adapters.order import in_total_order
from coincide.adapters.read import open_events
from coincide.engines.choice import arrivals_on_spark, detections
from coincide.engines.instance import StabilityPolicy
from coincide.engines.policies import PolicyEngine, PolicyRun
from coincide.errors import RunError
from coincide.model.batch import EventBatch
from coincide.model.event import record
from coincide.testing.compare import Record, plain_detection, same, unmatched
from coincide.testing.fuzz.corpus import Example, runnable
from coincide.testing.fuzz.work import Difference
from coincide.testing.policies import each_policy

LARGE = 20_000
OBJECTS, COLUMNS = 1 << 30, 1 << 12
"""Sizes of blocks: everything is read as objects; all but the first rows as columns."""

MOST_CALLS = 2_000
"""Calls of the interpreter for an event, where an example is tried with many of them."""

POLICIES = (*[None] * 9, *each_policy())
"""For definitions that name none: most runs are in the total order."""

AWKWARD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e300, -1e300, 5e-324, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64,
    10**30, "", "0", "1", "true", "null", "a", "A", "é", "e\u0301", "😀", "\u2028", "\0", "x" * 500, " a ", "%", "1e3",
    "2026-01-01T00:00:00Z", [], [1], ["a", 2], {}, {"x": 1}, {"a": {"b": 2}},
)  # fmt: skip
TIMES: tuple[Any, ...] = (
    None, "", "soon", True, [], [1], [5, 3], [1, 2, 3], [None, 1], {}, -5, 0.001, 1e18, -1e18, 1e300, 2**63,
    "1970-01-01T00:00:01Z", "1970-01-01T00:00:00.5+00:00", "2026-02-30", "9999-12-31T23:59:59Z",
)  # fmt: skip
LINES = (
    b"", b"   ", b"{", b"[]", b"null", b"17", b'"a"', b'{"type": "a"}', b'{"time": 1}', b'{"type": "a", "time": 1', b"\xff\xfe",
    b"{}{}", b'{"type": "a", "time": 1, "type": "b"}', b'{"type": "a", "time": NaN}', b"\xef\xbb\xbf{}",
)  # fmt: skip


@dataclass(frozen=True)
class EventAttempt:
    example: Example
    lines: list[bytes]
    policy: str | None = None
    spark: bool = False

    @property
    def limit(self) -> float:
        return 60.0 if self.spark or len(self.lines) >= LARGE else 4.0

    def shown(self) -> str:
        rules = "\n".join(source.text for source in self.example.rules)
        lines = [line.decode("utf-8", "backslashreplace") for line in self.lines[:200]]
        head = f"{self.example.name}, {self.policy or 'no policy'}, {len(self.lines)} lines"
        return "\n".join([head, rules, *lines])

    def run(self) -> str:
        descriptor, name = tempfile.mkstemp(suffix=".jsonl")
        try:
            with open(descriptor, "wb") as file:
                file.write(b"\n".join(self.lines))
            self._compare(name)
        finally:
            os.unlink(name)
        return "large" if len(self.lines) >= LARGE else "small"

    def _compare(self, name: str) -> None:
        expected = answer(name, self.example, "embedded", "interpreter", OBJECTS, self.policy)
        found = answer(name, self.example, "embedded", "kernel", COLUMNS, self.policy)
        if not _in_order(expected, found):
            raise Difference(f"{self.example.name}: kernel\n{_first_difference(expected, found)}")
        if self.spark:
            on_spark = answer(name, self.example, "spark", "kernel", COLUMNS, self.policy)
            missing, unexpected = unmatched(expected, on_spark)
            if missing or unexpected:
                raise Difference(f"{self.example.name}: Spark\nmissing {missing[:3]}\nunexpected {unexpected[:3]}")


def answer(name: str, example: Example, engine: str, tier: str, block: int, policy: str | None = None) -> list[Record]:
    """The detections, then what became of the records, then the error that stopped the run, if there was one."""
    reader = open_events(name, block_size=block)
    out: list[Record] = []
    try:
        if policy is not None or example.book.names_policies:
            out += _under_policies(reader, example, engine, tier, policy)
        else:
            for batch in detections(example.book, in_total_order(reader), example.until, engine, tier):
                out += [record(event) for event in batch.events]
    except RunError as error:
        out.append({"stopped": str(error)})
    out.append({"read": reader.report.read, "rejected": reader.report.rejected})
    return out


def _under_policies(
    batches: Iterable[EventBatch], example: Example, engine: str, tier: str, policy: str | None
) -> Iterator[Record]:
    """Records as they arrive: detections, then how late each was made, where a policy says it, and which events came too late."""
    default = None if policy is None else StabilityPolicy.parse(policy)
    further: list[Record] = []
    for run in _policy_runs(batches, example, engine, tier, default):
        yield from map(record, run.detections)
        further += [latency.record() for latency in run.latencies]
        further += [{"late": record(event), "under": [str(p) for p in under]} for event, under in run.latecomers()]
    yield from sorted(further, key=lambda told: "late" in told)


def _policy_runs(
    batches: Iterable[EventBatch], example: Example, engine: str, tier: str, policy: StabilityPolicy | None
) -> Iterator[PolicyRun]:
    if engine != "embedded":
        yield arrivals_on_spark(example.book, batches, policy, example.until, engine, tier)
        return
    going = PolicyEngine(example.book, policy, tier)
    for batch in batches:
        yield from going.process(EventBatch(table=batch.table) if tier == "kernel" else batch)
    yield from going.end(example.until)


class EventFuzzer:
    """One in ten is large, of the rules that bear it: a rule may well ask for all pairs."""

    def __init__(self, corpus: Path, spark: bool = False) -> None:
        self._examples = runnable(corpus)
        self._spark = spark
        self._warm: set[str] = set()
        self._large: dict[str, bool] = {}

    def attempt(self, random: Random) -> EventAttempt:
        example = random.choice(self._examples)
        large = random.random() < 0.1
        while large and not self._bears_large(example):
            example = random.choice(self._examples)
        count = random.randrange(LARGE + 1, LARGE * 3 // 2) if large else random.choice((3, 10, 20, 30, 40))
        self._compile(example)
        keys = LARGE if large else random.choice((0, 5, 1000))
        policy = None if large else random.choice(POLICIES)  # under most policies events are taken one by one
        return EventAttempt(example, list(RandomLines(example, random, count, keys).lines()), policy, self._spark)

    def _compile(self, example: Example) -> None:
        """No attempt has to wait for a compiler, or for Spark to start."""
        if example.name not in self._warm:
            self._warm.add(example.name)
            with suppress(Difference):  # it will be found again, and told
                EventAttempt(example, [json.dumps(event).encode() for event in example.events], spark=self._spark).run()

    def _bears_large(self, example: Example) -> bool:
        """Twice the events, little more than twice the work: counted in calls, which are the same on every machine."""
        if example.name not in self._large:
            calls = [_calls(example, size) for size in (200, 400, 800)]
            self._large[example.name] = all(b < 2.3 * a for a, b in pairwise(calls)) and calls[-1] < 1000 * MOST_CALLS
        return self._large[example.name]


class TooManyCalls(Exception):
    pass


def _calls(example: Example, count: int) -> int:
    """Calls that the interpreter makes for so many events."""
    calls = 0

    def called(frame: object, what: str, argument: object) -> None:
        nonlocal calls
        calls += 1
        if calls > count * MOST_CALLS:
            raise TooManyCalls

    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(b"\n".join(RandomLines(example, Random(0), count, 1000).lines()))
        file.flush()
        sys.setprofile(called)
        try:
            answer(file.name, example, "embedded", "interpreter", OBJECTS)
        except TooManyCalls:
            return count * MOST_CALLS * 4
        finally:
            sys.setprofile(None)
    return calls


class RandomLines:
    """Lines made from an example's events: mixed, with values of one another, some spoilt, mostly in order of time."""

    def __init__(self, example: Example, random: Random, count: int, keys: int) -> None:
        self.random = random
        self.count = count
        self.events = [dict(event) for event in example.events]
        self.names = sorted({name for event in self.events for name in event} - {"type", "time", "id", "arrival"})
        self.values = {name: [event[name] for event in self.events if name in event] for name in self.names}
        self.step = _usual_step(self.events)
        self.dirt = random.choice((0.0, 0.02, 0.02, 0.2))
        self.keys = keys

    def lines(self) -> Iterator[bytes]:
        now = 0.0
        for _ in range(self.count):
            now += self.random.choice((0, 0, 1, self.step, self.step, self.step * self.random.random()))
            if self.random.random() < self.dirt / 4:
                yield self.random.choice(LINES)
            else:
                yield json.dumps(self._event(now)).encode()

    def _event(self, now: float) -> dict[str, Any]:
        random = self.random
        event = dict(random.choice(self.events))
        event.pop("id", None)
        event["time"] = self._time(round(now, 3))
        if "arrival" in event:
            event["arrival"] = round(now + random.choice((0, 1, self.step, 3 * self.step)), 3)
        for name in self.names:
            if random.random() < 0.3:
                event[name] = random.choice(self.values[name])
        if self.keys:
            event.update({name: self._other(value) for name, value in event.items() if name in self.values})
        if random.random() < self.dirt:
            self._spoil(event)
        return event

    def _other(self, value: object) -> object:
        """Another one of its kind, of so many."""
        if isinstance(value, str):
            return f"{value}{self.random.randrange(self.keys)}" if self.random.random() < 0.5 else value
        if isinstance(value, (int, float)) and not isinstance(value, bool) and self.random.random() < 0.5:
            return value + self.random.randrange(self.keys)
        return value

    def _time(self, now: float) -> object:
        if self.random.random() < 0.05:
            return [now, now + self.random.choice((0, 1, self.step))]
        if self.random.random() < 0.05:
            return max(0.0, now - self.random.choice((1, self.step * 3)))
        return int(now) if now == int(now) else now

    def _spoil(self, event: dict[str, Any]) -> None:
        random = self.random
        changes: Sequence[Callable[[], object]] = (
            lambda: event.pop(random.choice(sorted(event))),
            lambda: event.update({random.choice([*self.names, "v"]): random.choice(AWKWARD)}),
            lambda: event.update({random.choice([*self.names, "v"]): random.choice(AWKWARD)}),
            lambda: event.update(time=random.choice(TIMES)),
            lambda: event.update(type=random.choice((*AWKWARD, "heartbeat"))),
            lambda: event.update(id=random.choice((*AWKWARD, "7", "-7", "007", "9" * 5000))),
            lambda: event.update(source=random.choice(AWKWARD)),
            lambda: event.update(arrival=random.choice(TIMES)),
            lambda: event.update(space=random.choice((*AWKWARD, {"x": 1e300, "y": 1}, {"lat": 91, "lon": 0}, {"zone": 5}))),
        )
        random.choice(changes)()


def _usual_step(events: Sequence[Record]) -> float:
    times: list[float] = sorted(t for event in events if isinstance(t := event.get("time"), (int, float)))
    return max(1.0, round((times[-1] - times[0]) / len(times), 3)) if len(times) > 1 else 1000.0


def _in_order(expected: Sequence[Record], found: Sequence[Record]) -> bool:
    return expected == found or (
        len(expected) == len(found)
        and all(same(plain_detection(a), plain_detection(b)) for a, b in zip(expected, found, strict=True))
    )


def _first_difference(expected: Sequence[Record], found: Sequence[Record]) -> str:
    for number, (a, b) in enumerate(zip_longest(expected, found)):
        if a is None or b is None or not same(plain_detection(a), plain_detection(b)):
            return f"{len(expected)} and {len(found)} lines; line {number + 1}:\nexpected {a}\nfound    {b}"
    return ""
