"""What a rule waits for: an event of each of the rules that take part. Tests become expressions, or examples of what passes."""

from __future__ import annotations

import re
from ipaddress import ip_network

from coincide.expr.patterns import searcher
from coincide.expr.tree import TRUE, And, Compare, Expr, IsNull, Literal, Not, Or, Reference
from coincide.lang.shared.wants import Resembling, Slot, Wants
from coincide.lang.sigma.definition import (
    Absent,
    All,
    Compared,
    CorrelationRule,
    DetectionRule,
    Exists,
    Formula,
    Item,
    Looked,
    Network,
    Number,
    Regex,
    SameAs,
    Test,
    Text,
    TimePart,
    Truth,
    Wild,
)
from coincide.lang.sigma.definition import Not as Negated
from coincide.lang.sigma.link import Linked
from coincide.source import Span

SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
KEYWORDS = "message"
"""The attribute that holds what may stand anywhere."""


def wants_of(linked: Linked) -> Wants:
    rules = [item.rule for item in linked.together]
    slots = [_slot(rule) for rule in rules if isinstance(rule, DetectionRule)]
    correlations = [rule for rule in rules if isinstance(rule, CorrelationRule)]
    counts = [int(bound) + 1 for rule in correlations for _, bound in rule.bounds if 0 <= bound < 100]
    return Wants(tuple(slots), (), tuple(rule.timespan for rule in correlations), tuple(counts))


def _slot(rule: DetectionRule) -> Slot:
    where = () if rule.looked.where is None else (expression_of(rule.looked.where),)
    return Slot(_type(rule.looked), (*where, expression_of(rule.condition)))


def _type(looked: Looked) -> str | None:
    if looked.types is not None:
        return looked.types[0] if looked.types else None
    source = looked.source
    return source.category or source.service or source.product


def expression_of(formula: Formula) -> Expr:
    """A formula as a condition that has the same meaning, as far as the shared language goes."""
    if isinstance(formula, Item):
        return _item(formula)
    if isinstance(formula, Negated):
        return Not(expression_of(formula.member))
    members = tuple(expression_of(member) for member in formula.members)
    return And(members) if isinstance(formula, All) else Or(members)


def _item(item: Item) -> Expr:
    field = Reference(item.attribute or KEYWORDS, span=item.span)
    values = tuple(Or(tuple(_test(field, test, item.span) for test in value)) for value in item.values)
    whole = And(values) if item.every else Or(values)
    return Not(whole) if item.negated else whole


def _test(field: Reference, test: Test, span: Span | None) -> Expr:
    match test:
        case Text(parts):
            return Resembling(field, (_text(parts),), span=span)
        case Number(value) | Truth(value):
            return Compare("=", field, Literal(value), span=span)
        case Compared(op, value):
            return Compare(SIGNS[op], field, Literal(value), span=span)
        case Absent():
            return IsNull(field, span=span)
        case Exists(value):
            return IsNull(field, value, span=span)
        case Regex(pattern):
            return Resembling(field, tuple(examples_of(pattern)), span=span)
        case Network(text):
            return Resembling(field, (str(next(ip_network(text, strict=False).hosts())),), span=span)
        case SameAs(attribute):
            return Compare("=", field, Reference(attribute), span=span)
        case TimePart():
            return TRUE


def _text(parts: tuple[str | Wild, ...]) -> str:
    """The shortest that the wildcards allow."""
    return "".join(part if isinstance(part, str) else "a" if part is Wild.ONE else "" for part in parts)


def examples_of(pattern: str) -> list[str]:
    """Texts in which a regular expression is found: guesses, all of which have been tried."""
    plain = re.sub(r"\(\?[a-zA-Z-]+\)|\(\?:|[\^$()]|\\b", "", pattern)
    plain = re.sub(r"\\d", "1", re.sub(r"\\w", "a", re.sub(r"\\s", " ", plain)))
    plain = re.sub(r"\[\^[^]]*\]", "~", plain)
    plain = re.sub(r"\[(.)[^]]*\]", r"\1", plain)
    plain = re.sub(r"(?<!\\)\.", "a", plain)
    guesses = [guess for part in plain.split("|") for guess in _repeated(part)]
    return [guess for guess in dict.fromkeys(guesses) if searcher(pattern)(guess)]


def _repeated(part: str) -> list[str]:
    """Without quantifiers, but with as many as a number in braces asks for."""
    counted = re.sub(r"(\\?.)\{(\d+)(,\d*)?\}", lambda found: found[1] * min(int(found[2]), 50), part)
    plain = re.sub(r"(?<!\\)[*+?]", "", counted)
    return [re.sub(r"\\(.)", r"\1", plain)]
