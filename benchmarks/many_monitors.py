"""What do a thousand monitors cost over the same stream, measured by one of them?"""

from __future__ import annotations

from benchmarks.measure import best, show
from benchmarks.workloads import fresh, keyed, many_monitors
from coincide import loads
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable

EVENTS, KEYS, COUNT = 1_000_000, 10_000, 1_000


def cost(table: EventTable, count: int, types: int) -> tuple[float, int]:
    """Of a batch in the middle of a stream: what is learnt once is learnt."""
    graph = Graph(loads(many_monitors(count, types)).plans("kernel"))
    state = graph.initial()
    graph.advance(state, EventBatch(table=fresh(table)))
    taken, made = best(lambda: graph.advance(state, EventBatch(table=fresh(table))), times=3)
    return taken, len(made)


def main() -> None:
    for types in (1_000, 200):
        table = keyed(EVENTS, KEYS, types)
        one, _ = cost(table, 1, types)
        many, made = cost(table, COUNT, types)
        show(
            f"{COUNT:,} different monitors; an event concerns {3 * COUNT / types:.0f} of them; {made:,} detections",
            {
                "one monitor": f"{EVENTS / one / 1e6:.1f} M events/s",
                f"{COUNT:,} monitors": f"{EVENTS / many / 1e6:.1f} M events/s",
                "ratio of times": f"{many / one:.1f}",
            },
            "10 at most",
        )


if __name__ == "__main__":
    main()
