"""Random Amit for property tests (needs hypothesis): definitions that load without errors, and events that meet them.

- events of the types `TYPES`, with the attributes `x` (a number), `k` (a string) and `b` (a boolean), any of which may be
  null or of a wrong type
- the n-th situation is `s<n>`, with the same attributes, so that it can stand wherever an event can; with `cycles` it may
  read what it or later ones detect
- lifespans `l<n>` of every kind, some with the key `k`
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from coincide.expr.tree import Expr
from coincide.lang.amit.attributes import parse_text
from coincide.lang.amit.definition import (
    EventAttribute,
    EventKey,
    EventType,
    Expiration,
    File,
    Initiator,
    Key,
    KeyBy,
    Lifespan,
    Operand,
    Operator,
    Situation,
    SituationAttribute,
    Terminator,
)
from coincide.lang.amit.functions import expression_functions
from coincide.lang.amit.grammar import QUANTIFIERS
from coincide.lang.amit.operators import OPERATORS, OperatorKind
from coincide.model.event import Event, Value, primitive
from coincide.model.stamp import MILLISECOND

TYPES = ("A", "B", "C")
ATTRIBUTES = (EventAttribute("x", "number"), EventAttribute("k", "string"), EventAttribute("b", "boolean"))

_conditions = (
    "true", "x >= 0", "x > 0", "x > 1", "x < 2", "x is null", "k = 'a'", "b", "not b", "x + 1 > 2 or k = 'b'",
    "coalesce(x, 2) > 1", "time > 5", "x in (1, 2)", "b = true", "b != false",
)  # fmt: skip
_patterns = ("*/*/* *:*:*.004", "1/1/1970 0:0:0.010", "*/*/* *:*:0.008", "1/1/* 0:0:0.005")


seeds = st.integers(0, 2**32 - 1)
"""Rules have more choices than Hypothesis makes well one by one: it chooses the seed of all of them, and their number."""


def _tree(text: str) -> Expr:
    return parse_text(text, expression_functions())


def _condition(dice: Random, likely: int = 5) -> Expr | None:
    """A condition on one event, or none."""
    return None if dice.randint(0, likely) else _tree(dice.choice(_conditions))


def _interval(dice: Random) -> int:
    return dice.choice((1000, 2500, 3000, 4000, 10_000, 15_000))


def rule_files(situations: int = 3, cycles: bool = True, keyed: bool = False) -> SearchStrategy[File]:
    """A file with up to so many situations. `keyed`: every lifespan has the key `k`."""
    return st.builds(_file, seeds, st.integers(1, situations), st.booleans() if cycles else st.just(False), st.just(keyed))


def _file(seed: int, count: int, cycles: bool, keyed: bool) -> File:
    dice = Random(seed)
    names = [f"s{n}" for n in range(count)]
    lifespans = [_lifespan(dice, f"l{n}", names, cycles, keyed) for n in range(dice.randint(1, 2))]
    defined = [_situation(dice, name, lifespans, (*TYPES * 3, *(names if cycles else names[:n]))) for n, name in enumerate(names)]
    if not cycles:
        lifespans = [_without(lifespan, names) for lifespan in lifespans]
    key = Key("K", tuple(EventKey(name, "k") for name in (*TYPES, *names)))
    return File((*(EventType(name, ATTRIBUTES) for name in TYPES), key, *lifespans, *defined))


def _without(lifespan: Lifespan, names: list[str]) -> Lifespan:
    """A lifespan that reads external events only: one that any situation may have without a cycle."""
    initiators = tuple(replace(i, event="A") if i.event in names else i for i in lifespan.initiators)
    terminators = tuple(replace(t, event="B") if t.event in names else t for t in lifespan.terminators)
    return replace(lifespan, initiators=initiators, terminators=terminators)


def _event(dice: Random, names: list[str]) -> str:
    return dice.choice((*TYPES, *TYPES, *names))


def _lifespan(dice: Random, name: str, names: list[str], cycles: bool, keyed: bool) -> Lifespan:
    has_key = keyed or dice.randint(0, 3) == 0
    startup = not has_key and dice.choice((True, True, False))
    read = names if cycles else []
    initiators = [_initiator(dice, read) for _ in range(dice.randint(0 if startup else 1, 2))]
    terminators = [
        Terminator(
            _event(dice, read),
            None,
            dice.choice(QUANTIFIERS),
            dice.choice(("terminate", "terminate", "discard")),
            _condition(dice),
        )
        for _ in range(dice.choice((1, 0, 1, 2)))
    ]
    expires = dice.choice((True, False))
    kind = dice.choice(("terminate", "terminate", "discard"))
    expiration = Expiration(_interval(dice), kind) if expires else None
    keys = (dice.choice((KeyBy("K"), KeyBy(attribute="k"))),) if has_key else ()
    return Lifespan(name, startup, _one_alias(initiators), tuple(terminators), expiration, keys)


def _initiator(dice: Random, read: list[str]) -> Initiator:
    """What is detected again and again does not add lifespans: they would double with every round."""
    event = _event(dice, read)
    correlate = dice.choice(("ignore", "add")) if event in TYPES else "ignore"
    return Initiator(event, dice.choice((None, "go")) if not read else None, correlate, _condition(dice))


def _one_alias(initiators: list[Initiator]) -> tuple[Initiator, ...]:
    """Initiators of one alias are of one type."""
    aliased = [i for i in initiators if i.alias]
    return tuple(replace(i, event=aliased[0].event) if i.alias else i for i in initiators)


def _situation(dice: Random, name: str, lifespans: list[Lifespan], readable: tuple[str, ...]) -> Situation:
    lifespan = dice.choice(lifespans)
    operator = _operator(dice, dice.choice(tuple(OPERATORS.values())), readable, lifespan)
    return Situation(name, lifespan.name, operator, _attributes(dice, operator), dice.randint(0, 4) == 0)


def _attributes(dice: Random, operator: Operator) -> tuple[SituationAttribute, ...]:
    numbers, texts, flags = ["time", "1", "null"], ["type", "'a'", "null"], ["true", "null"]
    if operator.operands:
        numbers += ["o0.x", "o0.x + 1", "count(o0)", "sum(o0.x)", "total()", "highest(o0.x)", "end(o0)"]
        texts += ["o0.k", "o0.k", "first(o0.k)"]
        flags += ["o0.b", "o0.x > 1"]
    options = (("x", "number", numbers), ("k", "string", texts), ("b", "boolean", flags))
    return tuple(SituationAttribute(n, kind, _tree(dice.choice(trees))) for n, kind, trees in options)


def _operator(dice: Random, form: OperatorKind, readable: tuple[str, ...], lifespan: Lifespan) -> Operator:
    """Whatever its form allows."""
    most = 0 if not form.operands else form.most or 3
    operands = [_operand(dice, n, form, readable) for n in range(dice.choice(range(form.least, most + 1)))]
    keys = (KeyBy(attribute=dice.choice(("k", "x", "b"))),)
    return Operator(
        kind=form.name,
        operands=tuple(operands),
        keys=keys if form.keyed and dice.randint(0, 2) == 0 else (),
        mode=dice.choice((*form.modes, form.modes[0])),
        where=_where(dice, len(operands), lifespan) if "where" in form.attributes else None,
        repeat=dice.choice(("once", "always")) if "repeatMode" in form.attributes else form.repeat,
        quantity=dice.choice(form.quantities) if "quantity" in form.attributes else 1,
        interval=_interval(dice) if "interval" in form.attributes else 0,
        pattern=dice.choice(_patterns) if "timePattern" in form.attributes else "",
        correlate=_after_correlate(dice, operands) if "correlate" in form.attributes else "ignore",
    )


def _after_correlate(dice: Random, operands: list[Operand]) -> str:
    external = all(operand.event in TYPES for operand in operands)
    return dice.choice(("add", "ignore", "replace") if external else ("ignore", "replace"))


def _where(dice: Random, operands: int, lifespan: Lifespan) -> Expr | None:
    """None, or one or two parts: of one candidate, of several, of what opens or ends the lifespan, of the clock."""
    options = ["o0.x > 0", "o0.k = 'a'", "time - o0.time < 4", "o0.x + time > 7 or o0.b"]
    if operands > 1:
        options += [
            "o0.x = o1.x", "o0.x < o1.x and o1.k = o0.k", "o0.x <= o1.x or o0.b", "o1.time - o0.time < 4", "o0.x + o1.x > 2",
            "abs(o0.x - o1.x) <= 1", "not (o0.k > o1.k)", "o0.x * 2 > o1.x", "o1.x in (o0.x, 1)", "o0.x between 1 and o1.x",
            "o0.b = (o0.x < o1.x)", "o0.x % o1.x = 0", "(o0.x - o1.x) is null",
        ]  # fmt: skip
    if operands > 2:
        options += ["o0.x = o2.x and o1.x >= o0.x", "o0.x + o1.x = o2.x"]
    roles: list[Initiator | Terminator] = [*lifespan.initiators, *lifespan.terminators]
    for label in {role.alias or role.event for role in roles}:
        options += [f"o0.x >= {label}.x", f"o0.k = {label}.k or {label}.x is null", f"{label}.b", f"{label}.time + 3 < time"]
    chosen = [dice.choice(options) for _ in range(dice.choice((0, 0, 1, 1, 2)))] if operands else []
    return _tree(" and ".join(f"({part})" for part in chosen)) if chosen else None


def _operand(dice: Random, number: int, form: OperatorKind, readable: tuple[str, ...]) -> Operand:
    allowed = () if form.refuses(number) else form.operand_attributes
    quantified, consumed, weighted = "quantifier" in allowed, "retain" in allowed, "weight" in allowed
    reuse = dice.choice(("retain", "consumption", None, None)) if consumed else None
    return Operand(
        event=dice.choice(readable),
        alias=f"o{number}",
        threshold=_condition(dice),
        quantifier=dice.choice(QUANTIFIERS) if quantified else _default(form, number),
        strict=quantified and dice.randint(0, 4) == 0,
        override=_condition(dice, 8) if quantified else None,
        retain=_condition(dice, 0) if reuse == "retain" else None,
        consumption=_condition(dice, 0) if reuse == "consumption" else None,
        weight=dice.randint(-1, 2) if weighted else 1,
        counted=not weighted or dice.randint(0, 4) > 0,
    )


def _default(form: OperatorKind, number: int) -> str:
    return "each" if form.refuses(number) else form.quantifier


VALUES: dict[str, tuple[Value, ...]] = {
    "x": (0.0, 1.0, 2.0, 3.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, None, "1", True, 2.0**53, 2**53 + 1, 2**53 + 1),
    "k": ("a", "a", "b", "a", "b", "a", "b", "a", "b", "c", None, 1.0),
    "b": (True, False, True, False, None, 1.0),
}


def event_lists(size: int = 24, extra: tuple[str, ...] = ("s0", "Z")) -> SearchStrategy[list[Event]]:
    """Up to so many events, of few types at few instants; `extra` are types that are rare."""
    return st.builds(_events, seeds, st.integers(0, size), st.just(extra))


def _events(seed: int, count: int, extra: tuple[str, ...]) -> list[Event]:
    dice = Random(seed)
    events: list[Event] = []
    for position in range(1, count + 1):
        time = dice.randint(0, 20) * MILLISECOND
        kind = dice.choice((*TYPES * 3, *extra))
        attributes = {name: dice.choice(values) for name, values in VALUES.items()}
        present: dict[str, Value] = {name: value for name, value in attributes.items() if value is not None}
        events.append(primitive(kind, time, time, str(position), present))
    return events
