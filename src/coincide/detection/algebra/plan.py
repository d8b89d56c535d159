"""Definitions as a plan: the contract that engines know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import msgspec

from coincide.detection.algebra import state as states
from coincide.detection.algebra.interpreter import Interpreter
from coincide.detection.algebra.nodes.aggregate import WindowNode
from coincide.detection.algebra.nodes.prefix import Prefix
from coincide.detection.algebra.occurrence import SPACE_FIELDS, Occurrence
from coincide.detection.algebra.produces import given
from coincide.detection.algebra.program import Program
from coincide.detection.algebra.shape.coverage import may_have_kernel, reasons
from coincide.detection.algebra.shape.shapes import Operators
from coincide.detection.algebra.state import PlanState
from coincide.detection.base import Attributes, Detector, DetectorPlan, Inputs, Pending, PlanOfSeveral, State, Ticking, Unfinished
from coincide.expr.quantities import counted
from coincide.expr.tree import And, Call, Expr, In, Literal, Or, Reference, with_aliases
from coincide.lang.ecco.aliases import Aliases
from coincide.lang.ecco.definition import Filter, Ref, With, trees_of
from coincide.lang.ecco.lasting import Names
from coincide.lang.ecco.link import Linked, Setting
from coincide.model.event import ENVELOPE, united_origin
from coincide.syntax import walk


@dataclass(frozen=True)
class AlgebraPlan(PlanOfSeveral):
    """Detectors of one stage. What they refer to is evaluated with them."""

    LOOP: ClassVar[str] = "coincide.detection.algebra.sequence.loop"
    timed: ClassVar[bool] = True

    @cached_property
    def _linked(self) -> tuple[Linked, ...]:
        """All definitions to evaluate, in dependency order: hidden ones only where they are used."""
        shown: list[Linked] = [d.definition for d in self.detectors if not d.definition.definition.hidden]
        found = {item.name: item for top in shown for item in top.together}
        return tuple(found.values())

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        orders = {d.name: d.definition.turn for d in self.detectors if not d.definition.definition.hidden}
        foreign: frozenset[str] = frozenset().union(*(item.foreign for item in self._linked))
        names = Names({item.name: item.definition for item in self._linked}, foreign)
        return tuple(Program(item, names, orders.get(item.name)) for item in self._linked)

    @cached_property
    def inputs(self) -> Inputs:
        external = None if any(d.inputs.external is None for d in self.detectors) else self._types
        return Inputs(external, frozenset().union(*(d.inputs.detections for d in self.detectors)))

    @cached_property
    def _types(self) -> frozenset[str]:
        return frozenset().union(*(p.types for p in self.programs))

    @cached_property
    def columns(self) -> frozenset[str] | None:
        """Without a `give` list, all attributes go into the detection."""
        if any(p.linked.definition.give is None for p in self.programs) or self._linked_setting.stamps:
            return None
        trees = [tree for p in self.programs for tree in _trees(p.linked)]
        names = {node.name for tree in trees for node in walk(tree) if isinstance(node, Reference)}
        keys = {key for p in self.programs for key in p.keys} | {k for r in self._linked_setting.duplicates for k in r.keys}
        return frozenset(names | keys) - ENVELOPE - {f"space.{part}" for part in SPACE_FIELDS}

    @cached_property
    def makes(self) -> dict[str, Attributes]:
        """Hidden definitions, too: others may refer to what they give."""
        return {p.name: given(p.linked.definition) for p in self.programs}

    @property
    def passes_on(self) -> frozenset[str]:
        """Without `give`, a detection has what its events agree on."""
        return frozenset(p.name for p in self.programs if p.linked.definition.give is None)

    @cached_property
    def relevant(self) -> Expr | None:
        """Events of the types that are read; where nothing counts events before filters, those that pass a filter. Under new
        stamps any event may be the first or the last one."""
        if self.inputs.external is None or self._linked_setting.stamps:
            return None
        plain = not self._linked_setting.duplicates and not any(map(_counts, self._linked))
        tests = [test for item in self._linked for test in _reference_tests(item, plain)]
        distinct = tuple(dict.fromkeys(tests))
        return distinct[0] if len(distinct) == 1 else Or(distinct) if distinct else Literal(False)

    @cached_property
    def ticking(self) -> Sequence[Ticking]:
        """Windows that are counted even when they are empty. With `per`, an empty one is the last (5.5)."""
        spans = {detector.name: detector.span for detector in self.detectors}
        return [
            Ticking(p.name, node.windows.step, spans.get(p.name))
            for p in self.programs
            for node in p.nodes
            if not p.keys and isinstance(node, WindowNode) and node.aggregator.fills_empty_windows
        ]

    @cached_property
    def _reasons(self) -> tuple[str, ...]:
        several = len(self.programs) > 1
        found = [(p.name, reason) for p in self.programs for reason in reasons(p)]
        return tuple(f"'{name}' {reason}" if several else f"it {reason}" for name, reason in found)

    @cached_property
    def loop(self) -> str:
        """Windows need none."""
        operators = not self._reasons and any(isinstance(program.shape, Operators) for program in self.programs)
        return self.LOOP if operators else ""

    @cached_property
    def _kernel(self) -> Any:
        from coincide.detection.algebra.kernel.kernel import Kernel

        return Kernel(self._interpreter, self.columns)

    @property
    def _linked_setting(self) -> Setting:
        setting: Setting = self.detectors[0].definition.setting
        return setting

    @cached_property
    def _interpreter(self) -> Interpreter:
        return Interpreter(self.programs, self._linked_setting, self.detectors[0].order, self.inputs.detections)

    def initial(self) -> State:
        return states.fresh(self.programs) if self._interpreted else self._kernel.fresh()

    def pending(self, state: State) -> Pending | None:
        found: Pending | None = self._runner.pending(state)
        return found

    def encode(self, state: State) -> dict[str, bytes]:
        from coincide.detection.algebra.tables import encode, tables_of

        if isinstance(state, PlanState):
            tables = None if self._reasons else tables_of(self.programs, state)
        else:
            tables = self._kernel.tables(state)
        return encode(self.programs, tables) if tables is not None else states.encode(self.programs, state)

    def decode(self, parts: Mapping[str, bytes]) -> State:
        from coincide.detection.algebra.tables import Tables, decode, objects_of

        found = decode(self.programs, self._interpreter.order, parts)
        if not self._interpreted:
            return self._kernel.taken_up(found)
        return objects_of(self.programs, self._interpreter.order, found) if isinstance(found, Tables) else found

    def tells_changes(self, state: State) -> bool:
        return not isinstance(state, PlanState)

    def essential(self, state: State) -> State:
        """Without what is too old. Detections are told apart by numbers: those that are kept have theirs, whatever the next one
        is; how many there were before them makes no difference."""
        if not self._linked_setting.stamps:
            self._forget(state, min((state.latest, *state.waiting)))
        state.serials.clear()
        _renumber(list(occurrences([copy.states for copies in state.copies for copy in copies.values()])))
        return state

    def _forget(self, state: PlanState, now: int) -> None:
        """What comes is of this instant or a later one."""
        for program, copies in zip(self.programs, state.copies, strict=True):
            for node, own in (pair for copy in copies.values() for pair in zip(program.nodes, copy.states, strict=True)):
                node.forget(own, now)

    def unfinished(self, state: State) -> Iterator[Unfinished]:
        dues = {(number, key): at for at, some in sorted(state.wakes.items(), reverse=True) for number, key in some}
        for number, (program, copies) in enumerate(zip(self.programs, state.copies, strict=True)):
            for key, copy in copies.items():
                stored = [*occurrences(copy.states)]
                what = f"{counted(len(stored), 'occurrence')} kept" if stored else "under way"
                since = min((occurrence.lo for occurrence in stored), default=copy.start)
                origin = tuple(sorted({each for occurrence in stored for each in occurrence.origin}))
                yield Unfinished(program.name, key, what, since, dues.get((number, key)), origin)
            for instant, events in state.waiting.items():
                what = f"{counted(len(events), 'event')} of an instant that is not over"
                yield Unfinished(program.name, (), what, instant, instant, united_origin(events))


def occurrences(state: object) -> Iterator[Occurrence]:
    """All that the states of nodes keep."""
    if isinstance(state, Occurrence):
        yield state
    elif isinstance(state, Prefix):
        yield state.occurrence
    elif isinstance(state, msgspec.Struct):
        yield from occurrences([getattr(state, name) for name in state.__struct_fields__])
    elif isinstance(state, dict):
        yield from occurrences(list(state.values()))
    elif isinstance(state, list | tuple):
        for part in state:
            yield from occurrences(part)


def _renumber(occurrences: Sequence[Occurrence]) -> None:
    """Named detections by new numbers, in the order of their own."""
    found: dict[int, Occurrence] = {}
    waiting = [*occurrences]
    while waiting:
        one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = one
            waiting += (*one.parts, *one.aliases.values())
    leaves = sorted({leaf for one in found.values() for leaf in one.detections})
    numbers = {leaf: (leaf[0], number) for number, leaf in enumerate(leaves)}
    for one in found.values():
        one.detections = frozenset(numbers[leaf] for leaf in one.detections)


# Push-down.


def _trees(linked: Linked) -> Iterator[Expr]:
    """What it reads, with aliases told from attributes."""
    aliases = Aliases(linked.definition.body)
    return (with_aliases(tree, aliases.given | aliases.implicit) for tree in trees_of(linked.definition))


def _counts(linked: Linked) -> bool:
    """Does it count events before filters: for its key's observation or for precision?"""
    body = linked.definition.body
    policies = [p for node in walk(body) if isinstance(node, With) for p in node.policies]
    precise = any(p.name == "precision" for p in (*policies, *linked.setting.options.policies))
    return bool(linked.definition.keys) or precise


def _reference_tests(linked: Linked, plain: bool) -> Iterator[Expr]:
    filters = {id(f.operand): f for f in walk(linked.definition.body) if isinstance(f, Filter)}
    for node in walk(linked.definition.body):
        if isinstance(node, Ref) and node.type is not None:
            of_type = In(Reference("type"), (Literal(node.type),))
            condition = filters[id(node)].condition if plain and id(node) in filters else None
            yield And((of_type, condition)) if condition is not None and _is_plain(condition) else of_type


def _is_plain(condition: Expr) -> bool:
    """Every engine reads bare attributes alike; aliases and spacestamps only this one."""
    nodes = list(walk(condition))
    return not any(isinstance(n, Reference) and "." in n.name for n in nodes) and not any(isinstance(n, Call) for n in nodes)


def plans(detectors: Sequence[Detector]) -> list[DetectorPlan]:
    """Detectors of one stage with the same key go together: each event is then looked at once. Those that have a kernel tier
    are apart from those that would keep them from it."""
    groups: dict[tuple[tuple[str, ...] | None, bool], list[Detector]] = {}
    known: dict[str, Program | None] = {}
    covered = {d.name for d in detectors if _has_kernel(d.definition, known)}
    below = {(d.partition, used.name) for d in detectors if d.name in covered for used in d.definition.uses}
    for detector in detectors:
        has_kernel = detector.name in covered or (
            detector.definition.definition.hidden and (detector.partition, detector.name) in below
        )
        groups.setdefault((detector.partition, has_kernel), []).append(detector)
    found = [AlgebraPlan(tuple(group)) for group in groups.values()]
    for program in (program for plan in found for program in plan.programs):
        if (built := known.get(program.name)) is not None:
            program.take_over(built)
    return [*found]


def _has_kernel(linked: Linked, known: dict[str, Program | None]) -> bool:
    """Have it and all that it refers to? `known`: single definitions, as far as they have."""
    names = Names({item.name: item.definition for item in linked.together}, linked.foreign)
    if not may_have_kernel(linked):
        return False
    for item in linked.together:
        if item.name not in known:
            program = Program(item, names)
            known[item.name] = None if reasons(program) else program
    return all(known[item.name] is not None for item in linked.together)
