"""Operators and their operands from XML (sections 2.1 and 2.2)."""

from __future__ import annotations

from collections.abc import Callable

from coincide.lang.amit.attributes import Attributes, children_of, error
from coincide.lang.amit.definition import KeyBy, Operand, Operator
from coincide.lang.amit.grammar import AFTER_CORRELATES, CHOICES
from coincide.lang.amit.operators import OPERAND_SYNONYMS, OPERATOR_SYNONYMS, OperatorKind, elements
from coincide.lang.shared.xml import Element


def operator(element: Element, key_by: Callable[[Element], KeyBy]) -> Operator:
    form = elements()[element.name]
    attributes = Attributes(element, form.attributes, OPERATOR_SYNONYMS if "where" in form.attributes else {})
    children = children_of(element, (*form.operands, "operand", "keyBy") if form.operands else ("keyBy",))
    keys = [child for child in children if child.name == "keyBy"]
    if keys and not form.keyed:
        raise error(element.span, f"operator '{form.name}' takes no 'keyBy'")
    operands = _operands(element, form)
    return Operator(
        kind=form.name,
        operands=operands,
        keys=tuple(key_by(child) for child in keys),
        mode=_mode(attributes, form),
        where=attributes.expression("where"),
        repeat=attributes.choice("repeatMode", CHOICES["repeatMode"], form.repeat),
        quantity=attributes.whole("quantity", form.quantity),
        interval=attributes.duration("interval") if "interval" in form.attributes else 0,
        pattern=attributes.text("timePattern") if "timePattern" in form.attributes else "",
        correlate=attributes.choice("correlate", AFTER_CORRELATES, "ignore"),
        span=element.span,
    )


def _mode(attributes: Attributes, form: OperatorKind) -> str:
    if attributes.values.get("detectionMode") == "differed" and "deferred" in form.modes:
        return "deferred"
    return attributes.choice("detectionMode", form.modes, form.mode)


def _operands(element: Element, form: OperatorKind) -> tuple[Operand, ...]:
    elements = [child for child in element.children if child.name != "keyBy"]
    for position, child in enumerate(elements):
        children_of(child, ())
        if child.name not in (form.operand_element(position), "operand"):
            raise error(child.span, f"unknown element '{child.name}' in '{element.name}'")
    count = len(elements)
    if count < form.least or (form.most is not None and count > form.most):
        needs = f"needs {form.most}" if form.most else f"needs at least {form.least}"
        raise error(element.span, f"operator '{form.name}' has {count} operands, {needs}")
    return tuple(_operand(child, form, n) for n, child in enumerate(elements))


def _operand(element: Element, form: OperatorKind, position: int) -> Operand:
    """The quantifier of what must not come is accepted without effect."""
    refused = form.refuses(position)
    attributes = Attributes(element, form.attributes_of(position), OPERAND_SYNONYMS)
    quantifier, strict = _quantifier(attributes, form.quantifier)
    if attributes.given("retain") and attributes.given("consumption"):
        raise error(element.span, "give 'retain' or 'consumption', not both")
    return Operand(
        event=attributes.text("event"),
        alias=attributes.alias(),
        threshold=attributes.expression("threshold"),
        quantifier="each" if refused else quantifier,
        strict=strict and not refused,
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
