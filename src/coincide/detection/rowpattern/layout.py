"""Numbers that the compiled loop shares with the rest, by themselves: the loop is compiled again when a file changes that it
imports."""

from __future__ import annotations

PAST, NEXT, FIRST, LAST = range(4)
"""Where the next match begins (`skipping.py`)."""

REMEMBERED = 1_000_000
"""So many states with their registers, of those tried from one start, are remembered: what comes later may be tried twice, which
costs steps, but no memory."""
