"""What a definition waits for, event by event: for those who ask why it has not detected anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from coincide.expr.scalar import EventScope, condition
from coincide.expr.tree import Expr, Reference, transform, without_aliases
from coincide.model.compound import Single
from coincide.model.event import Event


@dataclass(frozen=True)
class Resembling(Expr):
    """A test that is not an expression of the shared language (of Sigma, say): a value of the attribute passes if it is like
    one of these examples."""

    operand: Reference
    examples: tuple[Single, ...]


@dataclass(frozen=True)
class Slot:
    """An event that the definition waits for: of a type (None: of any), with tests of it alone. What is `refused` stops a
    detection, or ends what it is made in. `times`: so many of them."""

    type: str | None
    tests: tuple[Expr, ...] = ()
    refused: bool = False
    times: int = 1


@dataclass(frozen=True)
class Wants:
    """All that one definition waits for, in the order in which it is written. `tests` are those of several events together;
    `bounds` the durations that count, in microseconds; `counts` the numbers of events that do."""

    slots: tuple[Slot, ...]
    tests: tuple[Expr, ...] = ()
    bounds: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()


def holds(tree: Expr, event: Event) -> bool:
    """Is it true of one event, whatever alias stands for it? Of tests that only some language has, that is not known."""
    try:
        return condition(without_aliases(tree), EventScope())(event)
    except Exception:  # a function, or a node, that the shared language does not have
        return False


def present(*trees: Expr | None) -> tuple[Expr, ...]:
    return tuple(tree for tree in trees if tree is not None)


def microseconds(milliseconds: Iterable[float | None]) -> tuple[int, ...]:
    """Durations as users write them, those that are given."""
    return tuple(round(duration * 1_000) for duration in milliseconds if duration)


def without_prefixes(tree: Expr, names: dict[str, str]) -> Expr:
    """Dotted names, and names that stand for attributes, as the attributes of events that they are."""

    def rewrite(node: Expr) -> Expr:
        if not isinstance(node, Reference):
            return node
        prefix, _, rest = node.name.rpartition(".")
        name = names.get(node.name, rest if prefix in names else node.name)
        return Reference(name, prefix or None, span=node.span)

    return transform(tree, rewrite)
