"""Which detectors run together, and by which key their events can be spread.

Detectors that feed one another must meet in one place: they form a component. What all members of a component are keyed by
is its key, if the detections that they exchange carry it. A component without such a key is cut into stages, where it can be:
each is spread by its own key, and takes in the detections of the stages before. Groups of one stage with an equal key are one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coincide.compile.graph import feeds
from coincide.detection.base import Detector, DetectorPlan, in_tier
from coincide.detection.limits import concerning, independent
from coincide.detection.suppression import kept_keys
from coincide.expr.tree import Reference
from coincide.graphs import components as strong_components
from coincide.rulebook import Rulebook

Key = tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Detectors that run in one pass. No key: in one partition, for the reasons given; an empty one: wherever events are."""

    key: Key | None
    detectors: tuple[Detector, ...]
    reasons: tuple[str, ...] = ()
    stage: int = 0  # groups of earlier stages may feed it

    @property
    def null_keys(self) -> bool:
        """Do events without a value of the key matter?"""
        return any(d.null_keys for d in self.detectors)

    @property
    def members(self) -> tuple[int, ...]:
        """Numbers of the detectors in the rulebook."""
        return tuple(d.order for d in self.detectors)

    @property
    def name(self) -> str:
        """The same as long as there are rules with this key, whatever others come and go: the state is kept by it."""
        return self._keyed + (f", stage {self.stage + 1}" if self.stage else "")

    @property
    def _keyed(self) -> str:
        if not self.key:
            return "without a key" if self.key is None else "event by event"
        return f"by {', '.join(sorted(self.key))}" + (" or none" if self.null_keys else "")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(d.name for d in self.detectors)

    def plans(self, rules: Rulebook, tier: str = "interpreter") -> list[DetectorPlan]:
        return in_tier(rules.compiled.plans_for(self.detectors), tier)


@dataclass(frozen=True)
class Cutting:
    """Which detectors that feed one another may be in different groups: in no more `stages` than these (None: in as many as it
    takes). A stream knows only the events that are consumed just now, so there timers feed nobody elsewhere."""

    stages: int | None = None
    streaming: bool = False


WHOLE = Cutting(1)


def groups(rules: Rulebook, several: frozenset[str] = frozenset(), cutting: Cutting = WHOLE) -> list[Group]:
    """All detectors in as few groups as their keys allow, by stages, in order of definition. `several` are fields that may have
    several values: an event may then have several keys, of languages that look at each."""
    gathered: dict[tuple[int, Key | None, bool], tuple[list[Detector], list[str]]] = {}
    for component in components(rules.detectors):
        for part in _parts(rules, component, several, cutting):
            detectors, why = gathered.setdefault((part.stage, _canonical(part.key), bool(part.key) and part.null_keys), ([], []))
            detectors += part.detectors
            why += part.reasons
    return [
        Group(_written(key, detectors), tuple(sorted(detectors, key=lambda d: d.order)), tuple(dict.fromkeys(why)), stage)
        for (stage, key, _), (detectors, why) in sorted(gathered.items(), key=lambda item: item[0][0])
    ]


def reasons_against_ranges(planned: Sequence[tuple[Group, Sequence[DetectorPlan]]]) -> list[str]:
    """Why a batch cannot be cut into ranges of time; empty: it can. That is for one group, without a key."""
    if len(planned) != 1 or planned[0][0].key is not None:
        return ["ranges are for rules in one stage, none of which has a key"]
    ticking = [one.name for plan in planned[0][1] for one in plan.ticking]
    return [f"{_quoted(ticking)} acts without events, which is watched over all of them"] if ticking else []


def _parts(rules: Rulebook, component: Sequence[Detector], several: frozenset[str], cutting: Cutting) -> list[Group]:
    key, reasons = _key(rules, component, several)
    if key is not None or cutting.stages == 1:
        return [Group(key, tuple(component), tuple(reasons))]
    ticking = [one.name for plan in rules.compiled.plans_for(component) for one in plan.ticking]
    if ticking:  # what acts of itself is watched over all events (engines/gaps.py)
        return [Group(None, tuple(component), (*reasons, f"{_quoted(ticking)} acts without events"))]
    parts = _stages(rules, component, several, cutting)
    if (needed := 1 + max(part.stage for part in parts)) <= (cutting.stages or needed):
        return parts
    return [
        Group(None, tuple(component), (*reasons, f"the checkpoint is of {cutting.stages} stages, and these would be {needed}"))
    ]


def _bound(rules: Rulebook, component: Sequence[Detector], cutting: Cutting) -> dict[int, str]:
    """The numbers of detectors whose detections cannot go to another stage, and why."""
    edges = feeds(component)
    timed = _by_timers(rules, component) if cutting.streaming else {}
    found = {}
    for number in (number for number in edges if edges[number]):
        detector = component[number]
        if rules.compiled.languages[detector.language].orders_across_keys:
            found[number] = f"what '{detector.name}' detects is ordered across keys"
        elif number in timed:
            found[number] = f"what timers of '{timed[number]}' detect goes back to events that a stream has let go of"
    return found


def _by_timers(rules: Rulebook, component: Sequence[Detector]) -> dict[int, str]:
    """The numbers of detectors that timers may lead to, with the name of one that sets these."""
    edges = feeds(component)
    found = {n: d.name for n, d in enumerate(component) if any(plan.timed for plan in rules.compiled.plans_for([d]))}
    waiting = list(found)
    while waiting:
        number = waiting.pop()
        for reader in (reader for reader in edges[number] if reader not in found):
            found[reader] = found[number]
            waiting.append(reader)
    return found


def _stages(rules: Rulebook, component: Sequence[Detector], several: frozenset[str], cutting: Cutting) -> list[Group]:
    """Each detector, or circle of them, by a key of its own, in the first stage in which all that feeds it has been made: that of
    its feeders, if these have the same key and hand it on. One whose detections cannot go to another stage is in a circle with
    those that read them."""
    edges = feeds(component)
    bound = _bound(rules, component, cutting)
    circles = {n: {*readers, *(b for b in bound if n in edges[b])} for n, readers in edges.items()}
    parts: dict[int, Group] = {}
    for numbers in strong_components({n: sorted(readers) for n, readers in circles.items()}):
        own = [component[number] for number in sorted(numbers)]
        key, reasons = _key(rules, own, several)
        why = [bound[number] for number in sorted(numbers) if number in bound] if key is None else []
        part = Group(key, tuple(own), (*reasons, *why))
        feeders = {n: parts[n] for n in parts if n not in numbers and set(edges[n]) & set(numbers)}
        stage = max((feeder.stage for feeder in feeders.values()), default=0)
        last = {n: feeder for n, feeder in feeders.items() if feeder.stage == stage}
        alike = all(f.key == key and f.null_keys == part.null_keys for f in last.values())
        joins = alike and all(_hands_on(rules, component[n], key or ()) for n in last)
        part = replace(part, stage=stage if joins else stage + 1)
        parts.update(dict.fromkeys(numbers, part))
    return list({id(part): part for part in parts.values()}.values())


def components(detectors: Sequence[Detector]) -> list[list[Detector]]:
    """Detectors connected by feeding one another, each component in order of definition."""
    leader = list(range(len(detectors)))

    def find(number: int) -> int:
        while leader[number] != number:
            number = leader[number]
        return number

    for maker, readers in feeds(detectors).items():
        for reader in readers:
            a, b = sorted((find(maker), find(reader)))
            leader[b] = a
    out: dict[int, list[Detector]] = {}
    for number, detector in enumerate(detectors):
        out.setdefault(find(number), []).append(detector)
    return list(out.values())


def _key(rules: Rulebook, component: Sequence[Detector], several: frozenset[str]) -> tuple[Key | None, list[str]]:
    if all(d.stateless for d in component) and not rules.compiled.limits:
        return (), []
    unkeyed = [d.name for d in component if not d.partition]
    if unkeyed:
        return None, [f"{_quoted(unkeyed)} {'has' if len(unkeyed) == 1 else 'have'} no key"]
    first = component[0].partition or ()
    shared = [key for key in first if all(key in (d.partition or ()) for d in component)]
    if not shared:
        return None, [f"{_quoted([d.name for d in component])} feed one another but share no key"]
    if any(rules.compiled.languages[d.language].several_keys for d in component):
        manifold = [key for key in shared if key in several]
        shared = [key for key in shared if key not in several]
        if not shared:
            return None, [f"events may have several values of {', '.join(manifold)}"]
    shared = list(independent(shared, [limit for d in component for limit in concerning(rules.compiled.limits, d.inputs)]))
    shared = [key for key in shared if all(key in _limited(rules, d, shared) for d in component)]
    if not shared:
        return None, [f"a limit looks at events of {_quoted([d.name for d in component])} across keys"]
    lost = {key: maker for key in shared if (maker := _loser(rules, component, key)) is not None}
    carried = tuple(key for key in shared if key not in lost)
    if carried:
        return carried, []
    return None, [f"what '{maker}' detects does not carry the key {key}" for key, maker in lost.items()]


def _limited(rules: Rulebook, detector: Detector, keys: Sequence[str]) -> tuple[str, ...]:
    """The keys by which limits on what the detector makes let it be spread."""
    limits = [limit for limit in rules.compiled.limits if limit.type in detector.outputs]
    if not limits:
        return tuple(keys)
    return kept_keys(keys, limits, rules.compiled.languages[detector.language].plans([detector])[0].produces)


def _loser(rules: Rulebook, component: Sequence[Detector], key: str) -> str | None:
    """A detector that feeds another of the component something without the key, or with another value of it."""
    edges = feeds(component)
    for number, detector in enumerate(component):
        if edges[number] and not _hands_on(rules, detector, (key,)):
            return detector.name
    return None


def _hands_on(rules: Rulebook, detector: Detector, key: Key) -> bool:
    """Do its detections carry the key of the events that they are made of?"""
    made: Mapping[str, object] = rules.compiled.languages[detector.language].plans([detector])[0].produces
    return all(made.get(name) == (Reference(name),) for name in key)


def _canonical(key: Key | None) -> Key | None:
    return None if key is None else tuple(sorted(key))


def _written(key: Key | None, detectors: Sequence[Detector]) -> Key | None:
    """The key in the order in which its first detector writes it."""
    return None if key is None else tuple(k for k in detectors[0].partition or () if k in key)


def _quoted(names: Sequence[str]) -> str:
    shown = [f"'{name}'" for name in names[:5]] + (["…"] if len(names) > 5 else [])
    return ", ".join(shown)
