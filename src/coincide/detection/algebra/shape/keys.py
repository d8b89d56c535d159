"""Equalities between operands as a key: `where x.k = y.k` divides events as `per k` does, if it ties all of them at each
step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coincide.expr.tree import Compare, Expr, Reference

Components = list[dict[int, str]]
"""Attributes that are equal: for each, that of every leaf."""


class Unsupported(Exception):
    """The message says why the kernel tier cannot do it."""


def joined_by_equality(
    tests: Sequence[Expr],
    names: tuple[Mapping[str | None, int], Mapping[str | None, int]],
    sides: tuple[Components | None, Components | None],
    simple: tuple[bool, bool],
) -> Components | None:
    """What the leaves of both sides have in common when these tests join them. `names`: leaves by alias; a side that is no
    single leaf has something in common already, or nothing is compared at all."""
    if not tests:
        if any(side is not None for side in sides):
            raise Unsupported("compares some operands only")
        return None
    pairs: dict[int, int] = {}
    own = [list(side) if side is not None else [] for side in sides]
    for test in tests:
        left, right = _pair(test, names)
        a, b = (_number(own[n], part, simple[n]) for n, part in enumerate((left, right)))
        if pairs.setdefault(a, b) != b or list(pairs.values()).count(b) > 1:
            raise Unsupported("compares an attribute with several others")
    if len(pairs) < max(map(len, own)):
        raise Unsupported("compares some operands only")
    return [{**own[0][a], **own[1][b]} for a, b in pairs.items()]


def _pair(
    test: Expr, names: tuple[Mapping[str | None, int], Mapping[str | None, int]]
) -> tuple[tuple[int, str], tuple[int, str]]:
    """The leaf and attribute of each side."""
    if isinstance(test, Compare) and test.op == "=":
        for a, b in ((test.left, test.right), (test.right, test.left)):
            if isinstance(a, Reference) and isinstance(b, Reference) and a.alias in names[0] and b.alias in names[1]:
                return (names[0][a.alias], a.name), (names[1][b.alias], b.name)
    raise Unsupported("compares operands by more than equality")


def _number(components: Components, part: tuple[int, str], simple: bool) -> int:
    leaf, attribute = part
    for number, component in enumerate(components):
        if component.get(leaf) == attribute:
            return number
    if not simple:
        raise Unsupported("compares some operands only")
    components.append({leaf: attribute})
    return len(components) - 1
