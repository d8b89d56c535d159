"""Where in a row an operand's part begins."""

from __future__ import annotations

from typing import Any

from coincide.detection.columns.worlds import inner
from coincide.detection.situation.kernel import layout as at


@inner
def op_at(operand: int) -> Any:
    """In a record: what it has of the operand."""
    return at.RECORD.parts + operand * at.TAKEN.width


@inner
def stream_at(operand: int) -> Any:
    """In a cell: the stream of the operand's candidates."""
    return at.CELL.parts + operand * at.STREAM.width
