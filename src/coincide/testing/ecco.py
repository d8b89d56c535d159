"""ECCO for property tests: random expressions and events, and what an expression denotes, by brute force over all events.

The denotation knows no time at which things happen and stores nothing: an occurrence is in it if its parts are and fit. It
covers the unrestricted policy, without names, aliases and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Any

from hypothesis import strategies as st

from coincide.expr.tree import Reference
from coincide.lang.ecco.aggregates import AGGREGATES
from coincide.lang.ecco.consumption import CONSUMPTIONS, DEFAULT
from coincide.lang.ecco.definition import (
    CONCATENATION,
    CONCURRENCY,
    CONJUNCTION,
    RELATIONS,
    SEQUENCE,
    Alt,
    Chain,
    Delay,
    Expression,
    Iter,
    Neg,
    Not,
    Null,
    Ref,
    Sel,
    Valid,
    Within,
)
from coincide.lang.ecco.selections import SELECTIONS
from coincide.model.event import Event, Value, primitive
from coincide.model.space import Space
from coincide.model.stamp import MILLISECOND

TYPES = ("a", "b", "c")
SOURCES = (None, "n1", "n1", "n2", "n3")
FOUR_TYPES = "aaabbbccd"
FEW_SOURCES = (None, "n1", "n1", "n1", "n2", "n2", "n3")
SPACES = (
    None, Space(1.0, 1.0), Space(1.0, 1.0, zone="z2"), Space(5.0, 5.0, z=2.0), Space(lat=50.0, lon=8.0), Space(zone="z1"),
)  # fmt: skip
KEY_VALUES: tuple[Value, ...] = (None, 1.0, 1.0, 2.0, 2.0, True, "1", -0.0, 0.0, 2.0**53, 2**53 + 1)
NUMBERS: tuple[Value, ...] = (None, 0.1, 0.2, 0.3, 1e16, -1e16, 2.0, "x", True, 2.0**53, 2**53 + 1)

OPTIONS = (
    "", "", "option semantics point", *(f"option policy {name}" for name in CONSUMPTIONS if name != DEFAULT),
    "option policy subset", "option policy chronicle, subset", "option policy precision(data, 70%)", "option skew 0.2",
    "option skew 0.2\noption maybe keep",
    "option offset 1", "duplicates first a within 4", "duplicates last any by id",
    "duplicates first any by source, type within 2", "stamp a, b error 1", "stamp any delay 2",
)  # fmt: skip
"""What may stand above the definitions of a file: every option and statement."""

KEYS = ((), ("k",), ("source",), ("source",), ("k", "source"), ("type",), ("id",), ("time", "k"))
"""What a definition may be `per`: attributes and fields of the envelope."""


@dataclass(frozen=True)
class Denoted:
    """An occurrence: its stamp in milliseconds, whether it is a point, the events that it is made of, the sources that its
    carriers have, and its life."""

    lo: int
    hi: int
    point: bool
    ids: frozenset[int]
    latest_start: int
    earliest_end: int
    sources: frozenset[str] = frozenset()
    expires: float = float("inf")

    @property
    def source(self) -> str | None:
        """What all agree on (5.7)."""
        return next(iter(self.sources)) if len(self.sources) == 1 else None

    @property
    def order(self) -> tuple[int, int]:
        return self.hi, self.lo


Found = list[Denoted]


def composed(parts: Iterable[Denoted]) -> Denoted:
    """The parts as one; one alone is itself."""
    given = list(parts)
    if len(given) == 1:
        return given[0]
    lo, hi = min(p.lo for p in given), max(p.hi for p in given)
    start, end = min(p.latest_start for p in given), max(p.earliest_end for p in given)
    ids, sources = (frozenset().union(*(getattr(p, name) for p in given)) for name in ("ids", "sources"))
    return Denoted(lo, hi, lo == hi, ids, start, end, sources)


Stamped = tuple[int, int, frozenset[int]]


def denotation(expression: Expression, events: Sequence[Event]) -> dict[Stamped, set[str | None]]:
    """Stamps and events of all occurrences; with the sources that those of one stamp and of the same events have."""
    found: dict[Stamped, set[str | None]] = {}
    for d in _denoted(expression, events):
        found.setdefault((d.lo, d.hi, d.ids), set()).add(d.source)
    return found


def _denoted(node: Expression, events: Sequence[Event]) -> Found:
    if isinstance(node, Ref):
        return [_event(e, n) for n, e in enumerate(events) if node.type in (e.type, None)]
    if isinstance(node, Null):
        return _denoted(Ref(None), events)
    if isinstance(node, Alt):
        return [d for part in node.alternatives for d in _denoted(part, events)]
    if isinstance(node, Valid):
        return [_living(d, node.duration) for d in _denoted(node.operand, events)]
    if isinstance(node, Delay):
        return [_delayed(d, int(node.duration)) for d in _denoted(node.operand, events)]
    if isinstance(node, Neg):
        return [a for a in _denoted(node.left, events) if not _hit(a, a.hi, _denoted(node.right, events))]
    if isinstance(node, Within):
        return _within(node, events)
    assert isinstance(node, Chain)
    return _chain(node, events, None)


def _event(event: Event, number: int) -> Denoted:
    lo, hi = event.lo // MILLISECOND, event.hi // MILLISECOND
    return Denoted(lo, hi, True, frozenset({number}), hi, lo, frozenset({event.source} if event.source is not None else ()))


def _living(d: Denoted, duration: float) -> Denoted:
    return replace(d, expires=d.hi + duration)


def _delayed(d: Denoted, duration: int) -> Denoted:
    hi = d.hi + duration
    return Denoted(d.lo, hi, d.lo == hi, d.ids, d.latest_start, d.earliest_end + duration, d.sources)


def _hit(a: Denoted, end: int, others: Found) -> bool:
    for b in others:
        inside = a.lo <= b.lo and b.hi <= end
        living = b.expires != float("inf") and b.hi <= end and b.expires >= a.lo
        if not a.ids & b.ids and (living if b.expires != float("inf") else inside):
            return True
    return False


def _within(node: Within, events: Sequence[Event]) -> Found:
    if isinstance(node.operand, Chain):
        return _chain(node.operand, events, node.duration)
    assert isinstance(node.operand, Neg)
    negation, length = node.operand, int(node.duration)
    found: Found = []
    for a in _denoted(negation.left, events):
        due = max(a.hi, a.lo + length)
        if not _hit(a, a.lo + length, _denoted(negation.right, events)):
            found.append(Denoted(a.lo, due, a.lo == due, a.ids, a.latest_start, due, a.sources))
    return found


# Chains: all combinations of operands, tested as a whole and neighbour by neighbour.


def _chain(node: Chain, events: Sequence[Event], bound: float | None) -> Found:
    operands = [(n, e) for n, e in enumerate(node.elements) if not _stands_between(node, n)]
    choices = [_denoted(element, events) for _, element in operands]
    found: Found = []
    for combination in product(*choices):
        parts = _joined(node, [n for n, _ in operands], combination, events, bound)
        if parts is not None:
            found.append(composed(parts))
    return found


def _stands_between(node: Chain, index: int) -> bool:
    element = node.elements[index]
    return (0 < index < len(node.elements) - 1 and isinstance(element, (Null, Iter))) or isinstance(element, Not)


def _joined(
    node: Chain, indexes: Sequence[int], operands: Sequence[Denoted], events: Sequence[Event], bound: float | None
) -> list[Denoted] | None:
    parts = [operands[0]]
    for n, right in enumerate(operands[1:], 1):
        left, whole = operands[n - 1], composed(parts)
        related = left if node.operator == SEQUENCE else whole
        if not related_by(node.operator, related, right, bound == 0) or whole.ids & right.ids:
            return None
        group: list[Denoted] = []
        if indexes[n] - indexes[n - 1] > 1:
            between = node.elements[indexes[n] - 1]
            filling = _filling(between, left, right, parts, events)
            if filling is None:
                return None
            group = filling
        if not _holds([*parts, right], bound if not (bound == 0 and node.operator == SEQUENCE) else None):
            return None
        parts += [*([_group(group)] if group else []), right]
        if any(part.expires < max(p.hi for p in parts) for part in parts):
            return None
    return parts


def _group(members: Sequence[Denoted]) -> Denoted:
    """An iteration is a composite, also of one element, and a carrier of its own."""
    whole = composed([*members, members[0]])
    own = frozenset({whole.source} if whole.source is not None else ())
    return Denoted(whole.lo, whole.hi, whole.point, whole.ids, whole.latest_start, whole.earliest_end, own)


def _filling(
    between: Expression, left: Denoted, right: Denoted, parts: Sequence[Denoted], events: Sequence[Event]
) -> list[Denoted] | None:
    if not isinstance(between, Iter):
        inner = between.operand if isinstance(between, Not) else between
        return None if any(left.hi < n.lo and n.hi < right.lo for n in _denoted(inner, events)) else []
    end = max(right.hi, *(p.hi for p in parts))
    taken = frozenset().union(right.ids, *(p.ids for p in parts))
    group: list[Denoted] = []
    for g in sorted(_denoted(between.operand, events), key=lambda d: (d.order, sorted(d.ids))):
        if related_by(SEQUENCE, left, g) and related_by(SEQUENCE, g, right) and g.expires >= end and not g.ids & taken:
            group.append(g)
            taken |= g.ids
    most = between.most if between.most is not None else len(group)
    return group if (between.least or 0) <= len(group) <= most else None


def _holds(parts: Sequence[Denoted], bound: float | None) -> bool:
    return bound is None or max(p.hi for p in parts) - min(p.lo for p in parts) <= bound


def related_by(operator: str, a: Denoted, b: Denoted, meeting: bool = False) -> bool:
    """Table 3, as a table."""
    if operator == SEQUENCE:
        contiguous = a.hi == b.lo and not (a.point and b.point)
        return contiguous if meeting else a.hi < b.lo or contiguous
    if operator == CONJUNCTION:
        return True
    if operator == CONCURRENCY:
        return _relation("equals", a, b)
    if operator == CONCATENATION:
        return any(_relation(r, a, b) for r in ("meets", "overlaps", "finishes", "includes", "starts"))
    return _relation(operator, a, b)


def _relation(name: str, a: Denoted, b: Denoted) -> bool:
    column = (0 if a.point else 1) + (0 if b.point else 2)  # point-point, I-point, point-I, I-I
    near_b_start, near_b_end = a.lo <= b.lo <= a.hi, a.lo <= b.hi <= a.hi
    near_a_start, near_a_end = b.lo <= a.lo <= b.hi, b.lo <= a.hi <= b.hi
    before = a.hi < b.lo
    table: dict[str, tuple[bool, bool, bool, bool]] = {
        "before": (before, before, before, before),
        "meets": (False, near_a_end, near_b_start, a.hi == b.lo),
        "overlaps": (False, False, False, a.lo < b.lo < a.hi < b.hi),
        "finishes": (False, near_a_end, near_b_end, a.lo < b.lo and a.hi == b.hi),
        "includes": (False, a.lo < b.lo and b.hi < a.hi, False, a.lo < b.lo and b.hi < a.hi),
        "starts": (False, near_a_start, near_b_start, a.lo == b.lo and a.hi < b.hi),
        "equals": (not before and not b.hi < a.lo, False, False, a.lo == b.lo and a.hi == b.hi),
    }
    return table[name][column]


# Strategies.


def references() -> st.SearchStrategy[Expression]:
    return st.sampled_from([*(Ref(name) for name in TYPES), Ref("a"), Ref("b"), Ref(None)])


def durations() -> st.SearchStrategy[float]:
    return st.integers(1, 6).map(float)


def operands(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(inner, st.builds(Valid, inner, durations()))


def _betweens(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.just(Null()), st.builds(Not, inner), st.builds(Iter, inner, st.none() | st.integers(0, 2), st.none() | st.just(2))
    )


def _with_between(left: Expression, between: Expression | None, right: Expression) -> Chain:
    return Chain(SEQUENCE, (left, right) if between is None else (left, between, right))


def expressions(depth: int = 2) -> st.SearchStrategy[Expression]:
    if depth == 0:
        return references()
    inner = expressions(depth - 1)
    operand = operands(inner)
    binary = st.sampled_from([CONCURRENCY, CONCATENATION, *RELATIONS])
    several = st.sampled_from([SEQUENCE, CONJUNCTION])
    chains = st.one_of(
        st.builds(_with_between, operand, st.none() | _betweens(inner), operand),
        # In three of one kind, copies could differ in their lives only; the first one made then stays.
        st.builds(Chain, several, st.one_of(st.tuples(operand, operand), st.tuples(inner, inner, inner))),
        st.builds(Chain, several, st.tuples(references(), references(), references())),
        st.builds(Chain, binary, st.tuples(operand, operand)),
    )
    negations = st.builds(Neg, inner, operand)
    bounded: st.SearchStrategy[Any] = st.builds(Within, st.one_of(chains, negations), st.integers(0, 8).map(float))
    return st.one_of(
        references(),
        chains,
        bounded,
        st.builds(Alt, st.tuples(inner, inner)),
        negations,
        st.builds(Delay, inner, durations()),
    )


def all_expressions(depth: int = 2) -> st.SearchStrategy[Expression]:
    """Also what has no denotation here: iterations, selections and silences."""
    if depth == 0:
        return references()
    inner = all_expressions(depth - 1)
    windows = {"over": st.integers(1, 6).map(float), "every": st.none() | st.integers(1, 4).map(float)}
    needy = [name for name, aggregate in AGGREGATES.items() if aggregate.needs_argument]
    lapsing = [name for name, one in SELECTIONS.items() if one.lapses]
    comparing = [name for name, one in SELECTIONS.items() if one.compares]
    plain = [name for name, one in SELECTIONS.items() if not (one.by_number or one.lapses or one.compares)]
    return st.one_of(
        expressions(depth),
        st.builds(Iter, inner, st.none() | st.integers(1, 2), st.none() | st.integers(2, 3)),
        st.builds(Iter, inner, st.integers(1, 2), st.none() | st.integers(2, 3), st.just(Reference("k"))),
        st.builds(Sel, inner, st.sampled_from(lapsing), over=st.integers(1, 6).map(float), until=st.none() | references()),
        st.builds(Sel, inner, st.sampled_from(needy), st.just(Reference("k")), **windows),
        st.builds(Sel, inner, st.sampled_from([*plain, *(name for name in AGGREGATES if name not in needy)]), **windows),
        st.builds(Sel, inner, st.sampled_from(comparing), number=st.integers(0, 3).map(float), **windows),
        st.builds(Not, inner, durations()),
        st.builds(lambda left, silence: Chain(SEQUENCE, (left, silence)), inner, st.builds(Not, inner, durations())),
    )


@st.composite
def bounded_expressions(draw: st.DrawFn) -> Expression:
    """What the kernel tier covers: `;`, `+`, `|`, `-`, gaps, silences and delays, each type once, but for the operands of a plain
    sequence."""
    if draw(st.booleans()):
        element = st.sampled_from([Ref("a"), Ref("b"), Ref("a"), Alt((Ref("a"), Ref("b")))])
        elements = [draw(element)]
        for _ in range(draw(st.integers(1, 2))):
            between = draw(st.sampled_from([None, None, Not(Ref("c")), Not(Ref("a")), _silence(draw, draw(element))]))
            elements += [draw(element)] if between is None else [between, draw(element)]
        if draw(st.integers(0, 3)) == 0:
            elements.append(_silence(draw, draw(element)))
        return _perhaps_within(draw, Chain(SEQUENCE, tuple(elements)))
    return _of_types(draw, draw(st.permutations("abcd"))[: draw(st.integers(2, 4))])


def _of_types(draw: st.DrawFn, types: Sequence[str]) -> Expression:
    if len(types) == 1:
        return Ref(types[0])
    cut = draw(st.integers(1, len(types) - 1))
    parts = _of_types(draw, types[:cut]), _of_types(draw, types[cut:])
    operator = draw(st.sampled_from([SEQUENCE, SEQUENCE, CONJUNCTION, "|", "-", "-", "silence", "+T"]))
    if operator == "|":
        return _perhaps_within(draw, Alt(parts)) if any(isinstance(part, Chain | Within) for part in parts) else Alt(parts)
    if operator == "-":
        left, right = parts
        plain = Neg(left, right.operand if isinstance(right, Within) else right)
        return draw(st.sampled_from([plain, Within(Neg(left, right), float(draw(st.integers(1, 9))))]))
    if operator == "silence":
        return _perhaps_within(draw, Chain(SEQUENCE, (parts[0], _silence(draw, parts[1]))))
    if operator == "+T":
        return Chain(SEQUENCE, (parts[0], Delay(parts[1], draw(durations()))))
    if len(types) > 2 and draw(st.booleans()):
        return _perhaps_within(draw, Chain(operator, tuple(map(Ref, types))))
    return _perhaps_within(draw, Chain(operator, parts))


def _silence(draw: st.DrawFn, operand: Expression) -> Expression:
    return Not(operand, draw(durations()))


def _perhaps_within(draw: st.DrawFn, expression: Expression) -> Expression:
    return Within(expression, float(draw(st.integers(1, 9)))) if draw(st.booleans()) else expression


def event_lists(most: int = 7) -> st.SearchStrategy[list[Event]]:
    """Some exact points, some roughly known ones, often at the same instant. Hypothesis chooses the seed and how many: choice
    by choice, it would try few and equal ones most of the time."""
    return st.builds(_events, st.integers(0, 2**32 - 1), st.integers(0, most).map(lambda fewer: most - fewer))


def _events(seed: int, count: int) -> list[Event]:
    dice = Random(seed)
    found: list[Event] = []
    for number in range(count):
        hi = dice.randint(0, 9)
        lo = hi - dice.choice((0, 0, 0, 0, 1, 3))
        found.append(primitive(dice.choice(TYPES), lo * MILLISECOND, hi * MILLISECOND, str(number), {}, dice.choice(SOURCES)))
    return sorted(found, key=lambda event: event.origin)


def keyed_events(most: int = 14, ranges: bool = True) -> st.SearchStrategy[list[Event]]:
    """With keys and values of mixed types, often several at one instant; now and then a stamp that is a range, or two records
    of one event."""
    return st.builds(_keyed, st.integers(0, 2**32 - 1), st.integers(0, most).map(lambda fewer: most - fewer), st.just(ranges))


def _keyed(seed: int, count: int, ranges: bool) -> list[Event]:
    dice = Random(seed)
    events: list[Event] = []
    time = dice.randint(-3, 3)
    for number in range(count):
        time += dice.choice((0, 0, 1, 1, 2, 9))
        values = {"k": dice.choice(KEY_VALUES), "m": dice.choice(KEY_VALUES), "v": dice.choice(NUMBERS)}
        lo = time - dice.choice([0] * 15 + [2]) if ranges else time
        identifier = dice.choice([number] * 9 + [0])
        attributes: dict[str, Value] = {name: value for name, value in values.items() if value is not None}
        kind, source, space = dice.choice(FOUR_TYPES), dice.choice(FEW_SOURCES), dice.choice(SPACES)
        events.append(primitive(kind, lo * MILLISECOND, time * MILLISECOND, str(identifier), attributes, source, space))
    return sorted(events, key=lambda event: event.origin)
