"""How rules will be run, in words: what `coincide explain` and `coincide debug plan` print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, Self

from coincide.compile.graph import feeds, stages
from coincide.detection.base import COMPILED, Detector, DetectorPlan, paying_sizes
from coincide.detection.limits import LimitedPlan, Wrapped
from coincide.detection.suppression import SuppressedPlan
from coincide.engines.choice import ENGINES, TIERS, check_name
from coincide.expr.print import expression_text
from coincide.expr.quantities import counted
from coincide.lang.opera.print import statement_text
from coincide.lang.shared.eventsets import Limit
from coincide.rulebook import Rulebook

LARGE_TEXT = 300
"""Longer filters are cut."""

Row = tuple[str, str]


@dataclass(frozen=True)
class Section:
    """Rows about the source, or about each of the plans of a stage."""

    head: str
    parts: tuple[tuple[str, tuple[Row, ...]], ...]  # the definitions of a plan, and what is said of it

    def lines(self) -> Iterator[str]:
        yield f"\n{self.head}"
        for names, rows in self.parts:
            yield from (f"  {names}",) if names else ()
            yield from (f"    {what:<9} {text}" for what, text in rows)


class Explanation(str):
    """How rules will be run: a text, which notebooks show as tables."""

    summary: str
    sections: tuple[Section, ...]
    rest: str

    def __new__(cls, summary: str, sections: Sequence[Section], rest: str = "") -> Self:
        lines = [summary, *(line for section in sections for line in section.lines())]
        made = super().__new__(cls, "\n".join([*lines, "", rest] if rest else lines))
        made.summary, made.sections, made.rest = summary, tuple(sections), rest
        return made

    def followed_by(self, text: str) -> Explanation:
        return Explanation(self.summary, self.sections, "\n\n".join(filter(None, (self.rest, text))))

    def _repr_html_(self) -> str:
        from coincide.display.page import shown
        from coincide.report.markup import Markup, element

        parts = [element("b", self.summary)]
        for section in self.sections:
            parts.append(element("div", section.head, class_="faint"))
            for names, rows in section.parts:
                cells = [element("tr", element("td", what, class_="faint"), element("td", text)) for what, text in rows]
                parts += [element("div", element("b", names)) if names else Markup(), element("table", *cells)]
        return shown(*parts, element("pre", self.rest) if self.rest else None)

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """At the prompt of IPython: its lines, without quotes."""
        printer.text(str(self))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def explanation(book: Rulebook, engine: str = "embedded", tier: str = "auto") -> Explanation:
    check_name("engine", engine, ENGINES)
    check_name("tier", tier, TIERS)
    sections = []
    for number, plans in _by_stage(book).items():
        head = f"stage {number + 1}" + (" (reads what earlier stages detect)" if number else "")
        sections.append(Section(head, tuple((", ".join(plan.definitions), tuple(_all_rows(book, plan, tier))) for plan in plans)))
    sections.append(Section("at the source", (("", tuple(_pushed_down(book.compiled.plans))),)))
    return Explanation(_summary(book), sections, "" if engine == "embedded" else "\n".join(_on_spark(book, engine)))


def plan_outline(book: Rulebook, names: Set[str]) -> Iterator[str]:
    """The plans that detect any of these names, tests and all."""
    for number, plans in _by_stage(book).items():
        for plan in plans:
            if names.isdisjoint(plan.definitions):
                continue
            yield f"stage {number + 1}: {', '.join(plan.definitions)}"
            yield f"  inputs    {_inputs(book, plan)}"
            yield f"  outputs   {', '.join(sorted(plan.outputs))}"
            yield f"  key       {', '.join(plan.partition) if plan.partition else 'none'}"
            yield f"  timers    {'yes' if plan.timed else 'no'}"
            yield from (f"  {line}" for line in plan.outline())


def _limits(plan: DetectorPlan) -> Iterator[Limit]:
    """Those on what it reads, then those on what it makes."""
    while isinstance(plan, LimitedPlan | SuppressedPlan):
        yield from plan.limits
        plan = plan.plan


def _summary(book: Rulebook) -> str:
    detectors, files, count = len(book.detectors), len(book.files), len(_by_stage(book))
    return f"{counted(detectors, 'detector')} of {counted(files, 'file')}, in {counted(count, 'stage')}"


def _by_stage(book: Rulebook) -> dict[int, list[DetectorPlan]]:
    levels = stages(book.detectors, feeds(book.detectors))
    stage_of = {detector.name: level for detector, level in zip(book.detectors, levels, strict=True)}
    found: dict[int, list[DetectorPlan]] = {}
    for plan in book.compiled.plans:
        found.setdefault(max(stage_of[name] for name in plan.definitions), []).append(plan)
    return dict(sorted(found.items()))


def _all_rows(book: Rulebook, plan: DetectorPlan, tier: str) -> Iterable[Row]:
    """What a language says of its own definitions takes the place of what is said of all."""
    rows = list(_rows(book, plan, tier))
    for detector in book.detectors:
        language = book.compiled.languages[detector.language]
        own = dict(language.explained(detector)) if detector.name in plan.definitions else {}
        rows = [(what, own.pop(what, text)) for what, text in rows]
        after = 1 + [what for what, _ in rows].index("key")
        rows[after:after] = own.items()
    return rows


def _rows(book: Rulebook, plan: DetectorPlan, tier: str) -> Iterator[Row]:
    members = [d for d in book.detectors if d.name in plan.definitions]
    yield "language", ", ".join(dict.fromkeys(d.language for d in members))
    if len(members) > 1:
        yield "shared", _sharing(plan, members)
    yield "reads", _inputs(book, plan)
    yield "makes", ", ".join(sorted(plan.outputs)) or "nothing"
    yield (
        "key",
        f"{', '.join(plan.partition)}: independent for each value" if plan.partition else "none: one state for the whole stream",
    )
    if isinstance(plan, Wrapped):
        yield "limits", "; ".join(statement_text(limit).removeprefix("limit ") for limit in _limits(plan))
    yield "tier", _tier(book, plan, tier)
    yield "memory", plan.memory()


def _sharing(plan: DetectorPlan, members: list[Detector]) -> str:
    return "; ".join(filter(None, (f"{len(members)} definitions with the same key read each event once", plan.sharing())))


def _inputs(book: Rulebook, plan: DetectorPlan) -> str:
    made = {output for detector in book.detectors for output in detector.outputs}
    read = sorted(plan.inputs.detections & made)
    types = (
        "events of every type" if plan.inputs.external is None else f"events of type {', '.join(sorted(plan.inputs.external))}"
    )
    return types + (f"; detections {', '.join(read)}" if read else "")


def _tier(book: Rulebook, plan: DetectorPlan, tier: str) -> str:
    reasons = plan.tier_reasons()
    if reasons:
        return f"interpreter, because {'; '.join(reasons)}"
    if tier == "auto":
        why = "a small input would wait for the compiler" if plan.manner == COMPILED else "it starts at once"
        plans = book.compiled.plans
        size = next(size for other, size in zip(plans, paying_sizes(plans, ()), strict=True) if other is plan)
        return f"kernel ({plan.manner}) from {size:,} events on, interpreter below: {why}"
    return f"{tier}, as asked for"


def _pushed_down(plans: Iterable[DetectorPlan]) -> Iterator[Row]:
    """What no plan can use need not be read."""
    filters = [plan.relevant for plan in plans]
    if any(f is None for f in filters):
        yield "filter", "none: some plan cannot tell in advance which events matter"
    else:
        text = " or ".join(f"({t})" if len(filters) > 1 else t for t in dict.fromkeys(expression_text(f) for f in filters if f))
        yield "filter", text if len(text) <= LARGE_TEXT else text[:LARGE_TEXT] + " …"
    columns = [plan.columns for plan in plans]
    if any(c is None for c in columns):
        yield "columns", "all: some plan cannot tell which attributes it needs"
    else:
        names = sorted(frozenset().union(*(c for c in columns if c is not None)))
        yield "columns", f"type, time, id{''.join(f', {name}' for name in names)}"


def _on_spark(book: Rulebook, engine: str) -> Iterator[str]:
    from coincide.engines.spark.description import explain_spark

    yield f"on {engine}"
    yield from (f"    {line}" for line in explain_spark(book, engine == "spark-streaming").text().splitlines())
