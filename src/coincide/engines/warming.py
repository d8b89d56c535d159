"""Kernels compiled ahead: `coincide warm`, and what a run has done in its background.

Compiled code does not depend on the rules: an example of each model of detection has all its loops compiled. As a program of its
own it takes the names of loops."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from coincide.collecting import without_collecting
from coincide.detection.columns.stamps import is_compiled
from coincide.engines.embedded import Engine
from coincide.folders import cache_directory
from coincide.rulebook import Rulebook, loads

EXAMPLES = (
    ("ecl", "monitor one by k = repeat { push(found) { sequential { a, b and v > 3 } } }"),
    (
        "ecl",
        "monitor one by k = repeat { push(found) { sequential { a, b and v > 3 } } }\n"
        "monitor two by k = repeat { push(other) { sequential { b, c } } }",
    ),
    (
        "amit.yaml",
        """
events:
  a: {k: string, v: number}
  b: {k: string, v: number}
  c: {k: string, v: number}
lifespans:
  while: {initiator: {event: a, correlate: add}, terminator: {expirationInterval: 100ms}, keyBy: k}
situations:
  found:
    lifespan: while
    sequence: [{event: b, retain: false}, c]
    attributes:
      first: {type: number, expression: b.v}
  counted:
    lifespan: while
    atleast: {quantity: 2, operands: [b]}
    attributes:
      total: {type: number, expression: sum(b.v)}
""",
    ),
    ("opera", "detect found = ([a(k = ?k)], [b(k = ?k)] [c(k = ?k)]) T = 100ms"),
    ("ecco", "detect found per k = ((a ; b) within 100ms) - c  with recent\ndetect mean per k = a^AVG(v) over 100ms  give avg"),
    ("eql", "sequence by k with maxspan=100ms [ a where v > 3 ] [ b where true ] [ c where true ]"),
    (
        "mr.sql",
        "SELECT * FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY time"
        " MEASURES COUNT(*) AS n, SUM(v) AS total, BOOL_AND(v > 1) AS every"
        " PATTERN (A B+) DEFINE B AS v > PREV(v) AND SUM(B.v) < 20) AS found",
    ),
)
"""A rule of each model, by its language."""
EVENTS, BATCH, KEYS = 6_000, 1_000, 40


def warm_all() -> None:
    """Has all kernels compiled."""
    with _alone(), without_collecting():
        for _, book in _examples():
            _run(book)


def warm(loops: Collection[str]) -> None:
    """Has these loops compiled, and whatever else their models compile, unless somebody has done so meanwhile."""
    with _alone(), without_collecting():
        missing = [loop for loop in loops if not is_compiled(loop)]
        for loop, book in _examples():
            if loop in missing:
                _run(book)


def _examples() -> Iterator[tuple[str, Rulebook]]:
    for language, text in EXAMPLES:
        book = loads(text, language)
        yield next(plan.loop for plan in book.plans() if plan.loop), book


def _run(book: Rulebook) -> None:
    """In some batches, the state written and read between them."""
    engine = Engine(book, "kernel")
    for first in range(0, EVENTS, BATCH):
        engine.process([_event(number) for number in range(first, first + BATCH)])
        engine.restore(engine.snapshot())
    engine.finish(2 * EVENTS)


def _event(number: int) -> dict[str, Any]:
    return {"type": "abc"[number // KEYS % 3], "time": number, "k": f"k{number * 7 % KEYS}", "v": number % 11}


@contextmanager
def _alone() -> Iterator[None]:
    """Compilers wait for one another: they would do the same work, and the cores are wanted elsewhere."""
    with ExitStack() as held:
        with suppress(ImportError, OSError):
            import fcntl

            folder = cache_directory()
            folder.mkdir(parents=True, exist_ok=True)
            fcntl.flock(held.enter_context(open(folder / "compiling", "w")), fcntl.LOCK_EX)
        yield


def main() -> None:
    os.nice(10)
    warm(sys.argv[1:])


if __name__ == "__main__":
    main()
