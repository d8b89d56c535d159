"""Types of expressions where the types of attributes are declared: number, string, boolean, or None for unknown.

Timestamps are numbers. What is unknown, null included, goes with everything."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coincide.errors import Diagnostic, RuleError
from coincide.expr.functions import ANY, BOOLEAN, FUNCTIONS, NUMBER, TEXT, Function
from coincide.expr.tree import (
    Alias,
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    Reference,
)
from coincide.source import Span
from coincide.syntax import walk

Types = Callable[[Reference], str | None]

KINDS = {float: NUMBER, int: NUMBER, str: TEXT, bool: BOOLEAN}


def infer(tree: Expr, types: Types, functions: Mapping[str, Function] = FUNCTIONS) -> str | None:
    """The type of the tree's value, None if unknown. Raises RuleError at the first clash."""
    return _Inference(types, functions).infer(tree)


def check_condition(tree: Expr, types: Types, functions: Mapping[str, Function] = FUNCTIONS) -> None:
    """Raises RuleError unless the tree can be a condition."""
    found = infer(tree, types, functions)
    if found not in (BOOLEAN, None):
        raise _error(tree.span, f"a condition must be a boolean, not a {found}")


def is_common(tree: Expr) -> bool:
    """Has it only nodes and functions that every language has? Of another one `infer` knows nothing."""
    return all(node.name in FUNCTIONS if isinstance(node, Call) else hasattr(_Inference, _method(node)) for node in walk(tree))


def _method(node: Expr) -> str:
    return "_" + type(node).__name__.lower()


class _Inference:
    """One method a node; operands from left to right, then the node itself."""

    def __init__(self, types: Types, functions: Mapping[str, Function]) -> None:
        self.types = types
        self.functions = functions

    def infer(self, tree: Expr) -> str | None:
        method: Callable[[Any], str | None] = getattr(self, _method(tree))
        return method(tree)

    def _literal(self, node: Literal) -> str | None:
        return KINDS.get(type(node.value))

    def _reference(self, node: Reference) -> str | None:
        found = self.types(node)
        return NUMBER if found == "timestamp" else found

    def _alias(self, node: Alias) -> str | None:
        return None

    def _and(self, node: And) -> str:
        return self._connective("and", node.operands)

    def _or(self, node: Or) -> str:
        return self._connective("or", node.operands)

    def _connective(self, word: str, operands: Sequence[Expr]) -> str:
        found = [self.infer(o) for o in operands]
        for index, kind in enumerate(found):
            self._want(word, BOOLEAN, kind, _after(operands[max(0, index - 1)]))
        return BOOLEAN

    def _not(self, node: Not) -> str:
        self._want("not", BOOLEAN, self.infer(node.operand), node.span)
        return BOOLEAN

    def _compare(self, node: Compare) -> str:
        return self._comparisons(node.left, [node.right])

    def _in(self, node: In) -> str:
        return self._comparisons(node.operand, node.options)

    def _between(self, node: Between) -> str:
        return self._comparisons(node.operand, [node.low, node.high])

    def _comparisons(self, operand: Expr, others: Sequence[Expr]) -> str:
        left = self.infer(operand)
        for right in [self.infer(o) for o in others]:
            if None not in (left, right) and left != right:
                raise _error(_after(operand), f"cannot compare a {left} with a {right}")
        return BOOLEAN

    def _like(self, node: Like) -> str:
        for found in [self.infer(node.operand), self.infer(node.pattern)]:
            self._want("like", TEXT, found, _after(node.operand))
        return BOOLEAN

    def _isnull(self, node: IsNull) -> str:
        self.infer(node.operand)
        return BOOLEAN

    def _arithmetic(self, node: Arithmetic) -> str:
        for found in [self.infer(node.left), self.infer(node.right)]:
            self._want(node.op, NUMBER, found, _after(node.left))
        return NUMBER

    def _negate(self, node: Negate) -> str:
        self._want("-", NUMBER, self.infer(node.operand), node.span)
        return NUMBER

    def _call(self, node: Call) -> str | None:
        function = self.functions[node.name]
        self._check_aliases(node, function)
        arguments = [a for a in node.arguments if not isinstance(a, Alias)]
        found = [self.infer(a) for a in arguments]
        for index, kind in enumerate(found):
            self._want(node.name, function.argument(index), kind, node.span)
        alike = [k for i, k in enumerate(found) if k is not None and function.argument(i).endswith("the same")]
        if len(set(alike)) > 1:
            raise _error(node.span, f"arguments of '{node.name}' differ in type")
        if function.result == "the same":
            return alike[0] if alike else None
        return None if function.result == ANY else function.result

    def _check_aliases(self, node: Call, function: Function) -> None:
        """Those that may be left out are left out all together."""
        assert function.most is not None or not function.aliases
        given = len(node.arguments) == function.most
        if given and not all(isinstance(a, Alias) for a in node.arguments[: function.aliases]):
            raise _error(node.span, f"'{node.name}' wants an alias")

    def _want(self, name: str, wanted: str, found: str | None, span: Span | None) -> None:
        choices = wanted.removesuffix(", the same").split(" or ")
        if found is not None and wanted not in (ANY, "the same") and found not in choices:
            raise _error(span, f"'{name}' wants {' or '.join('a ' + c for c in choices)}, not a {found}")


def _after(operand: Expr) -> Span | None:
    """The operator behind an operand: the first thing that is neither a closing parenthesis, white space nor a comment."""
    if operand.span is None:
        return None
    text = operand.span.source.text
    gap = re.compile(r"(?:[\s)]|#[^\n]*)*").match(text, operand.span.end)
    assert gap is not None
    word = re.compile(r"\w+|[^\w\s()'\"]{1,2}").match(text, gap.end())
    return replace(operand.span, start=gap.end(), end=word.end() if word else gap.end())


def _error(span: Span | None, message: str) -> RuleError:
    return RuleError(Diagnostic(message, span))
