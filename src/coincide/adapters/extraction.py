"""Attributes that are made of a part of a text: the user in the message of a log.

What a record has of its own counts; what is extracted fills what is not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from coincide.errors import InputError
from coincide.expr.patterns import captured, regular_expression_fault

if TYPE_CHECKING:
    import pyarrow as pa

Extracted = str | float | bool | None
KINDS = ("text", "number", "boolean")
BOOLEANS: dict[str, bool] = {"true": True, "false": False}


@dataclass(frozen=True)
class Extract:
    """An attribute, the field whose text has it, and how to find it: the first expression that is found decides, by its first
    group or, where it has none, as a whole. `kind` is text, number or boolean."""

    name: str
    source: str
    patterns: tuple[str, ...]
    kind: str = "text"

    def __post_init__(self) -> None:
        if self.name == self.source:
            raise InputError(f"'{self.name}' cannot be extracted from itself")
        for pattern in self.patterns:
            if (wrong := regular_expression_fault(pattern)) is not None:
                raise InputError(f"invalid regular expression: {wrong}")
        if self.kind not in KINDS:
            raise InputError(f"unknown type '{self.kind}' of '{self.name}': one of {', '.join(KINDS)}")

    def of_text(self, text: str) -> Extracted:
        for pattern in self.patterns:
            found = captured(text, pattern)
            if found is not None:
                return found if self.kind == "text" else _number(found) if self.kind == "number" else BOOLEANS.get(found)
        return None

    def of_value(self, value: object) -> Extracted:
        """Of a text, or of the first of several in which something is found."""
        if isinstance(value, str):
            return self.of_text(value)
        several = value if isinstance(value, (list, tuple)) else getattr(value, "members", ())
        return next((found for one in several if isinstance(one, str) and (found := self.of_text(one)) is not None), None)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def extracted(raw: Mapping[str, object], extracts: tuple[Extract, ...]) -> Mapping[str, object]:
    """A flat record with what its texts hold."""
    if not extracts:
        return raw
    out = dict(raw)
    for extract in extracts:
        if out.get(extract.name) is None:
            value = extract.of_value(out.get(extract.source))
            if value is not None:
                out[extract.name] = value
    return out


def extracted_columns(columns: Mapping[str, pa.Array], extracts: tuple[Extract, ...]) -> Mapping[str, pa.Array]:
    """The same over whole columns: each distinct text once."""
    if not any(extract.source in columns for extract in extracts):
        return columns
    out = dict(columns)
    for extract in extracts:
        if extract.source in out:
            made = _column(extract, out[extract.source])
            own = out.get(extract.name)
            out[extract.name] = made if own is None else _filled(own, made)
    return out


def _column(extract: Extract, array: pa.Array) -> pa.Array:
    import pyarrow as pa

    from coincide.model.column import column_from_arrow

    column = column_from_arrow(array)
    kind = {"text": pa.string(), "number": pa.float64(), "boolean": pa.bool_()}[extract.kind]
    if column.compounds is None:
        if column.codes is None:
            return pa.nulls(len(column), kind)
        by_text = pa.array([extract.of_text(text) for text in column.texts], kind)
        return by_text.take(pa.array(column.codes, mask=column.codes < 0))
    return pa.array([extract.of_value(column.value(row)) for row in range(len(column))], kind)


def _filled(own: pa.Array, made: pa.Array) -> pa.Array:
    """What is there, and otherwise what was found."""
    from coincide.model.column import column_from_arrow, column_of

    given, found = column_from_arrow(own), column_from_arrow(made)
    values = [given.value(row) for row in range(len(given))]
    return column_of([found.value(row) if v is None else v for row, v in enumerate(values)]).to_arrow()


def of_series(extract: Extract) -> Callable[[Any], Any]:
    """For Spark: from a pandas series of texts (or of arrays of them) to one of what they hold."""

    import pandas

    def read(texts: Any) -> Any:
        values = [extract.of_value(list(value) if hasattr(value, "tolist") else value) for value in texts]
        return pandas.Series(values, dtype={"text": "object", "number": "Float64", "boolean": "boolean"}[extract.kind])

    read.__annotations__ = {"texts": pandas.Series, "return": pandas.Series}  # tells Spark what it takes
    return read
