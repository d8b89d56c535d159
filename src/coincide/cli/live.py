"""`coincide run` on events that are still coming: sources and sinks by URL, the delay, the clock."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from coincide.cli.command import Given, field_mapping
from coincide.cli.policies import embedded_policies, has_policy, late_record, warn_of_sources
from coincide.cli.progress import Progress
from coincide.cli.report import REFUSED, all_left_out, report_late, report_reading, report_times, show_warnings
from coincide.cli.state import keep_state, report_afresh, restore_state, statistics_file

if TYPE_CHECKING:
    from coincide.adapters.mapping import FieldMapping
    from coincide.adapters.report import ReadReport
    from coincide.engines.live import LiveEngine
    from coincide.model.batch import EventBatch
    from coincide.rulebook import Rulebook
    from coincide.streams.arrivals import Arrivals
    from coincide.streams.base import Source

Watch = Callable[["EventBatch"], object]


def live_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("live events")
    group.add_argument("--delay", metavar="TIME", default="0", help="events may come so much later than later ones, as in 5s")
    text = "does time go on when nothing comes? event (default): no; wall: yes"
    group.add_argument("--clock", metavar="NAME", help=text)
    group.add_argument("--sort", action="store_true", help="read all of standard input first, and sort it")
    text = "wait so long for more events to take with the first (default: 5ms)"
    group.add_argument("--latency", metavar="TIME", default="5ms", help=text)


def check_live_arguments(given: Given) -> None:
    """Durations become microseconds."""
    from coincide.engines.choice import check_name
    from coincide.errors import CoincideError
    from coincide.expr.parse import parse_duration
    from coincide.expr.quantities import QuantityError

    for option in ("delay", "latency"):
        try:
            setattr(given, option, parse_duration(getattr(given, option)))
        except QuantityError as error:
            raise CoincideError(f"--{option}: {error}") from error
    if given.clock is not None:
        check_name("clock", given.clock, ("event", "wall"))


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
    from coincide.streams.arrivals import Threads
    from coincide.unmet import Unmet

    unmet, seen = Unmet(book), Seen()
    mapping = field_mapping(given)
    sources = _sources(given, mapping)
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(quiet=given.out is None))
        write = stack.enter_context(_writer(book, given))
        arrivals = Threads(sources, [None for _ in sources], given.latency / 1e6)
        received = stack.enter_context(_heeding_signals(arrivals.stop))

        def watch(batch: EventBatch) -> None:
            seen.add(batch)
            progress.read(len(batch))

        for batch in _detections(book, given, sources, arrivals, watch):
            write(batch)
            progress.found(len(batch))
        report = _report_of(sources, complete=True)
    report_reading(report, given.rejects, book.attributes)
    if received:
        raise received[0]
    if all_left_out(report):
        return REFUSED
    report_times(seen, mapping)
    show_warnings(unmet.after(seen, part=given.snapshot is not None or given.resume is not None))
    return 0


def _sources(given: Given, mapping: FieldMapping) -> list[Source]:
    from coincide.adapters.report import Intake
    from coincide.streams.base import Reading
    from coincide.streams.registry import open_source

    intake = Intake(strict=given.strict, rejects=given.rejects)
    return [open_source(url, Reading(mapping, intake, given.format)) for url in given.events]


def _report_of(sources: list[Source], complete: bool) -> ReadReport:
    intake = sources[0].reading.intake
    intake.close(complete=complete)
    return intake.report


@contextmanager
def _writer(book: Rulebook, given: Given) -> Iterator[Watch]:
    """Detections go out when they are made; to Parquet, which has no lines, when all is done."""
    from coincide.adapters.write import open_detections
    from coincide.streams.encode import Encoder
    from coincide.streams.files import GrowingFile
    from coincide.streams.standard import StandardOutput

    if given.out is not None and given.out.lower().endswith(".parquet"):
        keys = Encoder(book, kept=True).keys if given.keys else None
        with open_detections(given.out, keys=None if keys is None else keys.of) as writer:
            yield writer.write
        return
    encoder = Encoder(book, shown=given.keys, time_format=given.time_format)
    sink = StandardOutput("-") if given.out in (None, "-") else GrowingFile(given.out)
    sink.open(None)
    try:
        yield lambda batch: sink.write(encoder.made(batch))
    finally:
        sink.close()


def _detections(book: Rulebook, given: Given, sources: list[Source], arrivals: Arrivals, watch: Watch) -> Iterator[EventBatch]:
    if has_policy(book, given, live=True):
        return _under_policies(book, given, arrivals, watch)
    return _in_order(book, given, sources, arrivals, watch)


def _under_policies(book: Rulebook, given: Given, arrivals: Arrivals, watch: Watch) -> Iterator[EventBatch]:
    from coincide.engines.instance import StabilityPolicy
    from coincide.errors import CoincideError

    if given.stats:
        raise CoincideError("--stats is not offered under a policy: each policy has detectors of its own")
    warn_of_sources(book, given.policy)
    return embedded_policies(book, _batches(arrivals, watch), given, StabilityPolicy("delayed", delay=given.delay))


def _batches(arrivals: Arrivals, watch: Watch) -> Iterator[EventBatch]:
    while (arrived := arrivals.next(1.0)) is not None:
        for _, delivery in arrived:
            watch(delivery.batch)
            yield delivery.batch


def _in_order(book: Rulebook, given: Given, sources: list[Source], arrivals: Arrivals, watch: Watch) -> Iterator[EventBatch]:
    from coincide.engines.embedded import Engine
    from coincide.engines.live import LiveEngine
    from coincide.streams.loop import LiveLoop

    engine = Engine(book, given.tier)
    if given.resume is not None:
        restore_state(engine, given.resume)
        report_afresh(book, given.resume)
    live = LiveEngine(engine, given.delay)
    clock = given.clock or ("wall" if any(source.clock == "wall" for source in sources) else "event")
    with LateFile(given.late, given.time_format) as late, statistics_file(engine, given.stats):
        for batch in LiveLoop(live, arrivals, clock).detections(watch):
            late.keep(live)
            yield batch
        if given.snapshot is None or given.until is not None:
            yield from live.finish(given.until, closed=given.snapshot is None and given.end == "closed")
        else:
            yield from live.flush()
        late.keep(live)
    report_late(engine.late)
    late.report(live)
    if given.snapshot is not None:
        keep_state(engine, given.snapshot)


class LateFile:
    """Events that came too late: in a file, if that is wanted, and counted."""

    def __init__(self, path: Path | None, time_format: str) -> None:
        self._path = path
        self._iso = time_format == "iso"
        self._file: Any = None

    def __enter__(self) -> LateFile:
        self._file = None if self._path is None else open(self._path, "wb", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def keep(self, live: LiveEngine) -> None:
        import msgspec

        late = live.latecomers()
        if late and self._file is not None:
            self._file.write(msgspec.json.Encoder().encode_lines(late_record(event, self._iso) for event in late))

    def report(self, live: LiveEngine) -> None:
        from coincide.expr.quantities import duration_text

        stage = live.stage
        if stage.refused:
            came = "1 event" if stage.refused == 1 else f"{stage.refused:,} events"
            kept = f", kept in {self._path}" if self._path is not None else ""
            print(f"warning: {came} came too late: left out{kept}", file=sys.stderr)
            print(f"    hint: --delay {duration_text(stage.sufficient)} would have sufficed", file=sys.stderr)


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
