"""What ECL (Sánchez et al., "Event Correlation: Language and Semantics") offers to the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from coincide.analysis.settle import check_settles
from coincide.analysis.warnings import monitor_warnings
from coincide.detection.base import Detector, DetectorPlan, Inputs
from coincide.detection.machine.plan import plans as machine_plans
from coincide.errors import Diagnostic
from coincide.expr.tree import Expr
from coincide.lang.ecl.definition import DoUnless, File, Machine, Monitor, Predicate
from coincide.lang.ecl.names import mentions, outputs, pushes
from coincide.lang.ecl.parse import parse as parse_text
from coincide.lang.ecl.print import definition_text
from coincide.lang.ecl.print import print_file as print_text
from coincide.lang.shared.reads import Reads, keys_of, mentions_of
from coincide.lang.shared.wants import Slot, Wants
from coincide.languages.base import Language
from coincide.source import SourceText
from coincide.syntax import walk


class Ecl(Language):
    name = "ecl"
    forgetful = True

    def parse(self, source: SourceText) -> File:
        file = parse_text(source)
        for definition in file.detectors:
            if isinstance(definition, Machine):
                check_settles(definition)
        return file

    def print_file(self, file: File) -> str:
        return print_text(file)

    def names(self, file: File) -> Iterator[Diagnostic]:
        """Each name that the file defines, as the error that it is if another detector has that name already."""
        for definition in file.detectors:
            yield Diagnostic(f"monitor '{definition.name}' is already defined", definition.span, name=definition.name)

    def detectors(self, files: Sequence[tuple[SourceText, File]]) -> list[list[Detector]]:
        return [[_detector(definition) for definition in file.detectors] for _, file in files]

    def plans(self, detectors: Sequence[Detector]) -> list[DetectorPlan]:
        return machine_plans(detectors)

    def warnings(self, detectors: Sequence[Detector]) -> list[Diagnostic]:
        return [warning for d in detectors for warning in monitor_warnings(d.definition)]

    def reads(self, detector: Detector) -> Reads:
        definition: Monitor | Machine = detector.definition
        tests = [*_tests(definition)]
        outputs = [*pushes(definition)]
        values = [tree for output in outputs for _, tree in output.attributes]
        found = [*keys_of(definition.keys, definition.span)]
        found += [mention for test, refused in tests for mention in mentions_of(test, refused)]
        found += [mention for tree in values for mention in mentions_of(tree)]
        given = frozenset((*definition.keys, *(name for output in outputs for name, _ in output.attributes)))
        return Reads(tuple(found), (*(test for test, _ in tests), *values), given)

    def wants(self, detector: Detector) -> Wants:
        return Wants(tuple(Slot(None, (test,), refused) for test, refused in _tests(detector.definition)))


def _detector(definition: Monitor | Machine) -> Detector:
    return Detector(
        name=definition.name,
        language="ecl",
        definition=definition,
        inputs=Inputs(None, mentions(definition)),
        outputs=outputs(definition),
        partition=definition.keys or None,
        text=partial(definition_text, definition),
        former=lambda: definition.token_digest,
        kind="monitor",
        prompt=True,
        span=definition.span,
    )


def _tests(definition: Monitor | Machine) -> Iterator[tuple[Expr, bool]]:
    """With named predicates in their places, and whether they stand in an `unless`."""
    if isinstance(definition, Machine):
        return ((transition.test.test, False) for transition in definition.transitions if transition.test is not None)
    nodes = list(walk(definition.body))
    refused = {id(inner) for node in nodes if isinstance(node, DoUnless) for inner in walk(node.unless)}
    return ((node.test, id(node) in refused) for node in nodes if isinstance(node, Predicate))


LANGUAGE = Ecl()
