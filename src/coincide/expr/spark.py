"""Expressions as Spark columns: for filters and projections that Spark runs itself.

    value(tree, schema) -> Column            the values; of mixed types: a struct as model.column.MIXED
    holds(tree, schema) -> Column            true where the tree is true, otherwise false or null: a filter
    relaxed(tree, schema) -> Column | None   true at least where the tree is true; None if nothing can be said

The first two are exact or raise `Untranslatable`: whatever Java and Python may do differently (regular expressions, upper and
lower case, white space, the spelling of numbers and rounding to digits, powers) is not translated. Filters have the plain form
`v > 5 AND type = 'a'`, which Spark can push down to its sources.

Columns of a frame: numbers (nan and infinity are null; bigints compare by all their digits), strings, booleans, timestamps and
dates (milliseconds), structs of mixed types; a column of any other type, and one that the frame lacks, is null. The envelope's
names must be columns of the frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from coincide.expr.functions import Function
from coincide.expr.parts import LIKE, Flag, Lowering, Parts, Unsupported, balanced
from coincide.expr.tree import And, Between, Compare, Expr, HasOne, In, Not, Or, Reference, Resembles
from coincide.model.numbers import EXACT, FEW_DIGITS, LONG_DIGITS, plain_number
from coincide.model.stamp import MILLISECOND

SparkColumn = Any  # pyspark is imported only where Spark is used
SparkSchema = Any

LARGEST = 2_000  # nodes of one Spark expression; beyond that its optimizer is slow
ENVELOPE = {"type": ("string",), "source": ("string",), "id": ("string",), "time": ("whole number", "long", "timestamp")}


class Untranslatable(Unsupported):
    """Spark would not compute the same."""


def value(tree: Expr, schema: SparkSchema) -> SparkColumn:
    from pyspark.sql import functions as F

    parts = _lowering(schema).lower(tree)
    found = {
        "number": parts.number and parts.number.value.column,
        "text": parts.text and parts.text.column,
        "flag": parts.flag and F.when(parts.flag.true.column, F.lit(True)).when(parts.flag.false.column, F.lit(False)),
    }
    there = {name: column for name, column in found.items() if column is not None}
    if len(there) < 2:
        return next(iter(there.values()), F.lit(None).cast("double"))
    if parts.number is not None and parts.number.large:
        raise Untranslatable("a struct has no room for whole numbers of 64 bits")
    types = {"number": "double", "text": "string", "flag": "boolean"}
    return F.struct(*(there.get(n, F.lit(None).cast(t)).alias(n) for n, t in types.items()))


def holds(tree: Expr, schema: SparkSchema) -> SparkColumn:
    return _truth(tree, True, _lowering(schema)).column


def relaxed(tree: Expr, schema: SparkSchema) -> SparkColumn | None:
    found = _implied(tree, True, _lowering(schema))
    return None if found is None else found.column


def _implied(tree: Expr, wanted: bool, lowering: _Lowering) -> _Made | None:
    """What holds wherever the tree is `wanted`; None: anything may."""
    if isinstance(tree, Not):
        return _implied(tree.operand, not wanted, lowering)
    if isinstance(tree, (In, Between)):
        return _implied_test(tree, wanted, lowering)
    if isinstance(tree, (HasOne, Resembles)):
        assert isinstance(lowering.algebra, _Spark)
        return _of_values(tree, lowering.algebra.schema) if wanted else None
    if not isinstance(tree, (And, Or)):
        return _exact(tree, wanted, lowering)
    found = [_implied(o, wanted, lowering) for o in tree.operands]
    known = [f for f in found if f is not None]
    if isinstance(tree, And) is wanted:  # all operands are wanted so: each of them says something
        return balanced(lowering.algebra.both, known) if known else None
    return balanced(lowering.algebra.either, known) if len(known) == len(found) else None


def _implied_test(tree: In | Between, wanted: bool, lowering: _Lowering) -> _Made | None:
    """As a whole if that can be, otherwise by its comparisons."""
    whole = _exact(tree, wanted, lowering)
    if whole is not None:
        return whole
    tests: Expr
    if isinstance(tree, In):
        tests = Or(tuple(Compare("=", tree.operand, o) for o in tree.options))
    else:
        tests = And((Compare(">=", tree.operand, tree.low), Compare("<=", tree.operand, tree.high)))
    return _implied(tests, wanted is not tree.negated, lowering)


def _exact(tree: Expr, wanted: bool, lowering: _Lowering) -> _Made | None:
    try:
        return _truth(tree, wanted, lowering)
    except Unsupported:
        return None


def _truth(tree: Expr, wanted: bool, lowering: _Lowering) -> _Made:
    flag = lowering.lower(tree).flag
    if flag is None:
        return lowering.algebra.always(False)
    return flag.true if wanted else flag.false


@dataclass(eq=False)
class _Made:
    """A Spark column that is made when asked for. Only its size is known before: shared subexpressions of ours are copies in
    Spark's, so that a nested tree can grow beyond measure."""

    make: Callable[..., SparkColumn]
    arguments: tuple[_Made, ...] = ()
    copies: int = 1  # how often `make` uses its arguments
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = 1 + self.copies * sum(a.size for a in self.arguments)
        if self.size > LARGEST:
            raise Untranslatable("the expression is too large")

    @cached_property
    def column(self) -> SparkColumn:
        return self.make(*(a.column for a in self.arguments))


@dataclass(eq=False)
class _Constant(_Made):
    """A text that is known."""

    text: str | None = None


@dataclass(frozen=True, eq=False)
class _Number:
    """A double. A `wild` one may be infinite or nan where it stands for null: + - * and the like keep it so, and whatever
    would not, asks for `there` or `exact`."""

    raw: _Made
    wild: bool = True
    whole: _Made | None = None  # the same as a long, of columns of whole numbers and of whole constants
    large: bool = False  # it may be a whole number that no double is equal to: `raw` is only the nearest one
    constant: float | None = None

    @property
    def there(self) -> _Made:
        if not self.wild:
            return _Made(lambda c: c.isNotNull(), (self.raw,))
        return _Made(lambda c: (c > float("-inf")) & (c < float("inf")), (self.raw,), copies=2)  # to Spark, nan is above infinity

    @property
    def exact(self) -> _Made:
        return _Made(_when, (self.there, self.raw)) if self.wild else self.raw

    @property
    def value(self) -> _Made:
        return self.whole if self.large and self.whole is not None else self.exact

    @property
    def rest(self) -> _Made:
        """Below, at or above zero as the number is to its double."""
        assert self.whole is not None
        return _Made(_rest, (self.whole, self.raw), copies=2)


_Parts = Parts[_Number, _Made, _Made]


class _Spark:
    """The algebra of Spark columns. A condition counts as one only where it is true; false and null are alike."""

    def __init__(self, schema: SparkSchema) -> None:
        self.schema = schema

    def number(self, value: float | None) -> _Number:
        plain = None if value is None else plain_number(value)
        whole = _literal(plain, "long") if plain is None or isinstance(plain, int) else None
        double = None if value is None else float(value)
        return _Number(_literal(double, "double"), wild=False, whole=whole, large=type(value) is int, constant=double)

    def text(self, value: str | None) -> _Made:
        return _Constant(lambda: _functions().lit(value).cast("string"), text=value)

    def always(self, value: bool) -> _Made:
        return _literal(value, "boolean")

    def reference(self, node: Reference) -> _Parts:
        return _reference(node.name, self.schema)

    # Conditions.

    def both(self, a: _Made, b: _Made) -> _Made:
        return _Made(lambda x, y: x & y, (a, b))

    def either(self, a: _Made, b: _Made) -> _Made:
        return _Made(lambda x, y: x | y, (a, b))

    def negate(self, a: _Made) -> _Made:
        return _Made(lambda x: ~_functions().coalesce(x, _functions().lit(False)), (a,))

    def choose(self, test: _Made, yes: _Made, no: _Made) -> _Made:
        return _Made(lambda t, y, n: _when(t, y).otherwise(n), (test, yes, no))

    # Numbers.

    def has_number(self, a: _Number) -> _Made:
        return a.there

    def compare_numbers(self, op: str, a: _Number, b: _Number) -> _Made:
        if a.whole is not None and b.whole is not None:
            return _Made(COMPARE[op], (a.whole, b.whole))  # without a cast, which could not be pushed down
        compared = _Made(COMPARE[op], (a.raw, b.raw))
        if (a.large and not _is_small(b)) or (b.large and not _is_small(a)):
            compared = self._compared_exactly(op, a, b)
        return balanced(self.both, [compared, *(x.there for x in (a, b) if x.wild)])

    def _compared_exactly(self, op: str, a: _Number, b: _Number) -> _Made:
        """By doubles, and where these are equal, by what the whole number of the two is more than its own."""
        if not a.large:
            return self._compared_exactly(MIRRORED.get(op, op), b, a)
        tied = self.both(_Made(COMPARE["="], (a.raw, b.raw)), _Made(COMPARE[op], (a.rest, _literal(0, "long"))))
        strict = op.rstrip("=") if op in ("<=", ">=") else op
        return tied if op == "=" else self.either(_Made(COMPARE[strict], (a.raw, b.raw)), tied)

    def number_in(self, a: _Number, values: Sequence[float]) -> _Made:
        if a.whole is not None:
            wholes = [plain for value in values if isinstance(plain := plain_number(value), int)]
            return _Made(lambda x: x.isin(wholes), (a.whole,))
        doubles = [value for value in values if type(value) is float]  # no double is equal to the others
        zeros = [0.0, -0.0] if 0.0 in values else []  # a long list is a hash set to Spark, where the two differ
        return _Made(lambda x: x.isin([*doubles, *zeros]), (a.raw,))

    def choose_number(self, test: _Made, yes: _Number, no: _Number) -> _Number:
        whole = self.choose(test, yes.whole, no.whole) if yes.whole is not None and no.whole is not None else None
        large = _joined_large(whole, yes, no)
        return _Number(self.choose(test, yes.raw, no.raw), yes.wild or no.wild, whole, large)

    def unary(self, name: str, a: _Number) -> _Number:
        copies = 3 if name in ("floor", "ceil") else 1
        return _Number(_Made(UNARY[name], (a.raw,), copies), a.wild or name == "sqrt")

    def binary(self, name: str, a: _Number, b: _Number) -> _Number:
        if name == "power":
            raise Untranslatable("'power' may differ in the last bit")
        if name == "round":
            raise Untranslatable("'round' to digits depends on how Java spells numbers")
        if name in ("min", "max"):
            there = a.there, b.there
            both = a.whole is not None and b.whole is not None
            whole = self._extreme(name, there, a.whole, b.whole) if both else None  # type: ignore[arg-type]
            large = _joined_large(whole, a, b)
            return _Number(self._extreme(name, there, a.raw, b.raw), wild=False, whole=whole, large=large)
        if name in ("/", "%"):  # an infinite divisor would give a finite number
            return _Number(_Made(BINARY[name], (a.raw, b.exact), copies=2))
        return _Number(_Made(BINARY[name], (a.raw, b.raw)))

    def _extreme(self, name: str, there: tuple[_Made, _Made], a: _Made, b: _Made) -> _Made:
        """Spark's own leave out nulls."""
        return _Made(_when, (self.both(*there), _Made(EXTREME[name], (a, b))))

    # Texts.

    def has_text(self, a: _Made) -> _Made:
        return _Made(lambda x: x.isNotNull(), (a,))

    def compare_texts(self, op: str, a: _Made, b: _Made) -> _Made:
        return _Made(COMPARE[op], (a, b))

    def text_in(self, a: _Made, values: Sequence[str]) -> _Made:
        return _Made(lambda x: x.isin(list(values)), (a,))

    def choose_text(self, test: _Made, yes: _Made, no: _Made) -> _Made:
        return self.choose(test, yes, no)

    def extreme_text(self, name: str, a: _Made, b: _Made) -> _Made:
        return self._extreme(name, (self.has_text(a), self.has_text(b)), a, b)

    def spell(self, a: _Number) -> _Made:
        raise Untranslatable("numbers are spelled differently")

    def call(self, function: Function, texts: Sequence[_Made]) -> _Parts:
        arguments = tuple(texts)
        if function is LIKE:
            _check_pattern(arguments[1])
        if function.name in TESTS:
            test = _Made(TESTS[function.name], arguments)
            return Parts(flag=Flag(test, _Made(lambda x: ~x, (test,))))
        if function.name == "length":
            return Parts(number=_Number(_Made(lambda x: _functions().char_length(x).cast("double"), arguments), wild=False))
        if function.name == "concat":
            return Parts(text=_Made(lambda *x: _functions().concat(*x), arguments))
        raise Untranslatable(f"'{function.name}' may differ between Java and Python")

    def event(self, name: str, aliases: Sequence[str | None], numbers: Sequence[_Number]) -> _Parts:
        raise Untranslatable(f"'{name}' is not in the frame")


_Lowering = Lowering[_Number, _Made, _Made]


def _lowering(schema: SparkSchema) -> _Lowering:
    return Lowering(_Spark(schema))


def _is_small(number: _Number) -> bool:
    """A constant that no whole number is rounded to."""
    return number.constant is not None and abs(number.constant) < EXACT


def _joined_large(whole: _Made | None, a: _Number, b: _Number) -> bool:
    large = a.large or b.large
    if large and whole is None:
        raise Untranslatable("a value that may be a double or a whole number of 64 bits")
    return large


def _rest(whole: SparkColumn, raw: SparkColumn) -> SparkColumn:
    """The largest double is one more than there are whole numbers of 64 bits, and so than a cast can give."""
    fits = raw < 2.0**63
    return _when(fits, whole - _when(fits, raw).cast("long")).otherwise(-1)


MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _functions() -> Any:
    from pyspark.sql import functions

    return functions


def _literal(value: object, type_name: str) -> _Made:
    return _Made(lambda: _functions().lit(value).cast(type_name) if value is None else _functions().lit(value))


def _when(test: SparkColumn, yes: SparkColumn) -> SparkColumn:
    return _functions().when(test, yes)


def _whole(x: SparkColumn, toward: Callable[[SparkColumn], SparkColumn]) -> SparkColumn:
    """Spark's floor and ceil make a long of a double; doubles that do not fit are whole already."""
    fits = _functions().abs(x) < 2.0**53
    return _functions().when(fits, toward(_when(fits, x)).cast("double")).otherwise(x)


def _floor(x: SparkColumn) -> SparkColumn:
    return _whole(x, _functions().floor)


def _ceil(x: SparkColumn) -> SparkColumn:
    return _whole(x, _functions().ceil)


def _check_pattern(pattern: _Made) -> None:
    """Java goes back and forth in the text for each `%`: only with one of them, or around a text to be found, in linear time."""
    text = pattern.text if isinstance(pattern, _Constant) else None
    if text is None or not (text.count("%") < 2 or (text.count("%") == 2 and text[0] == text[-1] == "%" and "_" not in text)):
        raise Untranslatable("a pattern that would take Java too long")


def _like(text: SparkColumn, pattern: SparkColumn) -> SparkColumn:
    """In Spark's patterns a backslash is special."""
    F = _functions()
    return F.like(text, F.replace(pattern, F.lit("\\"), F.lit("\\\\")))


COMPARE: dict[str, Callable[[Any, Any], SparkColumn]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
UNARY: dict[str, Callable[[Any], SparkColumn]] = {
    "-": lambda x: -x,
    "abs": lambda x: _functions().abs(x),
    "sqrt": lambda x: _functions().sqrt(x),
    "floor": _floor,
    "ceil": _ceil,
    "round": lambda x: _functions().round(x),  # by way of exact decimals, halves away from zero
}
BINARY: dict[str, Callable[[Any, Any], SparkColumn]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / _when(b != 0, b),  # a zero would be an error
    "%": lambda a, b: a % _when(b != 0, b),
}
EXTREME: dict[str, Callable[[Any, Any], SparkColumn]] = {
    "min": lambda a, b: _functions().least(a, b),
    "max": lambda a, b: _functions().greatest(a, b),
}
TESTS: dict[str, Callable[[Any, Any], SparkColumn]] = {
    "like": _like,
    "contains": lambda a, b: a.contains(b),
    "starts_with": lambda a, b: a.startswith(b),
    "ends_with": lambda a, b: a.endswith(b),
}

# References.


def _reference(name: str, schema: SparkSchema) -> _Parts:
    fields = [f for f in schema.fields if f.name == name]
    alike = [f for f in schema.fields if f.name.lower() == name.lower()]
    if not fields:
        if name in ENVELOPE:
            raise Untranslatable(f"'{name}' is not in the frame")
        return Parts()
    if len(alike) > 1:
        raise Untranslatable(f"'{name}' is ambiguous to Spark")
    kind = _kind(fields[0].dataType)
    if name in ENVELOPE and (kind not in ENVELOPE[name] or (name == "id" and fields[0].nullable)):
        raise Untranslatable(f"'{name}' is not in the frame as it will be")
    quoted = "`" + name.replace("`", "``") + "`"
    return _parts(kind, _Made(lambda: _functions().col(quoted)))


def _kind(data_type: Any) -> str:
    from pyspark.sql import types

    if isinstance(data_type, (types.FloatType, types.DoubleType)):
        return "wild number"
    if isinstance(data_type, types.LongType):
        return "long"
    if isinstance(data_type, types.IntegralType):
        return "whole number"
    if isinstance(data_type, types.DecimalType) and data_type.precision > FEW_DIGITS:
        return "long" if data_type.scale <= 0 and data_type.precision <= LONG_DIGITS else "long decimal"
    if isinstance(data_type, types.NumericType):
        return "number"
    if isinstance(data_type, types.StringType):
        return "string" if getattr(data_type, "collation", "UTF8_BINARY") == "UTF8_BINARY" else "collated"
    if isinstance(data_type, types.StructType):
        mixed = types.StructType().add("number", "double").add("text", "string").add("flag", "boolean")
        found = [(f.name, f.dataType) for f in data_type if f.name != "compound"]
        if found != [(f.name, f.dataType) for f in mixed]:
            return "other"
        return "mixed" if len(found) == len(data_type) else "compound"
    plain = {
        types.BooleanType: "boolean",
        types.TimestampType: "timestamp",
        types.DateType: "date",
        types.TimestampNTZType: "local",
    }
    return next((kind for t, kind in plain.items() if isinstance(data_type, t)), "other")


def _parts(kind: str, made: _Made) -> _Parts:
    if kind in ("number", "wild number"):
        return Parts(number=_Number(_Made(lambda c: c.cast("double"), (made,)), wild=kind == "wild number"))
    if kind in ("whole number", "long"):
        double, long = (_Made(lambda c, t=t: c.cast(t), (made,)) for t in ("double", "long"))
        return Parts(number=_Number(double, wild=False, whole=long, large=kind == "long"))
    if kind in ("long decimal", "compound"):
        raise Untranslatable("decimals of many digits, and whole numbers or sets in a struct, are told apart in Python")
    if kind == "string":
        return Parts(text=made)
    if kind == "boolean":
        return Parts(flag=Flag(made, _Made(lambda c: ~c, (made,))))
    if kind == "timestamp":
        return Parts(number=_Number(_Made(_milliseconds, (made,)), wild=False))
    if kind == "date":
        return Parts(
            number=_Number(_Made(lambda c: _functions().unix_date(c).cast("double") * 86_400_000.0, (made,)), wild=False)
        )
    if kind == "mixed":
        number, text, flag = (_field(made, name) for name in ("number", "text", "flag"))
        return Parts(_parts("wild number", number).number, text, _parts("boolean", flag).flag)
    if kind in ("collated", "local"):
        raise Untranslatable("collations and local timestamps depend on the session")
    return Parts()


def _field(made: _Made, name: str) -> _Made:
    return _Made(lambda c: c.getField(name), (made,))


def _milliseconds(stamp: SparkColumn) -> SparkColumn:
    """Whole milliseconds exactly, also beyond the year 2255, where microseconds exceed a double."""
    F = _functions()
    micros = F.unix_micros(stamp)
    small = F.abs(micros) <= 2**53
    apart = F.unix_millis(stamp).cast("double") + F.pmod(micros, F.lit(MILLISECOND)).cast("double") / float(MILLISECOND)
    return F.when(small, micros.cast("double") / float(MILLISECOND)).otherwise(apart)


# Fields with several values.


def _of_values(tree: HasOne | Resembles, schema: SparkSchema) -> _Made | None:
    """By the type of the column, or of what is in its array."""
    from pyspark.sql import types

    fields = [f for f in schema.fields if f.name == tree.field]
    if not fields:
        return _literal(False, "boolean")
    kind = fields[0].dataType
    test = _value_test(tree, _kind(kind.elementType if isinstance(kind, types.ArrayType) else kind))
    if test is None or "compound" in (kind.fieldNames() if isinstance(kind, types.StructType) else ()):
        return None
    column = _Made(lambda: _functions().col("`" + tree.field + "`"))
    return _Made((lambda c: _functions().exists(c, test)) if isinstance(kind, types.ArrayType) else test, (column,))


def _value_test(tree: HasOne | Resembles, kind: str) -> Callable[[SparkColumn], SparkColumn] | None:
    """Of one value; None: it may pass, whatever it is."""
    if isinstance(tree, Resembles):
        whole = "|".join(f"(?:{expression})" for expression in tree.expressions)
        return (lambda c: c.rlike(whole)) if kind == "string" else None
    numbers = [*tree.numbers, *([-0.0] if 0.0 in tree.numbers else [])]  # to Spark's sets the two differ
    if kind == "string":
        return lambda c: c.isin(list(tree.texts))
    if kind in ("whole number", "long"):
        wholes = [plain for number in tree.numbers if isinstance(plain := plain_number(number), int)]
        return lambda c: c.cast("long").isin(wholes)
    numbers = [number for number in numbers if type(number) is float]  # no double is equal to the others
    if kind in ("number", "wild number"):
        return lambda c: c.cast("double").isin(numbers)
    if kind == "mixed":
        return lambda c: c["text"].isin(list(tree.texts)) | c["number"].isin(numbers)
    return None
