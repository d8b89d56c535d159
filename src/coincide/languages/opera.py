"""What Opera (Pietzuch, Shand and Bacon, "Composite Event Detection as a Generic Middleware Extension") offers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256

from coincide.detection.automaton.partition import partition
from coincide.detection.automaton.plan import plans as automaton_plans
from coincide.detection.automaton.warnings import warnings_of
from coincide.detection.base import Detector, DetectorPlan, Inputs
from coincide.errors import Diagnostic
from coincide.expr.tree import Reference
from coincide.lang.opera.attributes import aggregate_parts, check_ids
from coincide.lang.opera.check import Checker, used_types
from coincide.lang.opera.definition import (
    All,
    Atom,
    Attribute,
    Bind,
    Condition,
    Definition,
    Element,
    File,
    Group,
    Limit,
    OfType,
    Timing,
    aliased_items,
)
from coincide.lang.opera.parse import parse as parse_text
from coincide.lang.opera.print import definition_text
from coincide.lang.opera.print import print_file as print_text
from coincide.lang.shared.reads import ATTRIBUTE, TYPE, Mention, Reads, is_attribute, mentions_of
from coincide.lang.shared.times import Duration
from coincide.lang.shared.wants import Slot, Wants, present
from coincide.languages.base import Language
from coincide.source import SourceText, room_for_recursion
from coincide.syntax import walk


class Opera(Language):
    name = "opera"

    def parse(self, source: SourceText) -> File:
        return parse_text(source)

    def print_file(self, file: File) -> str:
        return print_text(file)

    def names(self, file: File) -> Iterator[Diagnostic]:
        for definition in file.definitions:
            yield Diagnostic(f"'{definition.name}' is already defined", definition.span, name=definition.name)

    def detectors(self, files: Sequence[tuple[SourceText, File]]) -> list[list[Detector]]:
        """Sources hold for the detectors of all files that are loaded together; so do limits, in whatever language."""
        sources = tuple(dict.fromkeys(name for _, file in files for name in file.sources))
        return [[_detector(replace(d, sources=sources)) for d in file.definitions] for _, file in files]

    def linked(self, mine: Sequence[Detector], everyone: Sequence[Detector]) -> Sequence[Detector]:
        """No detector may read the generated ids of what others make, in whatever file and language (decision D-26)."""
        composites = frozenset(output for detector in everyone for output in detector.outputs)
        checker = Checker({}, composites)
        for definition in (detector.definition for detector in mine):
            checker.ids(definition.body)
            items = aliased_items(definition.body) if definition.computed else []
            for attribute in definition.computed:
                check_ids(attribute, items, composites)
        return mine

    def limits(self, file: File) -> tuple[Limit, ...]:
        return file.limits

    def sources(self, file: File) -> tuple[str, ...]:
        return file.sources

    def plans(self, detectors: Sequence[Detector]) -> list[DetectorPlan]:
        return automaton_plans(detectors)

    def warnings(self, detectors: Sequence[Detector]) -> list[Diagnostic]:
        return [warning for d in detectors for warning in warnings_of(d.definition)]

    def reads(self, detector: Detector) -> Reads:
        definition: Definition = detector.definition
        nodes = list(walk(definition.body))
        tests = tuple(node.test for node in nodes if isinstance(node, Condition))
        refused = {id(inner) for n in nodes if isinstance(n, Atom) and n.negated for item in n.items for inner in walk(item)}
        found = [Mention(TYPE, n.name, n.span, None, id(n) in refused) for n in nodes if isinstance(n, OfType)]
        found += [Mention(ATTRIBUTE, n.attribute, n.span) for n in nodes if isinstance(n, Bind) and is_attribute(n.attribute)]
        found += [mention for test in tests for mention in mentions_of(test)]
        found += [mention for attribute in definition.attributes for mention in _of_aliases(attribute)]
        return Reads(tuple(found), tests, frozenset((*definition.parameters, *(a.name for a in definition.attributes))))

    def wants(self, detector: Detector) -> Wants:
        """A filter of all events has no type. What a domain lets pass stops an expression."""
        definition: Definition = detector.definition
        nodes = list(walk(definition.body))
        refused = {id(inner) for n in nodes for other in _stopping(n) for inner in walk(other)}
        slots = [_slot(n, id(n) in refused) for n in nodes if isinstance(n, OfType | All)]
        bounds = [n.time.microseconds for n in nodes if isinstance(n, Timing) and isinstance(n.time, Duration)]
        return Wants(tuple(slots), present(None if definition.condition is None else definition.condition.value), tuple(bounds))


def _detector(definition: Definition) -> Detector:
    types = frozenset(used_types(definition.body))
    every = any(isinstance(node, All) for node in walk(definition.body))
    return Detector(
        name=definition.name,
        language="opera",
        definition=definition,
        inputs=Inputs(None if every else types, types),
        outputs=(definition.name,),
        partition=partition(definition),
        text=partial(definition_text, definition),
        former=partial(_former_digest, definition),
        policy=definition.policy,
        prompt=definition.policy is None,
        span=definition.span,
    )


def _former_digest(definition: Definition) -> str:
    with room_for_recursion():
        condition = "" if definition.condition is None else f" where {definition.condition.value!r}"
        return sha256(f"opera {definition!r}{condition}".encode()).hexdigest()


def _slot(events: OfType | All, refused: bool) -> Slot:
    tests = tuple(term.test for term in events.terms if isinstance(term, Condition))
    return Slot(events.name if isinstance(events, OfType) else None, tests, refused)


def _stopping(node: Element) -> Iterator[Element]:
    """What stands in a domain, or must not come."""
    if isinstance(node, Atom | Group) and node.domain is not None:
        yield node.domain
    if isinstance(node, Atom) and node.negated:
        yield from node.items


def _of_aliases(attribute: Attribute) -> Iterator[Mention]:
    """What a `with` clause reads of the events that were matched; all else in it are parameters."""
    for node in walk(attribute.value):
        if isinstance(node, Reference) and node.alias is not None:
            _, name = aggregate_parts(node.name) or ("", node.name)
            if name and is_attribute(name):
                yield Mention(ATTRIBUTE, name, node.span or attribute.span)


LANGUAGE = Opera()
