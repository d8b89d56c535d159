"""What EQL, the event query language of Elastic, offers to the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from coincide.adapters.mapping import CATEGORY
from coincide.detection.base import Detector, DetectorPlan, Inputs
from coincide.errors import Diagnostic, RuleError
from coincide.expr.tree import Expr, Reference
from coincide.lang.eql.definition import FILTER, SEQUENCE, TIMESTAMP, File, Item, Query
from coincide.lang.eql.parse import parse as parse_text
from coincide.lang.eql.print import print_file as print_text
from coincide.lang.eql.print import print_query
from coincide.lang.shared.about import About
from coincide.lang.shared.reads import ATTRIBUTE, KEY, TYPE, Mention, Reads, is_attribute
from coincide.lang.shared.wants import Slot, Wants
from coincide.languages.base import Language
from coincide.source import SourceText
from coincide.syntax import walk

NAME = "eql"


class Eql(Language):
    name = NAME
    untyped = True
    several_keys = True

    def parse(self, source: SourceText) -> File:
        return parse_text(source)

    def print_file(self, file: File) -> str:
        return print_text(file)

    def names(self, file: File) -> Iterator[Diagnostic]:
        for query in file.queries:
            yield Diagnostic(f"rule '{query.name}' is already defined", query.name_span or query.span, name=query.name)

    def detectors(self, files: Sequence[tuple[SourceText, File]]) -> list[list[Detector]]:
        return [[_detector(query) for query in file.queries] for _, file in files]

    def linked(self, own: Sequence[Detector], everyone: Sequence[Detector]) -> Sequence[Detector]:
        """What `tail` lets through is known at the end only: no rule of any language can see it."""
        late = {d.name for d in own if d.definition.keeps_back}
        for reader in everyone:
            for name in sorted(late & (reader.inputs.detections | reader.awaited)):
                raise RuleError(Diagnostic(f"rule '{name}' has a 'tail': no rule can see it", reader.span))
        return own

    def plans(self, detectors: Sequence[Detector]) -> list[DetectorPlan]:
        from coincide.detection.sequence.plan import plans as sequence_plans

        return sequence_plans(detectors)

    def warnings(self, detectors: Sequence[Detector]) -> list[Diagnostic]:
        return []

    def endless_faults(self, detector: Detector) -> Iterator[Diagnostic]:
        if detector.definition.keeps_back:
            yield Diagnostic("'tail' needs the end of the input", detector.span)

    def streaming_warnings(self, detector: Detector) -> Iterator[Diagnostic]:
        """Section 10: what keeps something for every key that it ever saw."""
        query: Query = detector.definition
        if query.keys_of(query.items[0]) and (query.maxspan is None or query.kind != SEQUENCE):
            yield Diagnostic(
                f"rule '{query.name}' keeps something for every key that it sees", query.span, "warning", name="keys"
            )

    def left_out(self, files: Sequence[tuple[SourceText, File]]) -> list[Diagnostic]:
        skipped = [Diagnostic(f.skipped, f.span, "warning", name="skipped") for _, f in files if f.skipped is not None]
        return skipped + [replace(f.fault, severity="warning") for _, f in files if f.fault is not None]

    def about(self, detector: Detector) -> About:
        return detector.definition.about or About(detector.name)

    def reads(self, detector: Detector) -> Reads:
        query: Query = detector.definition
        found = [mention for item in query.everything for mention in _mentions(item)]
        found += [m for key in query.keys for m in _fields(key.value, KEY, key.optional)]
        given = {node.name for tree in query.trees() for node in walk(tree) if isinstance(node, Reference)}
        return Reads(tuple(found), (), frozenset(query.fields) | given)

    def waits_by(self, detector: Detector) -> str:
        return "maxspan"

    def wants(self, detector: Detector) -> Wants:
        query: Query = detector.definition
        slots = [Slot(i.filter.category, (i.filter.condition,), i.missing or i is query.until, i.runs) for i in query.everything]
        return Wants(tuple(slots), bounds=() if query.maxspan is None else (query.maxspan,))


def _detector(query: Query) -> Detector:
    shared = _shared_fields(query)
    return Detector(
        name=query.name,
        language=NAME,
        definition=query,
        inputs=Inputs(None, query.categories),  # the category may stand in `event.category`, whatever the type
        outputs=(query.name,),
        partition=tuple(shared) or None,
        null_keys=any(shared.values()),
        text=partial(print_query, query),
        stateless=query.kind == FILTER and not query.pipes,
        kind="rule",
        span=query.span,
    )


def _shared_fields(query: Query) -> dict[str, bool]:
    """The fields that all items have in common as a key, and whether events may lack them. Pipes count over all keys."""
    found: dict[str, bool] = {}
    by_item = [] if query.pipes else [query.keys_of(item) for item in query.everything]
    for first, *others in zip(*by_item, strict=True):
        same = isinstance(first.value, Reference) and all(key.value == first.value for key in others)
        if same and is_attribute(first.value.name) and first.value.name != TIMESTAMP:
            found[first.value.name] = any(key.optional for key in (first, *others))
    return found


def _mentions(item: Item) -> Iterator[Mention]:
    if item.filter.category is not None:
        yield Mention(TYPE, item.filter.category, item.filter.span, None, item.missing, CATEGORY)
    yield from _fields(item.filter.condition, ATTRIBUTE, item.missing)
    for key in item.keys:
        yield from _fields(key.value, KEY, key.optional)


def _fields(tree: Expr, what: str, refused: bool) -> Iterator[Mention]:
    for node in walk(tree):
        if isinstance(node, Reference) and is_attribute(node.name) and node.name != TIMESTAMP:
            yield Mention(what, node.name, node.span, None, refused)


LANGUAGE = Eql()
