"""Rules as a plan: the contract that engines know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from coincide.adapters.mapping import CATEGORY
from coincide.detection.base import Attributes, Changes, Detector, DetectorPlan, Inputs, PlanOfSeveral, State, Unfinished
from coincide.detection.parts import is_tables, tables_named, tables_part
from coincide.detection.selection import state as states
from coincide.detection.selection.correlating import Correlation
from coincide.detection.selection.groups import Groups
from coincide.detection.selection.interpreter import Interpreter
from coincide.detection.selection.matching import OWN
from coincide.detection.selection.program import Program
from coincide.expr.quantities import counted
from coincide.expr.tree import Expr, In, Literal, Reference
from coincide.lang.sigma.definition import HIDDEN_NAMES, CorrelationRule, DetectionRule, SameAs, items_of
from coincide.lang.sigma.link import Linked
from coincide.model.event import ENVELOPE, OWN_TYPE

MANY = 20_000
"""Events for which it pays to import what columns need, with one rule."""


@dataclass(frozen=True)
class SelectionPlan(PlanOfSeveral):
    """Rules of one stage; what correlations refer to is evaluated with them."""

    timed: ClassVar[bool] = False
    manner: ClassVar[str] = "over columns"

    @cached_property
    def inputs(self) -> Inputs:
        external = [d.inputs.external for d in self.detectors]
        types = None if None in external else frozenset().union(*(some for some in external if some is not None))
        return Inputs(types, frozenset().union(*(d.inputs.detections for d in self.detectors)))

    @cached_property
    def columns(self) -> frozenset[str] | None:
        """Keywords are looked for in all attributes."""
        linked = {item.name: item for d in self.detectors for item in d.definition.together}
        names = [attributes_of(item) for item in linked.values()]
        names += [frozenset(shown.attribute for shown in item.rule.fields) for item in linked.values()]
        if None in names:
            return None
        return frozenset({*OWN, CATEGORY, OWN_TYPE}).union(*(some for some in names if some is not None)) - ENVELOPE

    @cached_property
    def makes(self) -> dict[str, Attributes]:
        return {d.name: _attributes_made(d.definition) for d in self.detectors if d.outputs}

    @property
    def relevant(self) -> Expr | None:
        """Where the mapping names types for all rules, events of these."""
        types = self.inputs.external
        return In(Reference("type"), tuple(map(Literal, sorted(types)))) if types else None

    @property
    def partition(self) -> tuple[str, ...] | None:
        """That of all its rules: of several, those of one event among them, there is none as a rule."""
        partitions = {d.partition for d in self.detectors}
        return partitions.pop() if len(partitions) == 1 else None

    @property
    def envelope(self) -> frozenset[str]:
        return frozenset({"source"})

    @property
    def pays_from(self) -> int:
        """The interpreter tries an event with one rule after another."""
        return MANY // (1 + len(self.detectors) // 10)

    @cached_property
    def program(self) -> Program:
        return Program(self.detectors)

    @property
    def _interpreter(self) -> Interpreter:
        return Interpreter(self.program)

    @property
    def _kernel(self) -> Any:
        from coincide.detection.selection.kernel import Kernel

        return Kernel(self.program, self._attributes_read)

    @cached_property
    def _attributes_read(self) -> frozenset[str]:
        """Attributes that are read of events that match."""
        linked = {item.name: item for d in self.detectors for item in d.definition.together}.values()
        shown = frozenset(field.attribute for item in linked for field in item.rule.fields)
        grouped = (attributes_of(item) for item in linked if isinstance(item.rule, CorrelationRule))
        return shown.union(*(names for names in grouped if names is not None))

    def initial(self) -> State:
        return states.fresh(self.program)

    def encode(self, state: State) -> dict[str, bytes]:
        from coincide.detection.selection.relations import whole

        return {digest: tables_part(whole(correlation, groups)) for digest, correlation, groups in self._named(state)}

    def _named(self, state: State) -> Iterator[tuple[str, Correlation, Groups]]:
        return zip(self.program.digests, self.program.correlations, state.groups, strict=True)

    def tells_changes(self, state: State) -> bool:
        return True

    def changes(self, state: State, everything: bool = False) -> Changes:
        from coincide.detection.selection.relations import changes

        found = Changes({}, {})
        for digest, correlation, groups in self._named(state):
            if everything or not groups.epoch:
                found.replaced[digest] = tables_part(changes(correlation, groups, everything=True))
            elif groups.touched or groups.over:
                found.added[digest] = changes(correlation, groups, everything=False)
        return found

    def decode(self, parts: Mapping[str, bytes]) -> State:
        state = self.initial()
        for digest, correlation, groups in self._named(state):
            if digest in parts and is_tables(parts[digest]):
                from coincide.detection.selection.relations import read

                tables, later = tables_named(parts, digest)
                read(correlation, groups, tables.base, later)
            elif digest in parts:
                states.read_objects(correlation, groups, parts[digest])
        return state

    def essential(self, state: State) -> State:
        for groups in state.groups:
            groups.count_anew()
        return state

    def unfinished(self, state: State) -> Iterator[Unfinished]:
        for correlation, groups in zip(self.program.correlations, state.groups, strict=True):
            for key, group in groups.by_key.items():
                units = [unit for _, unit in group.rows(since_last=False)]
                since, origin = min((u.lo for u in units), default=None), sorted({each for u in units for each in u.origin})
                what = f"{counted(len(origin), 'event')} in the window"
                yield Unfinished(correlation.name, tuple(value for _, value in key), what, since, origin=tuple(origin))


def attributes_of(linked: Linked) -> frozenset[str] | None:
    """Attributes that a rule reads by itself; None: all."""
    rule = linked.rule
    if not isinstance(rule, DetectionRule):
        aliased = [attribute for _, fields in linked.aliases for _, attribute in fields]
        names = {name for name, _ in linked.aliases}
        return frozenset([*aliased, *(s.attribute for s in (*rule.group_by, *rule.fields) if s.name not in names)])
    items = [*items_of(rule.condition), *(() if rule.looked.where is None else items_of(rule.looked.where))]
    if any(item.attribute is None for item in items):
        return None
    others = [test.attribute for item in items for value in item.values for test in value if isinstance(test, SameAs)]
    return frozenset([*(str(item.attribute) for item in items), *others])


def _attributes_made(linked: Linked) -> Attributes:
    rule = linked.rule
    shown = rule.fields if isinstance(rule, DetectionRule) else rule.group_by
    made: dict[str, tuple[Expr, ...]] = {}
    for field in (field for field in shown if field.name not in HIDDEN_NAMES):
        aliased = [Reference(attribute) for name, fields in linked.aliases if name == field.name for _, attribute in fields]
        made[field.name] = tuple(dict.fromkeys(aliased or [Reference(field.attribute)]))
    for name, text in (("rule_id", rule.head.id), ("level", rule.head.level)):
        if text is not None:
            made[name] = (Literal(text),)
    if not isinstance(rule, DetectionRule) and not rule.kind.startswith("temporal"):
        made["count" if rule.kind in ("event_count", "value_count") else "value"] = (Literal(0.0),)
    return made


def plans(detectors: Sequence[Detector]) -> list[DetectorPlan]:
    """The rules of one stage: one plan, so that tests in common are made once."""
    return [SelectionPlan(tuple(detectors))]
