"""Graphs of states: partition refinement, reachability, strong components."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

Successors = Sequence[Iterable[int]]


ROUNDS = 16
"""Of refinement as a whole, which is the quickest for the few that most machines need; long chains need one a state."""


def coarsest(following: Sequence[Sequence[int]], answering: Sequence[Sequence[int]]) -> list[int]:
    """For each state its block in the coarsest partition that agrees on answers and is kept by every column. Blocks are
    numbered in the order of their first states."""
    blocks = _numbered(map(tuple, answering))
    for _ in range(ROUNDS):
        finer = _numbered((block, *map(blocks.__getitem__, row)) for block, row in zip(blocks, following, strict=True))
        if max(finer) == max(blocks):
            return blocks
        blocks = finer
    return _numbered(_split_by_preimages(following, blocks))


def _numbered(keys: Iterable[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _split_by_preimages(following: Sequence[Sequence[int]], blocks: list[int]) -> list[int]:
    """Hopcroft's algorithm (1971)."""
    members: list[set[int]] = [set() for _ in range(max(blocks) + 1)]
    for state, block in enumerate(blocks):
        members[block].add(state)
    inverse = _inverse(following)
    waiting = set(range(len(members)))
    while waiting and len(members) < len(blocks):
        splitter = list(members[waiting.pop()])
        for sources in inverse:
            for block, part in _touched(splitter, sources, blocks).items():
                if len(part) < len(members[block]):
                    waiting.add(_split(block, part, blocks, members))
    return blocks


def _inverse(following: Sequence[Sequence[int]]) -> list[list[list[int]]]:
    """For each column, for each state those that the column leads to it from."""
    inverse: list[list[list[int]]] = []
    for column in zip(*following, strict=True):
        sources: list[list[int]] = [[] for _ in following]
        for state, target in enumerate(column):
            sources[target].append(state)
        inverse.append(sources)
    return inverse


def _touched(splitter: list[int], sources: list[list[int]], blocks: list[int]) -> dict[int, set[int]]:
    """The states that lead into the splitter, by their blocks."""
    touched: dict[int, set[int]] = {}
    for target in splitter:
        for state in sources[target]:
            touched.setdefault(blocks[state], set()).add(state)
    return touched


def _split(block: int, part: set[int], blocks: list[int], members: list[set[int]]) -> int:
    """Cuts a block in two and returns the new one, the smaller: that is enough to split others by, unless the whole block
    was still due; then what keeps its number still is."""
    rest = members[block] - part
    smaller, larger = (part, rest) if len(part) <= len(rest) else (rest, part)
    members[block] = larger
    members.append(smaller)
    new = len(members) - 1
    for state in smaller:
        blocks[state] = new
    return new


def reaching(successors: Successors, goals: Iterable[int]) -> set[int]:
    """The states from which some goal can be reached, goals included."""
    sources: list[list[int]] = [[] for _ in successors]
    for state, targets in enumerate(successors):
        for target in targets:
            sources[target].append(state)
    found = set(goals)
    waiting = list(found)
    while waiting:
        new = [state for state in sources[waiting.pop()] if state not in found]
        found.update(new)
        waiting += new
    return found


def depths(successors: Successors) -> list[int]:
    """How many steps each state is from state 0; all must be reachable."""
    known = {0: 0}
    waiting = [0]
    for state in waiting:  # grows on the way
        for target in successors[state]:
            if target not in known:
                known[target] = known[state] + 1
                waiting.append(target)
    return [known[state] for state in range(len(successors))]


def strong_components(successors: Successors) -> list[int]:
    """For each state the number of its strongly connected component (Tarjan 1972, without recursion)."""
    component = [-1] * len(successors)
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    for root in range(len(successors)):
        if root in index:
            continue
        path = [(root, iter(successors[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while path:
            state, targets = path[-1]
            target = next(targets, None)
            if target is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[state])
                if low[state] == index[state]:
                    _close(state, stack, component)
            elif target not in index:
                index[target] = low[target] = len(index)
                stack.append(target)
                path.append((target, iter(successors[target])))
            elif component[target] < 0:
                low[state] = min(low[state], index[target])
    return component


def _close(root: int, stack: list[int], component: list[int]) -> None:
    while True:
        state = stack.pop()
        component[state] = root
        if state == root:
            return
