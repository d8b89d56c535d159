"""Definitions as Amit's XML, in the canonical words of section 2.1; defaults are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from xml.sax.saxutils import quoteattr

from coincide.expr.print import expression_text
from coincide.expr.tree import Expr
from coincide.lang.amit.definition import (
    EventType,
    File,
    Item,
    Key,
    KeyBy,
    Lifespan,
    Operand,
    Operator,
    Situation,
    Template,
    Use,
)
from coincide.lang.amit.operators import FORMS, Form
from coincide.lang.shared.xml import Element
from coincide.model.stamp import milliseconds

Lines = Iterator[str]
Values = Mapping[str, object]
"""Attributes in order; those that are None are left out."""


def print_file(file: File) -> str:
    return "\n".join(["<amit>", *_indented(line for entry in file.items for line in item_lines(entry)), "</amit>"]) + "\n"


def item_lines(entry: Item) -> Lines:
    if isinstance(entry, EventType):
        attributes = [_empty("eventAttribute", {"name": a.name, "type": a.type}) for a in entry.attributes]
        return _element("event", {"name": entry.name}, attributes)
    if isinstance(entry, Key):
        members = [_empty("eventKey", {"event": m.event, "attribute": m.attribute}) for m in entry.members]
        return _element("key", {"name": entry.name, "type": entry.type}, members)
    if isinstance(entry, Lifespan):
        return _lifespan(entry)
    if isinstance(entry, Situation):
        return _situation(entry)
    return _template(entry) if isinstance(entry, Template) else iter([_use(entry)])


def _lifespan(lifespan: Lifespan) -> Lines:
    initiators = [_empty("startup", {})] if lifespan.startup else []
    initiators += [
        _empty(
            "eventInitiator",
            {"event": i.event, "as": i.alias, "correlate": _unless(i.correlate, "ignore"), "where": _expression(i.where)},
        )
        for i in lifespan.initiators
    ]
    children = [*_element("initiator", {}, initiators), *_element("terminator", {}, _terminators(lifespan))]
    return _element("lifespan", {"name": lifespan.name}, [*children, *map(_key_by, lifespan.keys)])


def _terminators(lifespan: Lifespan) -> Lines:
    for t in lifespan.terminators:
        values = {
            "event": t.event,
            "as": t.alias,
            "quantifier": _unless(t.quantifier, "each"),
            "terminationType": _unless(t.termination, "terminate"),
            "where": _expression(t.where),
        }
        yield _empty("eventTerminator", values)
    if lifespan.expiration is not None:
        kind = _unless(lifespan.expiration.termination, "terminate")
        interval = duration_text(lifespan.expiration.interval)
        yield _empty("expirationInterval", {"timeInterval": interval, "terminationType": kind})
    if lifespan.endless:
        yield _empty("noTerminator", {})


def _key_by(key: KeyBy) -> str:
    return _empty("keyBy", {"name": key.name, "attribute": key.attribute})


def _situation(situation: Situation) -> Lines:
    attributes = [
        _empty("situationAttribute", {"name": a.name, "type": a.type, "expression": _expression(a.expression)})
        for a in situation.attributes
    ]
    internal = "true" if situation.internal else None
    values = {"name": situation.name, "lifespan": situation.lifespan, "internal": internal}
    return _element("situation", values, [*_operator(situation.operator), *attributes])


def _operator(operator: Operator) -> Lines:
    form = FORMS[operator.kind]
    names = [form.operands[min(n, len(form.operands) - 1)] for n in range(len(operator.operands))]
    operands = [_empty(name, _operand(o, form)) for name, o in zip(names, operator.operands, strict=True)]
    return _element(operator.kind, operator_values(operator), [*operands, *map(_key_by, operator.keys)])


def operator_values(operator: Operator) -> Values:
    """The operator's attributes; those that its kind does not have, or whose default they are, are None."""
    form = FORMS[operator.kind]
    has_quantity = "quantity" in form.attributes and (operator.kind != "nth" or operator.quantity != 1)
    return {
        "quantity": operator.quantity if has_quantity else None,
        "interval": duration_text(operator.interval) if operator.interval else None,
        "timePattern": operator.pattern or None,
        "correlate": _unless(operator.correlate, "ignore"),
        "detectionMode": _unless(operator.mode, form.mode),
        "where": _expression(operator.where),
        "repeatMode": _unless(operator.repeat, form.repeat),
    }


def _operand(operand: Operand, form: Form) -> Values:
    quantified = "quantifier" in form.operand_attributes and operand.quantifier != form.quantifier
    return {
        "event": operand.event,
        "as": operand.alias,
        "threshold": _expression(operand.threshold),
        "quantifier": operand.quantifier if quantified else None,
        "quantifierType": "absolute" if operand.strict else None,
        "override": _expression(operand.override),
        "retain": _expression(operand.retain),
        "consumption": _expression(operand.consumption),
        "weight": _unless(operand.weight, 1),
        "counted": None if operand.counted else "false",
    }


def _template(template: Template) -> Lines:
    values = {"name": template.name, "parameters": " ".join(template.parameters) or None}
    return _element("template", values, [line for element in template.body for line in _raw(element)])


def _raw(element: Element) -> Lines:
    """A template's element as it was written; text in it is an error that waits for a use."""
    text = [element.text.replace("&", "&amp;").replace("<", "&lt;")] if element.text else []
    return _element(element.name, element.attributes, [*text, *(line for child in element.children for line in _raw(child))])


def _use(use: Use) -> str:
    return _empty("use", {"template": use.template, **use.arguments})


def duration_text(microseconds: int) -> str:
    return str(milliseconds(microseconds))


def _unless(value: object, default: object) -> object:
    return None if value == default else value


def _expression(tree: Expr | None) -> str | None:
    return None if tree is None else expression_text(tree)


def _empty(name: str, values: Values) -> str:
    return f"<{name}{_attributes(values)}/>"


def _element(name: str, values: Values, lines: Iterable[str]) -> Lines:
    content = list(lines)
    if not content:
        yield _empty(name, values)
        return
    yield f"<{name}{_attributes(values)}>"
    yield from _indented(content)
    yield f"</{name}>"


def _indented(lines: Iterable[str]) -> Lines:
    return (f"  {line}" for line in lines)


def _attributes(values: Values) -> str:
    return "".join(f" {name}={_quoted(str(value))}" for name, value in values.items() if value is not None)


def _quoted(text: str) -> str:
    """White space other than a blank would be read as a blank if it were not written as a reference."""
    return quoteattr(text, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
