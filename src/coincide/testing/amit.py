"""Random Amit for property tests (needs hypothesis): definitions that load without errors, and events that meet them.

- events of the types `TYPES`, with the attributes `x` (a number), `k` (a string) and `b` (a boolean), any of which may be
  null or of a wrong type
- the n-th situation is `s<n>`, with the same attributes, so that it can stand wherever an event can; with `cycles` it may
  read what it or later ones detect
- lifespans `l<n>` of every kind, some with the key `k`
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from coincide.expr.tree import Expr
from coincide.lang.amit.attributes import parse_text
from coincide.lang.amit.definition import (
    KINDS,
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
from coincide.lang.amit.operators import FORMS, Form
from coincide.model.event import Event, Value, primitive
from coincide.model.stamp import MILLISECOND

TYPES = ("A", "B", "C")
ATTRIBUTES = (EventAttribute("x", "number"), EventAttribute("k", "string"), EventAttribute("b", "boolean"))

_conditions = (
    "true", "false", "x > 0", "x > 1", "x < 2", "x is null", "k = 'a'", "b", "not b", "x + 1 > 2 or k = 'b'",
    "coalesce(x, 2) > 1", "time > 5", "x in (1, 2)",
)  # fmt: skip
_patterns = ("*/*/* *:*:*.004", "*/*/1970 0:0:0.010", "*/*/* *:*:0.008", "1/1/* 0:0:0.005")


def _tree(text: str) -> Expr:
    return parse_text(text, expression_functions())


def _condition(draw: DrawFn, likely: int = 2) -> Expr | None:
    """A condition on one event, or none."""
    return None if draw(st.integers(0, likely)) else _tree(draw(st.sampled_from(_conditions)))


def _interval(draw: DrawFn) -> int:
    return draw(st.sampled_from((1000, 2500, 3000, 4000, 10_000)))


@st.composite
def rule_files(draw: DrawFn, situations: int = 3, cycles: bool = True, keyed: bool = False) -> File:
    """A file with up to so many situations. `keyed`: every lifespan has the key `k`."""
    count = draw(st.integers(1, situations))
    names = [f"s{n}" for n in range(count)]
    lifespans = [_lifespan(draw, f"l{n}", names, cycles, keyed) for n in range(draw(st.integers(1, 2)))]
    defined = [_situation(draw, name, lifespans, (*TYPES, *(names if cycles else names[:n]))) for n, name in enumerate(names)]
    if not cycles:
        lifespans = [_without(lifespan, names) for lifespan in lifespans]
    key = Key("K", tuple(EventKey(name, "k") for name in (*TYPES, *names)))
    return File((*(EventType(name, ATTRIBUTES) for name in TYPES), key, *lifespans, *defined))


def _without(lifespan: Lifespan, names: list[str]) -> Lifespan:
    """A lifespan that reads external events only: one that any situation may have without a cycle."""
    initiators = tuple(replace(i, event="A") if i.event in names else i for i in lifespan.initiators)
    terminators = tuple(replace(t, event="B") if t.event in names else t for t in lifespan.terminators)
    return replace(lifespan, initiators=initiators, terminators=terminators)


def _event(draw: DrawFn, names: list[str]) -> str:
    return draw(st.sampled_from((*TYPES, *TYPES, *names)))


def _lifespan(draw: DrawFn, name: str, names: list[str], cycles: bool, keyed: bool) -> Lifespan:
    has_key = keyed or draw(st.integers(0, 2)) == 0
    startup = not has_key and draw(st.booleans())
    read = names if cycles else []
    initiators = [
        Initiator(
            _event(draw, read),
            draw(st.sampled_from((None, "go"))) if not read else None,
            draw(st.sampled_from(("ignore", "add"))),
            _condition(draw),
        )
        for _ in range(draw(st.integers(0 if startup else 1, 2)))
    ]
    terminators = [
        Terminator(
            _event(draw, read),
            None,
            draw(st.sampled_from(("first", "last", "each"))),
            draw(st.sampled_from(("terminate", "terminate", "discard"))),
            _condition(draw),
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    expires = draw(st.booleans())
    kind = draw(st.sampled_from(("terminate", "terminate", "discard")))
    expiration = Expiration(_interval(draw), kind) if expires else None
    keys = (draw(st.sampled_from((KeyBy("K"), KeyBy(attribute="k")))),) if has_key else ()
    return Lifespan(name, startup, _one_alias(initiators), tuple(terminators), expiration, keys)


def _one_alias(initiators: list[Initiator]) -> tuple[Initiator, ...]:
    """Initiators of one alias are of one type."""
    aliased = [i for i in initiators if i.alias]
    return tuple(replace(i, event=aliased[0].event) if i.alias else i for i in initiators)


def _situation(draw: DrawFn, name: str, lifespans: list[Lifespan], readable: tuple[str, ...]) -> Situation:
    operator = _operator(draw, draw(st.sampled_from(KINDS)), readable)
    lifespan = draw(st.sampled_from(lifespans))
    return Situation(name, lifespan.name, operator, _attributes(draw, operator), draw(st.integers(0, 4)) == 0)


def _attributes(draw: DrawFn, operator: Operator) -> tuple[SituationAttribute, ...]:
    numbers, texts, flags = ["time", "1", "null"], ["type", "'a'", "null"], ["true", "null"]
    if operator.operands:
        numbers += ["o0.x", "o0.x + 1", "count(o0)", "sum(o0.x)", "total()", "highest(o0.x)", "end(o0)"]
        texts += ["o0.k", "o0.k", "first(o0.k)"]
        flags += ["o0.b", "o0.x > 1"]
    options = (("x", "number", numbers), ("k", "string", texts), ("b", "boolean", flags))
    return tuple(SituationAttribute(n, kind, _tree(draw(st.sampled_from(trees)))) for n, kind, trees in options)


def _operator(draw: DrawFn, kind: str, readable: tuple[str, ...]) -> Operator:
    form = FORMS[kind]
    most = 0 if not form.operands else form.most or 3
    operands = [_operand(draw, n, kind, form, readable) for n in range(draw(st.integers(form.least, most)))]
    keys = (KeyBy(attribute=draw(st.sampled_from(("k", "x", "b")))),)
    return Operator(
        kind=kind,
        operands=tuple(operands),
        keys=keys if form.keyed and draw(st.integers(0, 2)) == 0 else (),
        mode=draw(st.sampled_from(form.modes)),
        where=_where(draw, len(operands)) if "where" in form.attributes else None,
        repeat=draw(st.sampled_from(("once", "always"))) if "repeatMode" in form.attributes else form.repeat,
        quantity=draw(st.integers(-1, 4)) if "quantity" in form.attributes else 1,
        interval=_interval(draw) if "interval" in form.attributes else 0,
        pattern=draw(st.sampled_from(_patterns)) if kind == "at" else "",
        correlate=draw(st.sampled_from(("add", "ignore", "replace"))) if kind == "after" else "ignore",
    )


def _where(draw: DrawFn, operands: int) -> Expr | None:
    options = [None, None, "o0.x > 0", "o0.k = 'a'"]
    if operands > 1:
        options += ["o0.x = o1.x", "o0.x < o1.x and o1.k = o0.k", "o0.x <= o1.x or o0.b", "o1.time - o0.time < 4"]
    if operands > 2:
        options += ["o0.x = o2.x and o1.x >= o0.x"]
    chosen = draw(st.sampled_from(options))
    return None if chosen is None else _tree(chosen)


def _operand(draw: DrawFn, number: int, kind: str, form: Form, readable: tuple[str, ...]) -> Operand:
    allowed = form.operand_attributes if not (kind == "unless" and number == 1) else ()
    quantified, consumed, weighted = "quantifier" in allowed, "retain" in allowed, "weight" in allowed
    kept = draw(st.sampled_from(("retain", "consumption", None, None))) if consumed else None
    return Operand(
        event=draw(st.sampled_from(readable)),
        alias=f"o{number}",
        threshold=_condition(draw),
        quantifier=draw(st.sampled_from(("first", "last", "each"))) if quantified else _default(form, kind, number),
        strict=quantified and draw(st.integers(0, 3)) == 0,
        override=_condition(draw, 4) if quantified else None,
        retain=_condition(draw, 0) if kept == "retain" else None,
        consumption=_condition(draw, 0) if kept == "consumption" else None,
        weight=draw(st.integers(-1, 2)) if weighted else 1,
        counted=not weighted or draw(st.integers(0, 4)) > 0,
    )


def _default(form: Form, kind: str, number: int) -> str:
    return "each" if kind == "unless" and number == 1 else form.quantifier


_values: dict[str, SearchStrategy[Value]] = {
    "x": st.sampled_from([0.0, 1.0, 2.0, 3.0, 1.0, 2.0, None, "1", True]),
    "k": st.sampled_from(["a", "b", "a", "b", "c", None, 1.0]),
    "b": st.sampled_from([True, False, None, 1.0]),
}


@st.composite
def event_lists(draw: DrawFn, size: int = 14, extra: tuple[str, ...] = ("s0", "Z")) -> list[Event]:
    """Events of few types at few instants; `extra` are types that are rare."""
    events: list[Event] = []
    for position in range(1, draw(st.integers(0, size)) + 1):
        time = draw(st.integers(0, 12)) * MILLISECOND
        kind = draw(st.sampled_from((*TYPES * 3, *extra)))
        attributes = {name: draw(values) for name, values in _values.items()}
        present = {name: value for name, value in attributes.items() if value is not None}
        events.append(primitive(kind, time, time, str(position), present))
    return events
