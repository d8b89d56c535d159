"""Worlds (worlds.py) of arrays that no function replaces: nothing is owned, so nothing has to be collected in the end."""

from __future__ import annotations

from typing import Any

from numba.extending import intrinsic

from coincide.detection.columns.worlds import record_of


@intrinsic  # type: ignore[untyped-decorator]
def lent(typing: Any, arrays: Any) -> Any:
    """A record of the arrays of a named tuple, in the frame of the caller."""
    return record_of(arrays, owned=False)
