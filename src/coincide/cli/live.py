"""`coincide run` on events that are still coming: sources and sinks by URL, the delay, the clock."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from math import inf
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from coincide.cli.actions import action_arguments, open_actions
from coincide.cli.command import Given, field_mapping
from coincide.cli.policies import Account, has_policy, late_record, report_policies, warn_of_sources
from coincide.cli.progress import Progress
from coincide.cli.report import REFUSED, all_left_out, report_late, report_reading, show_warnings
from coincide.cli.state import keep_state, report_new_definitions, restore_state, statistics_file

if TYPE_CHECKING:
    from coincide.adapters.mapping import FieldMapping
    from coincide.engines.live import Live
    from coincide.model.batch import EventBatch
    from coincide.rulebook import Rulebook
    from coincide.streams.arrivals import Arrival
    from coincide.streams.base import Sink, Source
    from coincide.streams.run import LiveRun, Pace

SECOND = 1_000_000
APART = 10**12
"""Ids of records that have none: those of the second source begin here."""

Watch = Callable[["Arrival"], object]
Write = Callable[["EventBatch"], object]


def live_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("live events")
    text = "events may come so much later than later ones, as in 5s (default: 0; in files any order, but all is read first)"
    group.add_argument("--delay", metavar="TIME", help=text)
    text = "does time go on when nothing comes? event (default): no; wall: yes"
    group.add_argument("--clock", metavar="NAME", help=text)
    ahead_argument(group)
    group.add_argument("--sort", action="store_true", help="read all of standard input first, and sort it")
    text = "wait so long for more events to take with the first (default: 5ms)"
    group.add_argument("--latency", metavar="TIME", default="5ms", help=text)
    text = "keep state and positions in DIR, and go on from there after whatever ended the run"
    group.add_argument("--checkpoint", metavar="DIR", type=Path, help=text)
    group.add_argument("--checkpoint-every", metavar="TIME", default="2s", help="so often (default: 2s)")
    action_arguments(parser)


def ahead_argument(group: argparse._ArgumentGroup) -> None:
    text = "reject events that are so far ahead of the wall clock, as in 1h; off: none (default: 1d, with the event clock off)"
    group.add_argument("--ahead", metavar="TIME", help=text)


def pace_of(given: Given) -> Pace:
    """How the run goes, once its arguments are checked."""
    from coincide.streams.run import Pace

    return Pace(given.clock, given.latency / SECOND, given.checkpoint_every / SECOND, given.ahead)


def check_ahead(given: Given) -> None:
    """Becomes seconds."""
    if given.ahead is None or given.ahead == "off":
        given.ahead = None if given.ahead is None else inf
    else:
        check_durations(given, "ahead")
        given.ahead /= SECOND


def check_live_arguments(given: Given) -> None:
    """Durations become microseconds."""
    from coincide.engines.choice import check_name

    check_durations(given, *(["delay"] if given.delay is not None else []), "latency", "checkpoint_every", "on_every")
    check_ahead(given)
    if given.clock is not None:
        check_name("clock", given.clock, ("event", "wall"))
    if given.checkpoint is not None:
        _check_checkpoint(given)


def check_durations(given: Given, *options: str) -> None:
    """Become microseconds."""
    from coincide.engines.choice import duration_microseconds
    from coincide.errors import CoincideError

    for option in options:
        try:
            setattr(given, option, duration_microseconds(getattr(given, option)))
        except CoincideError as error:
            raise CoincideError(f"--{option.replace('_', '-')}: {error.diagnostics[0].message}") from error


def _check_checkpoint(given: Given) -> None:
    from coincide.errors import CoincideError

    if given.snapshot or given.resume:
        raise CoincideError("--checkpoint keeps the state itself: --snapshot and --resume are for runs without")
    if given.out is not None and given.out.lower().endswith(".parquet"):
        raise CoincideError(f"--checkpoint needs a folder for files of Parquet: --out {given.out}/")
    if not is_live(given):
        raise CoincideError("--checkpoint is for live events: tail:FILE, nats://…, kafka://… and others")


def is_live(given: Given) -> bool:
    """Does any of the events come while the run goes on?"""
    from coincide.errors import CoincideError
    from coincide.streams.registry import scheme_of

    live = [name for name in given.events if scheme_of(name) is not None and not (name == "-" and given.sort)]
    if not live or given.engine != "embedded" or (live == ["-"] and given.why):
        return False
    if files := [name for name in given.events if name not in live]:
        hint = " (with --sort it can)" if live == ["-"] else ""
        raise CoincideError(f"'{files[0]}' is a file and '{live[0]}' is live: one run cannot read both{hint}")
    if given.why:
        raise CoincideError("--why keeps all events: it is for files and standard input")
    return True


def run_live(book: Rulebook, given: Given) -> int:
    from coincide.adapters.seen import Seen
    from coincide.streams.process import prepare
    from coincide.unmet import Unmet

    prepare()
    book.check_endless()
    show_warnings(book.streaming_warnings)
    mapping = book.fields(field_mapping(given))
    unmet, seen = Unmet(book, mapping), Seen()
    sources = _sources(given, mapping)
    with Progress(quiet=given.out is None) as progress:

        def watch(arrival: Arrival) -> None:
            seen.add(arrival.delivery.batch)
            progress.read(len(arrival.delivery.batch))

        run = _under_policies if has_policy(book, given, live=True) else _in_order
        received = run(book, given, sources, watch, progress.found)
    report = sources[0].reading.intake.report
    sources[0].reading.intake.close(complete=True)
    for source in sources[1:]:
        report.add(source.reading.intake.report)
    report_reading(report, given.rejects, book.attributes)
    if received:
        raise received[0]
    if all_left_out(report):
        return REFUSED
    part = given.snapshot is not None or given.resume is not None or given.checkpoint is not None
    show_warnings(unmet.after(seen, part=part))
    return 0


def _sources(given: Given, mapping: FieldMapping) -> list[Source]:
    from coincide.errors import CoincideError

    if given.rejects is not None and len(given.events) > 1:
        raise CoincideError("--rejects is for one source")
    return live_sources(given.events, mapping, given.format, strict=given.strict, rejects=given.rejects)


def live_sources(urls: Sequence[str], mapping: FieldMapping, format: str | None = None, **options: Any) -> list[Source]:
    """Of several sources each has ids of its own, so that they do not depend on which was faster."""
    from coincide.adapters.report import Intake
    from coincide.streams.base import Reading
    from coincide.streams.registry import open_source

    intakes = [Intake(before=n * APART, **options) for n in range(len(urls))]
    return [open_source(url, Reading(mapping, own, format)) for url, own in zip(urls, intakes, strict=True)]


def open_named_sink(name: str, keys: bool = False) -> Sink:
    """By its URL, or a file, or a folder of Parquet; that may have keys."""
    from coincide.streams.files import GrowingFile
    from coincide.streams.registry import SINKS, open_sink, scheme_of

    if name.lower().endswith(".parquet/"):
        from coincide.streams.parquetfolder import ParquetFolder

        return ParquetFolder(name, keys)
    return GrowingFile(name) if scheme_of(name, SINKS) is None else open_sink(name)


def output_sink(given: Given) -> Sink:
    """What --out says, and --columns."""
    from coincide.errors import CoincideError
    from coincide.streams.csvlines import CsvLines
    from coincide.streams.files import GrowingFile
    from coincide.streams.standard import StandardOutput

    sink = open_named_sink(given.out or "-", given.keys)
    if not given.columns:
        return sink
    if not isinstance(sink, (StandardOutput, GrowingFile)) or (given.out or "").lower().endswith((".parquet", ".jsonl")):
        raise CoincideError(f"--columns is for standard output and files of CSV, not for '{given.out}'")
    return CsvLines(sink, [name.strip() for name in given.columns.split(",") if name.strip()])


@contextmanager
def _parquet(book: Rulebook, given: Given) -> Iterator[Write | None]:
    """Parquet has no lines: it is there when all is done."""
    from coincide.adapters.write import open_detections
    from coincide.engines.identity import Keys, digests_of

    if given.out is None or not given.out.lower().endswith(".parquet"):
        yield None
        return
    with open_detections(given.out, keys=Keys(digests_of(book)).of if given.keys else None) as writer:
        yield writer.write


def _under_policies(
    book: Rulebook, given: Given, sources: list[Source], watch: Watch, found: Callable[[int], None]
) -> list[BaseException]:
    from coincide.engines.instance import StabilityPolicy
    from coincide.engines.livepolicies import LivePolicies
    from coincide.engines.policies import PolicyEngine
    from coincide.errors import CoincideError

    if given.stats:
        raise CoincideError("--stats is not offered under a policy")
    warn_of_sources(book, given.policy)
    engine = PolicyEngine(book, given.policy or StabilityPolicy("delayed", delay=given.delay or 0), given.tier)
    if given.resume is not None:
        restore_state(engine, given.resume)
    with Account(None, given.latencies) as account:
        live = LivePolicies(engine, account.noted, goes_on=given.snapshot is not None)
        received = _run_through(book, given, sources, watch, found, live)
    if given.snapshot is not None:
        keep_state(engine, given.snapshot)
    report_policies(account, engine.refused())
    return received


def _in_order(
    book: Rulebook, given: Given, sources: list[Source], watch: Watch, found: Callable[[int], None]
) -> list[BaseException]:
    from coincide.engines.embedded import Engine
    from coincide.engines.live import LiveEngine

    engine = Engine(book, given.tier)
    if given.resume is not None:
        restore_state(engine, given.resume)
        report_new_definitions(book, given.resume)
    with statistics_file(engine, given.stats):
        received = _run_through(book, given, sources, watch, found, LiveEngine(engine, given.delay or 0))
    report_late(engine.late)
    if given.snapshot is not None:
        keep_state(engine, given.snapshot)
    return received


def _run_through(
    book: Rulebook, given: Given, sources: list[Source], watch: Watch, found: Callable[[int], None], live: Live
) -> list[BaseException]:
    """From the first event to the last, or to a signal; gives the signals."""
    from coincide.streams.encode import Encoder
    from coincide.streams.run import LiveRun

    with ExitStack() as stack:
        write = stack.enter_context(_parquet(book, given))
        sinks = [*([output_sink(given)] if write is None else []), *open_actions(book, given)]
        needs_keys = any(sink.keyed or (sink.once and given.checkpoint is not None) for sink in sinks)
        encoder = Encoder(book, shown=given.keys, kept=needs_keys, time_format=given.time_format)
        run = LiveRun(live, sources, sinks, encoder, pace_of(given), given.checkpoint)
        stack.callback(run.close)
        late = stack.enter_context(LateFile(given.late, given.time_format, run))
        received = stack.enter_context(_heeding_signals(run.stop))
        for batch in chain(run.detections(watch), _rest(run, given, received)):
            late.keep()
            found(len(batch))
            if write is not None:
                write(batch)
        late.keep()
    late.report()
    return received


def _rest(run: LiveRun, given: Given, received: list[BaseException]) -> Iterator[EventBatch]:
    """A run that keeps checkpoints and was stopped will go on; one that leaves its state to a later part is not over, either."""
    stopped = bool(received) and given.checkpoint is not None
    closed = given.snapshot is None and given.end == "closed" and not received
    yield from run.rest(given.until, ended=not stopped, closed=closed)


class LateFile:
    """Events that came too late: in a file, if that is wanted, and counted."""

    def __init__(self, path: Path | None, time_format: str, run: LiveRun) -> None:
        self._path = path
        self._iso = time_format == "iso"
        self._run = run
        self._file: Any = None

    def __enter__(self) -> LateFile:
        mode = "ab" if self._run.goes_on else "wb"
        self._file = None if self._path is None else open(self._path, mode, buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def keep(self) -> None:
        import msgspec

        late = self._run.live.latecomers()
        if late and self._file is not None:
            self._file.write(msgspec.json.Encoder().encode_lines(late_record(event, self._iso) for event in late))

    def report(self) -> None:
        where = f", kept in {self._path}" if self._path is not None else ""
        show_warnings(self._run.live.late_warnings(where))


@contextmanager
def _heeding_signals(stop: Callable[[], None]) -> Iterator[list[BaseException]]:
    """The first signal lets the run end in order, and is what the list then holds; the second ends it at once."""
    from coincide.cli.main import Stopped

    received: list[BaseException] = []
    before: dict[int, Any] = {}

    def heed(number: int, frame: FrameType | None) -> None:
        received.append(Stopped(number))
        for each, handler in before.items():
            signal.signal(each, handler)
        stop()

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and callable(signal.getsignal(number)):
            before[number] = signal.signal(number, heed)
    try:
        yield received
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
