"""Bytes that go to Spark's workers beside their functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Shipped:
    """The process that Spark asks for the state's schema has no broadcasts, so the reference is followed when it is needed."""

    reference: Any = field(repr=False)  # Spark's Broadcast, in workers how to make it; bytes, where there is none

    def __reduce__(self) -> tuple[Any, ...]:
        own = self.reference
        return Shipped, (own if isinstance(own, bytes) else own.__reduce__(),)

    def read(self) -> bytes:
        found = self.reference
        if isinstance(found, tuple):
            make, arguments = found
            found = make(*arguments)
        data: bytes = found if isinstance(found, bytes) else found.value
        return data


def shipped(data: bytes, spark: Any) -> Shipped:
    """Called on the driver. A session of Spark Connect cannot broadcast: there they go with the function."""
    context = getattr(spark, "_sc", None)
    return Shipped(data if context is None else context.broadcast(data))
