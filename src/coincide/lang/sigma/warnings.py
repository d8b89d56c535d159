"""Rules that cannot match, as far as the mapping file tells: their log source is not in it, or what they need no event has."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from coincide.errors import Diagnostic, nearest
from coincide.lang.sigma.definition import Absent, All, DetectionRule, Exists, Formula, Item, Looked, Not, items_of
from coincide.model.event import ENVELOPE

BOTH = frozenset({True, False})


def remarks(rule: DetectionRule, title: str) -> Iterator[Diagnostic]:
    """Asked only where there is a mapping file with log sources."""
    looked = rule.looked
    if not looked.mapped:
        source = ", ".join(f"{part}: {value}" for part, value in looked.source.values)
        yield Diagnostic(
            f"the mapping has no entry for the log source ({source}) of '{title}'", looked.span, "warning", name="logsource"
        )
        return
    unknown = list({item.attribute: item for item in items_of(rule.condition) if not _is_known(item, looked)}.values())
    if not unknown:
        return
    never = True not in _outcomes(rule.condition, looked)
    for item in unknown:
        hint = nearest(str(item.attribute), looked.attributes or ())
        verdict = f"'{title}' can never match" if never else f"a part of '{title}' is of no use"
        message = f"{verdict}: events of its log source have no '{item.attribute}'"
        yield Diagnostic(message, item.span, "warning", hint, "never" if never else "unknown")


def _is_known(item: Item, looked: Looked) -> bool:
    name = item.attribute
    if name is None or looked.attributes is None or name in ENVELOPE or name == "@timestamp":
        return True
    return any(name == known or fnmatchcase(name, known) for known in looked.attributes)


def _outcomes(formula: Formula, looked: Looked) -> frozenset[bool]:
    """What a formula can come to, if tests of what is there can come to anything."""
    if isinstance(formula, Item):
        return BOTH if _is_known(formula, looked) else frozenset({_of_nothing(formula)})
    if isinstance(formula, Not):
        return frozenset(not outcome for outcome in _outcomes(formula.member, looked))
    outcomes = [_outcomes(member, looked) for member in formula.members]
    decides = not isinstance(formula, All)  # one member that comes to this is enough
    found = {decides} if any(decides in some for some in outcomes) else set()
    return frozenset(found | ({not decides} if all((not decides) in some for some in outcomes) else set()))


def _of_nothing(item: Item) -> bool:
    """What a test comes to where the attribute is absent."""
    each = [any(isinstance(t, Absent) or (isinstance(t, Exists) and not t.value) for t in value) for value in item.values]
    return (all(each) if item.every else any(each)) != item.negated
