"""All names that the files define together, and what keys take from event types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from coincide.errors import nearest
from coincide.lang.amit.attributes import error
from coincide.lang.amit.definition import Definition, EventType, Key, KeyBy, Lifespan, Situation
from coincide.source import Span

Defined = TypeVar("Defined", bound=Definition)


class Catalogue:
    """Events (situations are event types too), keys, lifespans and situations, each by its name."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        types = [d for d in definitions if isinstance(d, (EventType, Situation))]
        self.events = {d.name: {a.name: a.type for a in d.attributes} for d in _distinct("event or situation", types)}
        self.keys = {d.name: d for d in _distinct("key", [d for d in definitions if isinstance(d, Key)])}
        self.lifespans = {d.name: d for d in _distinct("lifespan", [d for d in definitions if isinstance(d, Lifespan)])}
        self.situations = {d.name: d for d in types if isinstance(d, Situation)}
        for key in self.keys.values():
            self._check_key(key)

    def attributes(self, event: str) -> Mapping[str, str]:
        return self.events[event]

    def check_event(self, event: str, span: Span | None) -> None:
        if event not in self.events:
            raise error(span, f"unknown event '{event}'", nearest(event, self.events))

    def lifespan_of(self, situation: Situation) -> Lifespan:
        found = self.lifespans.get(situation.lifespan)
        if found is None:
            hint = nearest(situation.lifespan, self.lifespans)
            raise error(situation.span, f"unknown lifespan '{situation.lifespan}'", hint)
        return found

    def key_attributes(self, key_by: KeyBy, events: Iterable[str]) -> dict[str, str]:
        """The attribute that the key takes from each of these event types."""
        distinct = list(dict.fromkeys(events))
        if key_by.attribute is not None:
            return self._by_attribute(key_by, key_by.attribute, distinct)
        key = self.keys.get(key_by.name or "")
        if key is None:
            raise error(key_by.span, f"unknown key '{key_by.name}'", nearest(key_by.name or "", self.keys))
        members = {member.event: member.attribute for member in key.members}
        for event in distinct:
            if event not in members:
                raise error(key_by.span, f"key '{key.name}' is not defined for event '{event}'")
        return {event: members[event] for event in distinct}

    def _by_attribute(self, key_by: KeyBy, attribute: str, events: Sequence[str]) -> dict[str, str]:
        for event in events:
            if attribute not in self.events[event]:
                raise error(
                    key_by.span,
                    f"attribute '{attribute}' is not defined for event '{event}'",
                    nearest(attribute, self.events[event]),
                )
        if len({self.events[event][attribute] for event in events}) > 1:
            raise error(key_by.span, f"attribute '{attribute}' differs in type between events")
        return dict.fromkeys(events, attribute)

    def _check_key(self, key: Key) -> None:
        kind, seen = key.type, set()
        for member in key.members:
            self.check_event(member.event, member.span)
            if member.event in seen:
                raise error(member.span, f"event '{member.event}' is in key '{key.name}' twice")
            seen.add(member.event)
            found = self.events[member.event].get(member.attribute)
            if found is None:
                known = self.events[member.event]
                message = f"event '{member.event}' has no attribute '{member.attribute}'"
                raise error(member.span, message, nearest(member.attribute, known))
            if kind not in (None, found):
                raise error(member.span, f"attributes of key '{key.name}' differ in type")
            kind = found


def _distinct(what: str, definitions: Sequence[Defined]) -> Sequence[Defined]:
    seen: set[str] = set()
    for definition in definitions:
        if definition.name in seen:
            raise error(definition.span, f"{what} '{definition.name}' is defined twice")
        seen.add(definition.name)
    return definitions
