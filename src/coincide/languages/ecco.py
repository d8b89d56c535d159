"""What ECCO (Yoneki and Bacon, "Unified Semantics for Event Correlation Over Time and Space in Hybrid Network Environments")
offers to the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from coincide.detection.algebra.plan import plans as algebra_plans
from coincide.detection.algebra.produces import results_of
from coincide.detection.algebra.program import CERTAINTY, former_digest
from coincide.detection.base import Detector, DetectorPlan, Inputs
from coincide.errors import Diagnostic, nearest
from coincide.expr.tree import with_aliases
from coincide.lang.ecco.aliases import Aliases
from coincide.lang.ecco.check import check_spaces, resolved_place
from coincide.lang.ecco.definition import At, Definition, DuplicatesRule, Expression, File, Neg, Not, Ref, trees_of
from coincide.lang.ecco.lasting import Names
from coincide.lang.ecco.link import Linked, Setting, components, link, reads_any, referred
from coincide.lang.ecco.parse import parse as parse_text
from coincide.lang.ecco.print import linked_text
from coincide.lang.ecco.print import print_file as print_text
from coincide.lang.ecco.wants import wants_of
from coincide.lang.ecco.warnings import unbounded, unbounded_duplicates, warnings_of
from coincide.lang.shared.reads import ATTRIBUTE, TYPE, Mention, Reads, keys_of, mentions_of
from coincide.lang.shared.wants import Wants
from coincide.languages.base import Language
from coincide.model.area import Area
from coincide.source import SourceText
from coincide.syntax import walk


class Ecco(Language):
    name = "ecco"
    orders_across_keys = True

    def parse(self, source: SourceText) -> File:
        return parse_text(source)

    def print_file(self, file: File) -> str:
        return print_text(file)

    def names(self, file: File) -> Iterator[Diagnostic]:
        for definition in file.definitions:
            yield Diagnostic(f"'{definition.name}' is already defined", definition.span, name=definition.name)

    def detectors(self, files: Sequence[tuple[SourceText, File]]) -> list[list[Detector]]:
        """Stamps and duplicates speak of the stream, so they are shared by all files; options and spaces are each file's."""
        stamps = tuple(rule for _, file in files for rule in file.stamps)
        duplicates = tuple(rule for _, file in files for rule in file.duplicates)
        return [_of_file(file, Setting(file.options, stamps, duplicates, file.spaces)) for _, file in files]

    def linked(self, own: Sequence[Detector], everyone: Sequence[Detector]) -> list[Detector]:
        """Definitions that refer to each other get the same inputs, and so stand in one stage: a reference sees more of an
        occurrence than a detection shows. Where another language stands between them this would be a circle; then each
        evaluates what it refers to by itself."""
        others = [d for d in everyone if d.language != self.name]
        foreign = frozenset(output for d in others for output in d.outputs)
        late = _late(everyone)
        items = [_knowing(item, late) for item in link([replace(d.definition, order=d.order) for d in own], foreign)]
        inputs = {item.name: item.foreign for item in items}
        for group in components(items):
            joined: frozenset[str] = frozenset().union(*(item.foreign for item in group))
            if not joined & _downstream({item.name for item in group if not item.definition.hidden}, others):
                inputs.update((item.name, joined) for item in group)
        keys = {item.name: key for group in components(items) for key in [_common_key(group)] for item in group}
        return [_linked(d, item, inputs[item.name], keys[item.name]) for d, item in zip(own, items, strict=True)]

    def plans(self, detectors: Sequence[Detector]) -> list[DetectorPlan]:
        return algebra_plans(detectors)

    def warnings(self, detectors: Sequence[Detector]) -> list[Diagnostic]:
        items: list[Linked] = [d.definition for d in detectors]
        known: Mapping[str, Linked] = {item.name: item for item in items}
        foreign: frozenset[str] = frozenset().union(*(item.foreign for item in items))
        lasting = Names({name: item.definition for name, item in known.items()}, foreign)
        found = [warning for item in items for warning in warnings_of(item.definition, lasting)]
        found += [warning for item in items for warning in unbounded(item.definition, item.setting.options.policies, lasting)]
        found += [warning for item in items for warning in _unknown_zones(item.definition)]
        return found + (list(unbounded_duplicates(items[0].setting.duplicates)) if items else [])

    def reads(self, detector: Detector) -> Reads:
        """Of the definition itself; those that it refers to are detectors too."""
        item: Linked = detector.definition
        definition = item.definition
        aliases = Aliases(definition.body)
        trees = [with_aliases(tree, aliases.given | aliases.implicit) for tree in trees_of(definition)]
        nodes = list(walk(definition.body))
        refused = {id(inner) for node in nodes for inner in _refused(node)}
        found = [Mention(TYPE, n.type, n.span, None, id(n) in refused) for n in nodes if isinstance(n, Ref) and n.type]
        found += keys_of(definition.keys, definition.span)
        own = _of_composites(definition)
        found += [m for tree in trees for m in mentions_of(tree) if not m.name.startswith("space.") and m.name not in own]
        found += [Mention(ATTRIBUTE, rule.hops) for rule in item.setting.stamps if rule.hops is not None]
        found += [m for rule in item.setting.duplicates for m in keys_of(rule.keys, rule.span)]
        given = own if definition.give is None else frozenset(item.name for item in definition.give)
        return Reads(tuple(found), tuple(trees), given.union(definition.keys))

    def wants(self, detector: Detector) -> Wants:
        return wants_of(detector.definition)


def _of_file(file: File, setting: Setting) -> list[Detector]:
    return [
        Detector(
            name=definition.name,
            language="ecco",
            definition=Linked(definition, replace(setting, areas=_areas(definition, file))),
            inputs=Inputs(None),
            outputs=() if definition.hidden else (definition.name,),
            partition=None,
            kind="let" if definition.hidden else "detector",
            span=definition.span,
        )
        for definition in file.definitions
    ]


def _areas(definition: Definition, file: File) -> tuple[Area, ...]:
    if not file.zone_files:
        return ()
    spaces = check_spaces(file.spaces)
    places = (resolved_place(node.place, spaces) for node in walk(definition.body) if isinstance(node, At))
    return tuple({area.name: area for place in places for area in place.areas}.values())


def _unknown_zones(definition: Definition) -> Iterator[Diagnostic]:
    """Where zones come from a file, a name that is not among them is most likely mistyped."""
    for place in (node.place for node in walk(definition.body) if isinstance(node, At)):
        for name in place.names if place.kind == "zone" and place.zones else ():
            if name not in place.zones:
                yield Diagnostic(f"no file has a zone '{name}'", place.span, "warning", nearest(name, place.zones), "zone")


def _knowing(item: Linked, late: frozenset[str]) -> Linked:
    return replace(item, uses=tuple(_knowing(used, late) for used in item.uses), late=item.foreign & late)


def _late(detectors: Sequence[Detector]) -> frozenset[str]:
    """The types of detections that may have ended before they are made, or are made of such."""
    found: set[str] = set()
    while more := {o for d in detectors if not (d.prompt and found.isdisjoint(d.inputs.detections)) for o in d.outputs} - found:
        found |= more
    return frozenset(found)


def _linked(detector: Detector, item: Linked, foreign: frozenset[str], key: tuple[str, ...] | None) -> Detector:
    everything = any(reads_any(used.definition.body) for used in item.together)
    types = frozenset().union(*(referred(used.definition.body) for used in item.together))
    inputs = Inputs(None if everything else types, foreign)
    text, former = partial(linked_text, item), partial(former_digest, item)
    return replace(detector, definition=item, inputs=inputs, partition=key, text=text, former=former)


def _downstream(names: set[str], others: Sequence[Detector]) -> set[str]:
    """What other languages make, directly or not, of detections of these names."""
    found: set[str] = set()
    reached = set(names)
    while True:
        new = {o for d in others if d.inputs.detections & reached for o in d.outputs} - found
        if not new:
            return found
        found |= new
        reached |= new


def _common_key(group: Sequence[Linked]) -> tuple[str, ...] | None:
    """Section 8, parallel by key: all definitions have it, and copies of one instance have it in common. Under new stamps, all
    events together tell when the input begins and ends."""
    keys = group[0].definition.keys
    if not keys or group[0].setting.stamps or any(item.definition.keys != keys for item in group):
        return None
    read = frozenset().union(*(referred(item.definition.body) for item in group))
    concerned = [rule for rule in group[0].setting.duplicates if _concerns(rule, read, group)]
    return keys if all(set(keys) <= set(rule.keys) for rule in concerned) else None


def _concerns(rule: DuplicatesRule, read: frozenset[str], group: Sequence[Linked]) -> bool:
    return None in rule.types or bool(read & set(rule.types)) or any(reads_any(item.definition.body) for item in group)


def _refused(node: Expression) -> Iterator[Expression]:
    if isinstance(node, Not):
        yield from walk(node.operand)
    elif isinstance(node, Neg):
        yield from walk(node.right)


def _of_composites(definition: Definition) -> frozenset[str]:
    """Attributes that occurrences have though no event has: results of iterations and selections, and how certain they are."""
    return frozenset({CERTAINTY, *results_of(definition)})


LANGUAGE = Ecco()
