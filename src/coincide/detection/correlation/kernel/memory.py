"""What complete combinations find among remembered messages (section 4.3): members of their collections, and whether an absent
source could be there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from coincide.detection.columns.tables import taken
from coincide.detection.correlation.evaluate import AGGREGATES
from coincide.detection.correlation.kernel.join import Combinations, Joiner, Partners, portions
from coincide.detection.correlation.kernel.rows import Gathered, Mask, Numbers, Scope
from coincide.detection.correlation.kernel.trees import Aggregated, Completion, Presence
from coincide.expr.tree import Expr
from coincide.model.column import Column, column_of


@dataclass(frozen=True, eq=False)
class Ragged:
    """For each of some combinations so many numbers."""

    numbers: Numbers
    sizes: Numbers

    def take(self, index: Numbers) -> Ragged:
        starts = np.cumsum(self.sizes) - self.sizes
        return Ragged(self.numbers[taken(starts[index], self.sizes[index])], self.sizes[index])


def nothing(length: int) -> Ragged:
    return Ragged(np.zeros(0, np.int64), np.zeros(length, np.int64))


def one_after_another(parts: Sequence[Ragged]) -> Ragged:
    return Ragged(np.concatenate([p.numbers for p in parts]), np.concatenate([p.sizes for p in parts]))


def side_by_side(parts: Sequence[Ragged]) -> Ragged:
    """What each combination has in all of them."""
    owners = np.concatenate([np.repeat(np.arange(len(p.sizes)), p.sizes) for p in parts])
    order = np.argsort(owners, kind="stable")
    return Ragged(np.concatenate([p.numbers for p in parts])[order], np.sum([p.sizes for p in parts], axis=0))


Pairs = tuple[Numbers, Numbers]
"""Numbers of combinations, which ascend, and positions of messages."""
Filled = tuple[Combinations, Ragged]
"""Combinations and the rows of the members of their collections."""


class Memory:
    """Decides complete combinations of one group."""

    def __init__(self, joiner: Joiner) -> None:
        self.joiner = joiner
        self.selection = joiner.selection
        asked = {p.source for c in self.selection.completions for p in c.presence if p.source is not None}
        self._sources = [*self.selection.cols, *sorted(asked - {*self.selection.cols})]
        self._aggregates = [(n, special) for n, special in enumerate(joiner.trees.specials) if isinstance(special, Aggregated)]

    def completed(self, found: Combinations) -> Iterator[Filled]:
        """Those of which a term holds, with what the first one of these finds."""
        sizes = sum((self._partners(found, source).sizes for source in self._sources), np.zeros(len(found), np.int64))
        for part in portions(sizes):
            left = found.take(part)
            for number, completion in enumerate(self.selection.completions):
                possible = left.terms[:, number].copy()
                if possible.any():
                    some = np.flatnonzero(possible)
                    filled = _Filling(self, left.take(some), completion)
                    holds = filled.holds()
                    yield filled.kept(np.flatnonzero(holds))
                    possible[some] = holds
                    left = left.take(np.flatnonzero(~possible))

    def _partners(self, found: Combinations, source: int) -> Partners:
        """Messages that came before the combination was complete, and may not be too old."""
        buffer = self.joiner.buffers[source]
        low = np.full(len(found), np.iinfo(np.int64).min) if buffer.within is None else found.now - buffer.within
        return self.joiner.partners(found, source, len(buffer), low, found.now)

    def remembered(self, found: Combinations, source: int) -> Pairs:
        """Pairs of a combination and a position."""
        parents, positions = self._partners(found, source).pairs()
        buffer = self.joiner.buffers[source]
        newest = self.joiner.rows(found).max(axis=1)
        there = (buffer.messages.rows[positions] <= newest[parents]) & (buffer.expiry[positions] >= found.now[parents])
        valid = np.flatnonzero(there & self.joiner.are_others(found, source, parents, positions))
        return parents[valid], positions[valid]

    def scope(self, found: Combinations, source: int, parents: Numbers, positions: Numbers) -> Scope:
        """Of pairs."""
        pairs = found.take(parents)
        gathered = {s: Gathered(self.joiner.buffers[s].messages, at) for s, at in pairs.at.items()}
        own = Gathered(self.joiner.buffers[source].messages, positions)
        return Scope(self.joiner.trees, {**gathered, source: own}, len(parents), pairs.known)

    def passing(self, found: Combinations, source: int, tests: Sequence[Expr], pairs: Pairs) -> Pairs:
        """Those of which all tests hold."""
        for test in tests:
            if len(pairs[0]):
                holds = self.scope(found, source, *pairs).holds(test)
                pairs = pairs[0][holds], pairs[1][holds]
        return pairs

    def known(self, found: Combinations, members: dict[int, Pairs]) -> dict[int, Column]:
        """What is known with these members."""
        known = dict(found.known)
        for number, special in self._aggregates:
            if special.collection in members:
                known[number] = self._aggregate(found, special, *members[special.collection])
        return known

    def _aggregate(self, found: Combinations, special: Aggregated, parents: Numbers, positions: Numbers) -> Column:
        if special.tree is None:
            return Column(len(found), np.bincount(parents, minlength=len(found)).astype(np.float64))
        column = self.scope(found, special.collection, parents, positions).evaluate(special.tree)
        present = np.flatnonzero(~column.is_null)
        values, ends = column.take(present).values(), np.searchsorted(parents[present], np.arange(len(found) + 1)).tolist()
        combine = AGGREGATES[special.name]  # value by value: sums must be the interpreter's to the last bit
        return column_of([combine(values[ends[n] : ends[n + 1]]) for n in range(len(found))])


class _Filling:
    """Combinations of which one term is tried."""

    def __init__(self, memory: Memory, found: Combinations, completion: Completion) -> None:
        self.memory = memory
        self.completion = completion
        self.members = {c: (np.zeros(0, np.int64), np.zeros(0, np.int64)) for c in memory.selection.cols}
        self.found = self._knowing(found)
        for collection in memory.selection.cols:
            tests = (*memory.joiner.trees.joins[collection], *completion.members.get(collection, ()))
            pairs = memory.remembered(self.found, collection)
            self.members[collection] = memory.passing(self.found, collection, tests, pairs)
            self.found = self._knowing(found)

    def _knowing(self, found: Combinations) -> Combinations:
        known = self.memory.known(found, self.members)
        return Combinations(found.at, found.now, found.expiry, found.terms, known)

    def holds(self) -> Mask:
        found = self.found
        holds = np.ones(len(found), np.bool_)
        for tree in self.completion.late:
            holds &= self.memory.joiner.scope(found).holds(tree)
        for presence in self.completion.presence:
            holds &= self._is_there(presence) == presence.wanted
        return holds

    def _is_there(self, presence: Presence) -> Mask:
        memory, found, source = self.memory, self.found, presence.source
        if source is None:
            return memory.joiner.scope(found).holds(presence.tree)
        if source in self.members:
            pairs = memory.passing(found, source, [presence.tree], self.members[source])
        else:
            pairs = memory.remembered(found, source)
            pairs = memory.passing(found, source, [*memory.joiner.trees.joins[source], presence.tree], pairs)
        return np.bincount(pairs[0], minlength=len(found)) > 0

    def kept(self, index: Numbers) -> Filled:
        length, buffers = len(self.found), self.memory.joiner.buffers
        rows = [
            Ragged(buffers[c].messages.rows[positions], np.bincount(parents, minlength=length))
            for c, (parents, positions) in self.members.items()
        ]
        return self.found.take(index), side_by_side([nothing(length), *rows]).take(index)
