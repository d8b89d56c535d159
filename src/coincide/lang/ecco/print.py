"""ECCO as text that parses back to equal definitions, with no more parentheses than needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from coincide.expr.functions import number_text
from coincide.expr.print import expression_text
from coincide.expr.tree import Expr, Reference, transform
from coincide.lang.ecco.definition import (
    CONCATENATION,
    CONJUNCTION,
    SEQUENCE,
    Alt,
    As,
    At,
    Chain,
    Definition,
    Delay,
    DuplicatesRule,
    Expression,
    File,
    Filter,
    Item,
    Iter,
    Neg,
    Not,
    Null,
    Options,
    Place,
    Policy,
    Ref,
    Sel,
    StampRule,
    Valid,
    With,
    Within,
    ZoneFile,
)
from coincide.lang.ecco.link import Linked
from coincide.lang.ecco.words import EXPRESSION_RESERVED, quoted
from coincide.source import room_for_recursion

# How tightly a node binds: the levels of the grammar, loosest first.
EXPR, ALT, CONJ, PAR, SEQ, ELEMENT, NEG, CAT, UNIT, POSTFIX = range(10)


def print_file(file: File) -> str:
    with room_for_recursion():
        lines = [*_options(file.options), *map(_stamp, file.stamps), *map(_duplicates, file.duplicates)]
        lines += map(_zone_file, file.zone_files)
        lines += [f"space {quoted(name)} = {_place(place)}" for name, place in file.spaces]
        lines += [definition_text(definition) for definition in file.definitions]
    return "".join(f"{line}\n" for line in lines)


def linked_text(linked: Linked) -> str:
    """A definition with all that its meaning depends on: those below it, each in its setting, and what is foreign to them."""
    settings = [print_file(_as_file(item)) for item in linked.together]
    areas = [area for item in linked.together for area in item.setting.areas]
    zones = [f"{area.name} {[polygon.rings for polygon in area.polygons]}" for area in areas]
    return "\n".join([*settings, *zones, *sorted(linked.foreign)])


def _as_file(item: Linked) -> File:
    s = item.setting
    return File(s.options, s.stamps, s.duplicates, s.spaces, (item.definition,))


# Statements.


def _options(options: Options) -> list[str]:
    default = Options()
    lines = []
    if options.skew != default.skew:
        lines.append(f"option skew {number_text(options.skew)}")
    if options.maybe != default.maybe:
        lines.append(f"option maybe {options.maybe}")
    if options.semantics != default.semantics:
        lines.append(f"option semantics {options.semantics}")
    # One statement each: those of one `with` exclude each other, those of several statements do not.
    lines += [f"option policy {_policy(policy)}" for policy in options.policies]
    if options.offset != default.offset:
        lines.append(f"option offset {_duration(options.offset)}")
    return lines


def _stamp(rule: StampRule) -> str:
    parts = [f"stamp {_types(rule.types)}"]
    if rule.hops is not None:
        parts.append(f"hops {quoted(rule.hops)}")
    if rule.maximum is not None:
        parts.append(f"max {_duration(rule.maximum)}")
    if rule.drift is not None:
        parts.append(f"drift {number_text(rule.drift)}ppm")
    parts += [f"{word} {_duration(value)}" for word, value in (("error", rule.error), ("delay", rule.delay)) if value]
    return " ".join(parts)


def _duplicates(rule: DuplicatesRule) -> str:
    by = "" if rule.keys == ("id",) else f" by {_names(rule.keys)}"
    horizon = "" if rule.horizon is None else f" within {_duration(rule.horizon)}"
    return f"duplicates {rule.keep} {_types(rule.types)}{by}{horizon}"


def _zone_file(file: ZoneFile) -> str:
    by = "" if file.property == "name" else f" by {_text(file.property)}"
    return f"space from {_text(file.path)}{by}"


def _text(text: str) -> str:
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


def _duration(milliseconds: float) -> str:
    """With its unit: behind a bare number, a name such as `d` would be taken for one."""
    return f"{number_text(milliseconds)}ms"


def _types(types: Iterable[str | None]) -> str:
    return ", ".join("any" if name is None else quoted(name) for name in types)


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def definition_text(definition: Definition) -> str:
    word = "let" if definition.hidden else "detect"
    keys = f" per {_names(definition.keys)}" if definition.keys else ""
    give = "" if definition.give is None else f" give {', '.join(map(_item, definition.give))}"
    return f"{word} {quoted(definition.name)}{keys} = {expression(definition.body)}{give}"


def _item(item: Item) -> str:
    return f"{quoted(item.name)} = {_condition(item.value)}"


def _condition(tree: Expr) -> str:
    return expression_text(transform(tree, _quoted_reference))


def _quoted_reference(node: Expr) -> Expr:
    """A name that the language reserves can only have been written in back quotes."""
    if isinstance(node, Reference) and node.splits is None and node.name in EXPRESSION_RESERVED:
        return replace(node, splits=())
    return node


# Event expressions.


def expression(node: Expression, level: int = EXPR) -> str:
    """The node where the grammar wants something that binds at least so tightly."""
    write, own = _WRITERS[type(node)]
    text: str = write(node)
    return f"({text})" if (own(node) if callable(own) else own) < level else text


def _chain(node: Chain) -> str:
    if node.operator == SEQUENCE:
        return " ; ".join(expression(e, ELEMENT) for e in node.elements)
    if node.operator == CONJUNCTION:
        return " + ".join(expression(e, PAR) for e in node.elements)
    left, right = node.elements
    if node.operator == CONCATENATION:
        return f"{expression(left, CAT)} {expression(right, UNIT)}"
    return f"{expression(left, PAR)} {node.operator} {expression(right, SEQ)}"


def _chain_level(node: Chain) -> int:
    return {SEQUENCE: SEQ, CONJUNCTION: CONJ, CONCATENATION: CAT}.get(node.operator, PAR)


def _iter(node: Iter) -> str:
    by = "" if node.by is None else f" by {_condition(node.by)}"
    if node.least is None and node.most is None and not by:
        bounds = ""
    elif node.least == node.most and node.least is not None:
        bounds = f"{{{node.least}{by}}}"
    else:
        least, most = ("" if bound is None else str(bound) for bound in (node.least, node.most))
        bounds = f"{{{least},{most}{by}}}"
    return f"{expression(node.operand, POSTFIX)}*{bounds}"


def _sel(node: Sel) -> str:
    name = number_text(node.number or 0.0) if node.selection.by_number else node.function
    argument = "" if node.argument is None else f"({_condition(node.argument)})"
    limit = f" {number_text(node.number)}" if node.selection.compares and node.number is not None else ""
    over = "" if node.over is None else f" over {_duration(node.over)}"
    every = "" if node.every is None else f" every {_duration(node.every)}"
    until = "" if node.until is None else f" until {expression(node.until, POSTFIX)}"
    return f"{expression(node.operand, POSTFIX)}^{name}{argument}{limit}{over}{every}{until}"


def _not(node: Not) -> str:
    over = "" if node.over is None else f" over {_duration(node.over)}"
    return f"not {expression(node.operand, POSTFIX)}{over}"


def _null(node: Null) -> str:
    return "NULL" if node.condition is None else f"NULL{{{_condition(node.condition)}}}"


def _filter(node: Filter) -> str:
    """After a reference in braces, else as `where`: behind `*` braces could be taken for bounds."""
    if isinstance(node.operand, Ref):
        return f"{expression(node.operand)}{{{_condition(node.condition)}}}"
    return f"{expression(node.operand, ALT)} where {_condition(node.condition)}"


def _with(node: With) -> str:
    inside = expression(node.operand, ALT)
    if isinstance(node.operand, Filter):
        inside = expression(node.operand)
    return f"{inside} with {', '.join(map(_policy, node.policies))}"


def _policy(policy: Policy) -> str:
    if policy.name != "precision":
        return policy.name
    level = policy.level
    if level is None:
        level = f"{number_text(policy.percent)}%" if policy.percent is not None else _duration(policy.interval or 0.0)
    return f"precision({policy.aspect}, {level})"


def _place(place: Place) -> str:
    if place.kind == "space":
        return quoted(place.names[0])
    items = map(_text, place.names) if place.names else map(number_text, place.numbers)
    return f"{place.kind}({', '.join(items)})"


def _suffix(word: str) -> Callable[[Any], str]:
    return lambda node: f"{expression(node.operand, POSTFIX)} {word} {_duration(node.duration)}"


_WRITERS: dict[type[Expression], tuple[Callable[[Any], str], int | Callable[[Any], int]]] = {
    Ref: (lambda node: "any" if node.type is None else quoted(node.type), POSTFIX),
    Null: (_null, ELEMENT),
    Chain: (_chain, _chain_level),
    Alt: (lambda node: " | ".join(expression(a, CONJ) for a in node.alternatives), ALT),
    Neg: (lambda node: f"{expression(node.left, NEG)} - {expression(node.right, CAT)}", NEG),
    Iter: (_iter, POSTFIX),
    Sel: (_sel, POSTFIX),
    Not: (_not, UNIT),
    Delay: (lambda node: f"{expression(node.operand, CONJ)} + {_duration(node.duration)}", CONJ),
    Filter: (_filter, lambda node: POSTFIX if isinstance(node.operand, Ref) else EXPR),
    Within: (_suffix("within"), POSTFIX),
    Valid: (_suffix("valid"), POSTFIX),
    As: (lambda node: f"{expression(node.operand, POSTFIX)} as {quoted(node.alias)}", POSTFIX),
    At: (lambda node: f"{expression(node.operand, POSTFIX)} @ {_place(node.place)}", POSTFIX),
    With: (_with, EXPR),
}
