"""What a run on Spark would do, in words; without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from coincide.detection.base import DetectorPlan
from coincide.engines.spark.groups import Cutting, Group, groups, reasons_against_ranges
from coincide.expr.print import expression_text
from coincide.rulebook import Rulebook, RuleSource, rulebook

LONGEST = 400


@dataclass(frozen=True)
class Pass:
    """One group of detectors, and what Spark does for it before Python sees anything."""

    group: Group
    filter: str | None  # None: every event that has the key
    columns: tuple[str, ...] | None  # None: all
    timed: bool
    ranges: tuple[str, ...] = ()  # how a batch may be cut, or why not

    def lines(self) -> Iterator[str]:
        key = self.group.key
        yield f"detectors: {', '.join(self.group.names)}"
        if self.group.stage:
            yield f"stage: {self.group.stage + 1}, reads what earlier stages detect"
        if key == ():
            yield "in the partitions that events are in: each is judged by itself"
        elif key is not None:
            yield f"partitioned by: {', '.join(key)}"
        else:
            yield f"in one partition: {'; '.join(self.group.reasons)}"
            yield from self.ranges
        yield f"filter: {_shortened(self.filter) if self.filter is not None else 'none'}"
        yield f"columns: {'all' if self.columns is None else ', '.join(('type', 'time', 'id', *self.columns))}"
        if self.timed:
            yield "clock: first and last time of all events are found first (batch), or sent to every bucket (streaming)"


@dataclass(frozen=True)
class Description:
    passes: tuple[Pass, ...]
    streaming: bool = False

    def text(self) -> str:
        out = [f"scans: {self.scans}", f"exchanges: {self.exchanges}"]
        for number, one in enumerate(self.passes, 1):
            out += [f"group {number}", *(f"    {line}" for line in one.lines())]
        return "\n".join(out)

    @property
    def scans(self) -> str:
        return "1, for all groups" if len(self.passes) > 1 else "1"

    @property
    def exchanges(self) -> str:
        stages = 1 + max((one.group.stage for one in self.passes), default=0)
        if stages > 1:
            return f"{stages}, one before each stage, which detections of earlier stages join at their place in the order"
        if len(self.passes) > 1:
            return "1, in which an event goes to each group that wants it"
        in_place = not self.streaming and all(one.group.key == () for one in self.passes)
        return "0" if in_place else "1"


def explain_spark(rules: Rulebook | RuleSource | Sequence[RuleSource], streaming: bool = False) -> Description:
    """How the rules' detectors are divided, and what is read and moved for that."""
    book = rulebook(rules)
    if book.names_policies:
        return Description((_by_arrival(book),), streaming)
    divided = groups(book, cutting=Cutting(streaming=streaming))
    planned = [(group, group.plans(book)) for group in divided]
    ranges = () if streaming or not planned else tuple(_ranges(planned))
    return Description(tuple(replace(_pass(*one), ranges=ranges) for one in planned), streaming)


def _ranges(planned: Sequence[tuple[Group, Sequence[DetectorPlan]]]) -> Iterator[str]:
    if against := reasons_against_ranges(planned):
        yield f"with ranges=N: in one task all the same: {against[0]}"
        return
    yield "with ranges=N: in ranges of time side by side"
    for _, plans in planned:
        yield from (f"    {line}" for plan in plans for line in plan.beginnings())


def _by_arrival(book: Rulebook) -> Pass:
    """Every record tells how far its source has come, so none is filtered."""
    whole = _pass(Group(None, tuple(book.detectors), ("stability policies go by the order of arrival",)), book.compiled.plans)
    columns = None if whole.columns is None else (*whole.columns, "source", "arrival")
    return replace(whole, filter=None, columns=columns, timed=False)


def _pass(group: Group, plans: Sequence[DetectorPlan]) -> Pass:
    tests = [plan.relevant for plan in plans]
    filters = dict.fromkeys(expression_text(test) for test in tests if test is not None)
    columns: set[str] = set()
    for plan in plans:
        columns |= plan.columns or set()
    return Pass(
        group,
        " or ".join(filters) if None not in tests else None,
        None if any(plan.columns is None for plan in plans) else tuple(sorted(columns)),
        any(plan.timed for plan in plans),
    )


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 2] + " …"
