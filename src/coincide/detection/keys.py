"""Keys: the values by which detection is divided."""

from __future__ import annotations

from collections.abc import Callable

from coincide.expr.scalar import event_field
from coincide.model.event import Event, Value

Key = tuple[object, ...]
"""Key values; a boolean is wrapped, because Python takes True for 1."""


def key_reader(keys: tuple[str, ...]) -> Callable[[Event], Key | None]:
    """The key of an event; None if any part of it is null."""
    fields = [event_field(key) for key in keys]

    def read(event: Event) -> Key | None:
        values = tuple(key_part(field(event)) for field in fields)
        return None if None in values else values

    return read


def key_part(value: Value) -> object:
    return (value,) if isinstance(value, bool) else value


def key_value(part: object) -> Value:
    return part[0] if isinstance(part, tuple) else part  # type: ignore[return-value]
