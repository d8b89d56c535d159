"""ECCO, drawn: the tree of an expression, from the events on the left to what is detected on the right."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coincide.draw.graph import Drawing
from coincide.draw.tree import Tree, written
from coincide.expr.functions import number_text
from coincide.expr.print import expression_text
from coincide.expr.quantities import duration_text
from coincide.lang.ecco.aggregates import result_of
from coincide.lang.ecco.definition import (
    Alt,
    As,
    At,
    Chain,
    Definition,
    Delay,
    Expression,
    Filter,
    Iter,
    Neg,
    Not,
    Null,
    Policy,
    Ref,
    Sel,
    Valid,
    With,
    Within,
    Wrapper,
)
from coincide.lang.ecco.print import definition_text
from coincide.model.stamp import MILLISECOND

STATEMENT = re.compile(r"(?m)^\s*(?:detect|let|option|stamp|duplicates|space)\b")
CHAINS = {";": "then", "+": "and", "||": "at the same time", " ": "right after"}


def algebra(definition: Definition) -> Drawing:
    """Events are round, operators square; what is asked of a part stands below it."""
    return _painted(definition)[0]


def node_names(definition: Definition) -> dict[int, str]:
    """Of nodes, by the ids of the expressions that they stand for."""
    return _painted(definition)[1]


def _painted(definition: Definition) -> tuple[Drawing, dict[int, str]]:
    tree = Tree()
    painter = _Painter(tree)
    body = painter.drawn(definition.body)
    notes = [f"per {', '.join(definition.keys)}"] if definition.keys else []
    if definition.give is not None:
        notes.append("with " + ", ".join(item.name for item in definition.give))
    tree.connect(body, tree.add("result", definition.name, notes))
    return tree.drawing(definition.name, written(definition.span, STATEMENT) or definition_text(definition)), painter.names


class _Painter:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.names: dict[int, str] = {}

    def drawn(self, expression: Expression) -> str:
        """The name of its node. Wrappers are notes of what they wrap."""
        notes: list[str] = []
        while isinstance(expression, Wrapper):
            notes = [_note(expression), *notes]
            expression = expression.operand
        name = self.names[id(expression)] = self._node(expression, notes)
        return name

    def _node(self, node: Expression, notes: list[str]) -> str:
        if isinstance(node, Ref):
            return self.tree.add("event", node.type or "any event", notes)
        if isinstance(node, Null):
            test = "" if node.condition is None else f" but {expression_text(node.condition)}"
            return self.tree.add("event", f"nothing{test}", notes)
        operator = self.tree.add("operator", _label(node), notes)
        for part, word in _operands(node):
            self.tree.connect(self.drawn(part), operator, word)
        return operator


def _operands(node: Expression) -> Iterator[tuple[Expression, str]]:
    """With a word where it matters which of them one is."""
    match node:
        case Chain(operator=";"):
            for number, element in enumerate(node.elements, 1):
                yield _element(element, number)
        case Chain(operator="+"):
            yield from ((element, "") for element in node.elements)
        case Chain():
            yield from zip(node.elements, ("1", "2"), strict=True)
        case Neg():
            yield node.left, ""
            yield node.right, "but not"
        case Sel() if node.until is not None:
            yield node.operand, ""
            yield node.until, "until"
        case _:
            yield from ((part, "") for part in node.children)


def _element(element: Expression, number: int) -> tuple[Expression, str]:
    """What must not come between two others is not an operator of its own."""
    if isinstance(element, Not) and element.over is None:
        return element.operand, f"{number}: none of"
    return element, str(number)


def _label(node: Expression) -> str:
    match node:
        case Chain():
            return CHAINS.get(node.operator, node.operator)
        case Alt():
            return "or"
        case Neg():
            return "without"
        case Iter():
            return f"{_times(node)}{'' if node.by is None else f' different {expression_text(node.by)}'}"
        case Not():
            return "none" if node.over is None else f"none for {_duration(node.over)}"
        case Delay():
            return f"{_duration(node.duration)} later"
    assert isinstance(node, Sel)
    return _selection(node)


def _times(node: Iter) -> str:
    least, most = node.least, node.most
    if least is None and most is None:
        return "again and again"
    if least == most:
        return f"{least} times"
    if most is None:
        return f"{least} or more times"
    return f"up to {most} times" if least is None else f"{least} to {most} times"


def _selection(node: Sel) -> str:
    name = result_of(node.function) or node.function.lower()
    if node.selection.by_number:
        name = f"number {number_text(node.number or 0.0)}"
    elif node.number is not None:
        name += f" than {number_text(node.number)}"
    argument = "" if node.argument is None else f" of {expression_text(node.argument)}"
    over = "" if node.over is None else f" over {_duration(node.over)}"
    every = "" if node.every is None else f" every {_duration(node.every)}"
    return f"{name}{argument}{over}{every}"


def _note(wrapper: Wrapper) -> str:
    match wrapper:
        case Filter():
            return expression_text(wrapper.condition)
        case Within():
            return f"within {_duration(wrapper.duration)}"
        case Valid():
            return f"valid {_duration(wrapper.duration)}"
        case As():
            return f"as {wrapper.alias}"
        case At():
            return f"in {', '.join(wrapper.place.names) or wrapper.place.kind}"
    assert isinstance(wrapper, With)
    return f"with {', '.join(map(_policy, wrapper.policies))}"


def _policy(policy: Policy) -> str:
    return policy.name if policy.aspect is None else f"{policy.name} of {policy.aspect}"


def _duration(milliseconds: float) -> str:
    return duration_text(round(milliseconds * MILLISECOND))
