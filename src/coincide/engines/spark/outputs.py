"""What the resulting DataFrame looks like: the envelope of a detection, then every attribute that a rule can give one.

An attribute whose type follows from the DataFrame's schema is a plain column. One whose type is unknown, or differs from
detection to detection, is a struct of which at most one field is filled (`number`, `text`, `flag`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from coincide.adapters.write import KEY
from coincide.detection.base import Attributes, Copied, DetectorPlan
from coincide.engines.identity import Digests, Keys, versions_of
from coincide.engines.spark.bytype import Types, metadata
from coincide.engines.spark.frame import Source
from coincide.engines.spark.latecomers import LATE, LateShape, late_shape
from coincide.engines.spark.rejects import REJECTED
from coincide.engines.spark.values import MOMENT, TIME, WHOLE, arrow_kind, kind_of, spark_kind, spark_time, values
from coincide.errors import RuleError
from coincide.expr.functions import NUMBER
from coincide.expr.tree import Call, Expr, Literal, Reference
from coincide.expr.typing import infer
from coincide.model.batch import EventBatch
from coincide.model.compound import COMPOUND_MAKERS
from coincide.model.event import ENVELOPE
from coincide.model.numbers import is_number, plain_number
from coincide.model.table import EventTable
from coincide.syntax import walk

UNKNOWN = "unknown"
ORDER = "_order"
"""A column for ourselves: where among the detections of one event a detection stands."""
VERSION = "_version"
"""The digest of the definition that made a detection."""
LATENCY = "_latency"
"""Microseconds from a detection's hi to the clock at which it was made."""


@dataclass(frozen=True)
class Outputs:
    """Attributes of the detections, with their kinds."""

    attributes: tuple[tuple[str, str | None], ...]
    compounds: bool = False  # values may be sets or ranges: a field more for what is of no certain type
    latencies: bool = False  # a column for how late detections were made
    late: LateShape | None = None  # a column for late events
    digests: Digests | None = None  # of definitions, where a column for keys is wanted
    types: Types = ()  # the same attributes, by types of detections
    rejected: T.StructType | None = None  # a column for rows that are set aside
    versions: Digests | None = None  # of definitions, where a column for those is wanted

    def spark(self) -> T.StructType:
        fields = [
            T.StructField("type", T.StringType(), metadata=metadata(self.types)),
            T.StructField("time", spark_time()),
            T.StructField("from", T.ArrayType(T.StringType())),
            T.StructField("source", T.StringType()),
            *(T.StructField(name, spark_kind(kind, self.compounds)) for name, kind in self.attributes),
            T.StructField(ORDER, T.ArrayType(T.LongType())),
            *([T.StructField(KEY, T.StringType())] if self.digests is not None else []),
            *([T.StructField(VERSION, T.StringType())] if self.versions is not None else []),
            *([T.StructField(LATENCY, T.LongType())] if self.latencies else []),
            *([T.StructField(LATE, self.late.spark())] if self.late is not None else []),
            *([T.StructField(REJECTED, self.rejected)] if self.rejected is not None else []),
        ]
        return T.StructType(fields)

    def _arrow_kind(self, kind: str | None) -> pa.DataType:
        return arrow_kind(kind, self.compounds)

    def arrow(self) -> pa.Schema:
        envelope = [("type", pa.string()), ("time", TIME), ("from", pa.list_(pa.string())), ("source", pa.string())]
        attributes = [(name, self._arrow_kind(kind)) for name, kind in self.attributes]
        key = [(KEY, pa.string())] if self.digests is not None else []
        key += [(VERSION, pa.string())] if self.versions is not None else []
        latency = [(LATENCY, pa.int64())] if self.latencies else []
        late = [(LATE, self.late.arrow())] if self.late is not None else []
        rejected = [(REJECTED, self._rejected)] if self.rejected is not None else []
        return pa.schema([*envelope, *attributes, (ORDER, pa.list_(pa.int64())), *key, *latency, *late, *rejected])

    @property
    def _rejected(self) -> pa.DataType:
        return to_arrow_type(self.rejected, timezone="UTC")

    def _row_of(self, column: str, values: pa.Array) -> pa.RecordBatch:
        """Rows that hold nothing but this."""
        columns = [values if field.name == column else pa.nulls(len(values), field.type) for field in self.arrow()]
        return pa.RecordBatch.from_arrays(columns, schema=self.arrow())

    def rejected_batch(self, rows: pa.ChunkedArray) -> pa.RecordBatch:
        """Rows that hold what was set aside, and no detections."""
        return self._row_of(REJECTED, rows.combine_chunks().cast(self._rejected))

    def late_batch(self, late: EventTable, policies: Sequence[Sequence[str]] | None = None) -> pa.RecordBatch:
        """Rows that hold late events and no detections."""
        assert self.late is not None
        return self._row_of(LATE, self.late.structs(late, policies))

    def record_batch(
        self, detections: EventBatch, latencies: Sequence[int | None] | None = None, keys: Keys | None = None
    ) -> pa.RecordBatch:
        """Rows; `keys` are those of the detections that were written before."""
        table = detections.table
        self._check(table)
        moments = [pa.array(ends).cast(MOMENT) for ends in (table.lo, table.hi)]
        columns = [
            table.fields["type"].cast(pa.string()),
            pa.StructArray.from_arrays(moments, fields=list(TIME)),
            table.origin().lists(),
            table.fields["source"].cast(pa.string()) if "source" in table.fields else pa.nulls(len(table), pa.string()),
            *(values(name, table.column(name), kind, self._arrow_kind(kind)) for name, kind in self.attributes),
            _orders(table),
            *([pa.array((keys or Keys(self.digests)).of(detections), pa.string())] if self.digests is not None else []),
            *([pa.array(versions_of(self.versions, detections), pa.string())] if self.versions is not None else []),
            *([pa.array(latencies or [None] * len(table), pa.int64())] if self.latencies else []),
            *([pa.nulls(len(table), self.late.arrow())] if self.late is not None else []),
            *([pa.nulls(len(table), self._rejected)] if self.rejected is not None else []),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.arrow())

    def _check(self, table: EventTable) -> None:
        """Rather stop than lose something."""
        foreseen = {name for name, _ in self.attributes}
        for name in table.attributes:
            if name not in foreseen and table.fields[name].null_count < len(table):
                raise RuntimeError(f"a detection has an attribute '{name}' that its plan did not foresee")


def _orders(table: EventTable) -> pa.Array:
    """Generation and path of each: what orders the detections of one event."""
    if not table.sortable:
        return pa.array([[p[3], *(n for n in p[4:] if isinstance(n, int))] for p in table.place_tuples()], pa.list_(pa.int64()))
    places = table.place_matrix()[:, 2:]
    offsets = np.arange(len(places) + 1, dtype=np.int32) * places.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(places).reshape(-1)))


def outputs(plans: Sequence[DetectorPlan], source: Source, late: bool = False, digests: Digests | None = None) -> Outputs:
    """The attributes of all plans' detections, by their types; with the `digests` of definitions, a column for keys."""
    types = [*_types(plans, source)]
    every = _gathered(own for _, _, own in types)
    kinds: Kinds = {}
    while (joined := {name: _joined(trees, kinds, source) for name, trees in every.items()}) != kinds:
        kinds = joined
    given = any(_passes_on_sets(plan, source) for plan in plans)
    digits = any(kinds[name] is None and _may_be_whole(trees, kinds, source) for name, trees in every.items())
    compounds = given or digits or any(_makes_compounds(tree) for trees in every.values() for tree in trees)

    def typed(made: Attributes) -> tuple[tuple[str, str | None], ...]:
        """Where sets and ranges are given, whatever is made of them may be one."""
        found = {name: None if given else _joined(trees, kinds, source) for name, trees in sorted(made.items())}
        return tuple((name, None if kind == UNKNOWN else kind) for name, kind in found.items())

    by_type = tuple((kind, typed(own)) for kind, shown, own in types if shown)
    whole = typed(_gathered(own for _, shown, own in types if shown))
    return Outputs(whole, compounds, late=late_shape(source) if late else None, digests=digests, types=by_type)


def _gathered(made: Iterable[Attributes]) -> dict[str, tuple[Expr, ...]]:
    trees: dict[str, tuple[Expr, ...]] = {}
    for name, own in (item for some in made for item in some.items()):
        trees[name] = (*trees.get(name, ()), *own)
    return trees


Kinds = Mapping[str, str | None]


def _types(plans: Sequence[DetectorPlan], source: Source) -> Iterator[tuple[str, bool, Attributes]]:
    """Each type of detections, whether it is given out, and what makes its attributes."""
    whatever = {name: (Reference(name),) for plan in plans for name in (*plan.produces, *source.attributes)}
    for plan in plans:
        for kind, own in plan.makes.items():
            made = {**whatever, **own} if kind in plan.passes_on else own
            yield kind, kind in plan.outputs, {name: trees for name, trees in made.items() if name not in ENVELOPE}


def _passes_on_sets(plan: DetectorPlan, source: Source) -> bool:
    read = source.several if plan.columns is None else source.several & plan.columns
    return plan.reads_sets and bool(read)


def _makes_compounds(tree: Expr) -> bool:
    return isinstance(tree, Call) and tree.name in COMPOUND_MAKERS


def _joined(trees: Sequence[Expr], made: Mapping[str, str | None], source: Source) -> str | None:
    kinds = {_kind(tree, made, source) for tree in trees} - {UNKNOWN}
    if kinds == {WHOLE, NUMBER}:
        return NUMBER
    return kinds.pop() if len(kinds) == 1 else None if kinds else UNKNOWN


def _kind(tree: Expr, made: Mapping[str, str | None], source: Source) -> str | None:
    """UNKNOWN: it is null for all that is known. None: it may be of any type."""

    def of(reference: Reference) -> str | None:
        found = {kind_of(source, reference.name)} if reference.name in ENVELOPE or source.has(reference.name) else set()
        found |= {made[reference.name]} - {UNKNOWN} if reference.name in made else set()
        if found == {WHOLE, NUMBER}:
            return NUMBER
        return found.pop() if len(found) == 1 else None if found else UNKNOWN

    if _makes_compounds(tree):
        return None
    references = [node for node in walk(tree) if isinstance(node, Reference)]
    if isinstance(tree, Reference):
        return of(tree)
    if isinstance(tree, Copied):
        whole = _is_whole(tree.of, of)
        return WHOLE if whole else infer(tree.example, lambda _: None)
    if isinstance(tree, Call) and _is_whole(tree, of):
        return WHOLE
    if isinstance(tree, Call) and any(of(r) is None for r in references):
        return None  # `coalesce` and the like pass on what they are given
    try:
        return infer(tree, lambda r: {UNKNOWN: None, WHOLE: NUMBER}.get(kind := of(r) or UNKNOWN, kind)) or UNKNOWN
    except RuleError:
        return None


SELECTING = {"min": 0, "max": 0, "coalesce": 0, "if": 1}
"""Functions that hand on one of their arguments, from so many on."""


def _is_whole(tree: Expr, of: Callable[[Reference], str | None]) -> bool:
    """Does it hand on whole numbers as columns have them?"""
    if isinstance(tree, Reference):
        return of(tree) == WHOLE
    if isinstance(tree, Literal):
        return is_number(tree.value) and isinstance(plain_number(tree.value), int)
    if not isinstance(tree, Call) or tree.name not in SELECTING:
        return False
    options = tree.arguments[SELECTING[tree.name] :]
    return all(_is_whole(option, of) for option in options) and any(not isinstance(option, Literal) for option in options)


def _may_be_whole(trees: Sequence[Expr], made: Kinds, source: Source) -> bool:
    """May some value be a whole number that no double is equal to?"""
    names = {node.name for tree in trees for node in walk(tree) if isinstance(node, Reference)}
    return any(source.is_whole(name) or made.get(name) == WHOLE for name in names)
