"""What SQL's row patterns (MATCH_RECOGNIZE) offer to the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from coincide.detection.base import Detector, DetectorPlan, Inputs
from coincide.errors import Diagnostic
from coincide.expr.tree import Between, Compare, In, Like
from coincide.lang.matchrecognize.definition import HELD, Column, File, OrderKey, Query
from coincide.lang.matchrecognize.parse import parse as parse_text
from coincide.lang.matchrecognize.print import print_file as print_text
from coincide.lang.matchrecognize.print import print_query
from coincide.lang.matchrecognize.wants import wants_of
from coincide.lang.matchrecognize.warnings import endless_faults, streaming_warnings, warnings_of
from coincide.lang.shared.reads import ATTRIBUTE, TYPE, Mention, Reads, is_attribute, mentions_of
from coincide.lang.shared.wants import Wants
from coincide.languages.base import Language
from coincide.source import SourceText
from coincide.syntax import walk

NAME = "matchrecognize"


class MatchRecognize(Language):
    name = NAME
    orders_across_keys = True

    def parse(self, source: SourceText) -> File:
        return parse_text(source)

    def print_file(self, file: File) -> str:
        return print_text(file)

    def names(self, file: File) -> Iterator[Diagnostic]:
        for query in file.queries:
            yield Diagnostic(f"'{query.name}' is already defined", query.span, name=query.name)

    def detectors(self, files: Sequence[tuple[SourceText, File]]) -> list[list[Detector]]:
        return [[_detector(query) for query in file.queries] for _, file in files]

    def linked(self, own: Sequence[Detector], every: Sequence[Detector]) -> list[Detector]:
        """Queries know who makes the rows of their tables, and whether another query reads them."""
        read = {kind for detector in own for kind in detector.inputs.detections}
        return [_linked(detector, every, detector.name in read) for detector in own]

    def plans(self, detectors: Sequence[Detector]) -> list[DetectorPlan]:
        from coincide.detection.rowpattern.plan import plans as row_pattern_plans

        return row_pattern_plans(detectors)

    def reads(self, detector: Detector) -> Reads:
        query: Query = detector.definition
        clause = query.clause
        trees = [*(m.value for m in clause.measures), *(c.test for c in clause.conditions)]
        trees += [] if query.source.where is None else [query.source.where]
        keys: list[Column | OrderKey] = [*clause.partition, *clause.order]
        table = query.source.table
        found = [] if table == "events" else [Mention(TYPE, table, query.source.span)]
        found += [Mention(ATTRIBUTE, key.name, key.span) for key in keys if is_attribute(key.name)]
        found += [mention for tree in trees for mention in mentions_of(tree)]
        given = [*(c.name for c in clause.partition), *(m.name for m in clause.measures), *(i.name for i in query.items or ())]
        tests = tuple(node for tree in trees for node in walk(tree) if isinstance(node, (Compare, In, Between, Like)))
        return Reads(tuple(found), tests, frozenset(given))

    def wants(self, detector: Detector) -> Wants:
        return wants_of(detector.definition)

    def explained(self, detector: Detector) -> Iterator[tuple[str, str]]:
        from coincide.detection.rowpattern.explain import explained

        return explained(detector)

    def streaming_warnings(self, detector: Detector) -> Iterator[Diagnostic]:
        return streaming_warnings(detector.definition)

    def endless_faults(self, detector: Detector) -> Iterator[Diagnostic]:
        return endless_faults(detector.definition)

    def warnings(self, detectors: Sequence[Detector]) -> list[Diagnostic]:
        return [warning for detector in detectors for warning in warnings_of(detector.definition)]


def _detector(query: Query) -> Detector:
    table = query.source.table
    everything = table == "events"
    return Detector(
        name=query.name,
        language=NAME,
        definition=query,
        inputs=Inputs(None, frozenset()) if everything else Inputs(frozenset({table}), frozenset({table})),
        outputs=(query.name,),
        partition=tuple(c.name for c in query.clause.partition if is_attribute(c.name)) or None,
        text=partial(print_query, query),
        kind="query",
        span=query.span,
        null_keys=True,
    )


ENDING_NOW = frozenset({"amit", "ecl", "opera", "pretty"})
"""Languages whose detections end with the event or timer that makes them."""


def _linked(detector: Detector, every: Sequence[Detector], is_read: bool) -> Detector:
    makers = [d for d in every if not detector.inputs.detections.isdisjoint(d.outputs)]
    feeders = tuple((d.name, "rows" if d.language == NAME else "now" if d.language in ENDING_NOW else "end") for d in makers)
    positions = frozenset(name + HELD for name, how in feeders if how == "rows")
    inputs = replace(detector.inputs, detections=detector.inputs.detections | positions)
    outputs = (detector.name, detector.name + HELD) if is_read else detector.outputs
    query = replace(detector.definition, feeders=feeders, is_read=is_read)
    # a table of detections has one clock, whatever the partitions: who makes it and who reads it must meet
    partition = None if feeders or is_read else detector.partition
    return replace(detector, definition=query, inputs=inputs, outputs=outputs, partition=partition)


LANGUAGE = MatchRecognize()
