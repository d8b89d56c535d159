"""Definitions as XML that parses back to equal ones. Expressions are text where text can say them, otherwise nested elements."""

from __future__ import annotations

from collections.abc import Iterable

from coincide.errors import RuleError
from coincide.expr.functions import number_text
from coincide.expr.print import expression_text
from coincide.expr.tree import And, Arithmetic, Call, Expr, Literal, Negate, Not, Or, Reference
from coincide.lang.cdl.definition import (
    AnySource,
    Attribute,
    Collection,
    ComplexEvent,
    Computation,
    Description,
    Expression,
    File,
    Filter,
    Predicate,
    Preference,
    Provider,
    TimeEvent,
    version_text,
)
from coincide.lang.cdl.functions import AGGREGATES
from coincide.lang.cdl.values import TextParser
from coincide.lang.shared.xml import escaped, quoted
from coincide.model.numbers import is_number

SIGNS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}
ELEMENTS = {name: name for name in ("concat", "set", "min", "max", *AGGREGATES)} | {"range": "interval"}
INDENT = "  "

Lines = list[str]
Given = dict[str, str | None]


def print_file(file: File) -> str:
    if file.single:
        (cd,) = file.descriptions
        lines = _description(cd)
    else:
        lines = _element(
            "cds", {}, [*_section("providers", map(_provider, file.providers)), *_all(map(_description, file.descriptions))]
        )
    return "\n".join(lines) + "\n"


def _all(parts: Iterable[Lines]) -> Lines:
    return [line for lines in parts for line in lines]


def _element(name: str, given: Given, lines: Lines) -> Lines:
    start = _start(name, given)
    if not lines:
        return [start + "/>"]
    return [start + ">", *(INDENT + line for line in lines), f"</{name}>"]


def _holding(name: str, given: Given, content: str) -> Lines:
    """On one line, because white space in a text value counts."""
    start = _start(name, given)
    return [f"{start}>{content}</{name}>" if content else start + "/>"]


def _start(name: str, given: Given) -> str:
    attributes = "".join(f" {key}={quoted(value)}" for key, value in given.items() if value is not None)
    return f"<{name}{attributes}"


def _section(name: str, parts: Iterable[Lines]) -> Lines:
    lines = _all(parts)
    return _element(name, {}, lines) if lines else []


def _description(cd: Description) -> Lines:
    given: Given = {"id": cd.id, "version": version_text(cd.version), "within": _number(cd.within)}
    given["disjoint"] = "true" if cd.disjoint else None
    return _element(
        "cd",
        given,
        [
            *_section("providers", map(_provider, cd.providers)),
            *_section("sources", map(_source, cd.sources)),
            *_section("computations", map(_computation, cd.computations)),
            *_section("predicates", map(_predicate, cd.predicates)),
            *_section("expressions", map(_expression, cd.expressions)),
            *_section("events", map(_event, cd.events)),
            *_section("preferences", map(_preference, cd.preferences)),
        ],
    )


def _number(value: float | None) -> str | None:
    return None if value is None else number_text(value)


def _provider(node: Provider) -> Lines:
    return _element("provider", {"name": node.name, "kind": node.kind, "href": node.href, "key": node.key}, [])


def _source(node: AnySource) -> Lines:
    if isinstance(node, TimeEvent):
        inner = _holding("relative" if node.relative else "absolute", {}, _values((node.value,)))
        return _element("time", {"anchor": node.anchor, "trigger": node.trigger}, inner)
    given: Given = {"class": node.message_class, "anchor": node.anchor}
    given["access"] = None if node.access == "any" else node.access
    given["within"] = _number(node.within)
    given["duplicates"] = None if node.duplicates == "accept" else node.duplicates
    if isinstance(node, Collection) and node.reuse is not None:
        given["reuse"] = str(node.reuse).lower()
    return _element("collection" if isinstance(node, Collection) else "source", given, _all(map(_attribute, node.attributes)))


def _attribute(node: Attribute) -> Lines:
    given: Given = {"name": node.name, "type": node.type, "anchor": node.anchor, "optional": "true" if node.optional else None}
    lookup = [] if node.lookup is None else [_nested(node.lookup)]
    return _element("attribute", given, [*lookup, *_all(map(_filter, node.filters))])


def _filter(node: Filter) -> Lines:
    return _holding("filter", {"operators": " ".join(node.operators) or None}, _values(node.values))


def _computation(node: Computation) -> Lines:
    given: Given = {"type": node.type, "anchor": node.anchor, "overhead": node.overhead}
    return _holding("computation", given, _values((node.value,)))


def _predicate(node: Predicate) -> Lines:
    given: Given = {"name": node.name, "anchor": node.anchor, "of": node.of, "selectivity": node.selectivity}
    return _holding("predicate", given, _values(node.arguments))


def _expression(node: Expression) -> Lines:
    text = expression_text(node.logic)
    content = escaped(text) if reads_back(text, (node.logic,)) else _logic(node.logic)
    return _holding("expression", {"anchor": node.anchor}, content)


def _event(node: ComplexEvent) -> Lines:
    given: Given = {
        "class": node.message_class,
        "access": None if node.access == "public" else node.access,
        "trigger": node.trigger,
    }
    lines = [_holding("attribute", {"name": a.name, "type": a.type}, _values((a.value,))) for a in node.attributes]
    return _element("event", given, _all(lines))


def _preference(node: Preference) -> Lines:
    parts = (("self", node.self_), ("previous", node.previous), ("other", node.other), ("better", node.better))
    return _element("preference", {}, _all(_holding(name, {}, escaped(anchor)) for name, anchor in parts if anchor))


def _values(trees: tuple[Expr, ...]) -> str:
    text = ", ".join(map(expression_text, trees))
    return escaped(text) if reads_back(text, trees) else "".join(map(_nested, trees))


def reads_back(text: str, trees: tuple[Expr, ...]) -> bool:
    """Names that tokens cannot spell and texts with line breaks need the nested form."""
    try:
        return not trees or TextParser(text).whole() == trees
    except RuleError:
        return False


def _logic(tree: Expr) -> str:
    if isinstance(tree, (And, Or)):
        name = "and" if isinstance(tree, And) else "or"
        return f"<{name}>{''.join(map(_logic, tree.operands))}</{name}>"
    if isinstance(tree, Not):
        return f"<not>{_logic(tree.operand)}</not>"
    assert isinstance(tree, Reference)
    return f"<ref anchor={quoted(tree.name)}/>"


def _nested(tree: Expr) -> str:
    """A value as elements. Conditions have no such form, but they were text, which reads back."""
    if isinstance(tree, Literal):
        return _literal(tree)
    if isinstance(tree, Reference):
        return _reference(tree)
    if isinstance(tree, Negate):
        return f"<neg>{_nested(tree.operand)}</neg>"
    if isinstance(tree, Arithmetic):
        name = SIGNS[tree.op]
        return f"<{name}>{_nested(tree.left)}{_nested(tree.right)}</{name}>"
    assert isinstance(tree, Call)
    return _call(tree)


def _literal(tree: Literal) -> str:
    if isinstance(tree.value, str):
        return f"<value>{escaped(tree.value)}</value>"
    if isinstance(tree.value, bool):
        return f'<value type="boolean">{str(tree.value).lower()}</value>'
    assert is_number(tree.value)
    return f'<value type="double">{number_text(tree.value)}</value>'


def _reference(tree: Reference) -> str:
    of, dot, rest = tree.name.partition(".")
    if dot and of in ("self", "other", "previous"):
        return f"<ref anchor={quoted(rest)} of={quoted(of)}/>"
    return f"<ref anchor={quoted(tree.name)}/>"


def _call(tree: Call) -> str:
    if tree.name == "lookup" and all(isinstance(a, Literal) and isinstance(a.value, str) for a in tree.arguments[:2]):
        provider, column = (quoted(str(a.value)) for a in tree.arguments[:2] if isinstance(a, Literal))
        return f"<lookup provider={provider} column={column}>{_values(tree.arguments[2:])}</lookup>"
    if tree.name == "node" and isinstance(tree.arguments[0], Literal) and isinstance(tree.arguments[0].value, str):
        return f"<context name={quoted(tree.arguments[0].value)}/>"
    inner = "".join(map(_nested, tree.arguments))
    if tree.name in ELEMENTS:
        return f"<{ELEMENTS[tree.name]}>{inner}</{ELEMENTS[tree.name]}>"
    return f"<call method={quoted(tree.name)}>{inner}</call>"
