"""The whole analysis of a file, as the JSON object of ecl.md, section 7."""

from __future__ import annotations

from collections.abc import Sequence

from coincide.analysis.compare import LIMITED, independent, one_key_list, other_system, pairs, system, unchanged
from coincide.analysis.monitor import MonitorAnalysis
from coincide.analysis.warnings import monitor_warnings, warnings_of
from coincide.lang.ecl.definition import File
from coincide.model.event import Event

__all__ = ["analyse", "monitor_warnings"]


MANY = 60
"""Monitors that are not compared each with each unless it is asked for: the time grows with the square of their number."""


def analyse(
    file: File, events: Sequence[Event] | None = None, other: File | None = None, whole: bool | None = None
) -> dict[str, object]:
    """`events`: those after which `quenched_now` is asked, if it is. `other`: a file to compare with this one. `whole`: also what
    is to be said of monitors together, by default if they are not too many; `left_out` names what is left out."""
    monitors = [MonitorAnalysis(definition) for definition in file.detectors]
    report: dict[str, object] = {"monitors": {monitor.definition.name: monitor_report(monitor, events) for monitor in monitors}}
    if whole or (whole is None and len(monitors) <= MANY):
        report["pairs"] = pairs(monitors)
        if one_key_list(file) and independent(file):
            report["system"] = _system(file, monitors, other)
    else:
        report["left_out"] = ["pairs", "system"]
    if other is not None:
        report["unchanged"] = unchanged(file, other)
    return report


def monitor_report(monitor: MonitorAnalysis, events: Sequence[Event] | None = None) -> dict[str, object]:
    if monitor.limited:
        return dict(LIMITED)
    report: dict[str, object] = {
        "exact": monitor.alphabet.exact,
        "letters": len(monitor.alphabet.letters),
        "states": monitor.minimal.states,
        "vacuous": monitor.vacuous,
        "trivial": monitor.trivial,
        "live": monitor.live,
        "recurrent": monitor.recurrent,
        "outcomes": monitor.outcomes,
        "dead": monitor.dead,
        "depends": monitor.depends(),
        "quenched": monitor.quenched(),
        "quenched_always": monitor.quenched_always(),
        "components": monitor.components,
        "overlapping_guards": [[one.label, other.label] for one, other in monitor.overlapping_guards],
        "warnings": sorted({str(warning.name) for warning in warnings_of(monitor)}),
    }
    if events is not None:
        report["quenched_now"] = monitor.quenched_after(events)
    return report


def _system(file: File, monitors: Sequence[MonitorAnalysis], other: File | None) -> dict[str, object]:
    report = system(monitors)
    if other is not None and one_key_list(file, other) and independent(other):
        report["other"] = other_system(monitors, [MonitorAnalysis(definition) for definition in other.detectors])
    return report
