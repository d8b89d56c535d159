"""A network as tables."""

from __future__ import annotations

from collections.abc import Sequence

from coincide.network.directory import State

Rows = Sequence[tuple[str, ...]]


def tables(state: State) -> str:
    """Nodes, detectors, flows, subscriptions, violations; what has nothing to tell is left out."""
    carried: dict[str, list[str]] = {}
    for detector in state.detectors.values():
        carried.setdefault(detector.node, []).append(detector.name)
    nodes = [
        (
            *(
                name,
                "up" if member.alive else "down",
                member.offer.engine if member.offer.host else "no",
                f"{member.latency:.1f}",
                f"{member.busy:.0%}",
            ),
            ", ".join(carried.get(name, [])),
        )
        for name, member in sorted(state.members.items())
    ]
    detectors = [
        (d.name, d.node, "ready" if d.ready else "waits", d.policy, d.detection, _delay(state, d.name), d.expr or d.ending)
        for d in state.detectors.values()
    ]
    flows = [
        (type, source, told.node, f"{told.rate:.1f}", f"{told.size:.0f}")
        for type, sources in sorted(state.publishers.items())
        for source, told in sorted(sources.items())
    ]
    violations = [
        (name, node, ", ".join(ids)) for node, m in sorted(state.members.items()) for name, ids in sorted(m.violated.items())
    ]
    subscriptions = [(name, s.node, ", ".join(s.detectors), s.request.policy) for name, s in sorted(state.subscriptions.items())]
    return "\n".join(
        part
        for part in (
            _table(("node", "state", "carries", "broker ms", "busy", "detectors"), nodes),
            _table(("detector", "node", "state", "policy", "detection", "delay ms", "expression"), detectors),
            _table(("type", "source", "node", "events/s", "bytes"), flows),
            _table(("subscriber", "node", "detectors", "policy"), subscriptions),
            _table(("violated by", "node", "restrictions"), violations),
        )
        if part
    )


def _delay(state: State, name: str) -> str:
    delays = [member.delays[name] for member in state.members.values() if name in member.delays]
    return f"{max(delays):.1f}" if delays else ""


def _table(heads: tuple[str, ...], rows: Rows) -> str:
    if not rows:
        return ""
    widths = [max(len(row[n]) for row in (heads, *rows)) for n in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (heads, *rows)]
    return "\n".join(lines) + "\n"
