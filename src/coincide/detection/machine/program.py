"""What a group of monitors with the same keys compiles to, whatever the tier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from coincide.detection.base import Detector
from coincide.detection.machine.transducer import Transducer, transducer
from coincide.expr.scalar import Evaluate, EventScope, compile_scalar
from coincide.expr.tree import Expr
from coincide.lang.ecl.definition import Correlation, Machine, Monitor, Output, Parallel
from coincide.lang.ecl.names import predicates
from coincide.model.event import Event, Value


@dataclass(frozen=True, eq=False)
class Program:
    """A machine that one or more monitors run; bit i of its letters is the truth of test number `tests[i]`."""

    transducer: Transducer
    tests: tuple[int, ...]
    mentions: frozenset[str]


@dataclass(frozen=True)
class Part:
    """A part of a monitor that runs apart: which program, and the number of its first push among the monitor's."""

    program: int
    first: int


@dataclass(frozen=True, eq=False)
class MonitorGroup:
    """Monitors of one key list that do not feed one another: each distinct test and machine is there once.

    The members of an outermost `parallel` run apart (ECL-32): they are independent, and one machine for all of them would
    have the product of their states."""

    detectors: tuple[Detector, ...]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return self.detectors[0].partition or ()

    @cached_property
    def _members(self) -> list[list[Member]]:
        """For each monitor, what it needs to run: equal ones are one program."""
        return [[(body, d.inputs.detections) for body in components(d.definition)] for d in self.detectors]

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """Distinct machines, in the order of their first monitor."""
        numbers = {test: n for n, test in enumerate(self.tests)}
        programs = []
        for body, mentions in dict.fromkeys(member for members in self._members for member in members):
            machine = transducer(body)
            programs.append(Program(machine, tuple(numbers[p.test] for p in machine.labels), mentions))
        return tuple(programs)

    @cached_property
    def tests(self) -> tuple[Expr, ...]:
        """Distinct predicates of all monitors."""
        return tuple(dict.fromkeys(p.test for d in self.detectors for p in predicates(d.definition)))

    @cached_property
    def parts(self) -> tuple[tuple[Part, ...], ...]:
        """For each monitor its parts, left to right."""
        numbers = {member: n for n, member in enumerate(dict.fromkeys(m for members in self._members for m in members))}
        return tuple(tuple(self._numbered([numbers[m] for m in members])) for members in self._members)

    @cached_property
    def programs_of_parts(self) -> dict[tuple[int, int], int]:
        """By monitor and number of the part."""
        return {(monitor, n): part.program for monitor, parts in enumerate(self.parts) for n, part in enumerate(parts)}

    def _numbered(self, programs: Sequence[int]) -> Iterator[Part]:
        first = 0
        for program in programs:
            yield Part(program, first)
            first += len(self.programs[program].transducer.outputs)

    @cached_property
    def emitters(self) -> tuple[tuple[Emitter, ...], ...]:
        """For each monitor, what its pushes make, in post-order."""
        return tuple(
            tuple(Emitter(output) for part in parts for output in self.programs[part.program].transducer.outputs)
            for parts in self.parts
        )


class Emitter:
    """One push: its token and how its attributes are computed from the completing event."""

    def __init__(self, output: Output) -> None:
        self.token = output.token
        self.expressions = output.attributes
        self._evaluate: list[tuple[str, Evaluate]] = [(n, compile_scalar(e, EventScope())) for n, e in output.attributes]

    def attributes(self, event: Event) -> dict[str, Value]:
        values = ((name, evaluate(event)) for name, evaluate in self._evaluate)
        return {name: value for name, value in values if value is not None}


Member = tuple[Correlation | Machine, frozenset[str]]
"""A machine's text, and the detections that the monitor mentions: all its parts see those."""


def components(definition: Monitor | Machine) -> list[Correlation | Machine]:
    """The independent parts of a monitor: the members of an outermost `parallel`, flattened."""
    if isinstance(definition, Machine):
        return [replace(definition, name="", keys=())]  # what it is called makes no difference
    return list(_components(definition.body))


def _components(body: Correlation) -> Iterator[Correlation]:
    if isinstance(body, Parallel):
        for part in body.parts:
            yield from _components(part)
    else:
        yield body
