"""What ECL (Sánchez et al., "Event Correlation: Language and Semantics") offers to the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coincide.analysis.report import monitor_warnings
from coincide.analysis.settle import check_settles
from coincide.detection.base import Detector, DetectorPlan, Inputs
from coincide.detection.machine.plan import plans as machine_plans
from coincide.errors import Diagnostic
from coincide.lang.ecl.definition import File, Machine, Monitor
from coincide.lang.ecl.parse import mentions, outputs
from coincide.lang.ecl.parse import parse as parse_text
from coincide.lang.ecl.print import print_file
from coincide.source import SourceText

__all__ = ["NAME", "detectors", "names", "parse", "plans", "print_file", "warnings"]

NAME = "ecl"


def parse(source: SourceText) -> File:
    file = parse_text(source)
    for definition in file.detectors:
        if isinstance(definition, Machine):
            check_settles(definition)
    return file


def names(file: File) -> Iterator[Diagnostic]:
    """Each name that the file defines, as the error that it is if another detector has that name already."""
    for definition in file.detectors:
        yield Diagnostic(f"monitor '{definition.name}' is already defined", definition.span, name=definition.name)


def detectors(files: Sequence[tuple[SourceText, File]]) -> list[list[Detector]]:
    return [[_detector(definition) for definition in file.detectors] for _, file in files]


def _detector(definition: Monitor | Machine) -> Detector:
    return Detector(
        name=definition.name,
        language=NAME,
        definition=definition,
        inputs=Inputs(None, mentions(definition)),
        outputs=outputs(definition),
        partition=definition.keys or None,
        digest=definition.digest,
        kind="monitor",
        span=definition.span,
    )


def plans(detectors: Sequence[Detector]) -> list[DetectorPlan]:
    return machine_plans(detectors)


def warnings(detectors: Sequence[Detector]) -> list[Diagnostic]:
    return [warning for d in detectors for warning in monitor_warnings(d.definition)]
