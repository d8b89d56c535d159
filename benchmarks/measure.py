"""Best of a few runs, in CPU seconds of this process: less disturbed by what else the machine does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
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


def family_seconds() -> float:
    """CPU seconds of this process and of all that it has started, those that have ended among them: Spark's are many."""
    seconds: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            number = int(path.parent.name)
            children.setdefault(int(fields[1]), []).append(number)
            seconds[number] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    family = [os.getpid()]
    for member in family:  # grows meanwhile
        family += children.get(member, ())
    return sum(seconds[member] for member in family)
