"""The attributes of one element, taken one by one: synonyms, choices, numbers, durations, names, expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.expr.functions import Function
from coincide.expr.parse import ExpressionParser, ExpressionWording, parse_duration
from coincide.expr.quantities import UNIT_HINT, QuantityError, count_of, shortened
from coincide.expr.tokens import Tokens, Wording, unquoted
from coincide.expr.tree import Expr
from coincide.lang.amit.functions import condition_functions
from coincide.lang.shared.xml import Element
from coincide.source import SourceText, Span

NAME = re.compile(r"[^\W\d][\w.-]*")
RESERVED = ("type", "time", "id", "source", "space", "from")
WORDS = Wording(unclosed="unterminated string", end="end of expression")
EXPRESSION_WORDS = ExpressionWording(chained="comparisons do not chain, found {found}")


def error(span: Span | None, message: str, hint: str | None = None) -> RuleError:
    return RuleError(Diagnostic(message, span, hint=hint))


def children_of(element: Element, allowed: Collection[str]) -> tuple[Element, ...]:
    """Child elements, all of which must be known here; text must not stand here."""
    if element.text:
        raise error(element.span, f"unexpected text '{element.text[:20]}'")
    for child in element.children:
        if child.name not in allowed:
            message = f"unknown element '{child.name}' in '{element.name}'"
            raise error(child.span, message, nearest(child.name, allowed))
    return element.children


class Attributes:
    """Reads an element's attributes. `synonyms` lead from the paper's other words to the canonical name."""

    def __init__(self, element: Element, allowed: Sequence[str], synonyms: Mapping[str, str] = {}) -> None:
        self.element = element
        self.values: dict[str, str] = {}
        for written, value in element.attributes.items():
            name = synonyms.get(written, written)
            if name not in allowed:
                known = [*allowed, *synonyms]
                raise self.fail(f"element '{element.name}' has no attribute '{written}'", nearest(written, known), written)
            if name in self.values:
                raise self.fail(f"attribute '{name}' is given twice", at=written)
            self.values[name] = value

    def fail(self, message: str, hint: str | None = None, at: str = "") -> RuleError:
        """An error at the element or, where its form has a place for it, at one of its attributes."""
        return error(self.place(at), message, hint)

    def place(self, name: str) -> Span:
        return self.element.places.get(name, self.element.span)

    def given(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str) -> str:
        if name not in self.values:
            raise self.fail(f"element '{self.element.name}' needs the attribute '{name}'")
        return unquoted(self.values[name].strip())

    def name(self, name: str) -> str:
        """A name that is defined here."""
        text = self.text(name)
        if self.values[name].strip() == text and not NAME.fullmatch(text):  # in back quotes, any text is a name
            raise self.fail(f"'{text}' is not a name", at=name, hint=f"in back quotes any text is one: `{text}`")
        return text

    def alias(self) -> str | None:
        return self.name("as") if self.given("as") else None

    def attribute_name(self) -> str:
        name = self.name("name")
        if name in RESERVED:
            raise self.fail(f"attribute name '{name}' is reserved", at="name")
        return name

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        if default is not None and not self.given(name):
            return default
        return self.one_of(name, self.text(name), choices)

    def one_of(self, name: str, text: str, choices: Sequence[str]) -> str:
        if text not in choices:
            message = f"attribute '{name}' must be one of {', '.join(choices)}, not '{text}'"
            raise self.fail(message, nearest(text, choices), name)
        return text

    def flag(self, name: str, default: bool) -> bool:
        return self.choice(name, ("true", "false"), str(default).lower()) == "true"

    def whole(self, name: str, default: int | None = None) -> int:
        if default is not None and not self.given(name):
            return default
        text = self.text(name)
        try:
            return (-1 if text.startswith("-") else 1) * count_of(text.removeprefix("-").removeprefix("+"))
        except QuantityError:
            raise self.fail(f"attribute '{name}' must be a whole number, not '{shortened(text)}'", at=name) from None

    def duration(self, name: str) -> int:
        """In microseconds."""
        text = self.text(name)
        found = duration_of(text)
        if found is None:
            raise self.fail(f"attribute '{name}' must be a duration above zero, not '{shortened(text)}'", UNIT_HINT, name)
        return found

    def expression(self, name: str, functions: Callable[[], dict[str, Function]] = condition_functions) -> Expr | None:
        if not self.given(name):
            return None
        text = self.values[name]
        with inside_expression(self.place(name), text):
            return parse_text(text, functions())


def duration_of(text: str) -> int | None:
    """A duration above zero, in microseconds; None if the text is none."""
    try:
        return parse_duration(text, zero=False)
    except QuantityError:
        return None


def parse_text(text: str, functions: dict[str, Function]) -> Expr:
    """One whole expression, with Amit's sentences for what is wrong with it."""
    tokens = Tokens(SourceText("expression", text), wording=WORDS)
    tree = ExpressionParser(tokens, functions=functions, wording=EXPRESSION_WORDS, spaced_calls=True).expression()
    end = tokens.peek()
    if end.kind != "end":
        raise tokens.fail(end, f"expected an operator, found {tokens.shown(end)}")
    return tree


@contextmanager
def inside_expression(span: Span | None, text: str) -> Iterator[None]:
    """Errors stand at the element, and say at which column of the expression (section 2.4)."""
    try:
        yield
    except RuleError as problem:
        found = problem.diagnostics[0]
        column = found.span.start + 1 if found.span else 1
        message = f'{found.message} at column {column} of "{text}"'
    else:
        return
    raise error(span, message, found.hint)
