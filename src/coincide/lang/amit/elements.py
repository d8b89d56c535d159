"""Definitions as elements, in the canonical words of section 2.1; defaults are left out. XML and YAML are printed of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from coincide.expr.print import expression_text
from coincide.expr.quantities import duration_text
from coincide.expr.tokens import back_quoted
from coincide.expr.tree import Expr
from coincide.lang.amit.attributes import NAME
from coincide.lang.amit.definition import EventType, Item, Key, KeyBy, Lifespan, Operand, Operator, Situation, Template, Use
from coincide.lang.amit.operators import OPERATORS, OperatorKind
from coincide.lang.shared.xml import Element
from coincide.source import SourceText

Values = Mapping[str, object]
"""Attributes in order; those that are None are left out."""

NOWHERE = SourceText("", "").span(0, 0)


def element_of(entry: Item) -> Element:
    if isinstance(entry, EventType):
        attributes = [new_element("eventAttribute", {"name": _word(a.name), "type": a.type}) for a in entry.attributes]
        return new_element("event", {"name": _word(entry.name)}, attributes)
    if isinstance(entry, Key):
        members = [new_element("eventKey", {"event": _word(m.event), "attribute": _word(m.attribute)}) for m in entry.members]
        return new_element("key", {"name": entry.name, "type": entry.type}, members)
    if isinstance(entry, Lifespan):
        return _lifespan(entry)
    if isinstance(entry, Situation):
        return _situation(entry)
    return _template(entry) if isinstance(entry, Template) else _use(entry)


def _lifespan(lifespan: Lifespan) -> Element:
    initiators = [new_element("startup", {})] if lifespan.startup else []
    initiators += [
        new_element(
            "eventInitiator",
            {"event": _word(i.event), "as": i.alias, "correlate": _unless(i.correlate, "ignore"), "where": _expression(i.where)},
        )
        for i in lifespan.initiators
    ]
    children = [new_element("initiator", {}, initiators), new_element("terminator", {}, _terminators(lifespan))]
    return new_element("lifespan", {"name": lifespan.name}, [*children, *map(_key_by, lifespan.keys)])


def _terminators(lifespan: Lifespan) -> Iterator[Element]:
    for t in lifespan.terminators:
        values = {
            "event": _word(t.event),
            "as": t.alias,
            "quantifier": _unless(t.quantifier, "each"),
            "terminationType": _unless(t.termination, "terminate"),
            "where": _expression(t.where),
        }
        yield new_element("eventTerminator", values)
    if lifespan.expiration is not None:
        kind = _unless(lifespan.expiration.termination, "terminate")
        interval = duration_text(lifespan.expiration.interval, small="")
        yield new_element("expirationInterval", {"timeInterval": interval, "terminationType": kind})
    if lifespan.endless:
        yield new_element("noTerminator", {})


def _key_by(key: KeyBy) -> Element:
    return new_element("keyBy", {"name": key.name, "attribute": key.attribute and _word(key.attribute)})


def _situation(situation: Situation) -> Element:
    attributes = [
        new_element("situationAttribute", {"name": _word(a.name), "type": a.type, "expression": _expression(a.expression)})
        for a in situation.attributes
    ]
    internal = "true" if situation.internal else None
    values = {"name": situation.name, "lifespan": situation.lifespan, "internal": internal}
    return new_element("situation", values, [_operator(situation.operator), *attributes])


def _operator(operator: Operator) -> Element:
    form = OPERATORS[operator.kind]
    operands = [new_element(form.operand_element(n), _operand(o, form)) for n, o in enumerate(operator.operands)]
    return new_element(operator.kind, operator_values(operator), [*operands, *map(_key_by, operator.keys)])


def operator_values(operator: Operator) -> Values:
    """The operator's attributes; those that its kind does not have, or whose default they are, are None."""
    form = OPERATORS[operator.kind]
    has_quantity = "quantity" in form.attributes and operator.quantity != form.quantity
    return {
        "quantity": operator.quantity if has_quantity else None,
        "interval": duration_text(operator.interval, small="") if "interval" in form.attributes else None,
        "timePattern": operator.pattern or None,
        "correlate": _unless(operator.correlate, "ignore"),
        "detectionMode": _unless(operator.mode, form.mode),
        "where": _expression(operator.where),
        "repeatMode": _unless(operator.repeat, form.repeat),
    }


def _operand(operand: Operand, form: OperatorKind) -> Values:
    quantified = "quantifier" in form.operand_attributes and operand.quantifier != form.quantifier
    return {
        "event": _word(operand.event),
        "as": operand.alias,
        "threshold": _expression(operand.threshold),
        "quantifier": operand.quantifier if quantified else None,
        "quantifierType": "absolute" if operand.strict else None,
        "override": _expression(operand.override),
        "retain": _expression(operand.retain),
        "consumption": _expression(operand.consumption),
        "weight": _unless(operand.weight, 1),
        "counted": None if operand.counted else "false",
        "distinct": _expression(operand.distinct),
    }


def _template(template: Template) -> Element:
    values = {"name": template.name, "parameters": " ".join(template.parameters) or None}
    return new_element("template", values, template.body)


def _use(use: Use) -> Element:
    return new_element("use", {"template": use.template, **use.arguments})


def _word(name: str) -> str:
    """A name, in back quotes where it could not stand without them."""
    return name if NAME.fullmatch(name) else back_quoted(name)


def _unless(value: object, default: object) -> object:
    return None if value == default else value


def _expression(tree: Expr | None) -> str | None:
    return None if tree is None else expression_text(tree)


def new_element(name: str, values: Values, children: Iterable[Element] = ()) -> Element:
    attributes = {key: str(value) for key, value in values.items() if value is not None}
    return Element(name, attributes, tuple(children), "", NOWHERE)
