"""Pages of a bucket: detectors' state for some of its keys, kept so that a micro-batch costs what it touches.

A page is a *base* (the encoded state) and a *log* of the steps that were taken since: events consumed, and how far time came with
them. Only when the log has grown large is the state encoded anew. A random token, new with each write, tells whether a state in
memory is the one in the store, whatever was retried, restarted or reused in between. A worker that holds that very state goes on
from there. One that holds what was stored a few writes before (Spark hands buckets to any of its workers) takes the steps that it
has missed, and any other reads the base and takes all of them again, which costs little: kernels are far faster than codecs.
(Logs were written that tell what has changed instead; they are still read.)

Of a large page, a worker that does not hold the state reads only the keys that events touch (columns/portion.py). After a few of
these steps it reads the whole, one page after another, so that no micro-batch waits for all of them."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa

from coincide.collecting import without_collecting
from coincide.detection.columns.hashes import Hashes
from coincide.detection.columns.tables import are_among
from coincide.detection.snapshots import damaged, reading_state
from coincide.engines.graph import Graph
from coincide.engines.snapshots import DividedSnapshot
from coincide.engines.spark.packing import fitting, recovered, stored
from coincide.engines.touching import of_keys, row_hashes, touched
from coincide.model.bounds import Count

CHECKPOINT = "the checkpoint cannot be read"

ROOM = 64_000
"""Bytes that a log may always have, besides as many as the base has; …"""
GROWTH = 4
"""… or so many times as many, if the state is not tables and takes long to encode."""
STEPS = 64
"""So many steps a log may have, or as few as half, so that not all are folded at once: each is a call of the store to who reads
it."""
TRAIL = 16
"""So many writes ago a state may have been stored that a worker goes on from."""
REMEMBERED = 64_000_000
"""Bytes of encoded state whose decoded form a worker keeps."""
CHANGED = b"changes\x01"
"""What entries that tell changes begin with, in logs of earlier releases; the others are steps."""
LARGE = 1_000_000
"""Bytes of a base of which less than all may be read."""
SHARE = 1_000
"""So many bytes of a base there are to be for each key that is touched, if only these are read."""
PORTIONS = 16
"""So many portions of a page are read, or up to PATIENCE times as many, so that not all pages are read whole at once: by the last
of them, what portions cost more than a state that is held has come to about what it costs to read the whole."""
PATIENCE = 5
PORTION = b" portion"
"""Behind the token of a page of which only that is remembered."""
TABLES = 8
"""State that is tables takes so many times less memory than objects do."""
NO_KEYS: Hashes = np.zeros(0, np.int64)


class Page(msgspec.Struct, array_like=True):
    """What the bucket knows of a page. `rules` names the rules that its base and log belong to."""

    token: bytes
    rules: str
    base: Count = 0  # bytes
    size: Count = 0  # of the log, bytes
    log: list[Count] = []
    next: Count = 0
    steps: Count = STEPS  # so many the log may have
    trail: list[bytes] = []  # its tokens before, the last one at the end

    def behind(self, kind: bytes = b"") -> int | None:
        """How many writes ago what this process has of it was stored."""
        return next((n for n, token in enumerate(self._tokens) if token + kind in MEMORY.states), None)

    def take(self, behind: int, kind: bytes, graph: Stepping) -> Any:
        return MEMORY.take(self._tokens[behind] + kind, graph)

    @property
    def _tokens(self) -> list[bytes]:
        return [self.token, *reversed(self.trail)]


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

    @property
    def size(self) -> int:
        """About so many bytes."""
        return 0 if self.events is None else int(self.events.nbytes)

    def to_bytes(self) -> bytes:
        told = {name: str(value) for name, value in (("bound", self.bound), ("start", self.start)) if value is not None}
        return stored((pa.table({}) if self.events is None else self.events).replace_schema_metadata(told))

    @staticmethod
    def from_bytes(data: bytes) -> Step:
        table = recovered(data)
        told = {name.decode(): int(value) for name, value in (table.schema.metadata or {}).items()}
        if any(not -(2**63) <= value < 2**63 for value in told.values()):
            damaged("an instant is out of range")
        events = fitting(table, "hi").replace_schema_metadata(None) if len(table) else None
        return Step(events, told.get("bound"), told.get("start"))


def as_one(steps: Sequence[Step]) -> Sequence[Step]:
    """How events are cut into steps makes no difference: where they have the same columns, they are taken at once."""
    events = [step.events for step in steps if step.events is not None]
    if len(steps) < 2 or any(step.bound is None for step in steps) or any(e.schema != events[0].schema for e in events):
        return steps
    start = next((step.start for step in reversed(steps) if step.start is not None), None)
    return [Step(pa.concat_tables(events) if events else None, steps[-1].bound, start)]


@dataclass(frozen=True)
class Taken:
    """A step that was taken, and by row of its events the hashes of their keys; None: these are not to be told."""

    step: Step
    rows: Hashes | None

    def of_keys(self, hashes: Hashes) -> Step:
        step, events = self.step, self.step.events
        if events is None or self.rows is None:
            return step
        some = of_keys(self.rows, hashes)
        return Step(events.take(pa.array(some)) if len(some) else None, step.bound, step.start)

    def followed_by(self, other: Taken) -> list[Taken]:
        """The two as one, if they can be."""
        steps = as_one([self.step, other.step])
        if len(steps) > 1 or self.rows is None or other.rows is None:
            return [self, other]
        return [Taken(steps[0], np.concatenate((self.rows, other.rows)))]


@dataclass
class Stored:
    """What is stored of a page, read once for many portions, of which so many may follow; the steps are as few as can be."""

    state: DividedSnapshot
    steps: list[Taken] = field(default_factory=list)
    portions: int = field(default_factory=lambda: random_number(PORTIONS, PATIENCE * PORTIONS))

    def add(self, taken: Taken) -> None:
        self.steps[-1:] = self.steps[-1].followed_by(taken) if self.steps else [taken]


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

    def forget(self) -> None:
        """As a worker that has just started."""
        self.states.clear()
        self.size = 0


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
    """The state of some keys of a page, which have these hashes; `rows`: those of the events that it is read for. `following`: no
    other key has a timer that is due before, if that was asked."""

    state: Any
    hashes: Hashes
    stored: Stored
    rows: Hashes
    following: int | None = None


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
        state, missed = self._remembered(number, page)
        if state is None:
            return self._rebuilt(number, page)
        self._take_again(self.graph, state, missed)
        return state

    def _remembered(self, number: int, page: Page, kind: bytes = b"") -> tuple[Any, list[Step]]:
        """What this process has of a page, and the steps that others have taken since. None: nothing that helps."""
        behind = page.behind(kind)
        found = None if behind is None else page.take(behind, kind, self.graph)
        if not behind or behind > len(page.log):  # it is as it was stored, or what came after is gone
            return (None if behind else found), []
        with reading_state(CHECKPOINT):
            changes, steps = self._entries(number, page.log[-behind:])
        return (None, []) if changes else (found, steps)

    def _is_held(self, page: Page) -> bool:
        """Is the whole state in memory, as it is or was lately?"""
        behind = page.behind()
        return behind is not None and behind <= len(page.log)

    def load_touched(self, number: int, events: Any, due: int | None = None) -> Portion | None:
        """The state of the keys that these events have, or with timers that are due before an instant; None: the whole is to be
        loaded."""
        page, graph = self.known.get(number), self.graph
        if page is None or page.rules != self._digest or page.base < LARGE or self._is_held(page):
            return None
        if page.size > ROOM + page.base or len(page.log) >= page.steps:  # the whole is to be written again
            return None
        if not isinstance(graph, Graph) or not graph.is_divided_by(self.key):
            return None
        rows = row_hashes(events, self.key) if len(events) else NO_KEYS
        if rows is None or (due is None and not len(rows)):
            return None
        remembered: Portion | None
        remembered, missed = self._remembered(number, page, PORTION)
        stored = self._stored_page(graph, number, page) if remembered is None else remembered.stored
        if stored is None:
            return None
        for step in missed:
            stored.add(self._taken(step))
        hashes, following = touched(rows), None
        if due is not None:
            waiting = self._due(graph, stored, due)
            if waiting is None:
                return None
            hashes, following = np.union1d(hashes, waiting[0]), waiting[1]
        if SHARE * len(hashes) > page.base:
            return None
        if remembered is not None and not missed and are_among(hashes, remembered.hashes).all():
            return replace(remembered, rows=rows, following=following)
        if not stored.portions:
            return None
        stored.portions -= 1
        state = self._portion(graph, stored, hashes)
        return None if state is None else Portion(state, hashes, stored, rows, following)

    def _due(self, graph: Graph, stored: Stored, instant: int) -> tuple[Hashes, int] | None:
        """The keys that may have timers which are due before; and when others are due, at the earliest. Those of later steps may
        all have some."""
        rows = [taken.rows for taken in stored.steps if taken.rows is not None]
        if not graph.stores_due(stored.state) or len(rows) < len(stored.steps):
            return None
        with reading_state(CHECKPOINT):
            keys, following = stored.state.due(instant)
        return touched(np.concatenate([NO_KEYS, *keys, *rows])), following

    def _stored_page(self, graph: Graph, number: int, page: Page) -> Stored | None:
        with reading_state(CHECKPOINT), without_collecting():
            data = self.store.base(number)
            changes, steps = self._entries(number, page.log)
            state = None if data is None else graph.divided(data, changes, len(self.key))
            if state is None:
                return None
            found = Stored(state)
            for step in steps:
                found.add(self._taken(step))
            return found

    def _taken(self, step: Step) -> Taken:
        return Taken(step, NO_KEYS if step.events is None else row_hashes(self.task.logged(step.events), self.key))

    def _portion(self, graph: Graph, stored: Stored, hashes: Hashes) -> Any:
        with reading_state(CHECKPOINT), without_collecting():
            state = graph.portion(stored.state, hashes)
            if state is not None and stored.steps:
                consumed, hi = state.consumed, state.hi
                self._take_again(graph, state, [taken.of_keys(hashes) for taken in stored.steps])
                events = [taken.step.events for taken in stored.steps if taken.step.events is not None]
                state.consumed = consumed + sum(map(len, events))  # as far as all of the events have led
                state.hi = max([hi, *(some.column("hi")[-1].as_py() for some in events)])
            return state

    def _rebuilt(self, number: int, page: Page) -> Any:
        """Under changed rules, events of the log are none of the new definitions' business."""
        with reading_state(CHECKPOINT), without_collecting():
            graph = self.graph if page.rules == self._digest else self.task.graph_of_rules(self.store.rules(page.rules))
            changes, steps = self._entries(number, page.log)
            state = self._stored(graph, number, changes)
            self._take_again(graph, state, steps)
            return state if graph is self.graph else self.graph.decode(graph.encode(state))

    def _entries(self, number: int, log: Sequence[int]) -> tuple[list[bytes], list[Step]]:
        """All changes, and the steps after the last of them."""
        entries = [self.store.entry(number, entry) for entry in log]
        changes = [entry.removeprefix(CHANGED) for entry in entries if entry.startswith(CHANGED)]
        return changes, [Step.from_bytes(entry) for entry in entries[_first_step(entries) :]]

    def _take_again(self, graph: Stepping, state: Any, steps: Sequence[Step]) -> None:
        """Steps that were taken before."""
        for step in as_one(steps):
            if step.start is not None:
                state.start = step.start
            graph.advance(state, self.task.batch(None) if step.events is None else self.task.logged(step.events), step.bound)

    def _stored(self, graph: Stepping, number: int, changes: Sequence[bytes]) -> Any:
        """The state of the base, and what has changed after it."""
        data = self.store.base(number)
        if changes:
            return graph.with_changes(graph.encode(graph.initial()) if data is None else data, changes)
        return graph.initial() if data is None else graph.decode(data)

    def save(self, number: int, state: Any, step: Step | None) -> None:
        """Keep the state that a step has led to. None: there was more to it than a log can tell."""
        page = self.known.setdefault(number, Page(b"", self._digest))
        tables = self.graph.tells_changes(state)
        room = ROOM + (1 if tables else GROWTH) * page.base
        if step is None or page.rules != self._digest or page.size + step.size > room or len(page.log) >= page.steps:
            self._renew(number, page, state)
        else:
            self._append(number, page, step)
        if self._digest not in self.rule_digests:
            self.store.put_rules(self._digest, self._rules)
            self.rule_digests.append(self._digest)
        size = (page.base + page.size) // TABLES if tables else max(page.base, page.size // 8)
        MEMORY.put(_new_token(page), self.graph, state, size)

    def save_step(self, number: int, portion: Portion, step: Step) -> None:
        """Keep what a step has led to that was taken without the whole state."""
        page = self.known[number]
        self._append(number, page, step)
        portion.stored.add(Taken(step, portion.rows))
        size = page.base + page.size + SHARE * len(portion.hashes)
        MEMORY.put(_new_token(page) + PORTION, self.graph, portion, size // TABLES)

    def _append(self, number: int, page: Page, step: Step) -> None:
        data = step.to_bytes()
        self.store.put_entry(number, page.next, data)
        page.log.append(page.next)
        page.next += 1
        page.size += len(data)

    def _renew(self, number: int, page: Page, state: Any) -> None:
        data = self.graph.changes(state, everything=True) if self.graph.tells_changes(state) else self.graph.encode(state)
        self.store.put_base(number, data)
        for entry in page.log:
            self.store.drop_entry(number, entry)
        page.base, page.size, page.log, page.steps = len(data), 0, [], random_number(STEPS // 2, STEPS)
        if page.rules != self._digest:
            page.rules = self._digest
            self._drop_unused_rules()

    def _drop_unused_rules(self) -> None:
        used = {page.rules for page in self.known.values()}
        for digest in [digest for digest in self.rule_digests if digest not in used]:
            self.store.drop_rules(digest)
            self.rule_digests.remove(digest)


def random_number(least: int, most: int) -> int:
    return least + int.from_bytes(os.urandom(4)) % (most - least + 1)


def _new_token(page: Page) -> bytes:
    page.trail = [*page.trail, page.token][-TRAIL:]
    page.token = os.urandom(8)
    return page.token


def _first_step(entries: Sequence[bytes]) -> int:
    """From where on there are only steps."""
    return max((number for number, entry in enumerate(entries, 1) if entry.startswith(CHANGED)), default=0)
