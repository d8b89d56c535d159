"""ECL definitions: frozen data, with source spans that do not count in comparisons. Names are the paper's."""

from __future__ import annotations

from dataclasses import dataclass, field

from coincide.expr.tree import Expr
from coincide.source import Span
from coincide.syntax import Node


@dataclass(frozen=True)
class Correlation(Node["Correlation"]):
    """A correlation expression. The guards of modes are among its children."""


@dataclass(frozen=True)
class Predicate(Correlation):
    """A test of one event. `label` is its text as the author wrote it; `test` has named predicates expanded and bare
    names resolved to tests of the type; `written` is the tree as it was written, for printing."""

    test: Expr
    label: str = field(compare=False)
    written: Expr = field(compare=False, repr=False)


@dataclass(frozen=True)
class Accumulate(Correlation):
    parts: tuple[Correlation, ...]


@dataclass(frozen=True)
class Select(Correlation):
    parts: tuple[Correlation, ...]


@dataclass(frozen=True)
class SelectStar(Correlation):
    parts: tuple[Correlation, ...]


@dataclass(frozen=True)
class Sequential(Correlation):
    parts: tuple[Correlation, ...]


@dataclass(frozen=True)
class Parallel(Correlation):
    parts: tuple[Correlation, ...]


@dataclass(frozen=True)
class DoUnless(Correlation):
    body: Correlation
    unless: Correlation


@dataclass(frozen=True)
class Fail(Correlation):
    body: Correlation


@dataclass(frozen=True)
class Output:
    """What a push emits: a token, with attributes computed from the completing event. `written` has the values as they
    were written, for printing; `texts` their token sequences with named predicates in their places."""

    token: str
    attributes: tuple[tuple[str, Expr], ...] = ()
    written: tuple[Expr, ...] = field(default=(), compare=False, repr=False)
    texts: tuple[str, ...] = field(default=(), compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def symbol(self) -> tuple[str, frozenset[tuple[str, str]]]:
        """What analyses compare (section 7): the token with its attribute definitions, in any order."""
        names = [name for name, _ in self.attributes]
        return self.token, frozenset(zip(names, self.texts, strict=True))


@dataclass(frozen=True)
class Push(Correlation):
    output: Output
    body: Correlation


@dataclass(frozen=True)
class Persist(Correlation):
    body: Correlation
    maximum: int | None = None


@dataclass(frozen=True)
class Repeat(Correlation):
    body: Correlation
    maximum: int | None = None


@dataclass(frozen=True)
class Loop(Correlation):
    body: Correlation
    maximum: int | None = None


@dataclass(frozen=True)
class Mode(Correlation):
    guard: Predicate
    body: Correlation


@dataclass(frozen=True)
class Modes(Correlation):
    modes: tuple[Mode, ...]


@dataclass(frozen=True)
class Monitor:
    """`monitor name by keys = body`."""

    name: str
    keys: tuple[str, ...]
    body: Correlation
    token_digest: str = field(default="", compare=False, repr=False)  # its name in older snapshots
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)  # of the name


@dataclass(frozen=True)
class Transition:
    """(En, a, Clr, Tgt, o) of Definition 3. `enabling` is a conjunction of disjunctions of states; no `test`: internal."""

    name: str
    enabling: tuple[tuple[str, ...], ...]
    test: Predicate | None
    clear: tuple[str, ...]  # resolved: the states of the enabling clauses, all, or those given; sorted
    target: tuple[str, ...]
    output: Output | None = None
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Machine:
    """`machine name by keys { … }`: a correlation machine written out."""

    name: str
    keys: tuple[str, ...]
    initial: tuple[str, ...]
    transitions: tuple[Transition, ...]
    order: tuple[tuple[str, ...], ...]  # as written: chains of names, most urgent first
    token_digest: str = field(default="", compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class File:
    """One rule file: its named predicates (as written, in order) and its monitors and machines in order."""

    predicates: tuple[tuple[str, Expr], ...]
    detectors: tuple[Monitor | Machine, ...]
