"""`coincide run`: detections of a whole input."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from coincide.cli.actions import open_actions, writing
from coincide.cli.command import (
    Command,
    Given,
    check_engine,
    engine_arguments,
    field_arguments,
    field_mapping,
    load_rules,
    part_rules_from_events,
    rules_argument,
)
from coincide.cli.findings import Reporting, check_report_arguments, report_arguments
from coincide.cli.live import check_live_arguments, is_live, live_arguments, output_sink, run_live
from coincide.cli.policies import Account, check_policy_arguments, has_policy, policy_arguments, under_policies
from coincide.cli.progress import Progress
from coincide.cli.reasons import explaining
from coincide.cli.report import REFUSED, all_left_out, report_late, report_reading, show_warnings
from coincide.cli.state import keep_state, report_new_definitions, restore_state, statistics_file

if TYPE_CHECKING:
    from coincide.adapters.outlook import Outlook
    from coincide.model.batch import EventBatch
    from coincide.rulebook import Rulebook

DESCRIPTION = """\
Run rules over events and print one detection a line.

Events of files may stand in any order: all are read and sorted first, unless --delay bounds the disorder within
each file (0: there is none), or the statistics of Parquet do; then memory holds what waits, not the input.
Detections come in the order in which they are made. Bad records are left out and counted on standard error.
Standard input (-) is live: events are consumed while they come, in the order of their times as far as --delay
allows, and detections leave at once. With --snapshot the input is taken to go on later, so timers that are due at
its very end wait for the next part.

With --policy (or a policy in the rules) events are taken in the order in which they stand: that of their
arrival, in the field `arrival`. A summary of latencies goes to standard error.

example:
  coincide run theft.ecl --events monday.jsonl tuesday.csv.gz
  coincide run office.ce --events arrivals.jsonl --policy 'probabilistic 0.95' --late late.jsonl
  coincide run theft.ecl --events readings.parquet --time-field ts --out found.jsonl
  coincide run theft.ecl --events monday.jsonl --why
  coincide run rules/windows --events security.jsonl --sigma-mapping sysmon --report found.html
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    rules_argument(parser, nargs="*")
    parser.add_argument(
        "--events",
        "-e",
        nargs="+",
        action="extend",
        required=True,
        metavar="FILE",
        help="events: .jsonl, .json or .csv (also .gz, .zst), .parquet, .arrow, .evtx, a folder of these; - is standard input; "
        "live: nats://…, kafka://… and others",
    )
    text = "of the events, whatever their file is called: jsonl, csv, parquet, arrow, syslog, journal, winlog, evtx"
    parser.add_argument("--format", metavar="NAME", help=text)
    parser.add_argument("--until", metavar="TIME", help="let time go on after the last event: milliseconds, ISO-8601, or inf")
    parser.add_argument(
        "--end",
        choices=("closed", "open"),
        default="closed",
        help="is the input over? open: what only its end would decide (of MATCH_RECOGNIZE) stays undecided",
    )
    parser.add_argument("--steps", type=int, metavar="N", help="so many steps MATCH_RECOGNIZE may take from one row")
    text = "stop, and name the rule, when more than N detections have been made"
    parser.add_argument("--max-detections", type=int, metavar="N", help=text)
    text = "write detections to FILE (.jsonl or .parquet), complete or not at all; or to a sink: nats://…, kafka://… and others"
    parser.add_argument("--out", "-o", metavar="FILE", help=text)
    text = "write detections as CSV with these columns, to standard output or to a file: type,time,door"
    parser.add_argument("--columns", metavar="NAME,…", help=text)
    parser.add_argument(
        "--time-format",
        default="ms",
        metavar="FORM",
        help="times in JSON Lines: ms (default), milliseconds since the epoch, or iso",
    )
    parser.add_argument("--keys", action="store_true", help="write the key of each detection, the same in every run, as _key")
    parser.add_argument(
        "--why", action="store_true", help="print what led to each detection, as a tree (all events are kept in memory)"
    )
    report_arguments(parser)
    engine_arguments(parser)
    text = "so many threads at once (default 1): rules with keys divide the events among them"
    parser.add_argument("--jobs", "-j", type=int, default=1, metavar="N", help=text)
    parser.add_argument("--strict", action="store_true", help="stop at the first bad record")
    parser.add_argument("--rejects", metavar="FILE", help="keep bad records in FILE")
    parser.add_argument("--snapshot", metavar="FILE", type=Path, help="keep the state in FILE at the end")
    parser.add_argument("--stats", metavar="FILE", type=Path, help="write counts of the run to FILE, as JSON")
    parser.add_argument("--resume", metavar="FILE", type=Path, help="go on from the state in FILE, also with changed rules")
    live_arguments(parser)
    policy_arguments(parser)
    field_arguments(parser)


def run(given: Given) -> int:
    from coincide.adapters.outlook import Outlook, late_warnings
    from coincide.adapters.read import open_events
    from coincide.adapters.seen import Seen
    from coincide.errors import CoincideError
    from coincide.unmet import Unmet

    _check(given)
    book = load_rules(given)
    bounds = {"steps": given.steps, "max_detections": given.max_detections}
    book = replace(book, **bounds) if any(bound is not None for bound in bounds.values()) else book
    show_warnings(book.warnings)
    if is_live(given):
        return run_live(book, given)
    mapping = book.fields(field_mapping(given))
    unmet, seen, report = Unmet(book, mapping), Seen(), Reporting(book, given)
    find = _under_policies if has_policy(book, given) else _detections
    if find is _under_policies and given.max_detections is not None:
        raise CoincideError("--max-detections is not for policies")
    wanted = book.attributes if find is _detections and not (given.why or given.late) else None  # late events have all they have
    outlook = Outlook(None if find is _under_policies or given.sort else given.delay)
    options = {"strict": given.strict, "rejects": given.rejects, "format": given.format, "attributes": wanted}
    reader = open_events(given.events, mapping, outlook=outlook, **options)
    with (
        Progress(quiet=given.out is None) as progress,
        _writer(book, given) as write,
        writing(book, given, open_actions(book, given)) as act,
        explaining(book, given, whole=find is _detections and given.resume is None) as observe,
        _keeping_late(outlook, given),
    ):
        batches = observe.reading(outlook.timely(seen.watch(progress.watch(reader))))
        for batch in report.making(observe.making(find(book, batches, given, outlook))):
            write(batch)
            act(batch)
            progress.found(len(batch))
    report_reading(reader.report, given.rejects, book.attributes)
    show_warnings(late_warnings(outlook.late, outlook.sufficient, f", kept in {given.late}" if given.late else ""))
    if all_left_out(reader.report):
        return REFUSED
    seen.attributes.update(reader.report.unread)
    report.write(seen, mapping)
    show_warnings(unmet.after(seen, part=given.snapshot is not None or given.resume is not None))
    return 0


@contextmanager
def _keeping_late(outlook: Outlook, given: Given) -> Iterator[None]:
    if outlook.delay is None:
        yield
        return
    with Account(given.late, None, given.time_format) as account:
        outlook.keep = lambda late: account.keep_late(late.events)
        yield


@contextmanager
def _writer(book: Rulebook, given: Given) -> Iterator[Callable[[EventBatch], None]]:
    """Detections go to a file, to a sink of live runs, or to standard output; not to the latter if it shows what led to them."""
    from coincide.adapters.write import open_detections
    from coincide.streams.registry import SINKS, scheme_of

    if given.why and given.out is None:
        yield lambda batch: None
        return
    keys = None
    if given.keys:
        from coincide.engines.identity import Keys, digests_of

        keys = Keys(digests_of(book)).of
    if given.columns or (given.out is not None and scheme_of(given.out, SINKS) not in (None, "-")):
        with writing(book, given, [output_sink(given)]) as write:
            yield write
        return
    with open_detections(given.out, keys=keys, time_format=given.time_format) as writer:
        yield writer.write


def _check(given: Given) -> None:
    """Options are checked before any file is opened."""
    from coincide.adapters.write import TIME_FORMATS
    from coincide.engines.choice import check_jobs, check_name, until_microseconds
    from coincide.errors import CoincideError

    check_engine(given)
    check_jobs(given.jobs)
    check_name("time format", given.time_format, TIME_FORMATS)
    part_rules_from_events(given)
    if not given.rules:
        raise CoincideError("no rule files are given: coincide run RULES --events FILE")
    if given.engine != "embedded" and (given.snapshot or given.resume):
        raise CoincideError("--snapshot and --resume are for the embedded engine; Spark keeps its own checkpoints")
    if given.engine != "embedded" and given.max_detections is not None:
        raise CoincideError("--max-detections is for the embedded engine")
    if given.engine != "embedded" and given.why:
        raise CoincideError("--why is for the embedded engine")
    if given.engine != "embedded" and given.stats:
        raise CoincideError("--stats is for the embedded engine; Spark shows its own counts")
    if given.jobs > 1 and (given.engine != "embedded" or given.snapshot or given.resume or given.stats or is_live(given)):
        raise CoincideError("--jobs is for files and the embedded engine, without --snapshot, --resume and --stats")
    _check_outputs(given)
    check_policy_arguments(given)
    check_report_arguments(given)
    check_live_arguments(given)
    given.until = until_microseconds(given.until)


def _check_outputs(given: Given) -> None:
    """No output may replace an input or another output. A state may replace the one that the run goes on from."""
    from coincide.adapters.files import check_writable
    from coincide.errors import CoincideError
    from coincide.streams.registry import SINKS, scheme_of

    taken = {Path(name.removeprefix("tail:")).resolve(): "is read" for name in (*given.rules, *given.events) if name != "-"}
    for option in ("snapshot", "resume", "out", "rejects", "stats", "late", "latencies", "report"):
        name = getattr(given, option)
        if (
            name is None
            or scheme_of(str(name), SINKS) is not None
            or ((path := Path(name).resolve()).exists() and not path.is_file())
        ):
            continue
        if path in taken and option != "resume":
            raise CoincideError(f"--{option} would replace '{name}', which {taken[path]} too")
        taken[path] = f"--{option} {'reads' if option == 'resume' else 'writes'}"
        if option != "resume":
            check_writable(name)


def _under_policies(book: Rulebook, batches: Iterable[EventBatch], given: Given, outlook: Outlook) -> Iterator[EventBatch]:
    from coincide.errors import CoincideError

    if given.stats:
        raise CoincideError("--stats is not offered under a policy: each policy has detectors of its own")
    if given.jobs > 1:
        raise CoincideError("--jobs is not offered under a policy: events are taken one after the other, as they have arrived")
    return under_policies(book, batches, given)


def _detections(book: Rulebook, batches: Iterable[EventBatch], given: Given, outlook: Outlook) -> Iterator[EventBatch]:
    from coincide.adapters.order import in_total_order
    from coincide.engines.choice import detections

    ordered = in_total_order(batches, outlook)
    if given.snapshot is None and given.resume is None and given.stats is None:
        return detections(book, ordered, given.until, given.engine, given.tier, given.end == "closed", given.jobs)
    return _continued(book, ordered, given)


def _continued(book: Rulebook, batches: Iterable[EventBatch], given: Given) -> Iterator[EventBatch]:
    """A part of a longer stream: from the state that an earlier part left, to the state that a later one takes up."""
    from coincide.engines.embedded import Engine
    from coincide.engines.stopping import up_to_a_stop

    engine = Engine(book, given.tier)
    if given.resume is not None:
        restore_state(engine, given.resume)
        report_new_definitions(book, given.resume)
    with statistics_file(engine, given.stats):
        for batch in batches:
            yield from up_to_a_stop(partial(engine.process, batch))
        if given.snapshot is None or given.until is not None:
            closed = given.snapshot is None and given.end == "closed"
            yield from up_to_a_stop(partial(engine.finish_at, given.until, closed))
    report_late(engine.late)
    if given.snapshot is not None:
        keep_state(engine, given.snapshot)


RUN = Command("run", DESCRIPTION, _arguments, run)
