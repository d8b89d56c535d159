"""What `coincide explain` says of a description beside what it says of every detector."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from coincide.lang.cdl.definition import Description, TimeEvent
from coincide.lang.cdl.equality import closure
from coincide.lang.cdl.names import Meaning, Names
from coincide.lang.cdl.partition import demands, partition_of, prefers_within_key
from coincide.lang.cdl.terms import Term, groups
from coincide.lang.cdl.warnings import unbounded

Row = tuple[str, str]
Attribute = tuple[int, str]
"""Of a source, by its number."""


def explained(cd: Description) -> Iterator[Row]:
    names = Names(cd)
    if partition_of(cd) is None:
        yield "key", f"none, so there is one state for the whole stream: {_reason(names)}"
        yield "parts", _parts(names)
    found = list(unbounded(cd))
    if found:
        anchors = ", ".join(dict.fromkeys(source.anchor for source, _ in found))
        yield "memory", f"not bounded: nothing ends the wait of {anchors}; {found[0][1]}"


def _reason(names: Names) -> str:
    found = groups(names.cd, names)
    if any(not group.pos for group in found):
        return "a group of collections alone is tried at every message"
    if any(s.duplicates == "unchanged" for s in names.cd.sources if not isinstance(s, TimeEvent)):
        return 'messages of one publisher must stay together (duplicates="unchanged")'
    if any(p.better is not None and not prefers_within_key(p, None, names) for p in names.cd.preferences):
        return "a preference compares combinations of different keys"
    return "no attribute of one name is demanded to be equal in all sources"


def _parts(names: Names) -> str:
    """Sources that equalities connect: what could be divided by key if the description were cut there."""
    shown = [_group_text(members, names) for members in connected(names)]
    if not shown:
        return "none: no equality connects two sources"
    return f"could be divided by key, if they were descriptions of their own: {'; '.join(shown)}"


def _group_text(members: list[Attribute], names: Names) -> str:
    anchors = list(dict.fromkeys(names.cd.sources[source].anchor for source, _ in members))
    attributes = {attribute for _, attribute in members}
    if len(attributes) == 1:
        return f"{', '.join(anchors)} by {attributes.pop()}"
    return " = ".join(f"{names.cd.sources[source].anchor}.{attribute}" for source, attribute in members)


def connected(names: Names) -> list[list[Attribute]]:
    """Attributes of two or more sources that are equal, directly or not, in every term that has these sources."""
    terms = [(term, group.pos | group.cols | absent) for group in groups(names.cd, names) for term, absent in group.terms]
    equal = [(sources, _equal(term, sources, names)) for term, sources in terms]
    pairs = {pair for _, found in equal for pair in found}
    possible = [pair for pair in pairs if all(pair in found for used, found in equal if {s for s, _ in pair} <= used)]
    classes: list[set[Attribute]] = []
    for pair in sorted(possible, key=sorted):
        touched = [members for members in classes if members & pair]
        classes = [members for members in classes if members not in touched] + [set(pair).union(*touched)]
    return sorted(sorted(members) for members in classes)


def _equal(term: Term, sources: frozenset[int], names: Names) -> set[frozenset[Attribute]]:
    known, more = closure(demands(term, sources, names))
    return {pair for found in (*known, *more) for pair in _between_sources(found)}


def _between_sources(meanings: frozenset[Meaning]) -> Iterator[frozenset[Attribute]]:
    attributes = [(m.source, m.attribute) for m in meanings if m.source is not None and m.attribute is not None]
    for a, b in combinations(attributes, 2):
        if a[0] != b[0]:
            yield frozenset((a, b))
