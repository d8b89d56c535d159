"""What numbers can be, as decoders check it: whatever is read from outside, a value is finite and an instant fits its columns."""

from __future__ import annotations

import sys
from typing import Annotated

from msgspec import Meta

FURTHEST = 2**62 + 2**61
"""Instants of events lie within 2**62 microseconds of the epoch, timers that they set a duration further."""

Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number that no double is equal to (numbers.py)."""
Instant = Annotated[int, Meta(ge=-FURTHEST, le=FURTHEST)]
Began = Annotated[int, Meta(ge=-(2**63), le=FURTHEST)]
"""An instant, or the least number there is: nothing has been yet."""
Word = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**62)]
