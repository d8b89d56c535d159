"""Another number of buckets for a checkpoint: pages move, each as it is.

The driver reads what is stored, deals it out anew and sends it to the workers. A new bucket takes what is its own before its
first micro-batch; one that there is no more hears from the tasks, too, and forgets what it had. All of that is committed with the
micro-batch: if it fails, the next attempt finds the old buckets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from coincide.detection.snapshots import sealed
from coincide.engines.spark.bucket import NEVER, Meta, Segment, Store, read_meta
from coincide.engines.spark.division import Division
from coincide.engines.spark.packing import balanced_buckets, recovered, stored
from coincide.engines.spark.pages import PageStore
from coincide.engines.spark.shipping import Shipped
from coincide.errors import CoincideError, Diagnostic


class Stored(PageStore, Protocol):
    """A bucket that is read."""

    def meta(self) -> bytes | None: ...
    def segment(self, number: int) -> bytes: ...


class Content(msgspec.Struct, array_like=True):
    """What a bucket stores."""

    meta: Meta
    segments: dict[int, bytes] = {}
    bases: dict[int, bytes] = {}
    logs: list[tuple[int, int, bytes]] = []
    rules: dict[str, bytes] = {}

    def put(self, store: Store) -> None:
        for number, data in self.segments.items():
            store.put_segment(number, data)
        for page, data in self.bases.items():
            store.put_base(page, data)
        for page, number, data in self.logs:
            store.put_entry(page, number, data)
        for digest, data in self.rules.items():
            store.put_rules(digest, data)
        store.put_meta(sealed(msgspec.msgpack.encode(self.meta)))


@dataclass(frozen=True)
class Moving:
    """Sent to workers: the numbers that buckets had in Spark's keys, and what each of the new ones is to have."""

    before: tuple[int, ...]
    contents: Mapping[int, Shipped]

    def arrive(self, bucket: int, division: Division, store: Store, clear: Callable[[], None]) -> bool:
        """Is the bucket one of those that there are to be? Then it has what is its own."""
        data = store.meta()
        meta = None if data is None else read_meta(data)
        if meta is None or meta.division != division:
            if meta is not None and meta.wakes is not None:
                store.wake(meta.wakes, None)
            clear()
            if bucket in self.contents:
                msgspec.msgpack.decode(self.contents[bucket].read(), type=Content).put(store)
        return bucket in self.contents


def moved(name: str, buckets: Mapping[int, Stored], wish: int) -> dict[int, bytes]:
    """What is stored in the buckets of a group, by their numbers, as so many buckets have it. Raises CoincideError."""
    metas = {number: read_meta(data) for number, own in buckets.items() if (data := own.meta()) is not None}
    old = next(iter(metas.values())).division
    dealt = _Dealt(old, wish, _common(name, old.into(wish), [*metas.values()]))
    numbers = balanced_buckets(old.buckets, name)
    for number, meta in metas.items():
        dealt.take(numbers.index(number), meta, buckets[number])
    return {n: msgspec.msgpack.encode(own) for n, own in zip(balanced_buckets(wish, name), dealt.contents, strict=True)}


class _Dealt:
    def __init__(self, old: Division, wish: int, common: Meta) -> None:
        self.old, self.wish = old, wish
        self.contents = [Content(msgspec.convert(msgspec.to_builtins(common), Meta)) for _ in range(wish)]

    def take(self, index: int, meta: Meta, store: Stored) -> None:
        for page in meta.pages:
            self._take_page(page, self._through(index, page), meta, store)
        for segment in meta.segments:
            self._take_segment(index, recovered(store.segment(segment.number)))

    def _through(self, index: int, page: Any) -> Any:
        """The number of a page among those of all buckets."""
        return page if self.old.first is not None else index * self.old.pages + page

    def _take_page(self, number: int, new: int, meta: Meta, store: Stored) -> None:
        page, content = meta.pages[number], self.contents[new % self.wish]
        content.meta.pages[new] = page
        if number in meta.due:
            content.meta.due[new] = meta.due[number]
        if (base := store.base(number)) is not None:
            content.bases[new] = base
        content.logs += [(new, entry, store.entry(number, entry)) for entry in page.log]
        if page.rules not in content.rules:
            content.rules[page.rules] = store.rules(page.rules)
            content.meta.rules.append(page.rules)

    def _take_segment(self, index: int, table: pa.Table) -> None:
        """Events that wait go with their pages."""
        pages = self._through(index, table.column("page").to_numpy())
        table = table.set_column(table.column_names.index("page"), "page", pa.array(pages, pa.int32()))
        waiting = table.column("hi").to_numpy() >= self.contents[0].meta.released
        for content, bucket in zip(self.contents, range(self.wish), strict=True):
            some = table.filter(pa.array(waiting & (pages % self.wish == bucket)))
            if len(some):
                meta = content.meta
                content.segments[meta.next] = stored(some)
                meta.segments.append(Segment.of(meta.next, some))
                meta.next += 1


def _common(name: str, division: Division, metas: Sequence[Meta]) -> Meta:
    """What buckets know of the time. They have heard the same; only where the clock follows the wall may one be ahead."""
    released = max(meta.released for meta in metas)
    if any(meta.released <= segment.first < released for meta in metas for segment in meta.segments):
        hint = "go on with the number that there was until nothing waits"
        raise CoincideError(Diagnostic(f"the buckets of the state {name} have not come equally far", hint=hint))
    last = max(metas, key=lambda meta: (NEVER if meta.came is None else meta.came, meta.mark))
    return Meta(
        division,
        clock=max(meta.clock for meta in metas),
        released=released,
        start=min((meta.start for meta in metas if meta.start is not None), default=None),
        marks=_joined([meta.marks for meta in metas], max),
        mark=last.mark,
        came=last.came,
        heard=_joined([meta.heard for meta in metas], max),
        fed=_joined([meta.fed for meta in metas], min),
    )


def _joined(parts: Sequence[Mapping[str, int]], of: Callable[[Any], int]) -> dict[str, int]:
    names = {name for part in parts for name in part}
    return {name: of([part[name] for part in parts if name in part]) for name in names}
