"""The documents of a divided description (distribution-cordies.md, section 1.4): together they detect what the whole one does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from coincide.distribution.conditions import Condition, Whole, is_join_filter
from coincide.distribution.division import Division, Part, Unit
from coincide.expr.tree import And, Expr, Literal, Not, Reference, transform
from coincide.lang.cdl.definition import (
    ENVELOPE_NAMES,
    Attribute,
    ComplexEvent,
    Description,
    EventAttribute,
    Expression,
    File,
    Predicate,
    Source,
)
from coincide.lang.cdl.names import Names
from coincide.model.event import ENVELOPE
from coincide.syntax import walk

Value = tuple[int, str] | str
"""What a later part needs: an attribute of a source, or a computation."""


def divided_file(file: File, division: Division) -> File:
    """The file with the parts in the place of its first description, which stays as it is where it is not divided."""
    if not division.divided:
        return file
    return File((*descriptions_of(division), *file.descriptions[1:]), file.providers)


def descriptions_of(division: Division) -> tuple[Description, ...]:
    assert division.whole is not None
    return tuple(_Documents(division.whole, division.parts).all())


@dataclass
class _Documents:
    whole: Whole
    parts: list[Part]
    carried: dict[str, dict[Value, str]] = field(default_factory=dict)  # by unit: what its event has, under which name

    def all(self) -> Iterator[Description]:
        for unit, values in self._carried().items():
            self.carried[unit] = self._attribute_names(values)
        for part in self.parts:
            yield self._description(part)

    # What travels.

    def _carried(self) -> dict[str, list[Value]]:
        """By the name of a unit, what parts that subscribe to it, or to what is made of it, need: from the last part on."""
        needed: dict[str, list[Value]] = {}
        for part in reversed(self.parts):
            wanted = list(dict.fromkeys([*self._reads(part), *(needed[part.publishes.name] if part.publishes else ())]))
            for unit in part.units:
                if unit.maker is not None:
                    inside = [value for value in wanted if self._is_in(value, unit) and value not in part.computations]
                    needed[unit.name] = sorted(inside, key=self._document_order)
        return needed

    def _document_order(self, value: Value) -> tuple[int, int, str]:
        if isinstance(value, str):
            return 1, list(self.whole.names.computations).index(value), ""
        source = self.whole.cd.sources[value[0]]
        names = [a.name for a in source.attributes] if isinstance(source, Source) else []
        return 0, value[0], f"{names.index(value[1]) if value[1] in names else len(names):06}{value[1]}"

    def _is_in(self, value: Value, unit: Unit) -> bool:
        """Is it known where the unit's event is made?"""
        if isinstance(value, str):
            sources = self.whole.names.sources(self.whole.names.computations[value].value)
            return bool(sources) and sources <= unit.sources
        return value[0] in unit.sources

    def _reads(self, part: Part) -> Iterator[Value]:
        """What a part's own conditions, computations and events refer to. A computation that is done before is a value."""
        for tree, names in self._trees(part):
            for node in _references(tree):
                value = _value(node, names)
                if isinstance(value, str) and value in part.computations:
                    continue
                if isinstance(value, str) or value[0] in self.whole.sources:
                    yield value

    def _trees(self, part: Part) -> Iterator[tuple[Expr, Names]]:
        names = self.whole.names
        for condition in part.conditions:
            inside = self._names_of(condition)
            yield from ((argument, inside) for predicate in condition.predicates for argument in predicate.arguments)
        yield from ((names.computations[anchor].value, names) for anchor in part.computations)
        if part.publishes is None:
            yield from ((a.value, names) for event in self._events() for a in event.attributes)

    def _names_of(self, condition: Condition) -> Names:
        """A filter knows the names of its source's attributes bare."""
        if not condition.name.startswith("filter:"):
            return self.whole.names
        return self.whole.names.inside(self.whole.cd.index[condition.name.split(":")[1]])

    def _attribute_names(self, values: Iterable[Value]) -> dict[Value, str]:
        found: dict[Value, str] = {}
        for value in values:
            name = value if isinstance(value, str) else f"{self.whole.cd.sources[value[0]].anchor}_{value[1]}"
            while name in found.values() or name in ENVELOPE:
                name += "_"
            found[value] = name
        return found

    # The documents.

    def _description(self, part: Part) -> Description:
        cd = self.whole.cd
        taken = {*self.whole.names.anchors, *(unit.name for one in self.parts for unit in one.units)}
        predicates, logic = self._logic(part, taken)
        trigger = self.whole.trigger if part.publishes is None else _free("X", taken)
        events = self._events_of(part, trigger)
        computations = [replace(c, value=self._moved(c.value, self.whole.names, part)) for c in cd.computations]
        return Description(
            id=f"{cd.id}.{part.name}",
            version=cd.version,
            sources=tuple(self._source(unit) for unit in part.units),
            expressions=(Expression(trigger, logic),),
            events=events,
            computations=tuple(c for c in computations if c.anchor in part.computations),
            predicates=tuple(predicates),
            within=cd.within,
            disjoint=part.disjoint,
            providers=cd.providers,
            shared=cd.shared,
            installed=cd.installed,
        )

    def _source(self, unit: Unit) -> Source:
        if unit.maker is None:
            (number,) = unit.sources
            source = self.whole.cd.sources[number]
            assert isinstance(source, Source)
            return replace(source, attributes=tuple(self._without_joins(number, a) for a in source.attributes))
        attributes = [Attribute(name, self._type(value), optional=True) for value, name in self.carried[unit.name].items()]
        return Source(f"{self.whole.cd.id}.{unit.name}", unit.name, "internal", attributes=tuple(attributes))

    def _without_joins(self, number: int, attribute: Attribute) -> Attribute:
        filters = tuple(node for node in attribute.filters if not is_join_filter(self.whole.names, number, attribute, node))
        return replace(attribute, filters=filters)

    def _logic(self, part: Part, taken: set[str]) -> tuple[list[Predicate], Expr]:
        """Predicates of the part and the term that they make. A unit that no condition refers to is required by `any`."""
        predicates, operands = [], list[Expr]()
        for condition in part.conditions:
            names = self._names_of(condition)
            for predicate in condition.predicates:
                anchor = predicate.anchor or _free("F", taken)
                moved = tuple(self._moved(argument, names, part) for argument in predicate.arguments)
                predicates.append(replace(predicate, anchor=anchor, arguments=moved))
                operands.append(Not(Reference(anchor)) if condition.negated else Reference(anchor))
        referred = frozenset[int]().union(*(condition.sources for condition in part.conditions))
        for unit in part.units:
            if not unit.sources & referred:
                anchor = _free("A", taken)
                predicates.append(Predicate(anchor, "any", (Reference(unit.name),)))
                operands.append(Reference(anchor))
        return predicates, operands[0] if len(operands) == 1 else And(tuple(operands))

    def _events(self) -> list[ComplexEvent]:
        return [event for event in self.whole.cd.events if event.trigger == self.whole.trigger]

    def _events_of(self, part: Part, trigger: str) -> tuple[ComplexEvent, ...]:
        if part.publishes is not None:
            values = self.carried[part.publishes.name].items()
            given = tuple(EventAttribute(name, self._type(v), self._moved_value(v, part)) for v, name in values)
            return (ComplexEvent(f"{self.whole.cd.id}.{part.publishes.name}", trigger, "internal", given),)
        return tuple(
            replace(
                event,
                attributes=tuple(replace(a, value=self._moved(a.value, self.whole.names, part)) for a in event.attributes),
            )
            for event in self._events()
        )

    def _type(self, value: Value) -> str:
        if isinstance(value, str):
            return self.whole.names.computations[value].type
        source = self.whole.cd.sources[value[0]]
        assert isinstance(source, Source)
        declared = {a.name: a.type for a in source.attributes}
        return declared.get(value[1]) or ("time_t" if value[1] == "time" else "string")

    # References.

    def _moved(self, tree: Expr, names: Names, part: Part) -> Expr:
        """The tree as the part can read it."""

        def rewrite(node: Expr) -> Expr:
            return self._moved_reference(node, names, part) if isinstance(node, Reference) else node

        return transform(tree, rewrite)

    def _moved_reference(self, node: Reference, names: Names, part: Part) -> Expr:
        meaning = names.meaning(node)
        if meaning.computation is None and meaning.attribute is None:  # of `any`
            assert meaning.source is not None
            return Reference(next(unit.name for unit in part.units if meaning.source in unit.sources))
        return self._moved_value(_value(node, names), part)

    def _moved_value(self, value: Value, part: Part) -> Expr:
        if isinstance(value, str) and value in part.computations:
            return Reference(value)
        unit = next((unit for unit in part.units if unit.maker is not None and value in self.carried[unit.name]), None)
        if unit is not None:
            return Reference(f"{unit.name}.{self.carried[unit.name][value]}")
        if isinstance(value, str) or value[0] not in self.whole.sources:
            return Literal(None)  # of a source outside the inducing set
        return Reference(f"{self.whole.cd.sources[value[0]].anchor}.{value[1]}")


def _references(tree: Expr) -> Iterator[Reference]:
    return (node for node in walk(tree) if isinstance(node, Reference))


def _value(node: Reference, names: Names) -> Value:
    meaning = names.meaning(node)
    if meaning.computation is not None:
        return meaning.computation
    assert meaning.source is not None
    return meaning.source, meaning.attribute or ENVELOPE_NAMES[0]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
