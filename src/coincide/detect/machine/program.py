"""What a group of monitors with the same keys compiles to, whatever the tier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from coincide.detect.base import Detector
from coincide.detect.machine.transducer import Transducer, transducer
from coincide.expr.scalar import Evaluate, EventScope, compile_scalar, event_field
from coincide.expr.tree import Expr
from coincide.lang.ecl.definition import Machine, Monitor, Output
from coincide.model.event import Event, Value

Key = tuple[object, ...]
"""Key values; a boolean is wrapped, because Python takes True for 1."""


@dataclass(frozen=True, eq=False)
class Program:
    """A machine that one or more monitors run; bit i of its letters is the truth of test number `tests[i]`."""

    transducer: Transducer
    tests: tuple[int, ...]
    mentions: frozenset[str]

    def letter(self, truths: Sequence[bool]) -> int:
        return sum(1 << bit for bit, test in enumerate(self.tests) if truths[test])


@dataclass(frozen=True, eq=False)
class MonitorGroup:
    """Monitors of one key list that do not feed one another: each distinct test and machine is there once."""

    detectors: tuple[Detector, ...]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return self.detectors[0].partition or ()

    @cached_property
    def _bodies(self) -> list[object]:
        return [body(d.definition) for d in self.detectors]

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """Distinct machines, in the order of their first monitor."""
        first = {self._bodies[i]: d for i, d in reversed(list(enumerate(self.detectors)))}
        distinct = dict.fromkeys(self._bodies)
        machines = [(transducer(first[b].definition), first[b].inputs.detections) for b in distinct]
        numbers = {test: n for n, test in enumerate(self.tests)}
        return tuple(Program(m, tuple(numbers[p.test] for p in m.labels), mentions) for m, mentions in machines)

    @cached_property
    def tests(self) -> tuple[Expr, ...]:
        """Distinct predicates of all monitors."""
        return tuple(dict.fromkeys(test for d in self.detectors for test in tests(d.definition)))

    @cached_property
    def program_of(self) -> tuple[int, ...]:
        """Which program each monitor runs."""
        numbers = {b: n for n, b in enumerate(dict.fromkeys(self._bodies))}
        return tuple(numbers[b] for b in self._bodies)

    @cached_property
    def emitters(self) -> tuple[tuple[Emitter, ...], ...]:
        """For each monitor, what its pushes make."""
        return tuple(tuple(Emitter(output) for output in self.programs[p].transducer.outputs) for p in self.program_of)


class Emitter:
    """One push: its token and how its attributes are computed from the completing event."""

    def __init__(self, output: Output) -> None:
        self.token = output.token
        self.expressions = output.attributes
        self._evaluate: list[tuple[str, Evaluate]] = [(n, compile_scalar(e, EventScope())) for n, e in output.attributes]

    def attributes(self, event: Event) -> dict[str, Value]:
        values = ((name, evaluate(event)) for name, evaluate in self._evaluate)
        return {name: value for name, value in values if value is not None}


def tests(definition: Monitor | Machine) -> list[Expr]:
    from coincide.lang.ecl.definition import Predicate, walk

    if isinstance(definition, Monitor):
        return [node.test for node in walk(definition.body) if isinstance(node, Predicate)]
    return [t.test.test for t in definition.transitions if t.test is not None]


def body(definition: Monitor | Machine) -> object:
    """What two monitors must share to run as one machine."""
    if isinstance(definition, Monitor):
        return definition.body
    return definition.initial, definition.transitions, definition.order


def key_reader(keys: tuple[str, ...]) -> Callable[[Event], Key | None]:
    """The key of an event; None if any part of it is null."""
    fields = [event_field(key) for key in keys]

    def read(event: Event) -> Key | None:
        values = tuple(key_part(field(event)) for field in fields)
        return None if None in values else values

    return read


def key_part(value: Value) -> object:
    return (value,) if isinstance(value, bool) else value


def key_value(part: object) -> Value:
    return part[0] if isinstance(part, tuple) else part  # type: ignore[return-value]
