"""Queries as text: `parse(print_file(file))` is the file again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from coincide.expr.quantities import whole_units
from coincide.expr.tokens import back_quoted
from coincide.expr.tree import And, Arithmetic, Call, Compare, Expr, Literal, Negate, Not, Or, Reference
from coincide.lang.eql.definition import FILTER, Among, File, Filter, Item, Key, Matching, Query
from coincide.lang.eql.tokens import KEYWORDS, quoted

_is_plain = re.compile(r"@?[^\W\d]\w*(?:\.[^\W\d]\w*)*").fullmatch
_is_word = re.compile(r"[A-Za-z_]\w*", re.ASCII).fullmatch

UNITS = ("w", "d", "h", "m", "s", "ms")
OR, AND, NOT, COMPARISON, SUM, TERM, UNARY, TESTED, PRIMARY = range(9)
"""How tightly operators bind."""


def print_file(file: File) -> str:
    """In the form in which it came."""
    return _toml(_text(file)) if file.in_toml else _text(file)


def _toml(text: str) -> str:
    """As a rule of elastic/detection-rules; one that was skipped has nothing to say."""
    if not text:
        return "[rule]\n"
    name = text.partition("\n")[0].removeprefix("// @name ")
    query = f"'''\n{text}'''" if "'''" not in text else json.dumps(text)
    return f'[rule]\nlanguage = "eql"\nname = {json.dumps(name)}\nquery = {query}\n'


def _text(file: File) -> str:
    return ";\n\n".join(print_query(query) for query in file.queries) + "\n" if file.queries else ""


def print_query(query: Query) -> str:
    fields = [f"// @fields {', '.join(map(field_text, query.fields))}"] if query.fields else []
    return "\n".join([f"// @name {query.name}", *fields, *_body(query)])


def _body(query: Query) -> Iterator[str]:
    pipes = "".join(f" | {pipe.name} {pipe.count}" for pipe in query.pipes)
    if query.kind == FILTER:
        yield _filter(query.items[0].filter) + pipes
        return
    maxspan = "" if query.maxspan is None else f" with maxspan={duration_text(query.maxspan)}"
    yield f"{query.kind}{keys_text(query.keys)}{maxspan}"
    for item in query.items:
        yield f"  {_item(item)}"
    if query.until is not None:
        yield f"until {_item(query.until)}"
    if pipes:
        yield pipes.strip()


def _item(item: Item) -> str:
    runs = f" with runs={item.runs}" if item.runs > 1 else ""
    return f"{'!' if item.missing else ''}[{_filter(item.filter)}]{keys_text(item.keys)}{runs}"


def _filter(found: Filter) -> str:
    return f"{category_text(found.category)} where {condition_text(found.condition)}"


def category_text(category: str | None) -> str:
    if category is None:
        return "any"
    return category if _is_word(category) and category not in KEYWORDS else quoted(category)


def keys_text(keys: Iterable[Key]) -> str:
    written = ", ".join(("?" if key.optional else "") + _within(key.value, SUM) for key in keys)
    return f" by {written}" if written else ""


def duration_text(microseconds: int) -> str:
    number, unit = whole_units(microseconds, UNITS) or (microseconds, "us" if microseconds else "w")
    return f"{number}{unit}"


def field_text(name: str) -> str:
    return name if _is_plain(name) and name not in KEYWORDS else back_quoted(name)


def condition_text(tree: Expr) -> str:
    return _written(tree)[0]


def _within(tree: Expr, least: int) -> str:
    """In parentheses, if it binds less tightly than its place asks."""
    text, tightness = _written(tree)
    return text if tightness >= least else f"({text})"


def _written(tree: Expr) -> tuple[str, int]:
    match tree:
        case Or(operands=operands):
            return " or ".join(_within(o, AND) for o in operands), OR
        case And(operands=operands):
            return " and ".join(_within(o, NOT) for o in operands), AND
        case Not(operand=operand):
            return f"not {_within(operand, NOT)}", NOT
        case Compare(op=op, left=left, right=right):
            return f"{_within(left, SUM)} {'==' if op == '=' else op} {_within(right, SUM)}", COMPARISON
        case Arithmetic(op=op, left=left, right=right):
            own = SUM if op in "+-" else TERM
            return f"{_within(left, own)} {op} {_within(right, own + 1)}", own
        case Negate(operand=operand):
            return f"-{_within(operand, UNARY)}", UNARY
        case Among():
            word = ("not " if tree.negated else "") + ("in~" if tree.any_case else "in")
            return f"{_within(tree.operand, PRIMARY)} {word} ({_list(tree.options)})", TESTED
        case Matching():
            patterns = _list(tree.patterns)
            return (
                f"{_within(tree.operand, PRIMARY)} {tree.op} {patterns if len(tree.patterns) == 1 else f'({patterns})'}",
                TESTED,
            )
        case Call(name=name, arguments=arguments):
            return f"{name}({_list(arguments)})", PRIMARY
        case Reference(name=name):
            return field_text(name), PRIMARY
        case Literal(value=value):
            return _constant(value), PRIMARY
    raise TypeError(tree)


def _list(trees: Iterable[Expr]) -> str:
    return ", ".join(condition_text(tree) for tree in trees)


def _constant(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return str(value)
    return repr(value)
