"""Which detectors run together, and by which key their events can be spread.

Detectors that feed one another must meet in one place: they form a component. What all members of a component are keyed by
is its key, if the detections that they exchange carry it. Components with an equal key share one pass over the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coincide.compile.graph import feeds
from coincide.detection.base import Detector, DetectorPlan, in_tier
from coincide.detection.limits import concerning, independent
from coincide.detection.suppression import kept_keys
from coincide.expr.tree import Reference
from coincide.rulebook import Rulebook

Key = tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Detectors that run in one pass. No key: in one partition, for the reasons given; an empty one: wherever events are."""

    key: Key | None
    detectors: tuple[Detector, ...]
    reasons: tuple[str, ...] = ()

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
        if not self.key:
            return "without a key" if self.key is None else "event by event"
        return f"by {', '.join(sorted(self.key))}" + (" or none" if self.null_keys else "")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(d.name for d in self.detectors)

    def plans(self, rules: Rulebook, tier: str = "interpreter") -> list[DetectorPlan]:
        return in_tier(rules.compiled.plans_for(self.detectors), tier)


def groups(rules: Rulebook, several: frozenset[str] = frozenset()) -> list[Group]:
    """All detectors in as few groups as their keys allow, in order of definition. `several` are fields that may have several
    values: an event may then have several keys, of languages that look at each."""
    gathered: dict[tuple[Key | None, bool], tuple[list[Detector], list[str]]] = {}
    for component in components(rules.detectors):
        key, reasons = _key(rules, component, several)
        with_nulls = bool(key) and any(d.null_keys for d in component)
        detectors, why = gathered.setdefault((_canonical(key), with_nulls), ([], []))
        detectors += component
        why += reasons
    return [
        Group(_written(key, detectors), tuple(sorted(detectors, key=lambda d: d.order)), tuple(dict.fromkeys(why)))
        for (key, _), (detectors, why) in gathered.items()
    ]


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
        if edges[number]:
            made: Mapping[str, object] = rules.compiled.languages[detector.language].plans([detector])[0].produces
            if made.get(key) != (Reference(key),):
                return detector.name
    return None


def _canonical(key: Key | None) -> Key | None:
    return None if key is None else tuple(sorted(key))


def _written(key: Key | None, detectors: Sequence[Detector]) -> Key | None:
    """The key in the order in which its first detector writes it."""
    return None if key is None else tuple(k for k in detectors[0].partition or () if k in key)


def _quoted(names: Sequence[str]) -> str:
    shown = [f"'{name}'" for name in names[:5]] + (["…"] if len(names) > 5 else [])
    return ", ".join(shown)
