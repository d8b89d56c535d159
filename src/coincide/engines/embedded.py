"""The engine in one process: the default, and the yardstick of the others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.order import sort_batch
from coincide.adapters.records import BadRecord, event_of
from coincide.detection.base import Unfinished, paying_sizes
from coincide.detection.snapshots import damaged, reading_state
from coincide.engines.allowance import Allowance
from coincide.engines.choice import TIERS, Until, check_name, until_microseconds
from coincide.engines.compilation import is_ready
from coincide.engines.graph import Graph, GraphState
from coincide.engines.snapshots import GraphSnapshot, read_snapshot
from coincide.engines.stopping import up_to_a_stop
from coincide.errors import CoincideError, Diagnostic, InputError, RunError, nearest
from coincide.model.batch import EMPTY, EventBatch, merged
from coincide.model.event import Event, record
from coincide.rulebook import Rulebook, RuleSource, rulebook

PATIENCE = 32
"""After so many small batches in a row kernels hand over to interpreters: each costs them about a millisecond."""

WORTH = 256
"""Events of a batch that repay that millisecond, once so many have come that compiling has paid."""

PIECE = 2_000
"""Events of a large batch that are interpreted before it is asked again whether the kernel has been compiled."""

Given = Event | Mapping[str, Any]
"""One event: an object, or a record (a dict with `type`, `time` and attributes)."""


Callback = Callable[[dict[str, Any]], object]
"""What is called with a detection, as a record."""


class Engine:
    """Detects in a stream that is fed to it piece by piece.

    `process` takes events that are not older than those before; older ones are *late*: counted and not consumed. State can
    be taken (`snapshot`) and given back (`restore`) between any two calls, also under changed rules. With the tier `auto`
    each plan is in the tier that is faster for batches of the size that comes. `on_detection` is called with every detection,
    as a record. With `max_detections`, making more is a RunError that names the rule."""

    def __init__(
        self,
        rules: Rulebook | RuleSource | Sequence[RuleSource],
        tier: str = "auto",
        *,
        on_detection: Callback | None = None,
        max_detections: int | None = None,
    ) -> None:
        check_name("tier", tier, TIERS)
        self.tier = tier
        self.late = 0
        self._callbacks: list[tuple[str | None, Callback]] = [] if on_detection is None else [(None, on_detection)]
        self._graphs = Graphs(rulebook(rules), tier)
        self._graph = self._graphs.graph
        self._state = self._graph.initial()
        most = self._graphs.book.max_detections if max_detections is None else max_detections
        self._allowance = None if most is None else Allowance(most, self._graphs.book)
        self._fields = self._graphs.book.fields(DEFAULT)

    def on(self, type: str, callback: Callback) -> None:
        """Has the callback called with every detection of a type that these rules make."""
        known = {output for detector in self._graphs.book.detectors for output in detector.outputs}
        if type not in known:
            hint = nearest(type, known) or f"they make: {', '.join(sorted(known))}"
            raise CoincideError(Diagnostic(f"no rule makes detections of the type '{type}'", hint=hint))
        self._callbacks.append((type, callback))

    def process(self, events: EventBatch | Given | Iterable[Given]) -> EventBatch:
        """The detections that these events, or this one, make. `time` is milliseconds, ISO-8601, a datetime, or a list of two
        of these. Raises InputError for a record that is not an event; then none is consumed."""
        batch = self._batch(events)
        if not (rows := len(batch)):
            return EMPTY
        self._move(self._graphs.suited_to(rows))
        timely = self._timely(batch if rows == 1 else sort_batch(batch))
        return self._consume(timely) if self._graphs.compiling else self._step(timely)

    def _consume(self, batch: EventBatch) -> EventBatch:
        """Piece by piece, for as long as a kernel is compiled: it takes over as soon as it is there."""
        made, row = [], 0
        while row < len(batch):
            self._move(self._graphs.graph)
            end = row + PIECE if self._graphs.compiling else len(batch)
            made.append(self._step(batch.rows(row, end)))
            row = end
        return merged(made)

    def _step(self, batch: EventBatch) -> EventBatch:
        if self._allowance is None:
            return self._with_callbacks(partial(self._graph.advance, self._state, batch))
        made: list[EventBatch] = []
        for piece in self._allowance.pieces(batch):
            part = self._with_callbacks(partial(self._graph.advance, self._state, piece))
            self._use(part, made)
            made.append(part)
        return merged(made)

    def _use(self, part: EventBatch, before: Sequence[EventBatch] = ()) -> None:
        """Part of what may be detected; beyond that, only what was made before is given out."""
        try:
            if self._allowance is not None:
                self._allowance.use(part)
        except RunError as error:
            error.detections = merged(before)
            raise

    def finish(self, until: Until = None, *, closed: bool = True) -> EventBatch:
        """The end of input; `until` (milliseconds, ISO-8601, a datetime, or 'inf') moves the clock on. If it is not `closed`,
        more is to come later: what only the end would decide (of MATCH_RECOGNIZE) stays undecided."""
        return self.finish_at(until_microseconds(until), closed)

    def finish_at(self, until: float | None, closed: bool = True) -> EventBatch:
        """The same, in the microseconds (or inf) that engines count. If it is not `closed`, more is to come later."""
        made = self._with_callbacks(partial(self._graph.finish, self._state, until, closed))
        self._use(made)
        return made

    def advance(self, time: Until) -> EventBatch:
        """Lets time pass without an event: what waits for an instant before `time` (milliseconds, ISO-8601, a datetime) has
        waited long enough. Events of that instant may still come, earlier ones are late."""
        bound = until_microseconds(time)
        if bound is None or bound == inf:
            raise InputError(f"time can pass up to an instant, not up to {time}: `finish` ends the input")
        return self.advance_to(int(bound))

    def advance_to(self, bound: int) -> EventBatch:
        """The same, in microseconds. Before the first event there is nothing that could wait."""
        if self._state.start is None or bound <= self._state.hi:
            return EMPTY
        self._state.hi = bound
        return self._with_callbacks(partial(self._graph.advance, self._state, EMPTY, bound))

    @property
    def graph(self) -> Graph:
        """The plans, in the tier that is in use."""
        return self._graph

    @property
    def state(self) -> GraphState:
        """Theirs: another one when they are."""
        return self._state

    @property
    def timed(self) -> bool:
        """Can any rule wait for an instant?"""
        return any(plan.timed for plan in self._graph.plans)

    def due(self) -> int | None:
        """The next instant, in microseconds, that a rule waits for."""
        return self._graph.due(self._state)

    def statistics(self) -> dict[str, Any]:
        """Counts of the run so far, as `--stats` writes them."""
        return self._graph.statistics(self._state)

    def unfinished(self, rule: str | None = None) -> list[Unfinished]:
        """What rules, or one of them, have begun and not ended: open lifespans, matches in progress, what windows hold, by key,
        with the instant that is waited for."""
        graph = Graph(self._graphs.book.plans("interpreter"))
        held = graph.unfinished(graph.decode(self.snapshot()))
        return [each for each in held if rule in (None, each.rule)]

    def snapshot(self) -> bytes:
        """The state, to be kept anywhere and given to `restore`."""
        return self._graph.encode(self._state)

    def restore(self, snapshot: bytes, *, changed: bool = False) -> None:
        """Goes on from a snapshot: definitions whose text is unchanged have their state again, others start afresh. Raises
        InputError for what is not a snapshot and, unless the rules may have `changed` in all, for one of other rules."""
        self.restore_parts(read_snapshot(snapshot, GraphSnapshot), changed=changed)

    def restore_parts(self, snapshot: GraphSnapshot, *, changed: bool = False) -> None:
        """The same from a snapshot that has been read."""
        if not changed and snapshot.parts and all(d.part_of(snapshot.parts) is None for d in self._graphs.book.detectors):
            raise InputError("not a snapshot of these rules: it has none of their definitions as they are now")
        state = self._graph.restored(snapshot)
        with reading_state():
            state.check_begun()
            if (due := self._graph.due(state)) is not None and due < state.hi:
                damaged("the clock has passed what still waits")
        self._state = state

    def change_rules(self, rules: Rulebook | RuleSource | Sequence[RuleSource]) -> None:
        """New rules from the next event on. Definitions whose text is unchanged keep their state."""
        self._graphs = Graphs(rulebook(rules), self.tier)
        self._fields = self._graphs.book.fields(DEFAULT)
        self._move(self._graphs.graph)

    def _move(self, graph: Graph) -> None:
        """Go on in another graph: tiers read and write the same state."""
        if graph is not self._graph:
            self._state = graph.decode(self._graph.encode(self._state))
            self._graph = graph

    def _with_callbacks(self, step: Callable[[], EventBatch]) -> EventBatch:
        """What a step makes; a callback gets it even if the run has to stop in it."""
        if not self._callbacks:
            return step()
        try:
            made = step()
        except RunError as error:
            self._tell(error.detections or EMPTY)
            raise
        self._tell(made)
        return made

    def _tell(self, made: EventBatch) -> None:
        for event in made.events:
            for type, callback in self._callbacks:
                if type is None or type == event.type:
                    callback(record(event))

    def _batch(self, events: EventBatch | Given | Iterable[Given]) -> EventBatch:
        if isinstance(events, EventBatch):
            return events
        first = self._state.consumed + self.late + 1
        if isinstance(events, (dict, Event, Mapping)):  # the most likely first: a test for an abstract class takes time
            return EventBatch((external_event(events, first, self._fields),))
        return EventBatch([external_event(item, first + n, self._fields) for n, item in enumerate(events)])

    def _timely(self, batch: EventBatch) -> EventBatch:
        first = batch.table.hi[0] if batch.has_table else batch.events[0].hi
        if first >= self._state.hi:
            return batch
        timely = [event for event in batch.events if event.hi >= self._state.hi]
        self.late += len(batch) - len(timely)
        return EventBatch(timely)


class Graphs:
    """The plans of one rulebook, joined to a graph for each size of batches at which a plan changes its tier."""

    def __init__(self, book: Rulebook, tier: str) -> None:
        self.book = book
        self.tier = tier
        self._sizes = sorted(set(paying_sizes(book.plans()))) if tier == "auto" else []
        self._level = 0
        self._small = 0  # batches in a row that are of a lower level
        self._come = 0
        self._made: dict[int, Graph] = {}
        self._lacking: dict[int, set[str]] = {}  # loops without which they were made

    @property
    def graph(self) -> Graph:
        """The one in use: another one when a kernel that it lacks has been compiled."""
        if self._level not in self._made or any(is_ready(loop) for loop in self._lacking[self._level]):
            self._made[self._level] = self._graph()
        return self._made[self._level]

    def _graph(self) -> Graph:
        size = self._sizes[self._level - 1] if self._level else 0
        lacking = self._lacking[self._level] = set()

        def may_run(loop: str) -> bool:
            if not is_ready(loop):
                lacking.add(loop)
            return loop not in lacking

        return Graph(self.book.plans(self.tier, size, may_run if self.tier == "auto" else None))

    @property
    def compiling(self) -> bool:
        """Does the one in use lack a kernel?"""
        return bool(self._lacking.get(self._level))

    def suited_to(self, size: int) -> Graph:
        """The graph for a batch of this size: at once for a large one, after some patience for small ones."""
        self._come += size
        level = bisect_right(self._sizes, self._come if size >= WORTH else size)
        self._small = self._small + 1 if level < self._level else 0
        if level > self._level or self._small > PATIENCE:
            self._level, self._small = level, 0
        return self.graph


def external_event(item: Given, position: int, mapping: FieldMapping = DEFAULT) -> Event:
    """An event as it is given by a program; `position` is its id where it has none. Raises InputError."""
    if isinstance(item, Event):
        return item
    try:
        return event_of(item, mapping, position)
    except BadRecord as bad:
        raise InputError(f"record {position}: {bad}") from bad


def run(
    rules: Rulebook | RuleSource | Sequence[RuleSource],
    batches: Iterable[EventBatch],
    until: float | None = None,
    tier: str = "auto",
    closed: bool = True,
) -> Iterator[EventBatch]:
    """Detections of a whole input, batch by batch. The batches must be in total order, one after another; `until` is in
    microseconds. With an end that is not `closed`, what is undecided stays so."""
    engine = Engine(rules, tier)
    for batch in batches:
        yield from up_to_a_stop(partial(engine.process, batch))
    yield from up_to_a_stop(partial(engine.finish_at, until, closed))
