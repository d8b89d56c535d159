"""Pages of a bucket: detectors' state for some of its keys, kept so that a micro-batch costs what it touches.

A page is a *base* (the encoded state) and a *log*: what has changed since, where detectors can tell (Graph.changes), or else the
steps that were taken: events consumed, and how far time came with them. Both are appended to the log; only when it has grown
large is the state encoded anew. A worker that still holds the very state that was stored goes on from there; any other reads the
base and the changes after it and takes the steps again, which costs little: kernels are far faster than codecs. A random token,
new with each write, tells whether a state in memory is the one in the store, whatever was retried, restarted or reused in
between.

Of a large page, a worker that does not hold the state reads only the keys that events touch (columns/portion.py), and what it
adds to the log is the step. After a few of these it reads the whole, one page after another, so that no micro-batch waits for all
of them."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa

from coincide.collecting import all_is_kept
from coincide.detection.columns.hashes import Hashes
from coincide.detection.snapshots import damaged, reading_state
from coincide.engines.graph import Graph
from coincide.engines.spark.packing import fitting, recovered, stored
from coincide.engines.touching import of_keys, touched
from coincide.model.bounds import Count

CHECKPOINT = "the checkpoint cannot be read"

ROOM = 64_000
"""Bytes that a log may always have; and it may have as many times the base's as GROWTH says."""
GROWTH = 4
STEPS = 64
"""So many steps a log may have: a worker that has just started takes all of them again."""
ENTRIES = 128
"""So many entries a log may have at all: each is a call of the store to who has to read it."""
REMEMBERED = 64_000_000
"""Bytes of encoded state whose decoded form a worker keeps."""
CHANGED = b"changes\x01"
"""What entries that tell changes begin with; the others are steps."""
LARGE = 1_000_000
"""Bytes of a base of which less than all may be read."""
SHARE = 1_000
"""So many bytes of a base there are to be for each key that is touched, if only these are read."""
TURNS = 8
"""Pages are read whole in so many turns: after two steps that were taken without the whole, after three …"""
PORTION = b" portion"
"""Behind the token of a page of which only that is remembered."""
TABLES = 8
"""State that is tables takes so many times less memory than objects do."""


class Page(msgspec.Struct, array_like=True):
    """What the bucket knows of a page. `rules` names the rules that its base and log belong to."""

    token: bytes
    rules: str
    base: Count = 0  # bytes
    size: Count = 0  # of the log, bytes
    log: list[Count] = []
    next: Count = 0


class PageStore(Protocol):
    def base(self, page: int) -> bytes | None: ...
    def put_base(self, page: int, data: bytes) -> None: ...
    def entry(self, page: int, number: int) -> bytes: ...
    def put_entry(self, page: int, number: int, data: bytes) -> None: ...
    def drop_entry(self, page: int, number: int) -> None: ...
    def rules(self, digest: str) -> bytes: ...
    def put_rules(self, digest: str, data: bytes) -> None: ...
    def drop_rules(self, digest: str) -> None: ...


@dataclass(frozen=True)
class Step:
    """What leads from one state of a page to the next. `bound`: how far time has come; `start`: when the run began."""

    events: pa.Table | None
    bound: int | None  # None: only to the last event, as logs had it before they told
    start: int | None

    def to_bytes(self) -> bytes:
        told = {name: str(value) for name, value in (("bound", self.bound), ("start", self.start)) if value is not None}
        return stored((pa.table({}) if self.events is None else self.events).replace_schema_metadata(told))

    @staticmethod
    def from_bytes(data: bytes) -> Step:
        table = recovered(data)
        told = {name.decode(): int(value) for name, value in (table.schema.metadata or {}).items()}
        if any(not -(2**63) <= value < 2**63 for value in told.values()):
            damaged("an instant is out of range")
        return Step(fitting(table, "hi") if len(table) else None, told.get("bound"), told.get("start"))


@dataclass
class _Memory:
    """States of this process by their tokens, the one used last at the end."""

    states: OrderedDict[bytes, tuple[Stepping, Any, int]] = field(default_factory=OrderedDict)
    size: int = 0

    def put(self, token: bytes, graph: Stepping, state: Any, size: int) -> None:
        self.states[token] = (graph, state, size)
        self.size += size
        while self.size > REMEMBERED and self.states:
            self.size -= self.states.popitem(last=False)[1][2]

    def take(self, token: bytes, graph: Stepping) -> Any:
        """A state is handed out once: it changes as it is used."""
        found = self.states.pop(token, None)
        if found is None:
            return None
        self.size -= found[2]
        return found[1] if found[0] is graph else None


MEMORY = _Memory()


class Stepping(Protocol):
    """What is stepped: a graph of detectors, or a query over a table. States have the `start` of the run and the latest `hi`."""

    def initial(self) -> Any: ...
    def advance(self, state: Any, batch: Any, bound: int | None = None) -> Any: ...
    def finish(self, state: Any, until: float | None = None, closed: bool = True) -> Any: ...
    def encode(self, state: Any) -> bytes: ...
    def decode(self, data: bytes) -> Any: ...
    def tells_changes(self, state: Any) -> bool: ...
    def changes(self, state: Any, everything: bool = False) -> bytes: ...
    def with_changes(self, data: bytes, changes: Sequence[bytes]) -> Any: ...
    def due(self, state: Any) -> int | None: ...


class Work(Protocol):
    """What a bucket is for, as it is sent to workers: worker.Task for rules (chaining.StageTask where they are in
    stages), tablework.TableTask for plain tables."""

    @property
    def graph(self) -> Stepping: ...
    @property
    def shows_late(self) -> bool: ...
    def rules(self) -> bytes: ...
    def graph_of_rules(self, data: bytes) -> Stepping: ...
    def order(self, table: pa.Table) -> Any: ...
    def check_waiting(self, table: pa.Table) -> None: ...
    def batch(self, table: pa.Table | None) -> Any: ...
    def logged(self, table: pa.Table) -> Any: ...
    def rows(self, made: list[Any], late: Any, set_aside: Any = None) -> list[pa.RecordBatch]: ...
    def leaving(self, made: list[Any]) -> Iterable[tuple[Any, Mapping[int, bytes]]]:
        """What goes to groups of later stages: for each, what goes to which of its buckets (chaining.Listener)."""


@dataclass(frozen=True)
class Portion:
    """The state of some keys of a page, which have these hashes."""

    state: Any
    hashes: Hashes


class Pages:
    """`known` and `rule_digests` (digests of the rules that the store has) are the bucket's, which stores them."""

    def __init__(
        self, task: Work, store: PageStore, known: dict[int, Page], rule_digests: list[str], key: Sequence[str] = ()
    ) -> None:
        self.key = key
        self.store = store
        self.known = known
        self.rule_digests = rule_digests
        self.task = task
        self.graph = task.graph
        self._rules = task.rules()
        self._digest = blake2b(self._rules, digest_size=8).hexdigest()

    def load(self, number: int) -> Any:
        page = self.known.get(number)
        if page is None:
            return self.graph.initial()
        remembered = MEMORY.take(page.token, self.graph)
        return self._rebuilt(number, page) if remembered is None else remembered

    def load_touched(self, number: int, events: Any) -> Portion | None:
        """The state of the keys that these events have; None: the whole is to be loaded."""
        page, graph = self.known.get(number), self.graph
        if page is None or page.token in MEMORY.states or page.rules != self._digest or page.base < LARGE:
            return None
        if page.size > ROOM + page.base or len(page.log) >= ENTRIES:  # the whole is to be written again
            return None
        if not isinstance(graph, Graph) or not graph.is_divided_by(self.key):
            return None
        hashes = touched(events, self.key)
        if hashes is None or SHARE * len(hashes) > page.base:
            return None
        remembered: Portion | None = MEMORY.take(page.token + PORTION, graph)
        if remembered is not None and np.isin(hashes, remembered.hashes).all():
            return remembered
        return self._portion(graph, number, page, hashes)

    def _portion(self, graph: Graph, number: int, page: Page, hashes: Hashes) -> Portion | None:
        with reading_state(CHECKPOINT), all_is_kept():
            changes, steps = self._log(number, page)
            data = self.store.base(number)
            if data is None or len(steps) >= 2 + number % TURNS:
                return None
            state = graph.portion(data, changes, hashes, len(self.key))
            for step in steps if state is not None else ():
                self._take_again(graph, state, step, hashes)
            return None if state is None else Portion(state, hashes)

    def _rebuilt(self, number: int, page: Page) -> Any:
        """Under changed rules, events of the log are none of the new definitions' business."""
        with reading_state(CHECKPOINT), all_is_kept():
            graph = self.graph if page.rules == self._digest else self.task.graph_of_rules(self.store.rules(page.rules))
            changes, steps = self._log(number, page)
            state = self._stored(graph, number, changes)
            for step in steps:
                self._take_again(graph, state, step)
            return state if graph is self.graph else self.graph.decode(graph.encode(state))

    def _log(self, number: int, page: Page) -> tuple[list[bytes], list[Step]]:
        """All changes, and the steps after the last of them."""
        entries = [self.store.entry(number, entry) for entry in page.log]
        changes = [entry.removeprefix(CHANGED) for entry in entries if entry.startswith(CHANGED)]
        return changes, [Step.from_bytes(entry) for entry in entries[_first_step(entries) :]]

    def _take_again(self, graph: Stepping, state: Any, step: Step, hashes: Hashes | None = None) -> None:
        """A step that was taken before; of some keys alone, it goes as far as all of its events did."""
        if step.start is not None:
            state.start = step.start
        events = self.task.batch(None) if step.events is None else self.task.logged(step.events)
        if hashes is None or not len(events):
            graph.advance(state, events, step.bound)
            return
        consumed = state.consumed + len(events)
        graph.advance(state, of_keys(events, self.key, hashes), step.bound)
        state.consumed, state.hi = consumed, max(state.hi, int(events.table.hi[-1]))

    def _stored(self, graph: Stepping, number: int, changes: Sequence[bytes]) -> Any:
        """The state of the base, and what has changed after it."""
        data = self.store.base(number)
        if changes:
            return graph.with_changes(graph.encode(graph.initial()) if data is None else data, changes)
        return graph.initial() if data is None else graph.decode(data)

    def save(self, number: int, state: Any, step: Step | None) -> None:
        """Keep the state that a step has led to. None: there was more to it than a log can tell."""
        page = self.known.setdefault(number, Page(b"", self._digest))
        tells = self.graph.tells_changes(state)
        growth, entries = (1, ENTRIES) if tells else (GROWTH, STEPS)
        if page.rules != self._digest or page.size > ROOM + growth * page.base or len(page.log) >= entries:
            self._renew(number, page, state)
        elif tells:
            self._append(number, page, CHANGED + self.graph.changes(state))
        elif step is not None:
            self._append(number, page, step.to_bytes())
        else:
            self._renew(number, page, state)
        page.token = os.urandom(8)
        if self._digest not in self.rule_digests:
            self.store.put_rules(self._digest, self._rules)
            self.rule_digests.append(self._digest)
        MEMORY.put(page.token, self.graph, state, (page.base + page.size) // TABLES if tells else max(page.base, page.size // 8))

    def save_step(self, number: int, portion: Portion, step: Step) -> None:
        """Keep what a step has led to that was taken without the whole state."""
        page = self.known[number]
        self._append(number, page, step.to_bytes())
        page.token = os.urandom(8)
        MEMORY.put(page.token + PORTION, self.graph, portion, SHARE * len(portion.hashes) // TABLES)

    def _append(self, number: int, page: Page, data: bytes) -> None:
        self.store.put_entry(number, page.next, data)
        page.log.append(page.next)
        page.next += 1
        page.size += len(data)

    def _renew(self, number: int, page: Page, state: Any) -> None:
        data = self.graph.changes(state, everything=True) if self.graph.tells_changes(state) else self.graph.encode(state)
        self.store.put_base(number, data)
        for entry in page.log:
            self.store.drop_entry(number, entry)
        page.base, page.size, page.log = len(data), 0, []
        if page.rules != self._digest:
            page.rules = self._digest
            self._drop_unused_rules()

    def _drop_unused_rules(self) -> None:
        used = {page.rules for page in self.known.values()}
        for digest in [digest for digest in self.rule_digests if digest not in used]:
            self.store.drop_rules(digest)
            self.rule_digests.remove(digest)


def _first_step(entries: Sequence[bytes]) -> int:
    """From where on there are only steps."""
    return max((number for number, entry in enumerate(entries, 1) if entry.startswith(CHANGED)), default=0)
