"""A description as a plan: the contract that engines know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from coincide.detection.base import Attributes, Changes, Copied, Detector, DetectorPlan, PlanOfOne, State, Unfinished
from coincide.detection.correlation import encoding
from coincide.detection.correlation import state as states
from coincide.detection.correlation.construction import compile_description
from coincide.detection.correlation.interpreter import Interpreter
from coincide.detection.correlation.kernel.trees import Trees, reasons
from coincide.detection.correlation.program import Program
from coincide.detection.correlation.view import Message
from coincide.detection.parts import changes_of, tables_of, with_tables
from coincide.detection.snapshots import damaged
from coincide.expr.quantities import counted
from coincide.expr.tree import Call, Compare, Expr, In, Literal, Reference
from coincide.lang.cdl.definition import Description, EventAttribute, TimeEvent
from coincide.model.compound import COMPOUND_MAKERS
from coincide.model.event import ENVELOPE
from coincide.syntax import walk

EXAMPLES: dict[str, Expr] = {"string": Literal(""), "boolean": Literal(True)}
"""A value of each type, to tell the types of detections' attributes by; all others are numbers."""

PAYS_FROM = (50_000, 50_000, 5_000, 1_000, 300)
"""By the number of sources of the largest group: about where, or a little before, the two tiers take equally long. Measured for
two to five sources; for one, the times at 20,000 events carried on."""


@dataclass(frozen=True)
class CorrelationPlan(PlanOfOne):
    """One description."""

    reads_sets: ClassVar[bool] = True  # and passes them on
    manner: ClassVar[str] = "over columns"

    @cached_property
    def columns(self) -> frozenset[str]:
        """Declared attributes; a look-up replaces the message's own value."""
        declared = (s.attributes for s in self._cd.sources if not isinstance(s, TimeEvent))
        return frozenset(a.name for some in declared for a in some if a.lookup is None) - ENVELOPE

    @cached_property
    def makes(self) -> dict[str, Attributes]:
        made: dict[str, dict[str, tuple[Expr, ...]]] = {}
        several = self._several()
        for event in self._cd.events:
            own = made.setdefault(event.message_class, {})
            values = [(a.name, (self._example(a), *several)) for a in event.attributes]
            if event.access not in ("public", "internal"):
                values.append(("source", (Literal(event.access),)))
            for name, trees in values:
                own[name] = tuple(dict.fromkeys((*own.get(name, ()), *trees)))
        return dict(made)

    def _example(self, attribute: EventAttribute) -> Expr:
        if attribute.type in EXAMPLES:
            return EXAMPLES[attribute.type]
        name = attribute.value.name if isinstance(attribute.value, Reference) else None
        messages = [source for source in self._cd.sources if not isinstance(source, TimeEvent)]
        own = next((a for source in messages for a in source.attributes if f"{source.anchor}.{a.name}" == name), None)
        some = Literal(0.0)
        return some if own is None or own.lookup is not None else Copied(some, Reference(own.name))

    def _several(self) -> Sequence[Expr]:
        """Where the description makes sets or ranges: any attribute may hold one."""
        values = [c.value for c in self._cd.computations] + [a.value for e in self._cd.events for a in e.attributes]
        makers = (node for value in values for node in walk(value) if isinstance(node, Call))
        return [node for node in makers if node.name in COMPOUND_MAKERS][:1]

    @cached_property
    def relevant(self) -> Expr | None:
        """Types alone: an attribute that is a set or range is null to the expressions that engines push down."""
        types = self.inputs.external
        if types is None:
            return None
        names = tuple(Literal(name) for name in sorted(types))
        if not names:
            return Literal(False)
        kind = Reference("type")
        return Compare("=", kind, names[0]) if len(names) == 1 else In(kind, names)

    @cached_property
    def timed(self) -> bool:
        return any(isinstance(source, TimeEvent) for source in self._cd.sources)

    @property
    def _cd(self) -> Description:
        cd: Description = self.detector.definition
        return cd

    @cached_property
    def program(self) -> Program:
        return compile_description(self._cd)

    @cached_property
    def _interpreter(self) -> Interpreter:
        return Interpreter(self.program, self.detector.order)

    @cached_property
    def _trees(self) -> Trees:
        return Trees(self.program)

    @cached_property
    def _kernel(self) -> Any:
        from coincide.detection.correlation.kernel.kernel import Kernel

        key = None if self.partition is None else self.partition[0]
        return Kernel(self.program, self.detector.order, detected=self.inputs.detections, key=key, trees=self._trees)

    @cached_property
    def _reasons(self) -> tuple[str, ...]:
        """What the join tier cannot do."""
        return reasons(self.program, lambda: self._trees)

    @cached_property
    def pays_from(self) -> int:
        """The interpreter holds every combination that waits, so the more sources a combination has, the sooner it is slower.
        The join tier compiles nothing, but takes some tenths of a second to import."""
        return PAYS_FROM[min(max((len(group.pos) for group in self.program.groups), default=0), len(PAYS_FROM) - 1)]

    def initial(self) -> State:
        return states.fresh(self.program) if self._interpreted else self._kernel.fresh()

    def encode(self, state: State) -> dict[str, bytes]:
        """Where instances follow from messages, these as tables; but for sets and ranges, which columns do not hold."""
        objects = state if self._interpreted else state.objects
        compact = state.compact if objects is None else None if self._reasons else self._kernel.compact(objects)
        if compact is None:
            return {self.detector.digest: encoding.encode(self.program, objects)}
        return with_tables(self.detector, self._kernel.encode(compact), encoding.TABLES)

    def tells_changes(self, state: State) -> bool:
        return not self._interpreted and state.compact is not None

    def changes(self, state: State, everything: bool = False) -> Changes:
        data, is_whole = self._kernel.changes(state.compact, everything)
        return changes_of(self.detector, data, is_whole, encoding.TABLES)

    def decode(self, parts: Mapping[str, bytes]) -> State:
        data, tables = self.detector.part_of(parts), tables_of(self.detector, parts, encoding.TABLES)
        if data is None:
            return self.initial()
        if tables is not None:
            self._check_follow()
            found = self._kernel.read(*tables)
            found.compact.renewed |= self.detector.digest not in parts
            return self._kernel.objects(found) if self._interpreted else found
        state, partial = encoding.decode(self.program, data)
        if self._interpreted and not partial:
            return state
        if partial:
            self._check_follow()
        found = self._kernel.state(state, partial)
        return self._kernel.objects(found) if self._interpreted else found

    def _check_follow(self) -> None:
        if self._reasons:
            damaged("it holds messages only, but instances do not follow from them")

    def unfinished(self, state: State) -> Iterator[Unfinished]:
        for instance in (instance for live in state.live for instance in live.instances.values()):
            messages = [*instance.mapped]
            since = min((message.lo for message in messages), default=None)
            origin = sorted({key for message in messages for key in message.origin})
            given = next((message for message in messages if message.trigger is None), None)
            what = f"{counted(len(messages), 'message')} matched"
            yield Unfinished(self.name, self._key(given), what, since, origin=tuple(origin))
        for timer in state.timers.live():
            yield Unfinished(self.name, self._key(timer.payload[1]), "a time event is set", due=timer.due)

    def _key(self, message: Message | None) -> tuple[object, ...]:
        if message is None:
            return ()
        return tuple(message.source if name == "source" else message.values.get(name) for name in self.partition or ())


def plans(detectors: Sequence[Detector]) -> list[DetectorPlan]:
    return [CorrelationPlan(detector) for detector in detectors]
