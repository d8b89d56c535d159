"""The join: from messages of single sources to combinations that satisfy a group, most selective equality first.

A combination is built source by source. Each step looks up partners by the key that an equality compares and by the window that
`within` leaves open, and tests at once every condition that has become decidable. So what is built on the way is never more
than what the interpreter would hold, and mostly far less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.numbers import comparable
from coincide.detection.columns.tables import taken
from coincide.detection.correlation.kernel.rows import Gathered, Mask, Messages, Scope, Texts, expiries, numbered_texts
from coincide.detection.correlation.kernel.trees import Selection, Trees
from coincide.detection.correlation.live import Link, Links
from coincide.model.column import Column, concatenated

Numbers = npt.NDArray[np.int64]
MOST = 1 << 20
"""Candidates that are tested at once; where there are more, combinations are extended part by part."""


@dataclass(eq=False)
class Buffer:
    """The messages of a source that may still be combined, in order of arrival; those from `old` on are new in this batch."""

    messages: Messages
    now: Numbers  # the clock at each one's arrival
    within: int | None
    old: int

    def __len__(self) -> int:
        return len(self.now)

    @cached_property
    def expiry(self) -> Numbers:
        return expiries(self.messages, self.within)

    @cached_property
    def hi(self) -> Numbers:
        return self.messages.table.hi[self.messages.rows]

    @cached_property
    def timely(self) -> bool:
        """Did all of them come at their own time?"""
        return bool((self.hi == self.now).all())

    def column(self, name: str) -> Column:
        return self.messages.column(name) or Column(len(self))

    def codes(self, name: str) -> Numbers:
        """The values of an attribute numbered; -1: null."""
        return _codes(self.column(name))


def _codes(column: Column) -> Numbers:
    """Columns of declared types have one part."""
    if column.codes is not None:
        return column.codes.astype(np.int64)
    values = column.numbers
    if values is None:
        return np.asarray(np.full(column.length, -1) if column.flags is None else column.flags, np.int64)
    _, codes = np.unique(comparable([column])[0], return_inverse=True)
    return np.where(np.isnan(values), -1, codes).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Combinations:
    """One a row: for each mapped source the position in its buffer; when it is complete so far and when it expires; which
    terms are still possible; specials that have been worked out."""

    at: dict[int, Numbers]
    now: Numbers
    expiry: Numbers
    terms: npt.NDArray[np.bool_]
    known: dict[int, Column]

    def __len__(self) -> int:
        return len(self.now)

    def take(self, index: Any) -> Combinations:
        at = {s: positions[index] for s, positions in self.at.items()}
        known = {n: column.take(index) for n, column in self.known.items()}
        return Combinations(at, self.now[index], self.expiry[index], self.terms[index], known)


@dataclass(frozen=True, eq=False)
class Partners:
    """For each of some combinations the positions of its partners: a part of `positions`."""

    positions: Numbers
    starts: Numbers
    ends: Numbers

    @property
    def sizes(self) -> Numbers:
        return self.ends - self.starts

    def take(self, part: Numbers) -> Partners:
        return Partners(self.positions, self.starts[part], self.ends[part])

    def pairs(self) -> tuple[Numbers, Numbers]:
        """Numbers of combinations, and the position of a partner of each."""
        parents = np.repeat(np.arange(len(self.starts)), self.sizes)
        return parents, self.positions[taken(self.starts, self.sizes)]


def portions(sizes: Numbers) -> Iterator[Numbers]:
    """Numbers of combinations that together have not too many partners, or are alone."""
    totals, first = np.cumsum(sizes), 0
    while first < len(sizes):
        done = totals[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(totals, done + MOST, "right")))
        yield np.arange(first, last)
        first = last


class Index:
    """A part of a buffer by the value of an attribute, then by arrival. No attribute: by arrival alone."""

    def __init__(self, buffer: Buffer, name: str | None, end: int) -> None:
        self.now = buffer.now[:end]
        self.name = name
        self.codes = np.zeros(end, np.int64) if name is None else buffer.codes(name)[:end]
        self.column = None if name is None else buffer.column(name)
        self.end = end

    @cached_property
    def fan_out(self) -> float:
        """Partners of a combination, on average over the keys that occur."""
        sizes = np.bincount(self.codes[self.codes >= 0], minlength=1)
        return float(sizes.sum() / max(1, np.count_nonzero(sizes)))

    @cached_property
    def _everything(self) -> tuple[Numbers, Numbers]:
        return self._ordered(np.flatnonzero(self.codes >= 0))

    def _ordered(self, there: Numbers) -> tuple[Numbers, Numbers]:
        """Positions by key, then by arrival, and where they are in that order: the clock never goes back, so a position's rank
        among arrivals stands for its time."""
        positions = there[np.argsort(self.codes[there], kind="stable")]
        return positions, self.codes[positions] * (self.end + 1) + positions

    def partners(self, keys: Numbers, low: Numbers, high: Numbers) -> Partners:
        """For each key and span of time. Of few combinations only their keys are put in order."""
        positions, places = self._everything if 8 * len(keys) > self.end else self._ordered(self._having(keys))
        base = keys * (self.end + 1)
        first = base + np.searchsorted(self.now, low, "left")
        last = base + np.searchsorted(self.now, high, "right")
        starts, ends = np.searchsorted(places, first), np.searchsorted(places, last)
        return Partners(positions, np.where(keys < 0, 0, starts), np.where(keys < 0, 0, np.maximum(starts, ends)))

    def _having(self, keys: Numbers) -> Numbers:
        """The positions that have any of these keys."""
        wanted = np.zeros(max(int(self.codes.max(initial=0)), int(keys.max(initial=0))) + 2, np.bool_)  # the last is for -1
        wanted[keys] = True
        wanted[-1] = False
        return np.flatnonzero(wanted[self.codes])


def _translated(probes: Column, index: Index) -> Numbers:
    """Keys of probing messages in the index's numbering; -1 where it has no such key."""
    own = index.column
    assert own is not None
    if own.codes is not None and probes.codes is not None:
        return _codes(probes) if own.texts is probes.texts else _looked_up(probes, numbered_texts(own.texts))
    joined = _codes(_one_kind(own, probes))
    table = np.full(int(joined.max(initial=-1)) + 2, -1, np.int64)
    there = np.flatnonzero(index.codes >= 0)
    table[joined[there]] = index.codes[there]
    return table[joined[len(own) :]]


def _looked_up(probes: Column, texts: Texts) -> Numbers:
    """The numbers that texts have elsewhere."""
    assert probes.codes is not None
    used, index = np.unique(probes.codes, return_inverse=True)
    numbers = [texts.numbers.get(probes.texts[code], -1) if code >= 0 else -1 for code in used.tolist()]
    return np.array(numbers, np.int64)[index]


def _one_kind(a: Column, b: Column) -> Column:
    """One after the other; values of different kinds equal nothing."""
    kinds = [(c.numbers is not None, c.codes is not None, c.flags is not None) for c in (a, b)]
    return concatenated([a, b if kinds[0] == kinds[1] else Column(b.length)])


class Joiner:
    """Finds the combinations of one group in the buffers at hand. `early=False` tests nothing before the last source: for
    measuring what early evaluation saves."""

    def __init__(self, trees: Trees, selection: Selection, links: Links, buffers: Sequence[Buffer], early: bool = True) -> None:
        self.trees = trees
        self.selection = selection
        self.links = links if early else {}
        self.buffers = buffers
        self.early = early
        self._indexes: dict[tuple[int, str | None, int], Index] = {}

    def new(self) -> Iterator[Combinations]:
        """Complete combinations with at least one new message. The seed is the first source, in a fixed order, whose
        message is new: those before it give old ones only."""
        order = sorted(self.selection.pos, key=lambda s: len(self.buffers[s]))
        for number, seed in enumerate(order):
            ends = {s: self.buffers[s].old if s in order[:number] else len(self.buffers[s]) for s in order}
            seeds = self.single(seed, np.arange(self.buffers[seed].old, ends[seed]))
            if len(seeds) and all(ends[s] for s in order):
                yield from self._completed(seeds, ends)

    def _completed(self, found: Combinations, ends: dict[int, int]) -> Iterator[Combinations]:
        missing = [s for s in self.selection.pos if s not in found.at]
        if not len(found):
            return
        if not missing:
            yield found
            return
        source = min(missing, key=lambda s: self._cost(s, found, ends[s]))
        for extended in self.extended(found, source, ends[source]):
            yield from self._completed(extended, ends)

    def _cost(self, source: int, found: Combinations, end: int) -> tuple[bool, float]:
        link = self._link(source, found, end)
        return link is None, self._index(source, link, end).fan_out

    def _link(self, source: int, found: Combinations, end: int) -> Link | None:
        """The most selective equality with a source that is mapped."""
        links = [link for link in self.links.get(source, ()) if link[1] in found.at]
        return min(links, key=lambda link: self._index(source, link, end).fan_out, default=None)

    def _index(self, source: int, link: Link | None, end: int) -> Index:
        key = source, None if link is None else link[0], end
        if key not in self._indexes:
            self._indexes[key] = Index(self.buffers[source], key[1], end)
        return self._indexes[key]

    # Steps.

    def single(self, source: int, positions: Numbers) -> Combinations:
        """Messages on their own."""
        buffer, terms = self.buffers[source], np.ones((len(positions), len(self.selection.terms)), np.bool_)
        found = Combinations({source: positions}, buffer.now[positions], buffer.expiry[positions], terms, {})
        return self._tested(found, source)

    def extended(self, found: Combinations, source: int, end: int) -> Iterator[Combinations]:
        """With one more message each, of the first `end` of its source; in parts, where there are too many."""
        within = self.buffers[source].within
        low = np.full(len(found), np.iinfo(np.int64).min) if within is None else found.now - within
        partners = self.partners(found, source, end, *self._narrowed(found, source, low))
        for part in portions(partners.sizes):
            if (some := partners.take(part)).sizes.any():
                yield self._paired(found.take(part), source, some)

    def partners(self, found: Combinations, source: int, end: int, low: Numbers, high: Numbers) -> Partners:
        """Of the first `end` messages of a source, those that came between these clocks and have the key."""
        link = self._link(source, found, end)
        index = self._index(source, link, end)
        return index.partners(self._probes(found, link, index), low, high)

    def _narrowed(self, found: Combinations, source: int, low: Numbers) -> tuple[Numbers, Numbers]:
        """Between which clocks a partner must have arrived, by what conditions imply about its time."""
        high = found.expiry
        for other, at in found.at.items() if self.early else ():
            before, after = self.selection.apart.get((other, source)), self.selection.apart.get((source, other))
            if before is not None:
                low = np.maximum(low, self.buffers[other].hi[at] - before)
            if after is not None and self.buffers[source].timely:
                high = np.minimum(high, self.buffers[other].hi[at] + after)
        return low, high

    def _probes(self, found: Combinations, link: Link | None, index: Index) -> Numbers:
        if link is None:
            return np.zeros(len(found), np.int64)
        return _translated(self.buffers[link[1]].column(link[2]).take(found.at[link[1]]), index)

    def _paired(self, found: Combinations, source: int, partners: Partners) -> Combinations:
        buffer = self.buffers[source]
        parents, positions = partners.pairs()
        now = np.maximum(found.now[parents], buffer.now[positions])
        expiry = np.minimum(found.expiry[parents], buffer.expiry[positions])
        valid = np.flatnonzero((now <= expiry) & self.are_others(found, source, parents, positions))
        parents, positions = parents[valid], positions[valid]
        pairs = found.take(parents)
        both = Combinations({**pairs.at, source: positions}, now[valid], expiry[valid], pairs.terms, pairs.known)
        return self._tested(both, source)

    def are_others(self, found: Combinations, source: int, parents: Numbers, positions: Numbers) -> Mask:
        """Which messages are not in their combinations: one message, one part."""
        rows = self.buffers[source].messages.rows[positions]
        others = np.ones(len(rows), np.bool_)
        for other, at in found.at.items():
            others &= self.buffers[other].messages.rows[at[parents]] != rows
        return others

    def rows(self, found: Combinations) -> Numbers:
        """The rows of their messages, a column a source."""
        return np.stack([self.buffers[s].messages.rows[found.at[s]] for s in self.selection.pos], axis=1)

    def scope(self, found: Combinations) -> Scope:
        gathered = {s: Gathered(self.buffers[s].messages, at) for s, at in found.at.items()}
        return Scope(self.trees, gathered, len(found), found.known)

    def _tested(self, found: Combinations, newly: int) -> Combinations:
        """Conditions that the new source makes decidable; combinations without a possible term go."""
        for number, condition in enumerate(self.selection.conditions):
            if not len(found) or not self._is_due(condition.sources, found, newly):
                continue
            holds = self.scope(found).holds(condition.tree)
            if holds.all():
                continue
            terms = found.terms.copy()
            for term, demanded in enumerate(self.selection.terms):
                if number in demanded:
                    terms[:, term] &= holds
            found = Combinations(found.at, found.now, found.expiry, terms, found.known).take(np.flatnonzero(terms.any(axis=1)))
        return found

    def _is_due(self, sources: frozenset[int], found: Combinations, newly: int) -> bool:
        if not self.early:
            return len(found.at) == len(self.selection.pos)
        return sources <= found.at.keys() and (newly in sources or (not sources and len(found.at) == 1))


def in_order(rows: npt.NDArray[np.int64], sources: Sequence[int]) -> Numbers:
    """Combinations of one group that one message completed, in the interpreter's order of creation: by the newest message,
    then the next to it and so on; where the messages are the same, by the sources, from the oldest on. A column a source."""
    by_age = np.argsort(rows, axis=1)
    arrivals = np.take_along_axis(rows, by_age, axis=1)
    taken = np.array(sources)[by_age]
    keys = [taken[:, i] for i in reversed(range(taken.shape[1]))] + [arrivals[:, i] for i in range(arrivals.shape[1])]
    return np.lexsort(keys)
