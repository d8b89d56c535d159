"""What ECCO's aggregates make of the values in a window (5.5), an object each. How they are written stands in
`lang/ecco/aggregates.py`, under the same names; what they make of columns in `window/totals.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum

from coincide.detection.algebra.scope import number_of_different
from coincide.model.event import Value


@dataclass(frozen=True)
class Behaviour:
    """`total`: of the argument's values; None: nothing is made."""

    total: Callable[[Sequence[Value]], float | None]
    fills_empty_windows: bool = False
    kernel: str = ""  # its name in window/totals.py
    without_kernel: str = ""  # why it has none


def _numbers(values: Sequence[Value]) -> list[float]:
    return [value for value in values if type(value) is float or type(value) is int]


def _of_numbers(function: Callable[[list[float]], float]) -> Callable[[Sequence[Value]], float | None]:
    """Of at least one."""
    return lambda values: function(numbers) if (numbers := _numbers(values)) else None


BEHAVIOURS: dict[str, Behaviour] = {
    "AVG": Behaviour(_of_numbers(lambda numbers: fsum(numbers) / len(numbers)), kernel="average"),
    "MIN": Behaviour(_of_numbers(min), kernel="least"),
    "MAX": Behaviour(_of_numbers(max), kernel="greatest"),
    "SUM": Behaviour(lambda values: fsum(_numbers(values)), fills_empty_windows=True, kernel="total"),
    "COUNT": Behaviour(lambda values: float(sum(v is not None for v in values)), fills_empty_windows=True, kernel="count"),
    "DISTINCT": Behaviour(lambda values: float(number_of_different(values)) or None, kernel="different"),
}
"""By the names of aggregates."""
