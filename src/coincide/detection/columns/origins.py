"""The primitive events under rows as numbers in total order: by them detections are compared, and what is made of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detection.columns.tables import distinct
from coincide.model.stamp import order_key
from coincide.model.table import EventTable, Origins

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coded:
    """Of row i those from offsets[i] to offsets[i + 1], ascending. `events` are the primitive events by number."""

    codes: Numbers
    offsets: Numbers
    events: Origins

    def of(self, row: int) -> tuple[int, ...]:
        return tuple(self.codes[self.offsets[row] : self.offsets[row + 1]].tolist())

    def united(self, flat: Numbers, offsets: Numbers) -> Coded:
        """Those under groups of rows, each once."""
        sizes = np.diff(self.offsets)[flat]
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        codes = self.codes[np.repeat(self.offsets[flat] - ends + sizes, sizes) + np.arange(total)]
        group = np.repeat(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), sizes)
        most = len(self.events.lo) + 1
        pairs = distinct(group * most + codes)
        counts = np.bincount(pairs // most, minlength=len(offsets) - 1)
        return Coded(pairs % most, np.concatenate(([0], np.cumsum(counts))), self.events)

    def origins(self) -> Origins:
        below = self.events.take(self.codes)
        return Origins(below.lo, below.hi, below.ids, self.offsets)


def is_single(origins: Origins) -> bool:
    """Is there one under each row?"""
    return origins.offsets is None or bool((np.diff(origins.offsets) == 1).all())


def coded(tables: Sequence[EventTable]) -> Coded:
    """Of tables that are numbered through."""
    origins = [table.origin() for table in tables]
    sizes = [np.ones(len(o.lo), np.int64) if o.offsets is None else np.diff(o.offsets) for o in origins]
    offsets = np.concatenate(([0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes])))).astype(np.int64)
    lo, hi = (np.concatenate([np.zeros(0, np.int64), *(getattr(o, end) for o in origins)]) for end in ("lo", "hi"))
    ids = pa.chunked_array([o.ids.cast(pa.string()) for o in origins], pa.string()).combine_chunks().dictionary_encode()
    texts = ids.indices.to_numpy(zero_copy_only=False)
    order = np.lexsort((texts, lo, hi))
    ends = np.column_stack((hi, lo, texts))[order]
    first = np.concatenate((np.ones(min(1, len(ends)), np.bool_), (ends[1:] != ends[:-1]).any(axis=1)))
    codes = np.empty(len(order), np.int64)
    codes[order] = np.cumsum(first) - 1
    chosen = order[first]
    place = _places(ends[first], ids.dictionary)
    codes = place[codes]
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    by_place = np.argsort(place)
    events = Origins(lo[chosen][by_place], hi[chosen][by_place], ids.take(pa.array(chosen[by_place])).cast(pa.string()))
    return Coded(codes[np.lexsort((codes, row))], offsets, events)


def _places(ends: Numbers, texts: pa.Array) -> Numbers:
    """Of distinct events by (hi, lo): where each stands in total order. Ids are compared only on equal stamps."""
    place = np.arange(len(ends))
    for start, end in _runs((ends[1:, :2] == ends[:-1, :2]).all(axis=1), len(ends)):
        names = texts.take(pa.array(ends[start:end, 2])).to_pylist()
        ordered = sorted(range(end - start), key=lambda n: order_key(0, 0, names[n]))
        place[start + np.array(ordered)] = np.arange(start, end)
    return place


def ascending(hi: Numbers, lo: Numbers, below: Coded, ties: Sequence[tuple[object, ...]] | None = None) -> Numbers:
    """How occurrences come in order (section 3): by hi, lo, the events under them; then by `ties`, then as they are."""
    order = np.lexsort((lo, hi))
    same = (hi[order][1:] == hi[order][:-1]) & (lo[order][1:] == lo[order][:-1])
    for start, end in _runs(same, len(order)):
        some = order[start:end].tolist()
        order[start:end] = sorted(some, key=lambda n: (below.of(n), ties[n] if ties is not None else ()))
    return order


def _runs(same: npt.NDArray[np.bool_], length: int) -> Iterator[tuple[int, int]]:
    """Where several rows in a row are the same: `same[i]`: rows i and i + 1 are."""
    starts = np.flatnonzero(np.concatenate((np.ones(min(1, length), np.bool_), ~same)))
    ends = np.append(starts[1:], length)[: len(starts)]
    long = ends - starts > 1
    return zip(starts[long].tolist(), ends[long].tolist(), strict=True)
