"""Any DataFrame as events: which of its columns is what, and the few columns that travel to Python.

Columns are found by their exact names, as rules are case-sensitive and Spark is not; so inside they go by their numbers.
Rows without a type or a time, or whose time ends before it begins, are no events and are dropped. A number that is
infinite or not a number is null."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.adapters.extraction import Extract, of_series
from coincide.adapters.mapping import CATEGORY, DEFAULT, TYPE_NAME, UNTYPED, FieldMapping
from coincide.adapters.records import beyond_64_bits, too_many_digits
from coincide.engines.spark.instants import DAY, interval
from coincide.errors import Diagnostic, InputError
from coincide.expr.functions import BOOLEAN, NUMBER, TEXT
from coincide.expr.tree import Expr, HasOne, Literal, Reference, Resembles
from coincide.model.event import ENVELOPE, OWN_TYPE
from coincide.model.numbers import FEW_DIGITS, LEAST, MOST
from coincide.model.space import Space
from coincide.source import Span

MIXED = T.StructType(
    [T.StructField("number", T.DoubleType()), T.StructField("text", T.StringType()), T.StructField("flag", T.BooleanType())]
)
COMPOUND = T.StructType([*MIXED.fields, T.StructField("compound", T.BinaryType())])
"""The same where some values are sets or ranges (model/column.py)."""


TYPED = "typed"
"""A field for ourselves: the type of an event where records may have none."""
TURN = "turn"
"""A field for ourselves: the number of a record in the order of arrival, where that is known."""


@dataclass(frozen=True)
class Layout:
    """What travels to Python: the wire's columns in order, each with the name of its field (`lo`, `hi`, `type`, `id`,
    `source`, `space`, `arrival`, or an attribute's with a `.` before it)."""

    fields: tuple[str, ...]
    ranked: bool = False  # do events that are equal in stamp and id stand in the order in which they are to be taken?

    @property
    def wire(self) -> tuple[str, ...]:
        return tuple(f"w{number}" for number in range(len(self.fields)))


@dataclass(frozen=True)
class Source:
    """A DataFrame seen through a mapping."""

    original: DataFrame
    mapping: FieldMapping = DEFAULT
    numbered: str | None = None  # the column that numbers records in the order of their arrival
    read: frozenset[str] | None = None  # attributes that rules read; None: all
    observer: Callable[[DataFrame], DataFrame] | None = None  # puts observed metrics on the rows
    place: Callable[[str], Span | None] = lambda name: None  # where rules read an attribute

    @cached_property
    def frame(self) -> DataFrame:
        """With a column for each field of structs, which Spark leaves unread where no rule needs it."""
        whole = self.original.toDF(*(f"c{number}" for number in range(len(self.original.columns))))
        inner = [column.alias(self._number(name)) for name, (column, _) in self._nested.items()]
        frame = whole.select("*", *inner) if inner else whole
        frame = frame.withColumn(TYPED, self.type) if self.mapping.untyped else frame
        return frame if self.observer is None else self.observer(frame)

    def observed(self, observer: Callable[[DataFrame], DataFrame]) -> Source:
        return replace(self, observer=observer)

    @cached_property
    def _whole(self) -> dict[str, tuple[Column, T.DataType]]:
        """The DataFrame's own columns. Of several columns with one name, the last, as in JSON."""
        return {f.name: (F.col(f"c{number}"), f.dataType) for number, f in enumerate(self.original.schema.fields)}

    @cached_property
    def _nested(self) -> dict[str, tuple[Column, T.DataType]]:
        """Fields of structs by their dotted names; a column that has such a name wins where it is filled."""
        found: dict[str, tuple[Column, T.DataType]] = {}
        for name, (column, kind) in sorted(self._whole.items(), key=lambda item: item[0].count(".")):
            if not self._is_whole(name, kind):
                found.update(leaves(name, column, kind))
        for name in found.keys() & self._whole.keys():
            (own, kind), (inner, inner_kind) = self._whole[name], found[name]
            found[name] = (F.coalesce(own, inner) if kind == inner_kind else own, kind)
        for extract in self.mapping.extracts if self.numbered is None else ():  # what our own readers have read has them
            found.update(self._extracted(extract, self._whole | found))
        return found

    @staticmethod
    def _extracted(extract: Extract, fields: Mapping[str, tuple[Column, T.DataType]]) -> dict[str, tuple[Column, T.DataType]]:
        """By Python, as everywhere: Spark's own expressions differ, and may take any time."""
        text, kind = fields.get(extract.source, (None, None))
        if text is None or not isinstance(_element(kind), T.StringType):
            return {}
        made = {"text": T.StringType(), "number": T.DoubleType(), "boolean": T.BooleanType()}[extract.kind]
        column = F.pandas_udf(of_series(extract), made)(text)
        own, own_kind = fields.get(extract.name, (None, made))
        if own is None or own_kind != made:
            return {extract.name: (column, made)} if own is None else {}
        return {extract.name: (F.coalesce(own, column), made)}

    def _is_whole(self, name: str, kind: T.DataType) -> bool:
        """What serves as time, and a spacestamp, is not spread."""
        if name == self.mapping.space and isinstance(kind, T.StructType):
            return all(field in Space.__struct_fields__ for field in kind.fieldNames())
        return name in (self.mapping.time, self.mapping.end)

    @cached_property
    def _found(self) -> dict[str, tuple[Column, T.DataType]]:
        """All fields, as columns of `frame`."""
        fields = self._whole | {name: (F.col(self._number(name)), kind) for name, (_, kind) in self._nested.items()}
        if (
            not self.mapping.untyped or self.mapping.type not in fields or self.numbered is not None
        ):  # our own readers mark events
            return fields
        own = _label(*fields[self.mapping.type])
        marked = F.when((own != "") & (own == _category(fields)), F.lit(True))
        return {**fields, OWN_TYPE: (marked, T.BooleanType())}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        own = {name: number for number, name in enumerate(self.original.columns)}
        first = len(self.original.columns)
        return own | {name: first + number for number, name in enumerate(self._nested)}

    @cached_property
    def _interval(self) -> tuple[Column, Column]:
        lo, hi = self._written_interval()
        if self.mapping.end is not None and self.mapping.end in self._found:
            end = interval(*self._found[self.mapping.end], self.mapping)[1]
            return lo, F.coalesce(end, hi)
        return lo, hi

    def _written_interval(self) -> tuple[Column, Column]:
        name = self.mapping.time
        other = None if self.mapping.other_time is None else self._found.get(self.mapping.other_time)
        other = None if other is None or other[1] in (MIXED, COMPOUND) else other  # an attribute of events that have a time
        if name in self._found and other is not None:
            both = [interval(*found, self.mapping) for found in (self._found[name], other)]
            there = self._found[name][0].isNotNull()
            lo, hi = (F.when(there, own).otherwise(alternative) for own, alternative in zip(*both, strict=True))
            return (lo, lo) if all(ends[0] is ends[1] for ends in both) else (lo, hi)
        if name in self._found:
            return interval(*self._found[name], self.mapping)
        if other is not None and f"{name}_lo" not in self._found:
            return interval(*other, self.mapping)
        ends = [self._found.get(f"{name}_{end}") for end in ("lo", "hi")]
        if ends[0] is None or ends[1] is None:
            raise InputError(f"the DataFrame has no column '{name}' for the time of events: {_names(self.original)}")
        return interval(*ends[0], self.mapping)[0], interval(*ends[1], self.mapping)[1]

    @property
    def has_no_time(self) -> Column:
        """Not even one that cannot be read."""
        name = self.mapping.time
        given = [
            self._found[each][0] for each in (name, f"{name}_lo", f"{name}_hi", self.mapping.other_time) if each in self._found
        ]
        return F.coalesce(*(column.cast("string") for column in given)).isNull()

    @property
    def lo(self) -> Column:
        return self._interval[0]

    @property
    def hi(self) -> Column:
        return self._interval[1]

    @property
    def points(self) -> bool:
        """Are all events known to have lo = hi?"""
        return self._interval[0] is self._interval[1]

    @cached_property
    def type(self) -> Column:
        if self.mapping.constant_type is not None:
            return F.lit(self.mapping.constant_type)
        if self.mapping.type not in self._found and not self.mapping.untyped:
            raise InputError(f"the DataFrame has no column '{self.mapping.type}' for the type of events: {_names(self.original)}")
        column, kind = self._found.get(self.mapping.type, (F.lit(None).cast("string"), T.StringType()))
        if not isinstance(kind, (T.StringType, T.NumericType)) and kind != MIXED:
            raise InputError(f"the type of events must be a string or a number, not {kind.simpleString()}")
        named = _label(column, kind)
        return F.when(named != "", named).otherwise(_category(self._found)) if self.mapping.untyped else named

    @cached_property
    def id(self) -> Column:
        """What is given, or else a number made of all that the row holds: the same in every run, batch or streaming.

        Where there is a column of ids, rows without one have it made of what the rules read, so that no more columns are read."""
        if self.mapping.id not in self._found:
            return _hashed(self._whole.values())
        column, kind = self._found[self.mapping.id]
        own = [(self.type, T.StringType()), (self.lo, T.LongType()), (self.hi, T.LongType())]
        made = _hashed([*own, *(self._whole.values() if self.read is None else self._fields(self.read))])
        if isinstance(kind, T.IntegralType):
            return F.coalesce(column.cast("bigint"), made)
        return F.coalesce(_label(column, kind), made.cast("string"))

    def _fields(self, names: Iterable[str]) -> list[tuple[Column, T.DataType]]:
        return [self._found[name] for name in sorted(names) if name in self._found]

    @cached_property
    def source(self) -> Column | None:
        return _label(*self._found[self.mapping.source]) if self.mapping.source in self._found else None

    @cached_property
    def arrival(self) -> Column | None:
        name = self.mapping.arrival
        return interval(*self._found[name], self.mapping)[0] if name in self._found else None

    @property
    def turn(self) -> Column | None:
        return None if self.numbered is None else self.column(self.numbered)

    @cached_property
    def space(self) -> Column | None:
        if self.mapping.space in self._found:
            column, kind = self._found[self.mapping.space]
            if not isinstance(kind, T.StructType):
                raise InputError(f"the place of events must be a struct, not {kind.simpleString()}")
            return F.when(column.isNotNull(), _space({name: column[name] for name in kind.fieldNames()}))
        flat = {name: self._found[f"{self.mapping.space}.{name}"][0] for name in Space.__struct_fields__ if self._has_flat(name)}
        return F.when(F.coalesce(*(c.isNotNull() for c in flat.values())), _space(flat)) if flat else None

    def _has_flat(self, name: str) -> bool:
        return f"{self.mapping.space}.{name}" in self._found

    def column(self, name: str) -> Column:
        return self._found[name][0]

    def has(self, attribute: str) -> bool:
        return attribute in self._found and attribute not in self.mapping.envelope and attribute != self.numbered

    @property
    def attributes(self) -> list[str]:
        """All columns that can serve as attributes."""
        return [
            name
            for name, (_, kind) in self._found.items()
            if self.has(name) and (kind in (MIXED, COMPOUND) or _is_range(kind) or _kind(_element(kind)) is not None)
        ]

    @property
    def kinds(self) -> dict[str, str | None]:
        """The attributes that rows may have, with the types of their values; None: unknown or mixed."""
        given: dict[str, str | None] = {} if self.source is None else {"source": TEXT}
        fields = {
            name: kind
            for name in self._found
            if self.has(name) and name != OWN_TYPE
            for name, kind in _within(name, self._found[name][1])
        }
        return given | fields

    def attribute(self, name: str) -> Column | None:
        """An attribute's values as doubles, whole numbers, texts, booleans or MIXED, lists or ranges of such; None: there is no
        such column."""
        if not self.has(name):
            return None
        column, kind = self._found[name]
        return _value(name, column, kind, self.place)

    def kind(self, name: str) -> str | None:
        """The type of a field as expressions know it; None: unknown or mixed."""
        if name in ENVELOPE:
            return NUMBER if name in ("time", "arrival") else TEXT
        return _kind(_element(self._found[name][1])) if self.has(name) else None

    def is_whole(self, name: str) -> bool:
        """Is an attribute a column of whole numbers of 64 bits?"""
        return self.has(name) and is_whole(_element(self._found[name][1]))

    @property
    def several(self) -> frozenset[str]:
        """Attributes that may hold sets or ranges."""
        return frozenset(name for name in self.attributes if _is_several(self._found[name][1]))

    def field(self, name: str) -> Column | None:
        """A field as rules name it."""
        if name == "time":
            return self.hi / F.lit(1000.0)
        if name == "id":
            return self.id.cast("string")
        if name in ("type", "source"):
            column: Column | None = getattr(self, name)
            return column
        return None if name in ENVELOPE else self.attribute(name)

    def renamed(self, node: Expr) -> Expr:
        """A reference of a rule as one to a column of `frame`. What is not there as it will be keeps an envelope's name,
        which `frame` has not, so that it cannot be translated."""
        if isinstance(node, HasOne | Resembles):
            return replace(node, field=self._number(node.field)) if self.has(node.field) else Literal(False)
        if not isinstance(node, Reference):
            return node
        if node.name == "type" and self.mapping.constant_type is not None:
            return Literal(self.mapping.constant_type)
        if node.name == "type" and self.mapping.untyped:
            return Reference(TYPED, span=node.span)
        if node.name in ENVELOPE:
            return self._renamed_envelope(node)
        if not self.has(node.name):
            return Reference("absent", span=node.span)
        untold = _is_several(self._found[node.name][1])  # to Spark its values are none
        return Reference("id" if untold else self._number(node.name), span=node.span)

    def _renamed_envelope(self, node: Reference) -> Reference:
        name: str = getattr(self.mapping, node.name, node.name)
        if name not in self._found:
            return node
        kind = self._found[name][1]
        plain = isinstance(kind, T.StringType) and node.name in ("type", "source")
        sure = self.mapping.end is None and self.mapping.other_time not in self._found
        moment = node.name == "time" and isinstance(kind, T.TimestampType) and sure
        return Reference(self._number(name), span=node.span) if plain or moment else node

    def _number(self, name: str) -> str:
        return f"c{self._numbers[name]}"

    def values(self, name: str, lists: bool = True) -> list[Column]:
        """A field as plain columns, of which at most one is filled; equal values are equal to Spark's hash as well. The value of
        [x] is x, of more it is null; if not `lists`, that of any list is null."""
        column = self.field(name)
        if column is None:
            return []
        kind = self._found[name][1] if self.has(name) else None
        if _is_range(kind) or (isinstance(kind, T.ArrayType) and not lists):
            return []
        if kind == COMPOUND and not lists:
            column = F.when(column["compound"].isNull(), column)
        if isinstance(kind, T.ArrayType):
            distinct = F.array_distinct(F.filter(column, lambda item: item.isNotNull()))
            column = F.when(F.size(distinct) == 1, F.get(distinct, 0))
        if self.has(name) and _element(self._found[name][1]) in (MIXED, COMPOUND):
            return [column["number"] + 0.0, column["text"], column["flag"]]
        return [column + 0.0] if self.kind(name) == NUMBER else [column]  # -0.0 becomes 0.0

    @property
    def is_event(self) -> Column:
        good = self.type.isNotNull() & (self.type != "") & self.hi.isNotNull()
        return good if self.points else good & (self.lo <= self.hi)

    def layout(self, attributes: Iterable[str], envelope: frozenset[str]) -> Layout:
        """What must travel for these attributes and these optional fields of the envelope."""
        fields = ["hi"] if self.points else ["hi", "lo"]
        fields += ["type", "id"]
        fields += [name for name in ("source", "space", "arrival", TURN) if name in envelope and getattr(self, name) is not None]
        return Layout((*fields, *(f".{name}" for name in sorted(attributes) if self.has(name))), self.numbered is not None)

    def wire_columns(self, layout: Layout) -> list[Column]:
        columns = [self._wire(name) for name in layout.fields]
        return [column.alias(wire) for column, wire in zip(columns, layout.wire, strict=True)]

    def _wire(self, name: str) -> Column:
        column = self.attribute(name[1:]) if name.startswith(".") else getattr(self, name)
        assert column is not None
        return column


def _category(fields: Mapping[str, tuple[Column, T.DataType]]) -> Column:
    """What a record without a type is."""
    column, kind = fields.get(CATEGORY, (F.lit(None), T.NullType()))
    if isinstance(kind, T.StringType):
        column, kind = F.array(column), T.ArrayType(kind)
    if not (isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.StringType)):
        return F.lit(UNTYPED)
    return F.coalesce(F.get(F.filter(column, lambda value: value.rlike(f"(?U){TYPE_NAME}")), 0), F.lit(UNTYPED))


def leaves(name: str, column: Column, kind: T.DataType) -> Iterator[tuple[str, tuple[Column, T.DataType]]]:
    """The fields of a struct, or of the structs in an array, by their dotted names; nothing for what is neither."""
    inner = _element(kind)
    if not isinstance(inner, T.StructType) or inner in (MIXED, COMPOUND):
        return
    for field in inner.fields:
        value, own = column.getField(field.name), field.dataType
        if isinstance(kind, T.ArrayType):
            if isinstance(own, T.ArrayType):
                value = F.flatten(F.filter(value, lambda item: item.isNotNull()))
            own = T.ArrayType(_element(own))
            value = F.filter(value, lambda item: item.isNotNull())
            value = F.when(F.size(value) > 0, value)
        deeper = dict(leaves(f"{name}.{field.name}", value, own))
        if deeper:
            yield from deeper.items()
        else:
            yield f"{name}.{field.name}", (value, own)


def _is_range(kind: T.DataType | None) -> bool:
    bounds = kind.fields if isinstance(kind, T.StructType) else []
    return bool(bounds) and all(bound.name in ("lo", "hi") and _kind(bound.dataType) is not None for bound in bounds)


def _is_several(kind: T.DataType) -> bool:
    """May values be sets or ranges?"""
    return kind == COMPOUND or isinstance(kind, T.ArrayType) or _is_range(kind)


def _element(kind: T.DataType) -> T.DataType:
    return kind.elementType if isinstance(kind, T.ArrayType) else kind


def _names(frame: DataFrame) -> str:
    return "it has " + ", ".join(f"'{name}'" for name in frame.columns)


def _hashed(fields: Iterable[tuple[Column, T.DataType]]) -> Column:
    return F.xxhash64(*(part for field in fields for part in _parts(*field))).bitwiseAND(F.lit(2**63 - 1))


def _parts(column: Column, kind: T.DataType) -> Iterator[Column]:
    """What is hashed of a column. Spark's hash passes over nulls, so where they are is part of it."""
    if isinstance(kind, T.StructType):
        yield column.isNull()
        for field in kind.fields:
            yield from _parts(column[field.name], field.dataType)
    elif not _holds_map(kind):
        yield column.isNull()
        yield column
        if isinstance(kind, T.ArrayType):
            yield F.transform(column, lambda item: item.isNull())


def _holds_map(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return any(_holds_map(f.dataType) for f in kind.fields)
    return isinstance(kind, (T.MapType, T.VariantType)) or (isinstance(kind, T.ArrayType) and _holds_map(kind.elementType))


def _label(column: Column, kind: T.DataType) -> Column:
    """Names: texts, or numbers by their JSON spelling."""
    if isinstance(kind, T.FractionalType) and not isinstance(kind, T.DecimalType):
        whole = (column == F.rint(column)) & (F.abs(column) < 2.0**63)
        return F.when(whole, column.cast("bigint").cast("string")).otherwise(column.cast("string"))
    if kind == MIXED:
        return F.coalesce(column["text"], _label(column["number"], T.DoubleType()))
    return column.cast("string")


def _within(name: str, kind: T.DataType) -> Iterator[tuple[str, str | None]]:
    """A column, and the fields of a struct by dotted names."""
    yield name, _kind(kind)
    if isinstance(kind, T.StructType):
        for field in kind.fields:
            yield from _within(f"{name}.{field.name}", field.dataType)


def _kind(kind: T.DataType) -> str | None:
    if isinstance(kind, T.StringType):
        return TEXT
    if isinstance(kind, T.BooleanType):
        return BOOLEAN
    return NUMBER if isinstance(kind, (T.NumericType, T.TimestampType, T.TimestampNTZType, T.DateType)) else None


def _value(name: str, column: Column, kind: T.DataType, place: Callable[[str], Span | None]) -> Column:
    if isinstance(kind, T.ArrayType) and not isinstance(kind.elementType, (T.ArrayType, T.StructType)):
        inner = kind.elementType  # as lists: what they mean is said in one place, nestedcolumns.py
        return column if isinstance(inner, T.StringType) else F.transform(column, lambda item: _value(name, item, inner, place))
    if isinstance(kind, (T.StringType, T.BooleanType)) or kind in (MIXED, COMPOUND):
        return column
    if isinstance(kind, T.StructType) and _is_range(kind):
        sides = ((f"{name}.{side.name}", column[side.name], side) for side in kind.fields)
        bounds = [_value(whole, part, side.dataType, place).alias(side.name) for whole, part, side in sides]
        return F.when(column.isNotNull(), F.struct(*bounds))
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        number = column.cast("double")
        return F.when(F.abs(number) < float("inf"), number)  # nan is greater than all numbers to Spark
    if isinstance(kind, T.DecimalType) and kind.precision > FEW_DIGITS:
        return _decimal(name, column, kind, place(name))
    if is_whole(kind):
        return column.cast("bigint")
    if isinstance(kind, T.NumericType):
        return column.cast("double")
    if isinstance(kind, (T.TimestampType, T.TimestampNTZType)):
        return interval(column, kind, DEFAULT)[0] / F.lit(1000.0)
    if isinstance(kind, T.DateType):
        return F.unix_date(column) * F.lit(DAY / 1000)
    if isinstance(kind, T.NullType):
        return column.cast("double")
    raise InputError(
        f"attribute '{name}' cannot be of type {kind.simpleString()}: a number, a text, a boolean, a timestamp or "
        f"{MIXED.simpleString()}"
    )


def is_whole(kind: T.DataType) -> bool:
    return isinstance(kind, T.LongType) or (isinstance(kind, T.DecimalType) and kind.scale <= 0)


def _decimal(name: str, column: Column, kind: T.DecimalType, place: Span | None) -> Column:
    """Whole ones of up to 64 bits as they are. One with a fraction is the double that is written as it is; where there is no such
    number, the run stops, and tells which rule reads it."""
    if is_whole(kind):
        number = column.cast("bigint")
        same, reason = column.between(F.lit(Decimal(LEAST)), F.lit(Decimal(MOST))), beyond_64_bits(name)
    else:
        number = column.cast("double")
        same, reason = number.cast("string").try_cast(kind) == column, too_many_digits(name)
    refused = F.raise_error(F.lit(Diagnostic(f"{reason}: cast it to double, or to a string", place).head))
    return F.when(column.isNull() | same, number).otherwise(refused.cast("bigint" if is_whole(kind) else "double"))


def _space(parts: dict[str, Column]) -> Column:
    kinds = {name: "string" if name == "zone" else "double" for name in ("x", "y", "lat", "lon", "z", "zone")}
    return F.struct(*(parts.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in kinds.items()))
