"""Ways and circles in directed graphs of numbered nodes; choices that do not get in each other's way."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def shortest_way_back(start: N, edges: Mapping[N, Sequence[N]]) -> list[N] | None:
    """The nodes on the way from `start` back to it; [] if it leads to itself; None if there is no way."""
    ways: dict[N, list[N]] = {start: []}
    queue = [start]
    for number in queue:
        for reader in edges[number]:
            if reader == start:
                return ways[number]
            if reader not in ways:
                ways[reader] = [*ways[number], reader]
                queue.append(reader)
    return None


def components(edges: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Strongly connected components, each after all that lead to it (Tarjan 1972, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    found: list[list[int]] = []
    for root in edges:
        work = [(root, iter(edges[root]))] if root not in index else []
        while work:
            node, readers = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                path.append(node)
                on_path.add(node)
            following = next((r for r in readers if r not in index or r in on_path), None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = path.index(node)
                    found.append(sorted(path[cut:]))
                    on_path.difference_update(path[cut:])
                    del path[cut:]
            elif following in on_path:
                low[node] = min(low[node], index[following])
            else:
                work.append((following, iter(edges[following])))
    return found[::-1]


def largest_matching(choices: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """One of its choices for as many as possible: whoever finds all of them taken asks the others to move (Kuhn 1955)."""
    taken: dict[int, int] = {}

    def place(n: int, asked: set[int]) -> bool:
        for m in choices[n]:
            if m not in asked:
                asked.add(m)
                if m not in taken or place(taken[m], asked):
                    taken[m] = n
                    return True
        return False

    for n in choices:
        place(n, set())
    return {n: m for m, n in taken.items()}
