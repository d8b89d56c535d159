"""ECCO definitions: frozen data, with source spans that do not count in comparisons. Names are the paper's and those of the
specification's abstract syntax. Durations are in milliseconds, as users write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from coincide.expr.tree import Expr
from coincide.lang.ecco.selections import Selection, selection_of
from coincide.model.area import Area
from coincide.source import Span
from coincide.syntax import Node, walk

SEQUENCE, CONJUNCTION, CONCURRENCY, CONCATENATION = ";", "+", "||", " "
RELATIONS = ("before", "meets", "overlaps", "finishes", "includes", "starts", "equals")


@dataclass(frozen=True)
class Expression(Node["Expression"]):
    """An event expression. Each span is that of the word that errors and warnings about the node point at."""


@dataclass(frozen=True)
class Ref(Expression):
    """Events of a type, or detections of that name; no type: `any` primitive event."""

    type: str | None


@dataclass(frozen=True)
class Null(Expression):
    """`NULL`, `NULL{…}`: nothing at all in between."""

    condition: Expr | None = None


@dataclass(frozen=True)
class Chain(Expression):
    """Operands joined by one operator: `;`, `+`, `||`, ' ' (concatenation) or a relation. Only `;` and `+` have more
    than two. Elements of a `;` chain may be gaps, groups and silences."""

    operator: str
    elements: tuple[Expression, ...]
    starts: tuple[Span, ...] = field(default=(), compare=False, repr=False, kw_only=True)  # where the elements begin


@dataclass(frozen=True)
class Alt(Expression):
    alternatives: tuple[Expression, ...]


@dataclass(frozen=True)
class Neg(Expression):
    """`A - B`."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Iter(Expression):
    """`E*{least,most}`. What the bounds default to depends on where it stands (5.2, 5.3). `by`: not the elements are counted, but
    the different values that this has."""

    operand: Expression
    least: int | None = None
    most: int | None = None
    by: Expr | None = None


@dataclass(frozen=True)
class Sel(Expression):
    """`E^function(argument) number over T every S`; `number` is the n of `^n` (function NTH) and of LESS and MORE. `until` is
    what lets ONCE begin anew."""

    operand: Expression
    function: str
    argument: Expr | None = None
    number: float | None = None
    over: float | None = None
    every: float | None = None
    until: Expression | None = None
    word: Span | None = field(default=None, compare=False, repr=False, kw_only=True)  # FIRST, LESS …

    @property
    def selection(self) -> Selection:
        return selection_of(self.function)


@dataclass(frozen=True)
class Not(Expression):
    """`not E over T`; without `over`, a gap between two operands of a sequence."""

    operand: Expression
    over: float | None = None


@dataclass(frozen=True)
class Delay(Expression):
    operand: Expression
    duration: float


@dataclass(frozen=True)
class Wrapper(Expression):
    """What changes an occurrence's trimmings but makes no composite."""

    operand: Expression


@dataclass(frozen=True)
class Filter(Wrapper):
    condition: Expr


@dataclass(frozen=True)
class Within(Wrapper):
    duration: float


@dataclass(frozen=True)
class Valid(Wrapper):
    duration: float


@dataclass(frozen=True)
class As(Wrapper):
    alias: str


@dataclass(frozen=True)
class Place:
    """kind: zone, group, box, circle, sphere; or `space`, a name that the file defines."""

    kind: str
    names: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    zones: Mapping[str, Area] = field(default_factory=dict, compare=False, repr=False)  # all that the file has
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def areas(self) -> tuple[Area, ...]:
        """Of the zones that it names, those whose shape is known."""
        return tuple(self.zones[name] for name in dict.fromkeys(self.names) if name in self.zones)


@dataclass(frozen=True)
class At(Wrapper):
    place: Place


@dataclass(frozen=True)
class Policy:
    """A consumption policy, `subset`, or `precision(aspect, level)`; a level is a word, a percentage or an interval."""

    name: str
    aspect: str | None = None
    level: str | None = None
    percent: float | None = None
    interval: float | None = None


@dataclass(frozen=True)
class With(Wrapper):
    policies: tuple[Policy, ...]


def core(expression: Expression, through: tuple[type[Expression], ...] = (Wrapper,)) -> Expression:
    """What stands inside the wrappers."""
    while isinstance(expression, through) and isinstance(expression, Wrapper):
        expression = expression.operand
    return expression


@dataclass(frozen=True)
class Item:
    """`name = value` of a `give` list."""

    name: str
    value: Expr
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Definition:
    """`detect name per keys = body give items`, or a hidden `let`."""

    name: str
    hidden: bool
    keys: tuple[str, ...]
    body: Expression
    give: tuple[Item, ...] | None = None
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)  # of the word `detect` or `let`


def trees_of(definition: Definition) -> Iterator[Expr]:
    """All conditions and values, as they were written."""
    yield from (item.value for item in definition.give or ())
    for node in walk(definition.body):
        if isinstance(node, (Filter, Null)) and node.condition is not None:
            yield node.condition
        elif isinstance(node, Sel) and node.argument is not None:
            yield node.argument
        elif isinstance(node, Iter) and node.by is not None:
            yield node.by


@dataclass(frozen=True)
class Options:
    skew: float = 0.0  # a ratio
    maybe: str = "reject"
    semantics: str = "interval"
    policies: tuple[Policy, ...] = ()
    offset: float = 0.0


@dataclass(frozen=True)
class StampRule:
    """How the record's time becomes a stamp (section 4). No type among `types`: `any`."""

    types: tuple[str | None, ...]
    hops: str | None = None
    maximum: float | None = None
    drift: float | None = None  # parts per million
    error: float = 0.0
    delay: float = 0.0

    @property
    def drift_ratio(self) -> float:
        ppm = self.drift if self.drift is not None else 10.0 if self.hops is not None else 0.0
        return ppm * 1e-6


@dataclass(frozen=True)
class DuplicatesRule:
    keep: str  # first or last
    types: tuple[str | None, ...]
    keys: tuple[str, ...] = ("id",)
    horizon: float | None = None
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class ZoneFile:
    """`space from 'path' by property`: GeoJSON, whose features are zones."""

    path: str
    property: str = "name"


@dataclass(frozen=True)
class File:
    """One rule file. Among statements of one kind the order counts, between kinds it does not."""

    options: Options = field(default_factory=Options)
    stamps: tuple[StampRule, ...] = ()
    duplicates: tuple[DuplicatesRule, ...] = ()
    spaces: tuple[tuple[str, Place], ...] = ()
    definitions: tuple[Definition, ...] = ()
    zone_files: tuple[ZoneFile, ...] = ()
