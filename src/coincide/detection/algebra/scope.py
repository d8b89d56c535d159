"""Conditions and values on occurrences: bare names mean the occurrence under test, the others are aliases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from coincide.detection.algebra.occurrence import SPACE_FIELDS, Occurrence
from coincide.detection.keys import key_part
from coincide.expr.scalar import AliasScope, Evaluate, compile_scalar
from coincide.expr.tree import Expr, Reference
from coincide.model.event import Value

Environment = dict[str | None, Occurrence]


class OccurrenceScope(AliasScope):
    """An occurrence stands for an event; `space.zone`, `space.x` … read its spacestamp."""

    def reference(self, node: Reference) -> Evaluate:
        prefix, _, name = node.name.partition(".")
        if prefix != "space" or name not in SPACE_FIELDS:
            return super().reference(node)
        alias = node.alias

        def evaluate(environment: Mapping[str | None, Any]) -> Value:
            occurrence = environment.get(alias)
            return None if occurrence is None or occurrence.space is None else getattr(occurrence.space, name)

        return evaluate


SCOPE = OccurrenceScope()


def value_of(tree: Expr) -> Callable[[Environment], Value]:
    return compile_scalar(tree, SCOPE)


def environment(under_test: Occurrence | None, *bound: Occurrence) -> Environment:
    """What the aliases of some occurrences mean, and what a bare name is an attribute of."""
    names: Environment = {}
    for occurrence in bound:
        names.update(occurrence.aliases)
    if under_test is not None:
        names.update(under_test.aliases)
        names[None] = under_test
    return names


def number_of_different(values: Iterable[Value]) -> int:
    """How many different values there are, nulls left out."""
    return len({key_part(value) for value in values if value is not None})


@dataclass(frozen=True, eq=False)
class Conjunct:
    """A test. The aliases in `whole` mean the occurrence under test itself; `on_composite`: it needs the one under test.
    `tree` is what is tested, for those who test whole columns."""

    holds: Callable[[Environment], Value]
    tree: Expr
    whole: frozenset[str] = frozenset()
    on_composite: bool = True

    def __call__(self, names: Environment) -> bool:
        for alias in self.whole:
            names = {**names, alias: names[None]}
        return self.holds(names) is True
