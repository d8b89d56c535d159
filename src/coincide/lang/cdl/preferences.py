"""CDL's predicates for preferences (CDL-19), an object each: what it compares, and what follows for keys and memory if it holds.
What they decide stands in `detection/correlation/preferences.py`, under the same names in lower case."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PreferencePredicate:
    name: str
    arguments: int = 0  # without: it is about instances, and for preferences only
    keeps_one: bool = False  # of any number of instances for which it holds, does a preference keep one?
    same_sources: bool = False  # do instances for which it holds map the same sources?
    same_messages: bool = False  # do they have a message in common, and so every key?


PREFERENCES: dict[str, PreferencePredicate] = {
    predicate.name.lower(): predicate
    for predicate in (
        PreferencePredicate("preferGreater", arguments=2),
        PreferencePredicate("preferLess", arguments=2),
        PreferencePredicate("complete"),
        PreferencePredicate("equivalent", keeps_one=True, same_sources=True),
        PreferencePredicate("shares", keeps_one=True, same_messages=True),
    )
}
"""All of them, by their names in lower case."""
