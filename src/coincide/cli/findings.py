"""`coincide run --report`: what was found, as one page."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from coincide.cli.command import Given

if TYPE_CHECKING:
    from coincide.adapters.mapping import FieldMapping
    from coincide.adapters.seen import Seen
    from coincide.model.batch import EventBatch
    from coincide.report.findings import Findings
    from coincide.rulebook import Rulebook


def report_arguments(parser: argparse.ArgumentParser) -> None:
    text = "write what was found, with rules and events, to FILE as one page (.html), or as data (.json); events are read twice"
    parser.add_argument("--report", metavar="FILE", help=text)
    parser.add_argument("--report-title", metavar="TEXT", default="Findings", help="the title of that page")
    parser.add_argument("--host-field", metavar="FIELD", help="what events call their machine (default: the usual names)")


def check_report_arguments(given: Given) -> None:
    from coincide.errors import CoincideError
    from coincide.report.write import check_ending
    from coincide.streams.registry import scheme_of

    if given.report is not None:
        check_ending(given.report)
        if any(scheme_of(name) is not None for name in given.events):
            raise CoincideError("--report reads events twice: it is for files")
        if given.resume is not None:
            raise CoincideError("--report is for a whole run: it cannot go on from a state")


class Reporting:
    """Observes a run, if a report is asked for."""

    def __init__(self, book: Rulebook, given: Given) -> None:
        self._given = given
        self._findings: Findings | None = None
        if given.report is not None:
            from coincide.report.findings import Findings

            self._findings = Findings(book, given.host_field, by_id=given.engine != "embedded")

    def making(self, batches: Iterable[EventBatch]) -> Iterable[EventBatch]:
        return batches if self._findings is None else self._findings.making(batches)

    def write(self, seen: Seen, mapping: FieldMapping) -> None:
        """The events are read a second time, so that only those that are shown need be kept."""
        if self._findings is None:
            return
        from coincide.adapters.read import open_events
        from coincide.report.write import write_report

        again = open_events(self._given.events, mapping, format=self._given.format)
        self._findings.look_again(again, seen.earliest, seen.latest)
        write_report(self._findings, self._given.report, self._given.report_title)
