"""What a group of situations compiles to: conditions and expressions as functions, and who reads which event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from coincide.detection.base import Detector
from coincide.detection.situation.operators import BEHAVIOURS
from coincide.detection.situation.quantifiers import QUANTIFIERS, Quantifier
from coincide.detection.situation.scope import SituationScope, View
from coincide.detection.situation.state import Key, key_part
from coincide.detection.situation.support import loop_reasons
from coincide.expr.functions import FUNCTIONS, Function
from coincide.expr.scalar import Evaluate, EventScope, compile_scalar, condition
from coincide.expr.tree import And, Expr, Literal, Reference
from coincide.lang.amit.definition import Lifespan as LifespanDefinition
from coincide.lang.amit.definition import Operand
from coincide.lang.amit.names import OPERAND
from coincide.lang.amit.pattern import TimePattern, parse_pattern
from coincide.lang.amit.resolve import KeyTable, Resolved
from coincide.model.compound import single
from coincide.model.event import Event
from coincide.syntax import walk

KINDS: dict[str, type] = {"number": float, "string": str, "boolean": bool}


class Condition:
    """An event condition. One that is absent holds; `cost` counts the attribute values that it reads."""

    def __init__(self, tree: Expr | None, functions: Mapping[str, Function], absent: bool = True) -> None:
        self.constant = absent if tree is None else tree.value is True if isinstance(tree, Literal) else None
        self.holds: Callable[[Event], bool] | None = None
        self.cost = 0
        if tree is not None and self.constant is None:
            self.holds = condition(tree, EventScope(), functions)
            self.cost = references(tree)


def references(tree: Expr) -> int:
    return sum(isinstance(node, Reference) for node in walk(tree))


class KeyReader:
    """The key of an event by its type; None if any part of it is null."""

    def __init__(self, tables: Sequence[KeyTable]) -> None:
        self.size = len(tables)
        events = {event for table in tables for event, _ in table}
        self.attributes = {event: tuple(dict(table).get(event, "") for table in tables) for event in events}

    def __call__(self, event: Event) -> Key | None:
        if not self.size:
            return ()
        key = tuple(key_part(single(event.attributes.get(name))) for name in self.attributes[event.type])
        return None if None in key else key


@dataclass(frozen=True, eq=False)
class OperandProgram:
    definition: Operand
    quantifier: Quantifier
    threshold: Condition
    override: Condition
    keeps: Callable[[Event], bool]
    distinct: Evaluate | None

    @property
    def event(self) -> str:
        return self.definition.event

    def is_new(self, event: Event, candidates: Iterable[Event]) -> bool:
        """Where candidates must differ: does none of them have the event's value?"""
        if self.distinct is None:
            return True
        value = self.distinct(event)
        return value is not None and all(key_part(self.distinct(c)) != key_part(value) for c in candidates)


def operand_program(operand: Operand, functions: Mapping[str, Function]) -> OperandProgram:
    return OperandProgram(
        operand,
        QUANTIFIERS[operand.quantifier],
        Condition(operand.threshold, functions),
        Condition(operand.override, functions, absent=False),
        _keeps(operand, functions),
        None if operand.distinct is None else compile_scalar(operand.distinct, EventScope(), functions),
    )


def _keeps(operand: Operand, functions: Mapping[str, Function]) -> Callable[[Event], bool]:
    if operand.keeping is None:
        return lambda event: False
    tree, stays = operand.keeping
    test = condition(tree, EventScope(), functions)
    return lambda event: test(event) is stays


class SituationProgram:
    """One situation, ready to run."""

    def __init__(self, detector: Detector, number: int, lifespan: int) -> None:
        resolved: Resolved = detector.definition
        functions = {**FUNCTIONS, **{f.name: f for f in resolved.functions}}
        self.detector = detector
        self.resolved = resolved
        self.number = number
        self.lifespan = lifespan
        self.order = detector.order
        self.name = resolved.name
        self.operator = resolved.operator
        self.behaviour = BEHAVIOURS[resolved.operator.kind]
        self.operands = [operand_program(o, functions) for o in resolved.operator.operands]
        self.local_key = KeyReader(resolved.local_keys)
        self.global_key = KeyReader(resolved.global_keys)
        self.pattern: TimePattern | None = parse_pattern(self.operator.pattern) if self.operator.pattern else None
        scope = SituationScope(resolved)
        self.conjuncts = _conjuncts(self.operator.where, len(self.operands), scope, functions)
        expressions = [(a.name, a.expression) for a in resolved.situation.attributes if a.expression is not None]
        self.attributes: list[tuple[str, Evaluate]] = [(n, scope.compile(e, functions)) for n, e in expressions]
        self.attribute_cost = sum(references(e) for _, e in expressions)

    @cached_property
    def operands_of(self) -> dict[str, list[int]]:
        """Operands by event type."""
        found: dict[str, list[int]] = {}
        for number, operand in enumerate(self.operands):
            found.setdefault(operand.event, []).append(number)
        return found

    @property
    def ticks_every(self) -> int | None:
        """The least time between two instants at which it is decided, where it is so again and again."""
        if not self.behaviour.ticks or self.operator.repeat != "always":
            return None
        if self.pattern is None:
            return self.operator.interval
        return self.pattern.every if self.pattern.recurring else None

    @property
    def renews_every(self) -> int | None:
        """After which time it opens its own lifespan again, if nothing happens: one that expires, and is opened by this."""
        lifespan, alone = self.resolved.lifespan, not self.local_key.size and self.operator.where is None
        opened = any(initiator.event == self.name and initiator.where is None for initiator in lifespan.initiators)
        ends = lifespan.expiration is not None and lifespan.expiration.termination != "discard"
        again = opened and ends and alone and self.behaviour.of_nothing
        return lifespan.expiration.interval if again and lifespan.expiration is not None else None

    @cached_property
    def keeps_reported(self) -> bool:
        return self.behaviour.keeps_reported(self.operator)

    @cached_property
    def flag_operands(self) -> frozenset[int]:
        """Operands of which it matters only whether there is a candidate."""
        return frozenset(self.behaviour.flags(self.operator))


@dataclass(frozen=True, eq=False)
class Conjunct:
    """A part of `where`, to be tested as soon as operand `after` is chosen."""

    after: int
    holds: Callable[[View], bool]
    cost: int


def _conjuncts(
    where: Expr | None, operands: int, scope: SituationScope, functions: Mapping[str, Function]
) -> tuple[tuple[Conjunct, ...], ...]:
    """The conjuncts of `where`, by the operand that completes them. A conjunction is true only if all its parts are, and a
    part that fails for a beginning of a selection fails for all its completions: so early tests change no answer."""
    parts = () if where is None else where.operands if isinstance(where, And) else (where,)
    found: list[list[Conjunct]] = [[] for _ in range(operands)]
    for part in parts:
        evaluate = scope.compile(part, functions)
        found[_last_operand(part)].append(Conjunct(_last_operand(part), _is_true(evaluate), references(part)))
    return tuple(tuple(conjuncts) for conjuncts in found)


def _is_true(evaluate: Evaluate) -> Callable[[View], bool]:
    return lambda view: evaluate(view) is True


def _last_operand(tree: Expr) -> int:
    slots = {getattr(node, "alias", None) or getattr(node, "name", None) for node in walk(tree)}
    numbers = [int(slot.removeprefix(OPERAND)) for slot in slots if isinstance(slot, str) and slot.startswith(OPERAND)]
    return max(numbers, default=0)


class LifespanProgram:
    """One definition of lifespans, ready to run."""

    def __init__(self, resolved: Resolved, number: int) -> None:
        functions = {**FUNCTIONS, **{f.name: f for f in resolved.functions}}
        self.definition: LifespanDefinition = resolved.lifespan
        self.number = number
        self.order = resolved.lifespan_number
        self.initiators = [(n, i, Condition(i.where, functions)) for n, i in enumerate(self.definition.initiators)]
        self.terminators = [(n, t, Condition(t.where, functions)) for n, t in enumerate(self.definition.terminators)]
        self.situations: list[SituationProgram] = []
        self.counts = False

    def key(self, event: Event) -> Key | None:
        """All situations of a lifespan read its key alike."""
        return self.situations[0].global_key(event)

    def initiators_on(self, event: str) -> list[tuple[int, str, Condition]]:
        return [(n, i.correlate, where) for n, i, where in self.initiators if i.event == event]

    def terminators_on(self, event: str) -> list[tuple[int, Quantifier, str, Condition]]:
        return [(n, QUANTIFIERS[t.quantifier], t.termination, where) for n, t, where in self.terminators if t.event == event]


@dataclass(frozen=True, eq=False)
class Readers:
    """Who reads events of one type, and which of their attributes."""

    attributes: tuple[tuple[str, type], ...]
    lifespans: tuple[LifespanProgram, ...]
    situations: tuple[SituationProgram, ...]


class Group:
    """Situations that are stepped together, with the lifespans that they share."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self.detectors = tuple(detectors)
        by_name: dict[str, LifespanProgram] = {}
        first: dict[str, Detector] = {}
        for detector in sorted(detectors, key=lambda d: d.definition.lifespan_number):
            first.setdefault(detector.definition.lifespan.name, detector)
        for number, (name, detector) in enumerate(first.items()):
            by_name[name] = LifespanProgram(detector.definition, number)
        self.lifespans = list(by_name.values())
        self.situations = [
            SituationProgram(d, number, by_name[d.definition.lifespan.name].number) for number, d in enumerate(detectors)
        ]
        for situation in self.situations:
            lifespan = self.lifespans[situation.lifespan]
            lifespan.situations.append(situation)
            lifespan.counts |= situation.resolved.counts_lifespan

    @cached_property
    def loop_reasons(self) -> tuple[str, ...]:
        """Why the compiled loop cannot do them; empty: it can."""
        return loop_reasons(d.definition for d in self.detectors)

    @cached_property
    def among(self) -> list[int]:
        """The number of each situation among those of its lifespan that have no local key; -1: it has one."""
        found = []
        for situation in self.situations:
            others = [s.number for s in self.lifespans[situation.lifespan].situations if not s.local_key.size]
            found.append(others.index(situation.number) if situation.number in others else -1)
        return found

    @cached_property
    def most_cells(self) -> int:
        return 1 + max(self.among)

    @cached_property
    def most_operands(self) -> int:
        return max(len(s.operands) for s in self.situations)

    @cached_property
    def readers(self) -> dict[str, Readers]:
        types = {event: attributes for s in self.situations for event, attributes in s.resolved.types}
        return {event: self._readers(event, attributes) for event, attributes in types.items()}

    def fits(self, reader: KeyReader, part: int, values: Iterable[object]) -> bool:
        """Are these of the declared types of the attributes that are this part of keys? Events have no others there."""
        named = {(event, names[part]) for event, names in reader.attributes.items()}
        declared = {kind for event, own in self.readers.items() for name, kind in own.attributes if (event, name) in named}
        return {float if kind is int else bool if kind is tuple else kind for kind in map(type, values)} <= declared

    def _readers(self, event: str, attributes: Sequence[tuple[str, str]]) -> Readers:
        used = self.columns
        lifespans = [x for x in self.lifespans if x.initiators_on(event) or x.terminators_on(event)]
        concerned = {x.number for x in lifespans}
        return Readers(
            tuple((name, KINDS[kind]) for name, kind in attributes if name in used),
            tuple(lifespans),
            tuple(s for s in self.situations if s.lifespan in concerned or event in s.operands_of),
        )

    @cached_property
    def columns(self) -> frozenset[str]:
        """Attributes that any expression or key reads."""
        from coincide.lang.amit.resolve import trees

        names: set[str] = set()
        for s in self.situations:
            found = trees(s.resolved.situation, s.resolved.lifespan)
            names |= {node.name for tree in found for node in walk(tree) if isinstance(node, Reference)}
            names |= {name for table in (*s.resolved.global_keys, *s.resolved.local_keys) for _, name in table}
        declared = {name for s in self.situations for _, attributes in s.resolved.types for name, _ in attributes}
        return frozenset(names & declared)
