"""What the author of a monitor should be told at each load (ecl.md, section 9; ECL-33)."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.analysis.monitor import Definition, MonitorAnalysis
from coincide.errors import Diagnostic
from coincide.source import Span

MOST_WORK = 1_000_000
"""Nodes that are visited for the warnings of a monitor: a second or two at each load. `coincide check` has no such limit."""


def monitor_warnings(definition: Definition) -> list[Diagnostic]:
    return list(warnings_of(MonitorAnalysis(definition, MOST_WORK)))


def warnings_of(analysis: MonitorAnalysis) -> Iterator[Diagnostic]:
    """In the order of the specification's table; beyond the limit only what the text alone tells."""
    if not analysis.limited:
        yield from _pushes(analysis)
        yield from _guards(analysis)
    yield from _single_modes(analysis)
    if not analysis.limited:
        yield from _keys(analysis)


def _pushes(analysis: MonitorAnalysis) -> Iterator[Diagnostic]:
    name, span = analysis.definition.name, analysis.definition.span
    if analysis.vacuous:
        yield _warning("vacuous", f"vacuous: monitor '{name}' can never push", span)
    elif not analysis.recurrent:
        yield _warning("bounded", f"monitor '{name}' can push a bounded number of times only (no repeat?)", span)
    written = {output.token: output.span for output in reversed(analysis.transducer.outputs)}
    for token in analysis.dead:
        yield _warning("dead", f"push '{token}' in '{name}' can never happen", written[token])


def _guards(analysis: MonitorAnalysis) -> Iterator[Diagnostic]:
    for one, other in analysis.overlapping_guards:
        text = (
            f"guards '{one.label}' and '{other.label}' in '{analysis.definition.name}' can hold together: "
            "such an event switches between the two modes"
        )
        yield _warning("guards", text, other.span)


def _single_modes(analysis: MonitorAnalysis) -> Iterator[Diagnostic]:
    for modes in analysis.modes:
        if len(modes.modes) == 1:
            guard = modes.modes[0].guard
            text = f"the mode '{guard.label}' in '{analysis.definition.name}' is the only one: its guard is never watched"
            yield _warning("single-mode", text, guard.span)


def _keys(analysis: MonitorAnalysis) -> Iterator[Diagnostic]:
    name, keys = analysis.definition.name, analysis.definition.keys
    if keys and not analysis.forgets:
        text = f"monitor '{name}' keeps a state for each value of {', '.join(keys)} for ever"
        yield _warning("keys", text, analysis.definition.span)


def _warning(name: str, text: str, span: Span | None) -> Diagnostic:
    return Diagnostic(text, span, severity="warning", name=name)
