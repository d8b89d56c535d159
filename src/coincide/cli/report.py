"""What goes to standard error: warnings, and what became of the records."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coincide.adapters.report import ReadReport
    from coincide.errors import Diagnostic

REFUSED = 2
OUT_OF_RANGE = "time is out of range"
NOT_JSON = ": not JSON: "


def show_warnings(warnings: Iterable[Diagnostic]) -> None:
    for warning in warnings:
        print(warning.render(), file=sys.stderr)


def note(text: str) -> None:
    """Nice to know: for a person at a terminal, not for a log."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def report_reading(report: ReadReport, rejects: Path | None, read: frozenset[str] | None) -> None:
    """A short account of bad records, and of attributes that lost digits, if they are `read` (None: all are); else silent."""
    for warning in report.warnings_about(read):
        print(f"warning: {warning}", file=sys.stderr)
    if not report.rejected:
        return
    where = f", kept in {rejects}" if rejects else ""
    print(f"warning: {report.rejected:,} of {report.read:,} records left out{where}", file=sys.stderr)
    for reason in report.reasons:
        print(f"    {reason}", file=sys.stderr)
    if (more := report.rejected - len(report.reasons)) > 0:
        print(f"    and {more:,} more", file=sys.stderr)


def all_left_out(report: ReadReport) -> bool:
    """Then nothing was run, and whoever reads only exit codes must not take it for a run that found nothing."""
    if not report.read or report.accepted:
        return False
    print("error: all records were left out: no event was read", file=sys.stderr)
    if any(reason.endswith(OUT_OF_RANGE) for reason in report.reasons):
        print("    hint: times that are microseconds or nanoseconds need --time-unit us or --time-unit ns", file=sys.stderr)
    elif any(NOT_JSON in reason for reason in report.reasons):
        print("    hint: if they are not JSON Lines, --format says what they are (csv, syslog …)", file=sys.stderr)
    elif report.reasons:
        print(
            "    hint: --mapping, --type-field and --time-field say which fields are meant (see coincide guess)", file=sys.stderr
        )
    return True


def report_late(late: int) -> None:
    if late:
        events = "1 event is" if late == 1 else f"{late:,} events are"
        print(f"warning: {events} older than the state that the run went on from: left out", file=sys.stderr)
