"""What a Python program calls: rules and events of any form in, detections as records out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.display.detections import Detections
from coincide.engines.choice import (
    Duration,
    Until,
    arrivals_on_spark,
    check_name,
    detections,
    duration_microseconds,
    until_microseconds,
)
from coincide.errors import Diagnostic, InputError, RuleError
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.rulebook import Rulebook, RuleSource, rulebook

if TYPE_CHECKING:
    from coincide.adapters.outlook import Outlook
    from coincide.adapters.read import EventReader
    from coincide.adapters.report import Intake, ReadReport
    from coincide.causes import Cause, Causes, Observed
    from coincide.engines.holdings import Holding
    from coincide.explanation import Explanation
    from coincide.misses.answer import Answer
    from coincide.misses.asking import Key

Rules = Rulebook | RuleSource | Sequence[RuleSource]
"""A rulebook, the path of a rule file, or several paths."""

Events = Any
"""Records (mappings), Event objects, a path or several, or a pandas, Polars or Arrow table."""


def detect(
    rules: Rules,
    events: Events,
    until: Until = None,
    *,
    engine: str = "embedded",
    tier: str = "auto",
    policy: str | None = None,
    mapping: FieldMapping = DEFAULT,
    strict: bool = True,
    end: str = "closed",
    why: bool = False,
    keys: bool = False,
    jobs: int = 1,
    max_detections: int | None = None,
) -> Detections:
    """All detections that the rules make of the events, as records, in the order made: a list, which notebooks show as a table.

    `rules` is a rulebook (`load`, `loads`), the path of a rule file, or several paths. `events` are records (dicts), Event
    objects, the path of a file (JSON Lines, CSV, Parquet, Arrow) or several, or a pandas, Polars or Arrow table, in any
    order. `until` moves the clock on after the last event: milliseconds, ISO-8601, or 'inf'. A bad record raises
    InputError unless `strict` is false; then it is left out.

    What the rules read and no event had is reported as DataWarning. With `keys` each detection has its key as `_key`: the same in
    every run and on every engine, if events have ids of their own.

    The `end` of the input also ends the tables of row patterns (MATCH_RECOGNIZE); with 'open', what is undecided stays so.

    With several `jobs`, rules with keys divide the events among so many threads; the detections are the same, in the same order.
    With `why`, everything that `coincide.why` needs to tell what led to a detection is kept with the detections.
    Where each event goes with each other there can be very many: more than `max_detections` are a RunError that names the rule.
    With a `policy` (best-effort, guaranteed or 'probabilistic 0.95'; also where rules name one) events are taken in the order
    in which they stand, as they arrived.

    >>> import coincide
    >>> rules = coincide.loads(\"""
    ...     monitor intrusion by host =
    ...         repeat { do { push(intrusion, user: user) { sequential { failed, failed, login } } } unless { reset } }
    ... \""")
    >>> events = [
    ...     {"type": "failed", "time": 1000, "host": "db1", "user": "eve"},
    ...     {"type": "failed", "time": 2000, "host": "db1", "user": "eve"},
    ...     {"type": "login", "time": 2500, "host": "web1", "user": "ann"},
    ...     {"type": "login", "time": 3000, "host": "db1", "user": "eve"},
    ... ]
    >>> coincide.detect(rules, events)
    [{'type': 'intrusion', 'time': 3000, 'from': ['4'], 'host': 'db1', 'user': 'eve'}]
    """
    if max_detections is not None:
        rules = _bounded(rulebook(rules), max_detections, engine, policy)
    if why:
        if engine != "embedded":
            raise InputError("what led to a detection is kept by the embedded engine only")
        if keys:
            raise InputError("keys= and why= cannot be asked for together")
        causes = observed(rules, events, until, tier=tier, policy=policy, mapping=mapping, strict=strict, end=end)
        return Detections(causes.explained(), causes)
    events = list(events) if isinstance(events, Iterator) and not _is_table(events) else events  # all of them, in any order
    asked: dict[str, Any] = {"engine": engine, "tier": tier, "policy": policy, "mapping": mapping}
    return Detections(run(rules, events, until, **asked, strict=strict, end=end, keys=keys, jobs=jobs))


def _bounded(book: Rulebook, most: int, engine: str, policy: str | None) -> Rulebook:
    if engine != "embedded" or policy is not None or book.names_policies:
        raise InputError("max_detections= is for the embedded engine, without policies")
    return replace(book, max_detections=most)


def run(
    rules: Rules,
    events: Events,
    until: Until = None,
    *,
    engine: str = "embedded",
    tier: str = "auto",
    policy: str | None = None,
    mapping: FieldMapping = DEFAULT,
    strict: bool = True,
    end: str = "closed",
    keys: bool = False,
    delay: Duration | None = None,
    jobs: int = 1,
) -> Iterator[dict[str, Any]]:
    """The same as `detect`, one detection at a time: for inputs whose detections need not all be in memory.

    An iterator (a generator, say) is *live*: each event is dealt with when it comes, and forgotten when no rule needs it any
    more. Events may come so much later than later ones as the `delay` (milliseconds, '5s', a timedelta) says; those that come
    later still are left out, which is reported as a DataWarning. Of other inputs all is read and sorted first, unless a delay is
    given (0: they are in order), or the statistics of Parquet tell enough; then memory holds what waits, not the input.

    >>> import coincide
    >>> rules = coincide.loads("monitor hot = repeat { push(hot, celsius: v) { reading and v > 30 } }")
    >>> readings = [{"type": "reading", "time": t, "v": 20 + t} for t in range(13)]
    >>> for detection in coincide.run(rules, readings):
    ...     print(detection["time"], detection["celsius"])
    11 31
    12 32
    """
    from coincide.adapters.write import KEY
    from coincide.engines.identity import Keys, digests_of

    book = rulebook(rules)
    identity, late_by = Keys(digests_of(book)), None if delay is None else duration_microseconds(delay)
    made = _detected(book, events, until, None, engine, tier, policy, mapping, strict, end, jobs, late_by)
    if (
        isinstance(events, Iterator)
        and not _is_table(events)
        and engine == "embedded"
        and policy is None
        and not book.names_policies
    ):
        made = _live(book, events, until_microseconds(until), tier, mapping, strict, end == "closed", late_by or 0)
    for batch in made:
        records = (record(event) for event in batch.events)
        yield from ({**r, KEY: key} for r, key in zip(records, identity.of(batch), strict=True)) if keys else records


@overload
def why(
    found: Mapping[str, Any],
    rules: Rules | None = None,
    events: Events = None,
    until: Until = None,
    /,
    *,
    policy: str | None = None,
    mapping: FieldMapping = DEFAULT,
) -> Cause: ...


@overload
def why(
    rules: Rules,
    events: Events,
    until: Until = None,
    /,
    *,
    detection: str,
    policy: str | None = None,
    mapping: FieldMapping = DEFAULT,
) -> Cause: ...


@overload
def why(
    rules: Rules,
    events: Events,
    until: Until = None,
    /,
    *,
    rule: str | None = None,
    key: Key = None,
    at: Any = None,
    tries: int = 3_000,
    policy: str | None = None,
    mapping: FieldMapping = DEFAULT,
) -> Answer: ...


def why(
    about: Any,
    /,
    *given: Any,
    detection: str | None = None,
    rule: str | None = None,
    key: Key = None,
    at: Any = None,
    tries: int = 3_000,
    policy: str | None = None,
    mapping: FieldMapping = DEFAULT,
) -> Cause | Answer:
    """Why a detection was made, or why none was.

    `why(found)` is for a detection of `detect(…, why=True)`; `why(found, rules, events)` for any, and `why(rules, events,
    detection=KEY)` for one that is known by its key (`detect(…, keys=True)`, from whichever engine). What led to it is shown as a
    tree: `print` it, or look at its `parts`.

    >>> import coincide
    >>> guessed = "detect Guessed = [failed(user = ?user)] ; [failed(user = ?user)] ; [login(user = ?user)]"
    >>> rules = coincide.loads(guessed, "opera")
    >>> events = [
    ...     {"type": "failed", "time": 1000, "user": "eve"},
    ...     {"type": "failed", "time": 2000, "user": "eve"},
    ...     {"type": "login", "time": 3000, "user": "eve"},
    ... ]
    >>> (found,) = coincide.detect(rules, events, why=True)
    >>> print(coincide.why(found))
    3000  Guessed  user=eve
      ├ 1000  failed  user=eve
      ├ 2000  failed  user=eve
      └ 3000  login  user=eve  ← completes it

    `why(rules, events, rule=…, key=…, at=(from, to))` tells why a rule made no detection for a key in some time: how far matches
    came and what stopped them, the nearest first. What it names has been tried: put right, it makes the detection.

    >>> print(coincide.why(rules, events[1:], rule="Guessed", key={"user": "eve"}))
    Guessed for user='eve' made no detection
      1. failed at 2000, login at 3000; no other event of type failed until 2999
    """
    if isinstance(about, Mapping):
        return _cause(about, *given, policy=policy, mapping=mapping)
    rules, events, until, *_ = (about, *given, None, None)
    if detection is not None:
        from coincide.engines.identity import with_key

        causes = observed(rules, events, until, policy=policy, mapping=mapping)
        return causes.of(with_key(causes.book, causes.detections, detection))
    from coincide.misses.answer import why_not
    from coincide.misses.asking import question

    book = rulebook(rules)
    read = [event for batch in in_order(events, book.fields(mapping)) for event in batch.events]
    return why_not(book, read, question(book, read, rule, key, at), until_microseconds(until), tries=tries)


def _cause(
    detection: Mapping[str, Any],
    rules: Rules | None = None,
    events: Events = None,
    until: Until = None,
    *,
    policy: str | None,
    mapping: FieldMapping,
) -> Cause:
    from coincide.causes import Explained

    if isinstance(detection, Explained):
        return detection.cause()
    if rules is None or events is None:
        hint = "find it with detect(…, why=True), or give the rules and the events again: why(detection, rules, events)"
        raise InputError(Diagnostic("what led to this detection was not kept", hint=hint))
    causes = observed(rules, events, until, policy=policy, mapping=mapping)
    found = next((d for d in causes.detections if record(d) == detection), None)
    if found is None:
        raise InputError("these rules do not make this detection of these events")
    return causes.of(found)


def held(
    rules: Rules,
    events: Events,
    at: Until = None,
    *,
    rule: str | None = None,
    key: Sequence[Any] | None = None,
    mapping: FieldMapping = DEFAULT,
) -> Holding:
    """What rules hold at an instant of a run over these events (by default, at the last): open lifespans, matches in progress,
    what windows hold, timers. `record` is plain data.

    >>> import coincide
    >>> rules = coincide.loads("detect pair = ([a(k = ?k)], [b(k = ?k)]) T = 10s", "opera")
    >>> events = [{"type": "a", "time": 0, "k": 1}, {"type": "a", "time": 4000, "k": 2}, {"type": "b", "time": 6000, "k": 1}]
    >>> for each in coincide.held(rules, events, at=5000).unfinished:
    ...     print(each.rule, each.key, each.what, each.due)
    pair (1.0,) 1 event matched 10000000
    pair (2.0,) 1 event matched 14000000
    """
    from coincide.engines.holdings import holding_at

    book, instant = rulebook(rules), until_microseconds(at)
    if instant == inf:
        raise InputError("what rules hold is told of an instant, not of the end of all time")
    batches = in_order(events, book.fields(mapping))
    return holding_at(book, batches, None if instant is None else int(instant)).of(rule, key)


def observed(
    rules: Rules,
    events: Events,
    until: Until = None,
    *,
    tier: str = "auto",
    policy: str | None = None,
    mapping: FieldMapping = DEFAULT,
    strict: bool = True,
    end: str = "closed",
) -> Causes:
    """A run in this process of which everything is kept: events, detections, and why each was made."""
    from coincide.causes import Observed

    book, observer = rulebook(rules), Observed()
    for _ in _detected(book, events, until, observer, "embedded", tier, policy, mapping, strict, end):
        pass
    return observer.causes(book, whole=policy is None and not book.names_policies)


def _detected(
    book: Rulebook,
    events: Events,
    until: Until,
    observer: Observed | None,
    engine: str,
    tier: str,
    policy: str | None,
    mapping: FieldMapping,
    strict: bool,
    end: str,
    jobs: int = 1,
    delay: int | None = None,
) -> Iterator[EventBatch]:
    from coincide.adapters.order import in_total_order
    from coincide.adapters.outlook import Outlook, late_warnings
    from coincide.adapters.seen import Seen
    from coincide.errors import warn
    from coincide.unmet import Unmet

    check_name("end", end, ("closed", "open"))
    bound, unmet, seen = until_microseconds(until), Unmet(book, mapping), Seen()
    arrives = policy is not None or book.names_policies
    outlook = Outlook(None if arrives else delay)
    reader = _batches(events, book.fields(mapping), strict, outlook)
    if reader.kinds is not None:
        warn(unmet.in_table(reader.kinds))
    batches = outlook.timely(seen.watch(reader))
    batches = batches if observer is None else observer.reading(batches)
    if arrives:
        made = _as_they_arrived(book, batches, bound, policy, engine, tier)
    else:
        made = detections(book, in_total_order(batches, outlook), bound, engine, tier, end == "closed", jobs)
    yield from made if observer is None else observer.making(made)
    warn([*unmet.after(seen), *late_warnings(outlook.late, outlook.sufficient), *_lost_digits(reader.report, book)])


def _live(
    book: Rulebook,
    items: Iterator[Any],
    until: float | None,
    tier: str,
    mapping: FieldMapping,
    strict: bool,
    closed: bool,
    delay: int,
) -> Iterator[EventBatch]:
    """Events of an iterator, one by one."""
    from coincide.adapters.report import Intake
    from coincide.adapters.seen import Seen
    from coincide.engines.embedded import Engine
    from coincide.engines.live import LiveEngine
    from coincide.errors import warn
    from coincide.unmet import Unmet

    unmet, seen, intake = Unmet(book, mapping), Seen(), Intake(strict=strict)
    live = LiveEngine(Engine(book, tier), delay)
    for item in items:
        if (event := _event(item, mapping, intake)) is not None:
            seen.add(batch := EventBatch((event,)))
            yield from live.arrive(batch)
            live.latecomers()
    yield from live.finish(until, closed)
    warn([*unmet.after(seen), *live.late_warnings(), *_lost_digits(intake.report, book)])


def _lost_digits(report: ReadReport, book: Rulebook) -> list[Diagnostic]:
    return [Diagnostic(text, severity="warning") for text in report.warnings_about(book.attributes)]


def _as_they_arrived(
    book: Rulebook, batches: Iterable[EventBatch], until: float | None, policy: str | None, engine: str, tier: str
) -> Iterator[EventBatch]:
    from coincide.engines.instance import StabilityPolicy
    from coincide.engines.policies import PolicyEngine

    default = None if policy is None else StabilityPolicy.parse(policy)
    if engine != "embedded":
        yield EventBatch(arrivals_on_spark(book, batches, default, until, engine, tier).detections)
        return
    running = PolicyEngine(book, default, tier)
    for batch in batches:
        for made in running.process(batch):
            yield EventBatch(made.detections)
    for made in running.end(until):
        yield EventBatch(made.detections)


def explain(
    rules: Rules, engine: str = "embedded", tier: str = "auto", events: Sequence[Mapping[str, Any]] | None = None
) -> Explanation:
    """How the rules would be run: stages, shared work, keys, tier, what is filtered and read, memory. For Spark, a sample of
    `events` shows what correlation descriptions move through exchanges, whole and divided.

    >>> import coincide
    >>> rules = coincide.loads("monitor hot by room = repeat { push(hot, celsius: v) { reading and v > 30 } }")
    >>> print(coincide.explain(rules).splitlines()[0])
    1 detector of 1 file, in 1 stage
    """
    from coincide.distribution.shuffled import shuffled
    from coincide.explanation import explanation

    book = rulebook(rules)
    explained = explanation(book, engine, tier)
    return explained if events is None or engine == "embedded" else explained.followed_by(shuffled(book, events, detect))


def analyse(rules: Rules, *, events: Events = None, other: Rules | None = None, whole: bool | None = None) -> dict[str, Any]:
    """What can be said of ECL monitors without running them: vacuity, liveness, dependencies, containment … as one object.
    More than 60 are not compared each with each unless the `whole` is asked for."""
    from coincide.analysis.report import analyse as analyse_file

    given = None if events is None else [event for batch in in_order(events) for event in batch.events]
    return analyse_file(_ecl_file(rulebook(rules)), given, None if other is None else _ecl_file(rulebook(other)), whole)


def in_order(events: Events, mapping: FieldMapping = DEFAULT, strict: bool = True) -> Iterator[EventBatch]:
    """Whatever names events, as batches in total order."""
    from coincide.adapters.order import in_total_order

    return in_total_order(_batches(events, mapping, strict))


def _ecl_file(book: Rulebook) -> Any:
    """All ECL definitions of a rulebook as one file."""
    from coincide.lang.ecl.definition import File

    files = [file for _, file in book.files if isinstance(file, File)]
    if len(files) < len(book.files):
        raise RuleError(Diagnostic("only ECL monitors can be analysed", hint="give files that end in .ecl"))
    return files[0] if len(files) == 1 else File((), tuple(d for file in files for d in file.detectors))


def _batches(events: Events, mapping: FieldMapping, strict: bool, outlook: Outlook | None = None) -> EventReader:
    """Batches of whatever names events, in the order of the input."""
    if isinstance(events, (str, PathLike)):
        from coincide.adapters.read import open_events

        return open_events(events, mapping, strict=strict, outlook=outlook)
    if _is_table(events):
        return _batches_of_table(events, mapping, strict)
    return _batches_of_items(events if isinstance(events, EventBatch) else list(events), mapping, strict, outlook)


def _is_table(events: Events) -> bool:
    return hasattr(events, "__arrow_c_stream__") or _maker(events) in ("pandas", "polars", "pyarrow")


def _maker(events: Events) -> str:
    return type(events).__module__.partition(".")[0]


def _batches_of_table(table: Events, mapping: FieldMapping, strict: bool) -> EventReader:
    from coincide.adapters import frames

    readers = {"pandas": frames.from_pandas, "polars": frames.from_polars}
    return readers.get(_maker(table), frames.from_arrow)(table, mapping, strict=strict)


def _batches_of_items(items: EventBatch | list[Any], mapping: FieldMapping, strict: bool, outlook: Outlook | None) -> EventReader:
    from coincide.adapters.read import EventReader, open_events
    from coincide.adapters.report import Intake

    if isinstance(items, list) and items and all(isinstance(item, (str, PathLike)) for item in items):
        return open_events(items, mapping, strict=strict, outlook=outlook)

    def read(intake: Intake) -> Iterator[EventBatch]:
        if isinstance(items, EventBatch):
            yield items
        else:
            made = (_event(item, mapping, intake) for item in items)
            yield EventBatch([event for event in made if event is not None])

    return EventReader(read, Intake(strict=strict))


def _event(item: Any, mapping: FieldMapping, intake: Intake) -> Event | None:
    from coincide.adapters.records import BadRecord, event_of

    position = intake.position
    intake.counted(1)
    if isinstance(item, Event):
        return item
    try:
        if not isinstance(item, Mapping):
            raise InputError(f"events must be records, Event objects, paths or a table, not {type(item).__name__}")
        return event_of(item, mapping, position, intake.report.huge)
    except BadRecord as bad:
        intake.reject(f"record {position}", str(bad), item)
        return None
