"""A group of monitors as a plan: the contract that engines know, for both tiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

from coincide.detection.base import Attributes, Detector, DetectorPlan, Inputs, OpenPlan, PlanOfSeveral, State, Unfinished
from coincide.detection.keys import Key
from coincide.detection.machine import state as states
from coincide.detection.machine.interpreter import Interpreter
from coincide.detection.machine.program import MonitorGroup
from coincide.detection.machine.transducer import Configuration, Transducer
from coincide.expr.print import expression_text
from coincide.expr.quantities import counted
from coincide.expr.tree import Call, Expr, Literal, Or, Reference
from coincide.model.event import ENVELOPE
from coincide.syntax import walk

SPACE_FUNCTIONS = frozenset({"distance", "zone", "within_box", "within_radius"})


@dataclass(frozen=True)
class MonitorPlan(PlanOfSeveral):
    """Monitors with one key list, of one stage."""

    LOOP: ClassVar[str] = "coincide.detection.machine.loop"
    timed: ClassVar[bool] = False

    @cached_property
    def inputs(self) -> Inputs:
        return Inputs(None, frozenset().union(*(d.inputs.detections for d in self.detectors)))

    @cached_property
    def columns(self) -> frozenset[str]:
        trees: list[Expr] = [*self.group.tests]
        trees += [e for emitters in self.group.emitters for emitter in emitters for _, e in emitter.expressions]
        names = {node.name for tree in trees for node in walk(tree) if isinstance(node, Reference)}
        return frozenset(names | set(self.partition or ())) - ENVELOPE

    @cached_property
    def makes(self) -> dict[str, Attributes]:
        made: dict[str, dict[str, tuple[Expr, ...]]] = {}
        for emitter in (emitter for emitters in self.group.emitters for emitter in emitters):
            own = made.setdefault(emitter.token, {key: (Reference(key),) for key in self.partition or ()})
            for name, tree in emitter.expressions:
                own[name] = tuple(dict.fromkeys((*own.get(name, ()), tree)))
        return dict(made)

    @cached_property
    def envelope(self) -> frozenset[str]:
        """Optional fields of the envelope that it reads."""
        trees = [*self.group.tests, *(tree for trees in self.produces.values() for tree in trees)]
        nodes = [node for tree in trees for node in walk(tree)]
        source = any(isinstance(node, Reference) and node.name == "source" for node in nodes)
        space = any(isinstance(node, Call) and node.name in SPACE_FUNCTIONS for node in nodes)
        return frozenset(name for name, used in (("source", source), ("space", space)) if used)

    @cached_property
    def relevant(self) -> Expr:
        """An event that satisfies no predicate of any monitor changes nothing."""
        tests = self.group.tests
        return tests[0] if len(tests) == 1 else Or(tests) if tests else Literal(False)

    @cached_property
    def group(self) -> MonitorGroup:
        return MonitorGroup(self.detectors)

    def takes_arrivals(self, delay: int) -> bool:
        """Its order is that of the batch, whatever the times."""
        return not self._interpreted

    @property
    def _interpreter(self) -> Interpreter:
        return Interpreter(self.group)

    @property
    def _kernel(self) -> Any:
        from coincide.detection.machine.kernel import Kernel

        return Kernel(self.group)

    def encode(self, state: State) -> dict[str, bytes]:
        if not self._interpreted:
            parts: dict[str, bytes] = self._runner.encode(state)
            return parts
        from coincide.detection.columns.codec import encode
        from coincide.detection.machine.relations import parts_of, relations_of

        return parts_of(self.group, encode(relations_of(state)))

    def tells_changes(self, state: State) -> bool:
        return not self._interpreted

    def decode(self, parts: Mapping[str, bytes]) -> State:
        return states.decode(self.group, parts) if self._interpreted else self._runner.decode(parts)

    def opened(self, feeds: bool) -> OpenPlan | None:
        from coincide.detection.machine.openings import OpenMonitors

        return None if self.partition else OpenMonitors(self.detectors, feeds, tier=self.tier)

    def beginnings(self) -> Iterator[str]:
        from coincide.detection.machine.openings import described

        return super().beginnings() if self.partition else described(self.group)

    def sharing(self) -> str:
        return f"{counted(len(self.group.tests), 'distinct test')}, {self._machines('distinct machine')}"

    def memory(self) -> str:
        return f"no events are kept; one configuration a machine ({self._machines('machine')}) {self._for_whom}"

    def _machines(self, word: str) -> str:
        return counted(len(self.group.programs), word)

    def outline(self) -> Iterator[str]:
        for number, test in enumerate(self.group.tests):
            yield f"test {number}    {expression_text(test)}"
        for number, program in enumerate(self.group.programs):
            parts = zip(self.definitions, self.group.parts, strict=True)
            users = [name for name, own in parts if number in {p.program for p in own}]
            tests = ", ".join(map(str, program.tests))
            outputs = ", ".join(output.token for output in program.transducer.outputs)
            pushes = f"pushes {outputs or 'nothing'}; starts at {program.transducer.start}"
            yield f"machine {number} of {', '.join(users)}: tests {tests}; {pushes}"

    def unfinished(self, state: State) -> Iterator[Unfinished]:
        """Machines that have left their start."""
        moved: dict[tuple[int, Key], list[str]] = {}
        for column in state:
            machine = self.group.programs[column.program].transducer
            for (monitor, _), (key, configuration) in product(column.parts, column.configurations.items()):
                moved.setdefault((monitor, key), []).extend(_moving(machine, configuration))
        for (monitor, key), labels in moved.items():
            what = f"under way: waits for {' or '.join(dict.fromkeys(labels))}" if labels else "has ended"
            yield Unfinished(self.detectors[monitor].name, key, what)


def _moving(machine: Transducer, configuration: Configuration) -> Iterator[str]:
    """The predicates that, satisfied alone, move a machine on."""
    for number, predicate in enumerate(machine.labels):
        if machine.step(configuration, 1 << number) != (configuration, ()):
            yield predicate.label


def plans(detectors: Sequence[Detector]) -> list[DetectorPlan]:
    """Plans for the monitors of one stage: those with equal keys go together."""
    by_keys: dict[tuple[str, ...] | None, list[Detector]] = {}
    for detector in detectors:
        by_keys.setdefault(detector.partition, []).append(detector)
    return [MonitorPlan(tuple(group)) for group in by_keys.values()]
