"""Engines by name: one call for all of them, so that the command, the API and the cases take any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from math import inf
from typing import TYPE_CHECKING, Any

from coincide.errors import CoincideError, Diagnostic, nearest
from coincide.model.batch import EventBatch
from coincide.model.stamp import LIMIT, MILLISECOND, instant_of, parse_instant
from coincide.rulebook import Rulebook

if TYPE_CHECKING:
    from coincide.engines.instance import StabilityPolicy
    from coincide.engines.policies import PolicyRun

ENGINES = ("embedded", "spark", "spark-streaming")
TIERS = ("auto", "interpreter", "kernel")
MOST_JOBS = 256

Until = float | str | datetime | None
"""Where the clock goes on to after the last event: milliseconds, ISO-8601 text, a datetime, or 'inf'."""


Duration = float | str | timedelta
"""Milliseconds, a text such as '5s', or a timedelta."""


def detections(
    book: Rulebook,
    batches: Iterable[EventBatch],
    until: float | None = None,
    engine: str = "embedded",
    tier: str = "auto",
    closed: bool = True,
    jobs: int = 1,
) -> Iterator[EventBatch]:
    """Detections in the order made, batch by batch. `batches` are in total order, `until` is in microseconds. With an end that is
    not `closed`, what only the end of the input would decide stays undecided. In this process, so many `jobs` may run at once."""
    check_name("engine", engine, ENGINES)
    check_name("tier", tier, TIERS)
    check_jobs(jobs)
    if engine == "embedded" and jobs > 1 and book.max_detections is None:  # they are counted by one
        from coincide.engines.lanes import are_divided, run_in_lanes

        if are_divided(book):
            return run_in_lanes(book, batches, until, tier, closed, jobs)
    if engine == "embedded":
        from coincide.engines.embedded import run

        return run(book, batches, until, tier, closed)
    runner = _spark_runner()
    run_on_spark = runner.run_batch if engine == "spark" else runner.run_streaming
    found: Iterator[EventBatch] = run_on_spark(book, batches, until, "kernel" if tier == "auto" else tier, closed)
    return found


def arrivals_on_spark(
    book: Rulebook, batches: Iterable[EventBatch], policy: StabilityPolicy | None, until: float | None, engine: str, tier: str
) -> PolicyRun:
    """What comes of batches that stand in the order of arrival; `policy` is for definitions that name none."""
    check_name("engine", engine, ENGINES)
    check_name("tier", tier, TIERS)
    run: PolicyRun = _spark_runner().run_arrivals(book, batches, policy, until, engine, "kernel" if tier == "auto" else tier)
    return run


def _spark_runner() -> Any:
    try:
        from coincide.engines.spark import runner
    except ModuleNotFoundError as error:
        hint = "pip install 'coincide[spark]' brings Spark, and Java where there is none"
        raise CoincideError(Diagnostic(f"Spark is not installed ({error})", hint=hint)) from error
    return runner


def check_name(what: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        hint = nearest(given, known) or f"one of {', '.join(known)}"
        raise CoincideError(Diagnostic(f"unknown {what} '{given}'", hint=hint))


def check_jobs(jobs: int) -> None:
    if not 1 <= jobs <= MOST_JOBS:
        raise CoincideError(f"there can be 1 to {MOST_JOBS} jobs, not {jobs}")


def until_microseconds(until: Until) -> float | None:
    """An end of time in any spelling, as microseconds or inf."""
    if until is None:
        return None
    if isinstance(until, datetime):
        return instant_of(until)
    if isinstance(until, str):
        return _from_text(until.strip())
    if isinstance(until, bool) or not isinstance(until, (int, float)):
        raise _no_time(str(until))
    return _from_number(until)


def _from_text(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        pass
    else:
        return _from_number(number)
    try:
        return parse_instant(text)
    except (ValueError, OverflowError):
        raise _no_time(text) from None


def _from_number(number: float) -> float:
    if number == inf:
        return inf
    if not abs(number) <= LIMIT // MILLISECOND:  # nan neither
        raise _no_time(str(number))
    return round(number * MILLISECOND)


def _no_time(text: str) -> CoincideError:
    return CoincideError(
        Diagnostic(f"'{text}' is not a time", hint="a number of milliseconds, ISO-8601 such as 2026-03-01T12:00Z, or inf")
    )


def duration_microseconds(duration: Duration) -> int:
    """A duration in any spelling. Raises CoincideError."""
    from coincide.expr.parse import parse_duration
    from coincide.expr.quantities import QuantityError, microseconds_of

    try:
        if isinstance(duration, timedelta):
            return microseconds_of(duration / timedelta(milliseconds=1))
        return parse_duration(duration) if isinstance(duration, str) else microseconds_of(duration)
    except QuantityError as error:
        raise CoincideError(str(error)) from error
