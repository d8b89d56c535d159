"""Row pattern queries as text that parses back to equal definitions: one clause a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from coincide.expr.functions import number_text
from coincide.expr.print import AND, NOT, OR, PRIMARY, PRODUCT, SUM, TEST, UNARY
from coincide.expr.quantities import whole_units
from coincide.expr.tree import (
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
from coincide.lang.matchrecognize.definition import (
    Aggregate,
    Alternation,
    Anchor,
    Case,
    Cast,
    Classifier,
    Clause,
    Concatenation,
    Empty,
    Exclusion,
    File,
    MatchFact,
    Navigation,
    OrderKey,
    Pattern,
    Permutation,
    Query,
    Repetition,
    Source,
    Variable,
)
from coincide.lang.matchrecognize.expressions import LEFT_TO_SPARK, RESERVED
from coincide.model.numbers import is_number
from coincide.source import room_for_recursion

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
WORDS = RESERVED | LEFT_TO_SPARK | {"match_recognize", "permute", "running", "final", "interval", "timestamp"}
"""Names that are always quoted, so that nobody has to ask where they could stand without."""

UNITS = ("week", "day", "hour", "minute", "second", "millisecond", "microsecond")


def print_file(file: File) -> str:
    return "\n".join(f"{print_query(query)};\n" for query in file.queries)


def print_query(query: Query) -> str:
    with room_for_recursion():
        head = f"CREATE VIEW {name_text(query.name)} AS\n" if query.is_view else ""
        items = "*" if query.items is None else ", ".join(f"{text(i.value)} AS {name_text(i.name)}" for i in query.items)
        alias = f" AS {name_text(query.alias)}" if query.alias is not None else ""
        where = f"\nWHERE {text(query.where)}" if query.where is not None else ""
        clause = "".join(f"  {line}\n" for line in clause_lines(query.clause))
        return f"{head}SELECT {items}\nFROM {_source(query.source)} MATCH_RECOGNIZE (\n{clause}){alias}{where}"


def _source(source: Source) -> str:
    name = name_text(source.table)
    if source.where is not None:
        name = f"(SELECT * FROM {name} WHERE {text(source.where)})"
    return name if source.alias is None else f"{name} AS {name_text(source.alias)}"


def clause_lines(clause: Clause) -> Iterable[str]:
    if clause.partition:
        yield "PARTITION BY " + ", ".join(name_text(c.name) for c in clause.partition)
    if clause.order:
        yield "ORDER BY " + ", ".join(_key(k) for k in clause.order)
    if clause.measures:
        yield "MEASURES " + ", ".join(f"{text(m.value)} AS {name_text(m.name)}" for m in clause.measures)
    yield _rows(clause)
    yield "AFTER MATCH SKIP " + _skip(clause)
    within = "" if clause.within is None else f" WITHIN {interval_text(clause.within)}"
    yield f"PATTERN ({pattern_text(clause.pattern)}){within}"
    if clause.subsets:
        listed = (f"{variable_text(s.name)} = ({', '.join(variable_text(m.name) for m in s.members)})" for s in clause.subsets)
        yield "SUBSET " + ", ".join(listed)
    yield "DEFINE " + ", ".join(f"{variable_text(c.variable)} AS {text(c.test)}" for c in clause.conditions)


def _key(key: OrderKey) -> str:
    nulls = "" if key.nulls_first is not key.descending else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
    return name_text(key.name) + (" DESC" if key.descending else "") + nulls


def _rows(clause: Clause) -> str:
    if not clause.all_rows:
        return "ONE ROW PER MATCH" + (" WITH TIMED OUT MATCHES" if clause.timed_out else "")
    if clause.unmatched_rows:
        return "ALL ROWS PER MATCH WITH UNMATCHED ROWS"
    return "ALL ROWS PER MATCH" if clause.empty_matches else "ALL ROWS PER MATCH OMIT EMPTY MATCHES"


def _skip(clause: Clause) -> str:
    skip = clause.skip
    if skip.variable is None:
        return "PAST LAST ROW" if skip.to == "PAST" else "TO NEXT ROW"
    return f"TO {skip.to} {variable_text(skip.variable)}"


def interval_text(microseconds: int) -> str:
    number, unit = whole_units(microseconds, UNITS) or (0, "second")
    return f"INTERVAL '{number}' {unit.upper()}"


def name_text(name: str) -> str:
    return name if PLAIN.fullmatch(name) and name.lower() not in WORDS else '"' + name.replace('"', '""') + '"'


def variable_text(name: str) -> str:
    return name_text(name) if name == name.upper() else '"' + name.replace('"', '""') + '"'


# Patterns: how tightly a node binds, loosest first.

CHOICE, SEQUENCE, FACTOR, ATOM = range(4)


def pattern_text(pattern: Pattern, level: int = CHOICE) -> str:
    written, own = _pattern(pattern)
    return f"({written})" if own < level else written


def _pattern(pattern: Pattern) -> tuple[str, int]:
    match pattern:
        case Variable(name):
            return variable_text(name), ATOM
        case Empty():
            return "()", ATOM
        case Anchor(end):
            return ("$" if end else "^"), ATOM
        case Concatenation(parts):
            return " ".join(pattern_text(p, FACTOR) for p in parts), SEQUENCE
        case Alternation(options):
            return " | ".join(pattern_text(o, SEQUENCE) for o in options), CHOICE
        case Permutation(members):
            return f"PERMUTE({', '.join(pattern_text(m) for m in members)})", ATOM
        case Exclusion(body):
            return f"{{- {pattern_text(body)} -}}", ATOM
        case Repetition(body, least, most, reluctant):
            return pattern_text(body, ATOM) + quantifier_text(least, most) + ("?" if reluctant else ""), FACTOR
    raise TypeError(pattern)


def quantifier_text(least: int, most: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    if short is not None:
        return short
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


# Expressions


def text(tree: Expr) -> str:
    return _at(tree, OR)


def _at(tree: Expr, level: int) -> str:
    write, own = WRITERS[type(tree)]
    written: str = write(tree)
    return f"({written})" if (own(tree) if callable(own) else own) < level else written


def _list(items: Iterable[Expr]) -> str:
    return "(" + ", ".join(text(i) for i in items) + ")"


def _literal(node: Literal) -> str:
    if isinstance(node.value, str):
        return "'" + node.value.replace("'", "''") + "'"
    if isinstance(node.value, bool) or node.value is None:
        return "NULL" if node.value is None else str(node.value).upper()
    return number_text(node.value)


def _reference(node: Reference) -> str:
    return name_text(node.name) if node.alias is None else f"{variable_text(node.alias)}.{name_text(node.name)}"


def _tested(operand: Expr, negated: bool, rest: str) -> str:
    return f"{_at(operand, SUM)} {'NOT ' if negated else ''}{rest}"


def _navigation(node: Navigation) -> str:
    usual = int(node.function in ("PREV", "NEXT"))
    offset = "" if node.offset == usual else f", {node.offset}"
    return f"{_semantics(node.semantics)}{node.function}({text(node.operand)}{offset})"


def _aggregate(node: Aggregate) -> str:
    inside = ", ".join(text(a) for a in node.arguments) or "*"
    if node.function == "count" and len(node.arguments) == 1 and isinstance(counted := node.arguments[0], Classifier):
        inside = text(counted) if counted.variable is None else f"{variable_text(counted.variable)}.*"
    return f"{_semantics(node.semantics)}{node.function.upper()}({inside})"


def _semantics(word: str) -> str:
    return f"{word} " if word else ""


def _case(node: Case) -> str:
    subject = "" if node.subject is None else f" {text(node.subject)}"
    whens = "".join(f" WHEN {text(t)} THEN {text(v)}" for t, v in zip(node.tests, node.values, strict=True))
    otherwise = "" if node.otherwise is None else f" ELSE {text(node.otherwise)}"
    return f"CASE{subject}{whens}{otherwise} END"


def _arithmetic_level(node: Arithmetic) -> int:
    return SUM if node.op in ("+", "-", "||") else PRODUCT


def _arithmetic(node: Arithmetic) -> str:
    level = _arithmetic_level(node)
    return f"{_at(node.left, level)} {node.op} {_at(node.right, level + 1)}"


def _between(node: Between) -> str:
    return _tested(node.operand, node.negated, f"BETWEEN {_at(node.low, SUM)} AND {_at(node.high, SUM)}")


WRITERS: dict[type[Expr], tuple[Callable[[Any], str], int | Callable[[Any], int]]] = {
    Literal: (_literal, lambda node: UNARY if is_number(node.value) and node.value < 0 else PRIMARY),
    Reference: (_reference, PRIMARY),
    Call: (lambda node: node.name.upper() + _list(node.arguments), PRIMARY),
    Navigation: (_navigation, PRIMARY),
    Aggregate: (_aggregate, PRIMARY),
    Classifier: (lambda node: f"CLASSIFIER({'' if node.variable is None else variable_text(node.variable)})", PRIMARY),
    MatchFact: (lambda node: f"{node.function}()", PRIMARY),
    Case: (_case, PRIMARY),
    Cast: (lambda node: f"CAST({text(node.operand)} AS {node.type})", PRIMARY),
    Or: (lambda node: " OR ".join(_at(o, AND) for o in node.operands), OR),
    And: (lambda node: " AND ".join(_at(o, NOT) for o in node.operands), AND),
    Not: (lambda node: f"NOT {_at(node.operand, NOT)}", NOT),
    Compare: (lambda node: f"{_at(node.left, SUM)} {node.op} {_at(node.right, SUM)}", TEST),
    In: (lambda node: _tested(node.operand, node.negated, f"IN {_list(node.options)}"), TEST),
    Between: (_between, TEST),
    Like: (lambda node: _tested(node.operand, node.negated, f"LIKE {_at(node.pattern, SUM)}"), TEST),
    IsNull: (lambda node: f"{_at(node.operand, SUM)} IS {'NOT ' if node.negated else ''}NULL", TEST),
    Arithmetic: (_arithmetic, _arithmetic_level),
    Negate: (lambda node: f"-{_at(node.operand, UNARY)}", UNARY),
}
