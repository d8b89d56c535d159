"""`limit` (OP-29): repeat notifications that no detector sees."""

from __future__ import annotations

from collections.abc import Sequence

from coincide.detect.machine.program import key_part
from coincide.expr.scalar import event_field
from coincide.lang.opera.definition import Limit
from coincide.model.event import Event

Table = dict[tuple[object, ...], int]
"""hi of the last event that was not removed, by limit and key values."""


class Limits:
    """An event passes if every limit on its type lets it; only then do the limits remember it."""

    def __init__(self, limits: Sequence[Limit]) -> None:
        self._by_type: dict[str, list[tuple[int, Limit]]] = {}
        for number, limit in enumerate(limits):
            self._by_type.setdefault(limit.type, []).append((number, limit))

    def passes(self, event: Event, table: Table) -> bool:
        limits = self._by_type.get(event.type)
        if limits is None or event.is_detection:
            return True
        keys = [(number, *(key_part(event_field(key)(event)) for key in limit.keys)) for number, limit in limits]
        for key, (_, limit) in zip(keys, limits, strict=True):
            last = table.get(key)
            if last is not None and limit.every.due(last) > event.hi:
                return False
        table.update(dict.fromkeys(keys, event.hi))
        return True
