"""What can be said of one file without knowing the others: structure, aliases, spaces, attributes (section 2, errors)."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.expr.tree import Expr
from coincide.lang.ecco.aliases import Aliases, is_gap, is_iteration, is_silence
from coincide.lang.ecco.conditions import placed, resolved
from coincide.lang.ecco.definition import SEQUENCE, At, Chain, Definition, Expression, File, Filter, Iter, Not, Null, Place, Sel
from coincide.source import Span
from coincide.syntax import walk

ENVELOPE_NAMES = ("type", "time", "from", "id")


def check_file(file: File) -> None:
    seen: set[str] = set()
    known = check_spaces(file.spaces)
    for definition in file.definitions:
        if definition.name in seen:
            raise already_defined(definition)
        seen.add(definition.name)
        check_definition(definition, known)


def already_defined(definition: Definition) -> RuleError:
    return RuleError(Diagnostic(f"'{definition.name}' is already defined", definition.span, name=definition.name))


def check_spaces(spaces: tuple[tuple[str, Place], ...]) -> dict[str, Place]:
    """Each named space, resolved; one may name another that stands before it."""
    known: dict[str, Place] = {}
    for name, place in spaces:
        known[name] = resolved_place(place, known)
    return known


def resolved_place(place: Place, known: dict[str, Place]) -> Place:
    if place.kind != "space":
        return place
    name = place.names[0]
    if name not in known:
        hint = nearest(name, known) or f"a zone is written in quotes: '{name}'"
        raise RuleError(Diagnostic(f"unknown space '{name}'", place.span, hint=hint))
    return known[name]


def check_definition(definition: Definition, spaces: dict[str, Place]) -> None:
    """The first error in the order of the text decides among errors of one kind; structure comes first."""
    for error in _structure(definition.body, False):
        raise error
    aliases = Aliases(definition.body)
    for node in walk(definition.body):
        if isinstance(node, At):
            resolved_place(node.place, spaces)
        elif isinstance(node, Filter):
            placed(node.condition, node.operand, aliases)
        elif isinstance(node, (Null, Sel)):
            _check_without_aliases(node.condition if isinstance(node, Null) else node.argument)
        elif isinstance(node, Iter):
            _check_without_aliases(node.by)
    _check_give(definition, aliases)


def _check_without_aliases(tree: Expr | None) -> None:
    if tree is not None:
        resolved(tree, frozenset())


def _check_give(definition: Definition, aliases: Aliases) -> None:
    for item in definition.give or ():
        if item.name in ENVELOPE_NAMES:
            raise _error(f"'{item.name}' is not an attribute", item.span)
        resolved(item.value, aliases.bound(definition.body))


# `not`, NULL and groups in sequences.


def _structure(node: Expression, in_sequence: bool) -> Iterator[RuleError]:
    """Errors in the order of the text; `in_sequence`: the node is an element of a `;` chain, which judges it."""
    if not in_sequence:
        if isinstance(node, Null):
            yield _error("NULL must stand between two operands of ';'", node.span)
        if isinstance(node, Not) and node.over is None:
            yield _error("'not' needs 'over T' here", node.span)
    sequence = isinstance(node, Chain) and node.operator == SEQUENCE
    for index, part in enumerate(node.children):
        if sequence:
            assert isinstance(node, Chain)
            yield from _element(node, index)
        yield from _structure(part, sequence)


def _element(chain: Chain, index: int) -> Iterator[RuleError]:
    element, last = chain.elements[index], len(chain.elements) - 1
    if is_gap(element) and index in (0, last):
        null = isinstance(element, Null)
        yield _error("NULL must stand between two operands of ';'" if null else "'not' needs 'over T' here", element.span)
    if index > 0 and _stands_between(chain, index - 1) and not _is_ordinary(chain, index):
        span = chain.starts[index] if chain.starts else element.span
        yield _error("only one of NULL, not and * may stand between two operands", span)


def _stands_between(chain: Chain, index: int) -> bool:
    element = chain.elements[index]
    return 0 < index < len(chain.elements) - 1 and (is_gap(element) or is_iteration(element))


def _is_ordinary(chain: Chain, index: int) -> bool:
    element = chain.elements[index]
    return not (is_gap(element) or is_silence(element) or _stands_between(chain, index))


def _error(message: str, span: Span | None) -> RuleError:
    return RuleError(Diagnostic(message, span))
