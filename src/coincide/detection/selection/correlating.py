"""Correlations, event by event: which units an event is, for which groups (section 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import isfinite

from coincide.detection.selection.groups import Groups, Key
from coincide.detection.selection.tests import number_of, values_of
from coincide.detection.selection.units import Part, Root, Stretch, Unit, part
from coincide.detection.selection.windows import Group, Window
from coincide.lang.sigma.definition import HIDDEN_NAMES, TEMPORAL, CorrelationRule
from coincide.lang.sigma.link import Linked
from coincide.model.compound import Single
from coincide.model.event import Event, Value, caused, detection


@dataclass(frozen=True)
class Held:
    """A correlation holds at the event: for which group, made of what."""

    key: Key
    used: Stretch


@dataclass
class Happened:
    """What correlations have come to at one event, by name: where they hold, and where they fire."""

    held: dict[str, list[Held]] = field(default_factory=dict)
    fired: dict[str, list[Held]] = field(default_factory=dict)


@dataclass
class Contribution:
    """What the rules have brought to a group at the event."""

    rules: list[int] = field(default_factory=list)
    made_of: list[Root | Stretch] = field(default_factory=list)
    values: dict[tuple[Part, ...], None] = field(default_factory=dict)
    of: int = -1  # the rule whose values count


class Correlation:
    """One correlation rule; its groups are its state."""

    def __init__(self, linked: Linked, order: int | None, wanted: bool) -> None:
        rule = linked.rule
        assert isinstance(rule, CorrelationRule)
        self.rule = rule
        self.name = linked.name
        self.order = order  # None: it makes no detections
        self.needs = linked.needs
        self.window = Window(rule, linked.rules)
        self.wanted = wanted  # does a temporal correlation look at it?
        aliases = {name: dict(fields) for name, fields in linked.aliases}
        self._groups = [[_field(s.name, s.attribute, n, aliases) for s in rule.group_by] for n in range(len(self.needs))]
        self._fields = [[_field(s.name, s.attribute, n, aliases) for s in rule.fields] for n in range(len(self.needs))]
        self._inner = [_inner_names(need) for need in self.needs]
        self.shown = tuple((n, shown.name) for n, shown in enumerate(rule.group_by) if shown.name not in HIDDEN_NAMES)

    def show(self, groups: Groups, event: Event, matched: set[str], happened: Happened, made: list[Event]) -> None:
        """The event, with the rules that match it."""
        for key, brought in self._brought(event, matched, happened).items():
            group = groups.at(key)
            unit = Unit(event.hi, tuple(brought.rules), tuple(brought.made_of), tuple(brought.values))
            group.add(unit, event.hi - self.window.timespan)
            self._decide(group, key, event, happened, made)
        groups.sweep(event.hi - self.window.timespan)

    def _decide(self, group: Group, key: Key, event: Event, happened: Happened, made: list[Event]) -> None:
        number = group.tested()
        if not self.window.holds(number):
            return
        fires = group.fired is None or event.hi - group.fired > self.window.timespan
        if not fires and not self.wanted:
            return
        held = Held(key, group.used())
        happened.held.setdefault(self.name, []).append(held)
        if fires:
            group.fired = event.hi
            before = happened.fired.setdefault(self.name, [])
            if self.order is not None:
                made.append(self._detection(held, number, event, len(before)))
            before.append(held)

    def _detection(self, held: Held, number: float | None, event: Event, rank: int) -> Event:
        assert self.order is not None
        attributes: dict[str, Value] = {name: held.key[n][1] for n, name in self.shown}
        attributes.update(head_attributes(self.rule.head.id, self.rule.head.level))
        if self.window.shown_as is not None and number is not None and isfinite(number):
            attributes[self.window.shown_as] = float(number)
        used = held.used
        return detection(self.name, (used.lo, event.hi), attributes, used.origin, caused(event.place, self.order, rank))

    def _brought(self, event: Event, matched: set[str], happened: Happened) -> Mapping[Key, Contribution]:
        """By group; the rules in their order, inner correlations by what they have come to."""
        found: dict[Key, Contribution] = {}
        for number, need in enumerate(self.needs):
            if not isinstance(need.rule, CorrelationRule):
                if need.name in matched:
                    self._bring(number, event, None, found)
                continue
            source = happened.held if self.rule.kind in TEMPORAL else happened.fired
            for held in source.get(need.name, ()):
                self._bring(number, event, held, found)
        return found

    def _bring(self, number: int, event: Event, held: Held | None, found: dict[Key, Contribution]) -> None:
        read = self._reader(number, event, held)
        values: list[tuple[Part, ...]] = []
        if self._fields[number]:
            values = list(product(*([part(v) for v in self._countable(read(f))] for f in self._fields[number])))
            if not values:
                return
        source = Root(event.lo, event.origin) if held is None else held.used
        for key in dict.fromkeys(product(*([part(v) for v in read(f)] for f in self._groups[number]))):
            brought = found.setdefault(key, Contribution())
            brought.made_of.append(source)
            if number not in brought.rules:
                brought.rules.append(number)
            if brought.of in (-1, number):
                brought.of = number
                brought.values.update(dict.fromkeys(values))

    def _reader(self, number: int, event: Event, held: Held | None) -> Callable[[str], Sequence[Single]]:
        """Values of a field of the unit: of an inner correlation its group's, for any other field the event's."""
        if held is None:
            return lambda name: values_of(event, name)
        own = self._inner[number]
        return lambda name: (held.key[own[name]][1],) if name in own else values_of(event, name)

    def _countable(self, values: Sequence[Single]) -> list[Single]:
        if not self.window.numeric:
            return list(values)
        return [number for v in values if (number := number_of(v)) is not None]


def _field(name: str, attribute: str, number: int, aliases: Mapping[str, Mapping[int, str]]) -> str:
    return aliases[name][number] if name in aliases else attribute


def _inner_names(need: Linked) -> dict[str, int]:
    """Places of a correlation's group values, by name and by what the mapping makes of it."""
    rule = need.rule
    if not isinstance(rule, CorrelationRule):
        return {}
    return {name: n for n, shown in enumerate(rule.group_by) for name in (shown.attribute, shown.name)}


def head_attributes(identity: str | None, level: str | None) -> dict[str, Value]:
    return {name: value for name, value in (("rule_id", identity), ("level", level)) if value is not None}
