"""Operators and their operands from XML (sections 2.1 and 2.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coincide.lang.amit.attributes import Attributes, children_of, error
from coincide.lang.amit.definition import KeyBy, Operand, Operator
from coincide.lang.amit.grammar import AFTER_CORRELATES, CHOICES
from coincide.lang.shared.xml import Element

MODES = ("immediate", "delayed", "deferred")
OPERAND = ("event", "as", "threshold")
QUANTIFIED = ("quantifier", "quantifierType", "override")
CONSUMED = ("retain", "consumption")
WEIGHTED = ("weight", "counted", "distinct")


@dataclass(frozen=True)
class Form:
    """How an operator is written: its attributes, its operands and theirs, and the defaults of the paper's DTD."""

    attributes: tuple[str, ...]
    operands: tuple[str, ...] = ()  # names of operand elements, by position; the last one repeated
    operand_attributes: tuple[str, ...] = OPERAND
    least: int = 1
    most: int | None = None
    keyed: bool = True
    modes: tuple[str, ...] = MODES
    mode: str = "immediate"
    repeat: str = "always"
    quantifier: str = "each"


_JOIN = ("detectionMode", "where", "repeatMode")
_COUNTED = ("quantity", *_JOIN)
_JOINED = (*OPERAND, *QUANTIFIED, *CONSUMED)

FORMS: dict[str, Form] = {
    "all": Form(_JOIN, ("operandAll",), _JOINED, quantifier="first"),
    "sequence": Form(_JOIN, ("operandSequence",), _JOINED, least=2, quantifier="first"),
    "atleast": Form(_COUNTED, ("operandAtleast",), (*_JOINED, *WEIGHTED), repeat="once"),
    "nth": Form(_COUNTED, ("operandNth",), (*_JOINED, *WEIGHTED), mode="deferred", repeat="once"),
    "atmost": Form(
        ("quantity", "detectionMode", "where"),
        ("operandAtmost",),
        (*OPERAND, *QUANTIFIED, *WEIGHTED),
        modes=("deferred",),
        mode="deferred",
    ),
    "not": Form(("detectionMode",), ("operandNot",), keyed=False, modes=("deferred",), mode="deferred"),
    "unless": Form(
        ("detectionMode", "where"),
        ("operandUnless", "operandNot"),
        (*OPERAND, *QUANTIFIED),
        least=2,
        most=2,
        modes=("deferred",),
        mode="deferred",
        quantifier="first",
    ),
    "every": Form(("interval", "detectionMode", "repeatMode"), least=0, most=0, keyed=False, modes=MODES[:2]),
    "at": Form(("timePattern", "detectionMode", "repeatMode"), least=0, most=0, keyed=False, modes=MODES[:2]),
    "after": Form(("interval", "correlate", "detectionMode"), ("operandAfter",), modes=MODES[:2]),
}
OPERATOR_SYNONYMS = {"condition": "where"}
OPERAND_SYNONYMS = {"alias": "as"}
BLOCKING = (*OPERAND, "quantifier", "quantifierType")
"""Attributes of the second operand of `unless`."""

ELEMENTS = {**{kind: kind for kind in FORMS}, "conjunction": "all"}


def operator(element: Element, key_by: Callable[[Element], KeyBy]) -> Operator:
    kind = ELEMENTS[element.name]
    form = FORMS[kind]
    attributes = Attributes(element, form.attributes, OPERATOR_SYNONYMS if "where" in form.attributes else {})
    children = children_of(element, (*form.operands, "operand", "keyBy") if form.operands else ("keyBy",))
    keys = [child for child in children if child.name == "keyBy"]
    if keys and not form.keyed:
        raise error(element.span, f"operator '{kind}' takes no 'keyBy'")
    operands = _operands(element, kind, form)
    return Operator(
        kind=kind,
        operands=operands,
        keys=tuple(key_by(child) for child in keys),
        mode=_mode(attributes, form),
        where=attributes.expression("where"),
        repeat=attributes.choice("repeatMode", CHOICES["repeatMode"], form.repeat),
        quantity=_quantity(attributes, kind),
        interval=attributes.duration("interval") if "interval" in form.attributes else 0,
        pattern=attributes.text("timePattern") if kind == "at" else "",
        correlate=attributes.choice("correlate", AFTER_CORRELATES, "ignore"),
        span=element.span,
    )


def _mode(attributes: Attributes, form: Form) -> str:
    if attributes.values.get("detectionMode") == "differed" and "deferred" in form.modes:
        return "deferred"
    return attributes.choice("detectionMode", form.modes, form.mode)


def _quantity(attributes: Attributes, kind: str) -> int:
    return attributes.whole("quantity", None if kind in ("atleast", "atmost") else 1)


def _operands(element: Element, kind: str, form: Form) -> tuple[Operand, ...]:
    elements = [child for child in element.children if child.name != "keyBy"]
    for position, child in enumerate(elements):
        children_of(child, ())
        if child.name not in (form.operands[min(position, len(form.operands) - 1)], "operand"):
            raise error(child.span, f"unknown element '{child.name}' in '{element.name}'")
    count = len(elements)
    if count < form.least or (form.most is not None and count > form.most):
        needs = f"needs {form.most}" if form.most else f"needs at least {form.least}"
        raise error(element.span, f"operator '{kind}' has {count} operands, {needs}")
    return tuple(_operand(child, form, blocks=kind == "unless" and n == 1) for n, child in enumerate(elements))


def _operand(element: Element, form: Form, blocks: bool) -> Operand:
    """`blocks`: the second operand of `unless`, whose quantifier is accepted without effect."""
    attributes = Attributes(element, BLOCKING if blocks else form.operand_attributes, OPERAND_SYNONYMS)
    quantifier, strict = _quantifier(attributes, form.quantifier)
    if attributes.given("retain") and attributes.given("consumption"):
        raise error(element.span, "give 'retain' or 'consumption', not both")
    return Operand(
        event=attributes.text("event"),
        alias=attributes.alias(),
        threshold=attributes.expression("threshold"),
        quantifier="each" if blocks else quantifier,
        strict=strict and not blocks,
        override=attributes.expression("override"),
        retain=attributes.expression("retain"),
        consumption=attributes.expression("consumption"),
        weight=attributes.whole("weight", 1),
        counted=attributes.flag("counted", True),
        distinct=attributes.expression("distinct"),
        span=element.span,
    )


def _quantifier(attributes: Attributes, default: str) -> tuple[str, bool]:
    """Section 2.2: `strict first` is `first` with quantifierType `absolute`."""
    kind = attributes.choice("quantifierType", CHOICES["quantifierType"], "relative")
    written = attributes.text("quantifier") if attributes.given("quantifier") else default
    for separator in " -_":
        if written.startswith("strict" + separator):
            if attributes.values.get("quantifierType") == "relative":
                raise attributes.fail(f"quantifier '{written}' contradicts quantifierType 'relative'")
            return attributes.one_of("quantifier", written[7:].strip(), CHOICES["quantifier"]), True
    return attributes.one_of("quantifier", written, CHOICES["quantifier"]), kind == "absolute"
