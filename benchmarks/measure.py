"""Best of a few runs, in CPU seconds of this process: less disturbed by what else the machine does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def best(action: Callable[[], T], times: int = 5) -> tuple[float, T]:
    """The least time of so many runs, and the last result."""
    least, result = float("inf"), action()
    for _ in range(times):
        begun = time.process_time()
        result = action()
        least = min(least, time.process_time() - begun)
    return least, result


def show(question: str, figures: dict[str, str], aim: str = "") -> None:
    print(f"\n{question}")
    for name, figure in figures.items():
        print(f"  {name:<46} {figure:>16}")
    if aim:
        print(f"  {'aim':<46} {aim:>16}")
