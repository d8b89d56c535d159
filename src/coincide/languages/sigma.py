"""What Sigma (specification 2.1.0) offers to the compiler."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from coincide.detection.base import Detector, DetectorPlan, Inputs
from coincide.detection.selection.plan import attributes_of
from coincide.detection.selection.plan import plans as selection_plans
from coincide.errors import Diagnostic
from coincide.lang.shared.about import About
from coincide.lang.shared.reads import ATTRIBUTE, KEY, Mention, Reads, is_attribute
from coincide.lang.shared.wants import Wants
from coincide.lang.sigma.definition import CorrelationRule, DetectionRule, File, items_of
from coincide.lang.sigma.link import Linked, linked_files
from coincide.lang.sigma.mapping import mapping_of
from coincide.lang.sigma.parse import parse as parse_text
from coincide.lang.sigma.print import print_file as print_text
from coincide.lang.sigma.wants import wants_of
from coincide.lang.sigma.warnings import remarks
from coincide.languages.base import Language
from coincide.source import SourceText


class Sigma(Language):
    name = "sigma"
    untyped = True
    names_last = True
    several_keys = True

    def parse(self, source: SourceText) -> File:
        return parse_text(source)

    def print_file(self, file: File) -> str:
        return print_text(file)

    def names(self, file: File) -> Iterator[Diagnostic]:
        """Those that are given; titles get names that are free."""
        for head in (rule.head for rule in file.rules):
            if head.name is not None and not head.span.source.reading.keep_going:
                yield Diagnostic(f"rule '{head.name}' is already defined", head.name_span, name=head.name)

    def detectors(self, files: Sequence[tuple[SourceText, File]]) -> list[list[Detector]]:
        return self.detectors_beside(files, ())

    def detectors_beside(self, files: Sequence[tuple[SourceText, File]], taken: Collection[str]) -> list[list[Detector]]:
        return [[_detector(linked) for linked in rules] for rules in linked_files(files, taken)[0]]

    def linked(self, own: Sequence[Detector], everyone: Sequence[Detector]) -> list[Detector]:
        """Detections of other languages are looked at where types of the mapping file name them."""
        foreign = frozenset(output for d in everyone if d.language != self.name for output in d.outputs)
        return [replace(d, inputs=Inputs(d.inputs.external, _types(d.definition) & foreign)) for d in own]

    def plans(self, detectors: Sequence[Detector]) -> list[DetectorPlan]:
        return selection_plans(detectors)

    def warnings(self, detectors: Sequence[Detector]) -> list[Diagnostic]:
        return []

    def left_out(self, files: Sequence[tuple[SourceText, File]]) -> list[Diagnostic]:
        return [replace(fault, severity="warning") for fault in linked_files(files)[1]]

    def remarks(self, detector: Detector) -> Iterable[Diagnostic]:
        """Of a correlation, those of the rules that it refers to are told with these."""
        rule = detector.definition.rule
        if isinstance(rule, CorrelationRule) or not mapping_of(rule.head.span.source.reading.mapping).entries:
            return ()
        return remarks(rule, rule.head.about.title)

    def reads(self, detector: Detector) -> Reads:
        linked: Linked = detector.definition
        rule = linked.rule
        names = sorted(attributes_of(linked) or ())
        shown = rule.fields if isinstance(rule, DetectionRule) else rule.group_by
        what = KEY if isinstance(rule, CorrelationRule) else ATTRIBUTE
        items = items_of(rule.condition) if isinstance(rule, DetectionRule) else ()
        places = {item.attribute: item.span for item in items}
        mentions = tuple(Mention(what, name, places.get(name, detector.span)) for name in names if is_attribute(name))
        return Reads(mentions, (), frozenset(field.name for field in shown))

    def wants(self, detector: Detector) -> Wants:
        return wants_of(detector.definition)

    def about(self, detector: Detector) -> About:
        head = detector.definition.rule.head
        return head.about  # type: ignore[no-any-return]

    def explained(self, detector: Detector) -> Iterable[tuple[str, str]]:
        rule = detector.definition.rule
        memory = "nothing is kept"
        if isinstance(rule, CorrelationRule):
            groups = ", ".join(shown.name for shown in rule.group_by)
            memory = f"keeps what matched within {rule.timespan / 1e6:g} s{f', by {groups}' if groups else ''}"
        known = (rule.head.title, rule.head.id, rule.head.level, *rule.head.about.tags, memory)
        return [(f"rule {detector.name}", "; ".join(text for text in known if text))]


def _detector(linked: Linked) -> Detector:
    types = [_external(item) for item in linked.together]
    external = None if None in types else frozenset().union(*(some for some in types if some is not None))
    return Detector(
        name=linked.name,
        language="sigma",
        definition=linked,
        inputs=Inputs(external),
        outputs=(linked.name,) if linked.shown else (),
        partition=_grouping(linked) or None,
        text=linked.text,
        span=linked.rule.head.span,
        kind="rule",
        stateless=isinstance(linked.rule, DetectionRule),
    )


def _grouping(linked: Linked) -> tuple[str, ...]:
    """What all correlations that take part group by: of an event with one value of each, all is decided by that value."""
    shared: list[str] | None = None
    for item in linked.together:
        if isinstance(item.rule, CorrelationRule):
            aliased = {name for name, _ in item.aliases}
            own = [s.attribute for s in item.rule.group_by if s.name not in aliased and is_attribute(s.attribute)]
            shared = [name for name in own if shared is None or name in shared]
    return tuple(name for name in shared or () if name not in ("source", "@timestamp"))


def _external(item: Linked) -> frozenset[str] | None:
    """Types that a rule looks at by itself; None: any."""
    if isinstance(item.rule, CorrelationRule):
        return frozenset()
    types = item.rule.looked.types
    return None if types is None else frozenset(types)


def _types(linked: Linked) -> frozenset[str]:
    return frozenset().union(*(_external(item) or frozenset() for item in linked.together))


LANGUAGE = Sigma()
