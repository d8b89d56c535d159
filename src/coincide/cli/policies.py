"""`coincide run` under stability policies: the order of arrival, late events, latencies."""

from __future__ import annotations

import argparse
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from coincide.cli.command import Given
from coincide.cli.state import keep_state, restore_state
from coincide.expr.quantities import counted

if TYPE_CHECKING:
    from coincide.adapters.files import CompleteFile
    from coincide.engines.instance import StabilityPolicy
    from coincide.engines.policies import PolicyRun
    from coincide.model.batch import EventBatch
    from coincide.model.event import Event
    from coincide.rulebook import Rulebook


def policy_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("order of arrival")
    group.add_argument(
        "--policy", metavar="P", help="best-effort, guaranteed or 'probabilistic 0.95', for definitions that name none"
    )
    group.add_argument("--late", metavar="FILE", type=Path, help="keep events that came too late in FILE, as JSON Lines")
    group.add_argument("--latencies", metavar="FILE", type=Path, help="write how late each detection was made to FILE")


def check_policy_arguments(given: Given) -> None:
    if given.policy is not None:
        from coincide.engines.instance import StabilityPolicy

        given.policy = StabilityPolicy.parse(given.policy)


def has_policy(book: Rulebook, given: Given, live: bool = False) -> bool:
    """Does the order of arrival count?"""
    from coincide.errors import CoincideError

    named = book.names_policies
    if given.policy is None and not named and (given.latencies or (given.late and not live and given.delay is None)):
        option = "--late needs --delay, or" if given.late and not given.latencies else "--latencies needs"
        raise CoincideError(f"{option} a policy: --policy, or one in the rules")
    return given.policy is not None or named


def under_policies(book: Rulebook, batches: Iterable[EventBatch], given: Given) -> Iterator[EventBatch]:
    """Detections of events that stand in the order of their arrival."""
    warn_of_sources(book, given.policy)
    return (_embedded if given.engine == "embedded" else _on_spark)(book, batches, given)


def _on_spark(book: Rulebook, batches: Iterable[EventBatch], given: Given) -> Iterator[EventBatch]:
    from coincide.engines.choice import arrivals_on_spark
    from coincide.model.batch import EventBatch

    run = arrivals_on_spark(book, batches, given.policy, given.until, given.engine, given.tier)
    with Account(given.late, given.latencies, given.time_format) as account:
        yield EventBatch(account.noted(run))
    report_policies(account, {policy: len(late) for policy, late in run.late.items()})


def _embedded(book: Rulebook, batches: Iterable[EventBatch], given: Given) -> Iterator[EventBatch]:
    """In this process."""
    from coincide.engines.policies import PolicyEngine
    from coincide.model.batch import EventBatch

    engine = PolicyEngine(book, given.policy, given.tier)
    if given.resume is not None:
        restore_state(engine, given.resume)
    with Account(given.late, given.latencies, given.time_format) as account:
        for batch in batches:
            for made in engine.process(batch):
                yield EventBatch(account.noted(made))
        if given.snapshot is None or given.until is not None:
            for made in engine.end(given.until):
                yield EventBatch(account.noted(made))
    if given.snapshot is not None:
        keep_state(engine, given.snapshot)
    report_policies(account, engine.refused())


def report_policies(account: Account, late: Mapping[StabilityPolicy, int]) -> None:
    for line in account.summary(late):
        print(line, file=sys.stderr)


def warn_of_sources(book: Rulebook, policy: StabilityPolicy | None) -> None:
    """As definitions are warned of that name their policy themselves."""
    from coincide.ordering import unheard_sources

    if policy is not None and not book.compiled.sources and (text := unheard_sources(policy.kind)):
        print(f"warning: {text}", file=sys.stderr)


def late_record(event: Event, iso: bool) -> dict[str, object]:
    """The event as a record that can be read again."""
    from coincide.adapters.write import with_iso_times
    from coincide.model.event import record
    from coincide.model.stamp import milliseconds

    came = {} if event.arrival is None else {"arrival": milliseconds(event.arrival)}
    whole = {**record(event), **came}
    return with_iso_times(whole) if iso else whole


class Account(ExitStack):
    """What is written besides detections. The files appear when all is done."""

    def __init__(self, late: Path | None, latencies: Path | None, time_format: str = "ms") -> None:
        super().__init__()
        self._iso = time_format == "iso"
        self._seen: dict[StabilityPolicy, array[float]] = {}
        self._late, self._latencies = self._file(late), self._file(latencies)

    def _file(self, path: Path | None) -> CompleteFile | None:
        from coincide.adapters.files import CompleteFile

        return None if path is None else self.enter_context(CompleteFile(path))

    def noted(self, made: PolicyRun) -> Sequence[Event]:
        """The detections, once all the rest is written down."""
        for latency in made.latencies:
            self._seen.setdefault(latency.policy, array("d")).append(latency.milliseconds)
        _write(self._latencies, (latency.record() for latency in made.latencies))
        self.keep_late([event for event, _ in made.latecomers()])
        return made.detections

    def keep_late(self, events: Sequence[Event]) -> None:
        _write(self._late, (late_record(event, self._iso) for event in events))

    def summary(self, late: Mapping[StabilityPolicy, int]) -> Iterator[str]:
        for policy, refused in late.items():
            if policy.is_one:
                yield f"{policy}: {_summary(self._seen.get(policy, ()))}; {counted(refused, 'late event')}"


def _write(file: CompleteFile | None, records: Iterable[dict[str, object]]) -> None:
    import msgspec

    if file is not None:
        file.stream.write(msgspec.json.Encoder().encode_lines(records))


def _summary(latencies: Sequence[float]) -> str:
    """Times as in the file: milliseconds. 95 % of the detections were made within the second number."""
    from statistics import median

    if not latencies:
        return "no detections"
    ordered = sorted(latencies)
    numbers = (median(ordered), ordered[ceil(0.95 * len(ordered)) - 1], ordered[-1])
    half, most, all_of_them = (f"{number:,.10g} ms" for number in numbers)
    return f"{counted(len(ordered), 'detection')}, latency: median {half}, 95 % {most}, maximum {all_of_them}"
