"""Values, conditions and logic: the nested form and the text form, as the same trees (CDL-31)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from coincide.errors import RuleError
from coincide.expr.parse import ExpressionParser, ExpressionWording, parse_duration
from coincide.expr.quantities import UNIT_HINT, QuantityError, number_of, shortened
from coincide.expr.tokens import Tokens, Wording
from coincide.expr.tree import And, Arithmetic, Call, Expr, In, Literal, Negate, Not, Or, Reference, transform
from coincide.lang.cdl.functions import FUNCTIONS
from coincide.lang.cdl.shape import check_nested, fail
from coincide.lang.shared.xml import Element
from coincide.model.numbers import is_number, number_of_text
from coincide.model.stamp import MILLISECOND, parse_instant
from coincide.source import SourceText, Span

ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}
CALLS = {"concat": "concat", "interval": "range", "set": "set"}
CALLS |= {name: name for name in ("sum", "product", "min", "max", "avg", "count", "first", "last")}
VALUES = ("value", "ref", *ARITHMETIC, "neg", *CALLS, "call", "lookup", "context")
LOGIC = ("ref", "and", "or", "not")
UNKNOWN_FUNCTION = "unknown function "


class TextParser(ExpressionParser):
    """Expressions with `x in SET` beside `x in (a, b)`."""

    def __init__(self, text: str) -> None:
        tokens = Tokens(SourceText("", text), wording=Wording(end="the end"))
        super().__init__(tokens, functions=FUNCTIONS, wording=ExpressionWording(), spaced_calls=True)

    def _test(self, left: Expr) -> Expr:
        ahead = 1 if self.tokens.at("not") else 0
        if self.tokens.peek(ahead).text not in ("in", "IN") or self.tokens.peek(ahead + 1).text == "(":
            return super()._test(left)
        negated = self.tokens.take("not") is not None
        self.tokens.next()
        return In(left, (self._sum(),), negated)

    def whole(self) -> tuple[Expr, ...]:
        """Expressions between commas, up to the end of the text."""
        found = [self.expression()]
        while self.tokens.take(","):
            found.append(self.expression())
        end = self.tokens.peek()
        if end.kind != "end":
            raise self.tokens.fail(end, f"expected an operator, found {self.tokens.shown(end)}")
        return tuple(found)


def text_values(element: Element, text: str) -> tuple[Expr, ...]:
    """The expressions of a text; every node gets its place."""
    try:
        trees = TextParser(text).whole()
    except RuleError as error:
        wrong = error.diagnostics[0]
        within = "" if wrong.message.startswith(UNKNOWN_FUNCTION) or not element.name else f"in <{element.name}>: "
        fail(_place(element, text, wrong.span), within + wrong.message, wrong.hint)
    return tuple(transform(tree, lambda node: replace(node, span=_place(element, text, node.span))) for tree in trees)


def _place(element: Element, text: str, part: Span | None) -> Span:
    """Where a part of a text stands: in XML at the element; in YAML where it is, if it is written as it means."""
    place = element.places.get("")
    if place is None or part is None:
        return place or element.span
    start = place.start + (place.text[:1] in ("'", '"'))
    as_written = place.source.text.startswith(text, start)
    return place.source.span(start + part.start, start + part.end) if as_written else place


def values_of(element: Element) -> tuple[Expr, ...]:
    """VALUES, in either form."""
    if element.children and element.text:
        fail(element, f"<{element.name}> mixes text and elements")
    if element.children:
        return tuple(_nested(element, child) for child in element.children)
    return text_values(element, element.text) if element.text else ()


def value_of(element: Element) -> Expr:
    """VALUE, in either form."""
    values = values_of(element)
    if len(values) != 1:
        fail(element, f"<{element.name}> holds more than one value" if values else f"<{element.name}> is empty")
    return values[0]


def logic_of(element: Element) -> Expr:
    """LOGIC, in either form."""
    if element.children and element.text:
        fail(element, f"<{element.name}> mixes text and elements")
    if element.children:
        return _joined(And, [_nested_logic(element, child) for child in element.children])
    tree = value_of(element)
    if any(not isinstance(node, (And, Or, Not, Reference)) for node in _logic_nodes(tree)):
        fail(element, f"in <{element.name}>: only names of predicates and expressions, and, or, not, parentheses")
    return tree


def _logic_nodes(tree: Expr) -> list[Expr]:
    return [tree, *(node for child in tree.children for node in _logic_nodes(child))]


def _nested_logic(parent: Element, element: Element) -> Expr:
    if not element.name:  # a text among others, in YAML
        return logic_of(element)
    check_nested(parent, element, LOGIC)
    if element.name == "ref":
        if "of" in element.attributes:
            fail(element, "<ref> has no attribute 'of'")
        return Reference(element.attributes["anchor"], span=element.span)
    parts = [_nested_logic(element, child) for child in element.children]
    if not parts:
        fail(element, f"<{element.name}> is empty")
    if element.name == "not":
        return Not(_joined(And, parts), span=element.span)
    return _joined(And if element.name == "and" else Or, parts)


def _joined(node: type[And] | type[Or], parts: list[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else node(tuple(parts), span=parts[0].span)


def _nested(parent: Element, element: Element) -> Expr:
    if not element.name:
        return value_of(element)
    check_nested(parent, element, VALUES)
    if element.name in ARITHMETIC:
        return _arithmetic(element)
    if element.name in CALLS:
        return _call(element, CALLS[element.name], values_of(element))
    return replace(NESTED[element.name](element), span=element.span)


def _arithmetic(element: Element) -> Expr:
    values = values_of(element)
    if len(values) < 2:
        fail(element, f"<{element.name}> takes 2 or more values, not {len(values)}")
    sign = ARITHMETIC[element.name]
    return reduce(lambda left, right: Arithmetic(sign, left, right, span=element.span), values)


def _call(element: Element, name: str, arguments: tuple[Expr, ...]) -> Expr:
    function = FUNCTIONS.get(name)
    if function is None:
        fail(element, f"{UNKNOWN_FUNCTION}'{name}'")
    if not function.accepts(len(arguments)):
        fail(element, f"in <{element.name}>: wrong number of arguments of '{name}'")
    if bad := function.bad_constant(arguments):
        fail(element, f"in <{element.name}>: '{name}': {bad[1]}")
    return Call(name, arguments, span=element.span)


def _negated(element: Element) -> Expr:
    operand = value_of(element)
    if isinstance(operand, Literal) and is_number(operand.value):
        return Literal(-operand.value)
    return Negate(operand)


def lookup_of(element: Element) -> Expr:
    provider, column = (Literal(element.attributes[name], span=element.span) for name in ("provider", "column"))
    return Call("lookup", (provider, column, value_of(element)), span=element.span)


def _reference(element: Element) -> Expr:
    of, anchor = element.attributes.get("of"), element.attributes["anchor"]
    if of not in (None, "self", "other", "previous"):
        fail(element, f"'{of}' is not self, other or previous")
    return Reference(f"{of}.{anchor}" if of else anchor)


def _literal(element: Element) -> Expr:
    kind = element.attributes.get("type", "string")
    if kind == "string":
        return Literal(element.content)
    return Literal(constant(element, element.text, kind))


NESTED: dict[str, Callable[[Element], Expr]] = {
    "value": _literal,
    "ref": _reference,
    "neg": _negated,
    "call": lambda element: _call(element, element.attributes["method"], values_of(element)),
    "lookup": lookup_of,
    "context": lambda element: Call("node", (Literal(element.attributes["name"], span=element.span),)),
}


def constant(element: Element, text: str, kind: str) -> float | bool:
    """The constant that a text means where a type other than string is given."""
    found: float | bool | None = None
    try:
        if kind == "boolean":
            found = {"true": True, "false": False}.get(text)
        elif kind == "time_t":
            found = instant(text)
        elif kind in ("int", "double"):
            number = number_of(text)
            found = number_of_text(text) if kind == "double" or number.is_integer() else None
        else:
            fail(element, f"unknown type '{kind}'")
    except ValueError:
        pass
    if found is None:
        fail(element, f"'{shortened(text)}' is not a value of type {kind}")
    return found


def instant(text: str) -> float | None:
    """Milliseconds of a number or an ISO-8601 text. Raises ValueError."""
    try:
        return number_of(text)
    except QuantityError:
        return None
    except ValueError:
        return parse_instant(text) / MILLISECOND


def duration_of(element: Element, name: str) -> float | None:
    """An attribute that is a duration, in milliseconds."""
    text = element.attributes.get(name)
    if text is None:
        return None
    try:
        return parse_duration(text) / MILLISECOND
    except QuantityError as error:
        fail(element.place(name), f"'{name}' is not a duration: {shortened(text)} ({error})", UNIT_HINT)
