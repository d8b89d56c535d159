"""Detections as they go by, with the rules that made them; then, from a second look at the events, what they were made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coincide.detection.base import Detector
from coincide.lang.shared.about import LEVELS, About
from coincide.model.batch import EventBatch
from coincide.model.event import Event, Value, plain, record
from coincide.model.stamp import MILLISECOND, OrderKey
from coincide.rulebook import Rulebook

if TYPE_CHECKING:
    from coincide.model.table import EventTable

SHOWN = 200
"""Detections of one rule that are shown with their events; all are counted."""
EVENTS = 20
"""Events of one detection that are shown: the first half of them, and the last."""
BINS = 120
"""Stretches of the time line in which events are counted."""

Name = OrderKey | str
"""By which an event is found again."""

HOST_FIELDS = (
    "host.name", "Computer", "ComputerName", "winlog.computer_name", "Hostname", "hostname", "host", "host.hostname",
    "agent.hostname", "_HOSTNAME", "HOSTNAME", "node",
)  # fmt: skip
"""What logs call the machine that an event is from."""


@dataclass(frozen=True)
class Finding:
    """One detection. `events` are those that it was made of, as far as they are shown; `of` says how many there are."""

    detection: Event
    keys: tuple[OrderKey, ...]
    of: int
    events: list[Event] = field(default_factory=list)

    @property
    def record(self) -> dict[str, Any]:
        return record(self.detection)


@dataclass
class Hits:
    """What one rule has found."""

    detector: Detector
    about: About
    count: int = 0
    times: list[float] = field(default_factory=list)  # of all its detections, in milliseconds
    lasts: list[OrderKey | None] = field(default_factory=list)  # the last event of each: it tells the host
    shown: list[Finding] = field(default_factory=list)
    hosts: Counter[str] = field(default_factory=Counter)

    @property
    def severity(self) -> int:
        return LEVELS.index(self.about.level) if self.about.level in LEVELS else -1


class Findings:
    """Of one run. `host_field` is what events call their machine; without it, the usual names are tried. Detections from Spark
    know their events by their ids alone (`by_id`)."""

    def __init__(self, book: Rulebook, host_field: str | None = None, by_id: bool = False) -> None:
        self._by_id = by_id
        self.rules = [Hits(d, about) for d, about in zip(book.detectors, book.about, strict=True)]
        self.read = 0
        self.bins: list[int] = []  # events, by stretches from `first` to `last`
        self.first: float | None = None
        self.last: float | None = None
        self._fields = HOST_FIELDS if host_field is None else (host_field,)
        self._of_type = {output: hits for hits in reversed(self.rules) for output in hits.detector.outputs}

    @property
    def hits(self) -> list[Hits]:
        """Rules that found something, the worst first."""
        found = [hits for hits in self.rules if hits.count]
        return sorted(found, key=lambda hits: (-hits.severity, -hits.count, hits.about.title))

    @property
    def count(self) -> int:
        return sum(hits.count for hits in self.rules)

    # While the run goes on.

    def making(self, batches: Iterable[EventBatch]) -> Iterator[EventBatch]:
        for batch in batches:
            for detection in batch.events:
                self._add(detection)
            yield batch

    def _add(self, detection: Event) -> None:
        hits = self._of_type.get(detection.type)
        if hits is None:  # of no rule that says what it makes
            return
        hits.count += 1
        hits.times.append(detection.hi / MILLISECOND)
        hits.lasts.append(detection.origin[-1] if detection.origin else None)
        if len(hits.shown) < SHOWN:
            hits.shown.append(Finding(detection, _ends(detection.origin), len(detection.origin)))

    # After it.

    def look_again(self, batches: Iterable[EventBatch], first: int | None, last: int | None) -> None:
        """The events that the findings name; how many events there were when (`first` and `last` are their times)."""
        times = [time for hits in self.rules for time in (*hits.times, *(f.detection.lo / MILLISECOND for f in hits.shown))]
        times += [end / MILLISECOND for end in (first, last) if end is not None]
        if times:
            self.first, self.last = min(times), max(times)
        wanted = {self._name(key) for hits in self.rules for finding in hits.shown for key in finding.keys}
        hosts: dict[Name, str | None] = {self._name(key): None for hits in self.rules for key in hits.lasts if key is not None}
        events: dict[Name, Event] = {}
        self.bins = [0] * BINS
        for batch in batches:
            self._count(batch)
            for event in self._named(batch, wanted | hosts.keys()):
                name = self._name(event.origin[0])
                if name in wanted:
                    events[name] = event
                if name in hosts:
                    hosts[name] = self._host(event)
        self._settle(events, hosts)

    def _name(self, key: OrderKey) -> Name:
        return key[4] if self._by_id else key

    def _named(self, batch: EventBatch, names: set[Name]) -> Iterable[Event]:
        """The events of a batch that have one of these names; of columns, only rows of the right times or ids become objects."""
        events = batch.events if not batch.has_table else self._rows(batch.table, names)
        return [event for event in events if self._name(event.origin[0]) in names]

    def _rows(self, table: EventTable, names: set[Name]) -> Iterable[Event]:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._by_id:
            found = pc.is_in(table.fields["id"].cast(pa.string()), pa.array(sorted(map(str, names)), pa.string()))
            rows = np.flatnonzero(found.to_numpy(zero_copy_only=False))
        else:
            rows = np.flatnonzero(np.isin(table.hi, np.array(sorted({int(name[0]) for name in names}), np.int64)))
        return table.take(rows).events() if len(rows) else []

    def _count(self, batch: EventBatch) -> None:
        self.read += len(batch)
        assert self.first is not None
        assert self.last is not None
        width = max(self.last - self.first, 1e-9)
        times = (batch.table.hi / MILLISECOND).tolist() if batch.has_table else [e.hi / MILLISECOND for e in batch.events]
        for time in times:
            self.bins[min(max(int((time - self.first) / width * BINS), 0), BINS - 1)] += 1

    def _settle(self, events: dict[Name, Event], hosts: dict[Name, str | None]) -> None:
        for hits in self.rules:
            for finding in hits.shown:
                finding.events.extend(events[name] for name in map(self._name, finding.keys) if name in events)
            for key in hits.lasts:
                host = None if key is None else hosts[self._name(key)]
                if host is not None:
                    hits.hosts[host] += 1

    def _host(self, event: Event) -> str | None:
        for name in self._fields:
            value: Value = event.source if name == "source" else event.attributes.get(name)
            if value is not None:
                return str(plain(value))
        return None


def _ends(keys: Sequence[OrderKey]) -> tuple[OrderKey, ...]:
    half = EVENTS // 2
    return tuple(keys) if len(keys) <= EVENTS else (*keys[:half], *keys[-half:])
