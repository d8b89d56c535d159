"""Monitors as finite-state transducers: letters in, pushes out.

A *letter* is the set of a monitor's labels that hold on an event, as a bit mask. A *configuration* is an immutable value
(numbers and tuples of them), so it can be hashed, interned by kernels and written to a snapshot."""

from __future__ import annotations

from typing import Any, Protocol

from coincide.detection.machine.expression import Node, compile_expression, is_slot
from coincide.detection.machine.literal import LiteralTransducer
from coincide.lang.ecl.definition import Correlation, Machine, Monitor, Output, Predicate, Push
from coincide.syntax import walk

Configuration = Any
Step = tuple[Configuration, tuple[int, ...]]

SUCCEEDED, FAILED, ENDED = 1, 2, -1
"""Configurations of a monitor that is over; ENDED: its internal transitions did not settle."""

OUTCOMES = {SUCCEEDED: "success", FAILED: "failure"}


class Transducer(Protocol):
    """Constant memory, deterministic. Bit i of a letter is labels[i]; outputs are indices into `outputs`."""

    labels: tuple[Predicate, ...]
    outputs: tuple[Output, ...]
    start: Configuration

    def step(self, configuration: Configuration, letter: int) -> Step: ...

    def accepts(self, configuration: Configuration) -> bool:
        """Is this one of its configurations? What is read from a snapshot may not be."""


class ExpressionTransducer:
    """A correlation expression by the structural reading of section 3; pushes come out in post-order."""

    def __init__(self, body: Correlation) -> None:
        nodes = list(walk(body))
        predicates = {node.label: node for node in nodes if isinstance(node, Predicate)}
        self.labels = tuple(predicates.values())
        bits = {label: 1 << i for i, label in enumerate(predicates)}
        pushes: list[Push] = []
        self._root: Node = compile_expression(body, bits, pushes)
        self.outputs = tuple(push.output for push in pushes)
        self.start: Configuration = self._root.start

    def step(self, configuration: Configuration, letter: int) -> Step:
        if configuration in OUTCOMES:
            return configuration, ()
        emitted: list[int] = []
        outcome, following = self._root.visit(configuration, letter, emitted)
        return (outcome or following), tuple(emitted)

    def accepts(self, configuration: Configuration) -> bool:
        return is_slot(self._root, configuration)


def transducer(definition: Monitor | Machine | Correlation) -> Transducer:
    if isinstance(definition, Machine):
        return LiteralTransducer(definition)
    return ExpressionTransducer(definition.body if isinstance(definition, Monitor) else definition)
