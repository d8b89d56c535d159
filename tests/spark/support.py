"""Random events, and detections that can be compared."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.errors import StreamingQueryException

from coincide.adapters.order import sort_batch
from coincide.engines import embedded
from coincide.model.batch import EventBatch
from coincide.model.event import Event, Value, plain, primitive, record
from coincide.rulebook import Rulebook, loads

CHAINED = """
monitor steps by k = repeat { push(x, v: v, twice: v * 2) { sequential { a, b, c } } }
monitor pairs by k = repeat { push(y, was: v) { sequential { x, x } } }
monitor all = repeat { push(z, w: w) { sequential { a, b and v > 0.2 } } }
monitor both by k, s = repeat { push(u) { accumulate { a, d } } }
"""


def chained() -> Rulebook:
    return loads(CHAINED)


def random_events(size: int, seed: int = 1, keys: Sequence[Value] = (1.0, 2.0, 3.0, None), span: int = 100_000) -> list[Event]:
    """Events with equal times, points and intervals, nulls among the keys."""
    rng = random.Random(seed)
    made = []
    for number in range(size):
        hi = rng.randrange(span) * 1000
        lo = hi - rng.choice([0, 0, 5000])
        values = {"k": rng.choice(list(keys)), "s": rng.choice(["p", "q"]), "v": rng.random(), "w": rng.choice([1.0, "t", None])}
        attributes = {name: value for name, value in values.items() if value is not None}
        made.append(primitive(rng.choice("abcde"), lo, hi, f"e{number}", attributes))
    return made


def expected(rules: Rulebook, events: Sequence[Event], until: float | None = None) -> list[str]:
    ordered = sort_batch(EventBatch(list(events)))
    return texts(event for batch in embedded.run(rules, [ordered], until, "interpreter") for event in batch.events)


def texts(events: Iterable[Event]) -> list[str]:
    return sorted(json.dumps(record(event), sort_keys=True) for event in events)


def texts_of_rows(rows: Iterable[Any]) -> list[str]:
    """Rows of a resulting DataFrame as records."""
    return sorted(json.dumps(_record(row.asDict(recursive=True)), sort_keys=True) for row in rows)


def _record(row: dict[str, Any]) -> dict[str, Any]:
    time = row.pop("time")
    lo, hi = (round(time[end].timestamp() * 1000) for end in ("lo", "hi"))
    out = {"time": lo if lo == hi else [lo, hi]}
    for name, value in row.items():
        if isinstance(value, dict):
            value = next((part for part in value.values() if part is not None), None)
        if value is not None:
            out[name] = plain(value)
    return out


def finished(writer: Any) -> Any:
    """The query of a writer when it has ended. Spark gives a process that reads a source ten seconds to start: little on a
    machine that does other work, too."""
    for _ in range(5):
        query = writer.start()
        try:
            query.awaitTermination()
            return query
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error):
                raise
    raise AssertionError("no process of Python starts in time")


class Memory:
    """A store of a bucket, that counts."""

    def __init__(self) -> None:
        self.data: dict[object, bytes] = {}
        self.bases_read = 0
        self.wakes: int | None = None

    def wake(self, before: int | None, at: int | None) -> None:
        assert before == self.wakes or before is None
        self.wakes = at

    def meta(self) -> bytes | None:
        return self.data.get("meta")

    def put_meta(self, data: bytes) -> None:
        self.data["meta"] = data

    def segment(self, number: int) -> bytes:
        return self.data["segment", number]

    def put_segment(self, number: int, data: bytes) -> None:
        self.data["segment", number] = data

    def drop_segment(self, number: int) -> None:
        del self.data["segment", number]

    def base(self, page: int) -> bytes | None:
        self.bases_read += 1
        return self.data.get(("base", page))

    def put_base(self, page: int, data: bytes) -> None:
        self.data["base", page] = data

    def entry(self, page: int, number: int) -> bytes:
        return self.data["entry", page, number]

    def put_entry(self, page: int, number: int, data: bytes) -> None:
        self.data["entry", page, number] = data

    def drop_entry(self, page: int, number: int) -> None:
        del self.data["entry", page, number]

    def rules(self, digest: str) -> bytes:
        return self.data["rules", digest]

    def put_rules(self, digest: str, data: bytes) -> None:
        self.data["rules", digest] = data

    def drop_rules(self, digest: str) -> None:
        self.data.pop(("rules", digest), None)  # as Spark's map, which does not mind what it lacks
