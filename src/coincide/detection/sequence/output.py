"""Detections of a query, and its pipes (section 7)."""

from __future__ import annotations

from coincide.detection.eventwise import Cause
from coincide.detection.keys import Key, key_value
from coincide.detection.sequence.program import Program
from coincide.detection.sequence.state import Kept, Piped, Trace
from coincide.lang.eql.definition import HIDDEN
from coincide.model.event import Value


class Output:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.pipes = program.query.pipes

    def detected(self, state: Piped, key: Key, trace: Trace, cause: Cause, hi: int) -> None:
        """A detection is made; pipes say whether it is given out."""
        attributes: dict[str, Value] = dict(zip(self.program.fields, trace.shown, strict=True))
        for name, part in zip(self.program.key_names, key, strict=True):
            if name not in HIDDEN:
                attributes[name] = key_value(part)
        self._emit(state, Kept(trace.lo, hi, attributes, tuple(sorted(set(trace.origin)))), 0, cause)

    def _emit(self, state: Piped, made: Kept, first: int, cause: Cause) -> None:
        if self.passes(state, made, first):
            cause.emit(self.program.order, self.program.query.name, (made.lo, made.hi), made.attributes, made.origin)

    def passes(self, state: Piped, made: Kept, first: int = 0) -> bool:
        """Is it given out, through the pipes from the first on?"""
        for number in range(first, len(self.pipes)):
            pipe = self.pipes[number]
            if pipe.name == "tail":
                state.kept[number] = [*state.kept[number], made][-pipe.count :]
                return False
            if state.passed[number] >= pipe.count:
                return False
            state.passed[number] += 1
        return True

    def ended(self, state: Piped, cause: Cause) -> None:
        """The end of the input: what `tail` holds goes on, from left to right."""
        for number in range(len(self.pipes)):
            held, state.kept[number] = state.kept[number], []
            for made in held:
                self._emit(state, made, number + 1, cause)
