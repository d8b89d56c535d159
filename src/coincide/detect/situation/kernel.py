"""Situations over columns: rows that concern nobody are left out first; what is left goes through the interpreter."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from coincide.detect.base import Clock, Pending
from coincide.detect.situation.interpreter import Interpreter
from coincide.detect.situation.prefilter import Prefilter
from coincide.detect.situation.program import Group
from coincide.detect.situation.state import SituationState
from coincide.model.batch import EventBatch


@dataclass
class KernelState:
    """The state as objects, as the interpreter has it."""

    objects: SituationState

    @property
    def situations(self) -> list[Counter[str]]:
        return self.objects.situations

    @property
    def lifespans(self) -> list[Counter[str]]:
        return self.objects.lifespans

    def pending(self) -> Pending | None:
        return self.objects.pending()


class Kernel:
    """Steps a group of situations."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self._prefilter = Prefilter(group)
        self._interpreter = Interpreter(group)

    def state(self, objects: SituationState) -> KernelState:
        return KernelState(objects)

    def objects(self, state: KernelState) -> SituationState:
        return state.objects

    def step(self, state: KernelState, batch: EventBatch, clock: Clock) -> tuple[KernelState, EventBatch]:
        begins_late = bool(state.objects.fresh) and state.objects.late
        picked = self._prefilter.pick(batch, begins_late)
        _, made = self._interpreter.step(state.objects, picked, clock)
        return state, made
