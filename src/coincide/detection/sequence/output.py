"""Detections of a query, and its pipes (section 7)."""

from __future__ import annotations

from coincide.detection.eventwise import Cause
from coincide.detection.keys import Key, key_value
from coincide.detection.sequence.program import Program
from coincide.detection.sequence.state import Kept, State, Trace
from coincide.lang.eql.definition import HIDDEN
from coincide.model.event import Value


class Output:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.pipes = program.query.pipes

    def detected(self, state: State, key: Key, trace: Trace, cause: Cause, hi: int) -> None:
        """A detection is made; pipes say whether it is given out."""
        attributes: dict[str, Value] = dict(zip(self.program.fields, trace.shown, strict=True))
        for name, part in zip(self.program.key_names, key, strict=True):
            if name not in HIDDEN:
                attributes[name] = key_value(part)
        self._passed(state, Kept(trace.lo, hi, attributes, tuple(sorted(set(trace.origin)))), 0, cause)

    def _passed(self, state: State, made: Kept, first: int, cause: Cause) -> None:
        """Through the pipes from the first on."""
        for number in range(first, len(self.pipes)):
            pipe = self.pipes[number]
            if pipe.name == "tail":
                state.kept[number] = [*state.kept[number], made][-pipe.count :]
                return
            if state.passed[number] >= pipe.count:
                return
            state.passed[number] += 1
        cause.emit(self.program.order, self.program.query.name, (made.lo, made.hi), made.attributes, made.origin)

    def ended(self, state: State, cause: Cause) -> None:
        """The end of the input: what `tail` holds goes on, from left to right."""
        for number in range(len(self.pipes)):
            held, state.kept[number] = state.kept[number], []
            for made in held:
                self._passed(state, made, number + 1, cause)
