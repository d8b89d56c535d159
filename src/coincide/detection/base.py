"""The one contract between detectors and engines.

A plan never changes; all that changes is in the state that the engine keeps for it. Time is an argument, nothing reads a
wall clock. Both tiers of a plan (interpreter, kernel) read and write the same encoded state."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, takewhile
from typing import Any, ClassVar, Protocol, Self

import msgspec

from coincide.expr.tree import Expr, Literal
from coincide.lang.shared.digest import digest_of
from coincide.model.batch import EventBatch
from coincide.model.stamp import OrderKey
from coincide.source import Span

LARGE = 60_000
"""From so many events on a kernel pays for one definition: it takes a second or two until compiled code is loaded."""
LOADED = 2_000
"""The same where it has been loaded already."""
FEW = 5
"""Definitions are so many that their number begins to count."""

COMPILED = "compiled"

Attributes = Mapping[str, tuple[Expr, ...]]
"""By name, the expressions that can make the value."""

State = Any
"""A plan's own; engines only hand it back."""


@dataclass(frozen=True)
class Copied(Expr):
    """Some value of a type, handed on as `of` has it: of whole numbers it is one."""

    example: Literal
    of: Expr


class Clock(msgspec.Struct, frozen=True):
    """How far time has come: every event before `bound` (microseconds, exclusive) has been seen, so timers due before
    it may fire. `start` is the hi of the run's first external event, of any type. `arrival` is given where events are
    consumed one by one as they arrive: the clock at which the event is, which no timer then goes before; where many are, their
    places say it, and they are `unordered`: their own times do not go up. `end` is given when the
    input has ended: the hi of its last event; `endless` says that the clock then goes on until nothing is waited for, and
    `closing` that nothing comes after this step: tables, which have an end, end now. `latest` is the hi of the last external
    event of this step, shown to the plan or not."""

    bound: int
    start: int | None = None
    arrival: int | None = None
    end: int | None = None
    endless: bool = False
    closing: bool = False
    latest: int | None = None
    unordered: bool = False


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Something that a rule has begun and not ended, for people: an open lifespan, a match in progress, what a window holds.
    `origin` are the primitive events in it."""

    rule: str
    key: tuple[object, ...]
    what: str
    since: int | None = None
    due: int | None = None
    origin: tuple[OrderKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Pending:
    """What a state waits for: when its next timer is due, and whether any pending timer is not a recurring one."""

    due: int
    finite: bool


@dataclass(frozen=True)
class Ticking:
    """A definition that acts of itself, without end: so often (in microseconds), if nothing happens."""

    name: str
    every: int
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Changes:
    """How the parts of an encoded state have changed: those that are others now, what is to be added to some, and those that
    there are no more."""

    replaced: dict[str, bytes]
    added: dict[str, bytes]
    gone: Sequence[str] = ()

    def apply(self, parts: dict[str, bytes]) -> None:
        for name in (*self.replaced, *self.gone):
            for old in additions(parts, name):
                del parts[old]
            parts.pop(name, None)
        parts.update(self.replaced)
        for name, data in self.added.items():
            parts[f"{name} +{len(additions(parts, name))}"] = data


def additions(parts: Mapping[str, bytes], name: str) -> list[str]:
    """The names of what was added to a part, in order."""
    return list(takewhile(parts.__contains__, (f"{name} +{number}" for number in count())))


@dataclass(frozen=True)
class Inputs:
    """Which events a plan reads. External events of `external` types (None: of every type); detections of `detections`."""

    external: frozenset[str] | None
    detections: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Detector:
    """One definition of any language, as the graph sees it."""

    name: str
    language: str
    definition: Any  # frozen data of its language
    inputs: Inputs
    outputs: tuple[str, ...]
    partition: tuple[str, ...] | None
    text: Callable[[], str] = field(default=str, compare=False, repr=False)  # printed, with all names resolved
    printed_in: str | None = None  # the language of that text, where it is not its own
    span: Span | None = field(default=None, compare=False, repr=False)
    order: int = 0  # among all definitions of all files
    kind: str = "detector"  # what its language calls it
    awaited: frozenset[str] = frozenset()  # types of events that end limits on what it makes
    policy: Policy | None = None  # under which it is detected, where its definition says so
    stateless: bool = False  # is each event judged by itself?
    prompt: bool = False  # does a detection end with the event or timer that completes it?
    null_keys: bool = False  # is null a key like any other? If not, events with a null among them are ignored
    former: Callable[[], str] | None = field(default=None, compare=False, repr=False)  # digest, in older snapshots

    @cached_property
    def digest(self) -> str:
        """Of its text: a definition that is unchanged keeps its state when rules change."""
        return digest_of(self.printed_in or self.language, self.text())

    def name_in(self, parts: Mapping[str, bytes]) -> str | None:
        """Under which its own is among the parts of a snapshot; None: it has none."""
        if not parts or self.digest in parts:
            return self.digest if parts else None
        former = None if self.former is None else self.former()
        return former if former in parts else None

    def part_of(self, parts: Mapping[str, bytes]) -> bytes | None:
        name = self.name_in(parts)
        return None if name is None else parts[name]


class Ends(msgspec.Struct, frozen=True, array_like=True):
    """What becomes of a part of the rules over some events: by its state at the beginning, as bytes, that at the end. All of them
    were tried, or at least the one that was `assumed`. `binding`: what others have seen of it came of that one alone."""

    name: str
    ends: dict[bytes, bytes]
    assumed: bytes
    binding: bool

    def fits(self, start: bytes) -> bool:
        return start == self.assumed or (start in self.ends and not self.binding)

    def after(self, start: bytes) -> bytes:
        """The state at the end; if that is not known, the one that is likely."""
        return self.ends.get(start, self.ends[self.assumed])


class Policy(Protocol):
    """When events may be consumed: best-effort, guaranteed or probabilistic, which has a threshold."""

    @property
    def kind(self) -> str: ...

    @property
    def threshold(self) -> float: ...


class DetectorPlan:
    """One or more definitions that are stepped together: what each kind of plan has to say, and what holds unless it says
    otherwise."""

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def definitions(self) -> tuple[str, ...]:
        """Names of what it detects, in order of definition."""
        raise NotImplementedError

    @property
    def inputs(self) -> Inputs:
        raise NotImplementedError

    @property
    def outputs(self) -> frozenset[str]:
        """Types of its detections."""
        raise NotImplementedError

    @property
    def columns(self) -> frozenset[str] | None:
        """Attributes that it reads; None: it cannot tell. What is in no plan's columns need not travel."""
        raise NotImplementedError

    @property
    def makes(self) -> Mapping[str, Attributes]:
        """By the types of its detections, their attributes (and `source`, where they have one)."""
        raise NotImplementedError

    @cached_property
    def produces(self) -> Attributes:
        """The same of all its detections together."""
        joined: dict[str, dict[Expr, None]] = {}
        for name, trees in (item for made in self.makes.values() for item in made.items()):
            joined.setdefault(name, {}).update(dict.fromkeys(trees))
        return {name: tuple(trees) for name, trees in joined.items()}

    @property
    def passes_on(self) -> frozenset[str]:
        """Types of its detections that may have whatever attributes events have."""
        return frozenset()

    @property
    def relevant(self) -> Expr | None:
        """A test of one external event: false or null means that the plan ignores the event for certain. None: no such test."""
        raise NotImplementedError

    @property
    def partition(self) -> tuple[str, ...] | None:
        """Attributes on whose values detection is independent (events with a null among them are ignored, unless its
        detectors say otherwise); None: global."""
        raise NotImplementedError

    @property
    def timed(self) -> bool:
        """Does it set timers? If not, the passing of time changes nothing."""
        raise NotImplementedError

    @property
    def stores_due(self) -> bool:
        """If its state is written as tables, do columns named `due` tell of all its timers?"""
        return False

    @property
    def rests(self) -> bool:
        """Is there nothing to do, nor to note, until an event comes that it reads or the timer is due that it waits for?"""
        return not self.timed

    @property
    def reads_sets(self) -> bool:
        """Does it read attributes with several values, and pass them on? To most they are null."""
        return False

    @property
    def counts_tests(self) -> bool:
        """Do its statistics count tests of events that fail them?"""
        return False

    @property
    def ticking(self) -> Sequence[Ticking]:
        """Its definitions that act of themselves again and again for as long as time goes on."""
        return ()

    @property
    def envelope(self) -> frozenset[str] | None:
        """Optional fields of the envelope that it reads; None: it may read them all."""
        return None

    def tier_reasons(self) -> tuple[str, ...]:
        """Why it has no kernel tier; empty: it has one."""
        return ()

    @property
    def pays_from(self) -> int:
        """The number of events from which on its kernel tier is the faster one."""
        return LARGE

    @property
    def manner(self) -> str:
        """How its kernel tier works, in words: `compiled`, or what it does without waiting for a compiler."""
        return COMPILED

    @property
    def loop(self) -> str:
        """The module whose compiled code its kernel tier begins with; empty: it needs no compiler."""
        return ""

    def kernel(self) -> DetectorPlan:
        """The same plan in the kernel tier."""
        raise NotImplementedError

    @property
    def form(self) -> object | None:
        """What it has in common with plans that its class can step `together` with it. None: it is stepped by itself."""
        return None

    def takes_arrivals(self, delay: int) -> bool:
        """Can its kernel tier consume batches of events as they arrive, none of them so much (microseconds) after its hi?"""
        return False

    def with_steps(self, steps: int) -> Self:
        """With another limit on the steps that it may take; itself if it does not count them."""
        return self

    def initial(self) -> State:
        raise NotImplementedError

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        """Consume a batch whose rows stand in order of place, firing own timers at their places, then those that are due
        before the clock's bound. Returns the state (which may be the one given, changed) and the detections by place."""
        raise NotImplementedError

    def pending(self, state: State) -> Pending | None:
        raise NotImplementedError

    def encode(self, state: State) -> dict[str, bytes]:
        """Versioned bytes for each definition, by the digest of its text: what is unchanged keeps its state."""
        raise NotImplementedError

    def decode(self, parts: Mapping[str, bytes]) -> State:
        """The state from encoded parts; a definition without one starts afresh."""
        raise NotImplementedError

    def tells_changes(self, state: State) -> bool:
        """Can it tell what has changed in the state, at the cost of what was touched?"""
        return False

    def changes(self, state: State, everything: bool = False) -> Changes:
        """What has changed since this was asked last, or all there is, which it may also tell unasked."""
        raise NotImplementedError

    def essence(self, state: State) -> bytes:
        """What the future depends on: states in which this is equal have one future. Where it is not, they may have, too."""
        raise NotImplementedError

    def opened(self, feeds: bool) -> OpenPlan | None:
        """The plan as it begins in the middle of a run, from all states that it may be in; `feeds`: others read what it detects.
        None: they are too many, or not known."""
        return None

    def beginnings(self) -> Iterator[str]:
        """How it begins in the middle of a run, in words."""
        yield compared(self.definitions)

    def statistics(self, state: State) -> Mapping[str, Any]:
        """Numbers that it counts, or numbers by name."""
        return {}

    def unfinished(self, state: State) -> Iterator[Unfinished]:
        """What has begun and not ended, in a state of the interpreter tier."""
        return iter(())

    def sharing(self) -> str:
        """What its definitions have in common beside the events that they read, in words; nothing to say: empty."""
        return ""

    def memory(self) -> str:
        """What is kept, in words."""
        waiting = "what it waits for" + (" and its timers" if self.timed else "")
        return f"{waiting}, {self._for_whom} (warnings tell what may pile up)"

    @property
    def _for_whom(self) -> str:
        return "for each value of the key that is not at its start" if self.partition else "in all"

    def outline(self) -> Iterator[str]:
        """What it is made of, line by line."""
        return iter(())


class PlanFamily(Protocol):
    """Plans of one form, which read external events only, stepped as one."""

    def fresh(self) -> State: ...

    def takes(self, batch: EventBatch, clock: Clock) -> bool:
        """Can they be stepped as one over this batch?"""

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        """As each of them would be, in the same order."""

    def pending(self, state: State) -> Pending | None: ...

    def apart(self, state: State) -> Sequence[State]:
        """The state of each by itself."""


class OpenPlan(DetectorPlan):
    """A plan whose parts run from many states at once. `initial` are all of them."""

    @property
    def is_complete(self) -> bool:
        """Are all states of all parts known?"""
        raise NotImplementedError

    def begun(self) -> State:
        """At the beginning of the run."""
        raise NotImplementedError

    def assuming(self, assumed: Sequence[bytes]) -> State:
        """From all states, with one for each part that is thought to be the right one."""
        raise NotImplementedError

    def begin(self, state: State) -> State:
        """What there is now is the beginning."""
        raise NotImplementedError

    def ends(self, state: State) -> Sequence[Ends]:
        """Part by part."""
        raise NotImplementedError

    def told(self, state: State) -> Sequence[tuple[int, frozenset[bytes], EventBatch]]:
        """Detections that `step` has not returned, since they depend on the beginning: of which part, and from which states."""
        raise NotImplementedError


def in_tier(
    plans: Iterable[DetectorPlan], tier: str, size: int = 0, is_ready: Callable[[str], bool] | None = None
) -> list[DetectorPlan]:
    """Plans in the tier asked for, or each in the one that suits batches of `size` events (`auto`); a plan without a kernel
    tier, or whose loop is not ready, is interpreted."""

    plans = tuple(plans)

    def takes_kernel(plan: DetectorPlan, pays_from: int) -> bool:
        wanted = size >= pays_from if tier == "auto" else tier == "kernel"
        return wanted and not plan.tier_reasons() and (is_ready is None or not plan.loop or is_ready(plan.loop))

    return [plan.kernel() if takes_kernel(plan, least) else plan for plan, least in zip(plans, paying_sizes(plans), strict=True)]


def paying_sizes(plans: Sequence[DetectorPlan], loaded: Container[str] = sys.modules) -> list[int]:
    """From how many events on kernels are faster, plan by plan. Interpreters take their time for each definition; until compiled
    code is loaded, which then is for all, everybody waits. `loaded` are modules that are there."""
    rules = sum(len(plan.definitions) for plan in plans if plan.manner == COMPILED)

    def pays_from(plan: DetectorPlan) -> int:
        if plan.manner != COMPILED:
            return plan.pays_from
        scaled = plan.pays_from * FEW // (FEW - 1 + rules)
        return min(scaled, LOADED) if plan.loop in loaded else scaled

    return [pays_from(plan) for plan in plans]


@dataclass(frozen=True, kw_only=True)
class Tiered(DetectorPlan):
    """What plans of one and of several detectors have in common: two tiers."""

    LOOP: ClassVar[str] = ""
    tier: str = "interpreter"

    @property
    def loop(self) -> str:
        return self.LOOP if self.manner == COMPILED else ""

    def tier_reasons(self) -> tuple[str, ...]:
        return self._reasons

    @property
    def _reasons(self) -> tuple[str, ...]:
        return ()

    @property
    def _interpreted(self) -> bool:
        return self.tier == "interpreter"

    @cached_property
    def _runner(self) -> Any:
        return self._interpreter if self._interpreted else self._kernel

    @property
    def _interpreter(self) -> Any:
        raise NotImplementedError

    @property
    def _kernel(self) -> Any:
        raise NotImplementedError

    def initial(self) -> State:
        return self.decode({})

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        result: tuple[State, EventBatch] = self._runner.step(state, batch, clock)
        return result

    def pending(self, state: State) -> Pending | None:
        if not self.timed:
            return None
        found: Pending | None = state.timers.pending() if self._interpreted else self._kernel.pending(state)
        return found

    def changes(self, state: State, everything: bool = False) -> Changes:
        found: Changes = self._runner.changes(state, everything)
        return found

    def essence(self, state: State) -> bytes:
        """As the interpreter has it: numbers of rows in a kernel's tables are of no account."""
        plain: Any = replace(self, tier="interpreter")
        parts = plain.encode(plain.essential(plain.decode(self.encode(state))))
        return msgspec.msgpack.encode(sorted(parts.items()))

    def essential(self, state: State) -> State:
        """A state of the interpreter tier, which may be changed, without what is only counted."""
        return state

    def kernel(self) -> Self:
        """What is known of the plan already is true in both tiers, but for what runs it."""
        found = replace(self, tier="kernel")
        vars(found).update((name, value) for name, value in vars(self).items() if name not in ("tier", "_runner"))
        return found


def compared(names: Iterable[str], reason: str = "") -> str:
    """How something begins in the middle of a run of which not all states are tried."""
    why = f", since {reason}" if reason else ""
    return f"{', '.join(names)}: begins early, and is compared with the end of the range before{why}"


@dataclass(frozen=True)
class PlanOfOne(Tiered):
    """The part of a plan that follows from its being of one detector."""

    detector: Detector

    @property
    def name(self) -> str:
        return self.detector.name

    @property
    def definitions(self) -> tuple[str, ...]:
        return (self.detector.name,)

    @property
    def inputs(self) -> Inputs:
        return self.detector.inputs

    @property
    def partition(self) -> tuple[str, ...] | None:
        return self.detector.partition

    @cached_property
    def outputs(self) -> frozenset[str]:
        return frozenset(self.detector.outputs)


@dataclass(frozen=True)
class PlanOfSeveral(Tiered):
    """The same of detectors that are stepped together."""

    detectors: tuple[Detector, ...]

    @property
    def name(self) -> str:
        first, more = self.detectors[0].name, len(self.detectors) - 1
        return f"{first} and {more} more" if more else first

    @cached_property
    def definitions(self) -> tuple[str, ...]:
        return tuple(d.name for d in self.detectors)

    @cached_property
    def outputs(self) -> frozenset[str]:
        return frozenset(o for d in self.detectors for o in d.outputs)

    @property
    def partition(self) -> tuple[str, ...] | None:
        return self.detectors[0].partition
