"""A group of situations as a plan: the contract that engines know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from coincide.detection.base import (
    Attributes,
    Copied,
    Detector,
    DetectorPlan,
    Inputs,
    Pending,
    PlanOfSeveral,
    State,
    Ticking,
    Unfinished,
)
from coincide.detection.situation import encoding
from coincide.detection.situation.forms import form_of
from coincide.detection.situation.interpreter import Interpreter
from coincide.detection.situation.operators import BEHAVIOURS
from coincide.detection.situation.program import Group
from coincide.detection.situation.relevance import relevance
from coincide.detection.situation.support import loop_reasons
from coincide.expr.quantities import counted
from coincide.expr.tree import Expr, Literal, Reference
from coincide.lang.amit.definition import SituationAttribute
from coincide.lang.amit.resolve import Resolved
from coincide.model.event import united_origin

if TYPE_CHECKING:
    from coincide.detection.columns.codec import Relations
    from coincide.detection.situation.kernel.families import Family

SOME: dict[str, float | str | bool] = {"number": 0.0, "string": "", "boolean": False}
MOST = 16
"""Situations in a plan, but for those on one cycle: each is looked at for every event that one of them reads."""
COUNTED = ("candidates", "conditions", "accesses")


@dataclass(frozen=True)
class SituationPlan(PlanOfSeveral):
    """Situations of one stage that are partitioned alike, or that lie on one cycle."""

    LOOP: ClassVar[str] = "coincide.detection.situation.kernel.loop"
    rests: ClassVar[bool] = True
    counts_tests: ClassVar[bool] = True
    stores_due: ClassVar[bool] = True

    @cached_property
    def inputs(self) -> Inputs:
        read = frozenset(event for d in self.detectors for event in d.definition.reads)
        return Inputs(read, read - self.outputs)  # what goes round inside a cycle is not handed in

    @property
    def columns(self) -> frozenset[str]:
        return self.group.columns

    @cached_property
    def makes(self) -> dict[str, Attributes]:
        return {
            d.name: {a.name: (self._example(d.definition, a),) for a in d.definition.situation.attributes} for d in self.detectors
        }

    def _example(self, resolved: Resolved, attribute: SituationAttribute) -> Expr:
        """A key that is handed on as it is, or some value of the declared type: situation expressions mean nothing elsewhere."""
        key = attribute.name in (self.partition or ()) and resolved.hands_on(attribute.name)
        if key:
            return Reference(attribute.name)
        some, copied = Literal(SOME[attribute.type]), resolved.copied(attribute.expression)
        return Copied(some, copied) if copied is not None and attribute.type == "number" else some

    @cached_property
    def relevant(self) -> Expr | None:
        return relevance([d.definition for d in self.detectors])

    @cached_property
    def timed(self) -> bool:
        return any(d.definition.lifespan.expiration is not None or _has_timers(d) for d in self.detectors)

    @cached_property
    def ticking(self) -> Sequence[Ticking]:
        """A lifespan that expires ends its ticks, but may be opened again by that."""
        every = [(s, s.renews_every if s.resolved.lifespan.expiration else s.ticks_every) for s in self.group.situations]
        return [Ticking(s.name, often, s.detector.span) for s, often in every if often is not None]

    @cached_property
    def group(self) -> Group:
        return Group(self.detectors)

    @property
    def _interpreter(self) -> Interpreter:
        return Interpreter(self.group)

    @property
    def _kernel(self) -> Any:
        from coincide.detection.situation.kernel.kernel import Kernel

        return Kernel(self.group)

    def takes_arrivals(self, delay: int) -> bool:
        """No timer may be due already when it is set: of `after`, or of a lifespan that begins with the first event."""
        if self._interpreted or self.loop_reasons():
            return False
        after = [s.operator.interval for s in self.group.situations if s.behaviour.delays]
        at_startup = [x.definition.expiration for x in self.group.lifespans if x.definition.startup]
        return all(interval > delay for interval in (*after, *(e.interval for e in at_startup if e is not None)))

    def tier_reasons(self) -> tuple[str, ...]:
        """None: in the kernel tier rows that concern nobody are left out over columns, whatever the definition."""
        return ()

    @cached_property
    def loop(self) -> str:
        return "" if self.loop_reasons() else self.LOOP

    def loop_reasons(self) -> tuple[str, ...]:
        """Why, in the kernel tier, the rows that are left are interpreted; empty: a compiled loop runs over them."""
        return self.group.loop_reasons

    @cached_property
    def form(self) -> object | None:
        """That of all its situations, which have a lifespan each."""
        forms = {None} if self._interpreted or self.loop_reasons() else {form_of(d.definition) for d in self.detectors}
        lifespans = {d.definition.lifespan.name for d in self.detectors}
        return forms.pop() if len(forms) == 1 and len(lifespans) == len(self.detectors) else None

    def taken_up(self, relations: Relations) -> State:
        """Its state, from what was told of it as one of several."""
        return self._runner.taken_up(relations)

    @staticmethod
    def together(plans: Sequence[SituationPlan]) -> Family:
        from coincide.detection.situation.kernel.families import Family

        return Family(plans)

    def pending(self, state: State) -> Pending | None:
        found: Pending | None = state.pending()
        return found

    def encode(self, state: State) -> dict[str, bytes]:
        parts: dict[str, bytes] = encoding.encode(self.group, state) if self._interpreted else self._runner.encode(state)
        return parts

    def tells_changes(self, state: State) -> bool:
        return not self._interpreted and state.tables is not None

    def decode(self, parts: Mapping[str, bytes]) -> State:
        return encoding.decode(self.group, parts) if self._interpreted else self._runner.decode(parts)

    def essential(self, state: State) -> State:
        for counter in (*state.situations, *state.lifespans):
            counter.clear()
        return state

    def unfinished(self, state: State) -> Iterator[Unfinished]:
        for lifespan in (each for by_key in state.open for some in by_key.values() for each in some):
            program = self.group.lifespans[lifespan.definition]
            dues = [timer.due for timer in lifespan.timers() if not timer.cancelled]
            for situation in program.situations:
                content = lifespan.contents.get(situation.number)
                partitions = () if content is None else content.partitions.values()
                candidates = [event for partition in partitions for some in partition.candidates for event in some]
                what = f"lifespan {program.definition.name}, {counted(len(candidates), 'candidate')}"
                due = min(dues, default=lifespan.due)
                yield Unfinished(situation.name, lifespan.key, what, lifespan.opened, due, united_origin(candidates))

    def statistics(self, state: State) -> dict[str, Any]:
        """AMIT-63, as far as this plan goes: a lifespan of situations in several plans is counted in one of them."""
        lifespans = [c for x, c in zip(self.group.lifespans, state.lifespans, strict=True) if x.counts]
        sums: Counter[str] = Counter()
        for counter in (*state.situations, *state.lifespans):
            sums.update(counter)
        detected = {s.name: c["detections"] for s, c in zip(self.group.situations, state.situations, strict=True)}
        return {
            "detections": sums["detections"],
            "situations": detected,
            **{name: sums[name] for name in COUNTED},
            "lifespans_initiated": sum(c["initiated"] for c in lifespans),
            "lifespans_terminated": sum(c["terminated"] for c in lifespans),
        }


def _has_timers(detector: Detector) -> bool:
    behaviour = BEHAVIOURS[detector.definition.operator.kind]
    return behaviour.ticks or behaviour.delays


def plans(detectors: Sequence[Detector]) -> list[DetectorPlan]:
    """Plans for the situations of one stage: those on one cycle go together, the others by what they are partitioned by. What the
    compiled loop cannot do does not keep the others from it, and no plan has so many that an event would concern few of them."""
    groups: dict[tuple[object, ...], list[Detector]] = {}
    for detector in detectors:
        compiled = not loop_reasons([detector.definition])
        ticks = BEHAVIOURS[detector.definition.operator.kind].ticks  # timers of others come in another order
        groups.setdefault((detector.definition.component, detector.partition, compiled, ticks and compiled), []).append(detector)
    found: list[DetectorPlan] = []
    for (component, _, is_compiled, _), group in groups.items():
        size = len(group) if component else MOST
        for some in _by_form(group) if is_compiled and len(group) > size else [group]:
            found += [SituationPlan(tuple(some[start : start + size])) for start in range(0, len(some), size)]
    return found


def _by_form(detectors: Sequence[Detector]) -> list[list[Detector]]:
    """Those of a form that many have, each with a lifespan that the others do not have; and the rest."""
    lifespans = Counter(detector.definition.lifespan.name for detector in detectors)
    forms = [form_of(d.definition) if lifespans[d.definition.lifespan.name] == 1 else None for d in detectors]
    several = Counter(forms)
    found: dict[object, list[Detector]] = {}
    for detector, form in zip(detectors, forms, strict=True):
        found.setdefault(form if several[form] >= MOST else None, []).append(detector)
    return [*found.values()]
