"""What rules say of themselves, for those who read what they found."""

from __future__ import annotations

import re
from dataclasses import dataclass

LEVELS = ("informational", "low", "medium", "high", "critical")


@dataclass(frozen=True)
class About:
    """`tags` are as Sigma writes them: `attack.execution`, `attack.t1059.001`, `cve.2021-44228`."""

    title: str
    id: str | None = None
    level: str | None = None
    description: str = ""
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    false_positives: tuple[str, ...] = ()
    author: str = ""


def is_of_level(level: str | None, least: str | None) -> bool:
    """Is it the least that is asked for, or above? A rule that tells no level has the lowest."""
    return least is None or (LEVELS.index(level) if level in LEVELS else 0) >= LEVELS.index(least)


def made_name(text: str) -> str:
    """A text as a name (section 2 of EQL's specification)."""
    name = re.sub("[^a-z0-9]+", "_", text.lower()).strip("_") or "rule"
    return f"_{name}" if name[0].isdigit() else name
