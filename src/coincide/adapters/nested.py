"""Nested records as flat ones: an object is the same as dotted names, an array is a field with several values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from coincide.adapters.mapping import FieldMapping
from coincide.model.compound import compound_of, is_compound
from coincide.model.space import Space

Record = Mapping[str, object]

ARRAYS = (list, tuple)
PLAIN = frozenset({str, int, float, bool, type(None)})


def flattened(raw: Record, mapping: FieldMapping) -> Record:
    """The record with dotted names in the place of objects; itself, if it has none.

    Where a name comes from several places, the key that is written with more dots wins. Objects in an array add their
    values to the same names. What serves as time, and a spacestamp, stay whole. To rules that know records without a type, an
    array in an array adds its values to it."""
    if PLAIN.issuperset(map(type, raw.values())):  # nearly all: a test for an abstract class takes time
        return raw
    if not any(isinstance(value, (Mapping, *ARRAYS)) for value in raw.values()):
        return raw
    if mapping.untyped:
        raw = {name: value if _is_whole(name, value, mapping) else _merged(value) for name, value in raw.items()}
    flat: dict[str, object] = {}
    _spread(raw, "", flat, lambda name, value: _is_whole(name, value, mapping))
    return flat


def _is_whole(name: str, value: object, mapping: FieldMapping) -> bool:
    if name == mapping.space:
        return not isinstance(value, Mapping) or all(part in Space.__struct_fields__ for part in value)
    if name in (mapping.time, mapping.end):
        return True
    return name in (mapping.type, mapping.id, mapping.arrival) and isinstance(value, Mapping)


def _spread(raw: Record, prefix: str, flat: dict[str, object], is_whole: Callable[[str, object], bool]) -> None:
    plain: list[tuple[str, object]] = []
    for key in sorted(raw, key=_dots):  # stable: of keys with equally many dots the last wins, as in JSON
        name, value = f"{prefix}{key}", raw[key]
        if not isinstance(value, (Mapping, *ARRAYS)) or is_whole(name, value):
            plain.append((name, value))
        elif isinstance(value, Mapping):
            if is_compound(value) and (compound := compound_of(value)) is not None:
                flat[name] = compound
            _spread(value, f"{name}.", flat, is_whole)
        else:
            flat.update(_several(name, value))
    flat.update((name, value) for name, value in plain if value is not None)


def _dots(key: object) -> int:
    return str(key).count(".")


def _several(name: str, array: list[object] | tuple[object, ...]) -> dict[str, object]:
    """The fields that an array fills: itself, and those of the objects in it. An array in an array is no value."""
    values = [item for item in array if item is not None and not isinstance(item, Mapping)]
    found: dict[str, list[object]] = {name: values} if values or not array else {}
    for item in array:
        if isinstance(item, Mapping):
            _add_fields(name, item, found)
    return dict(found)


def _merged(value: object) -> object:
    """With what is in an array of an array in the outer one."""
    if isinstance(value, Mapping):
        return {key: _merged(inner) for key, inner in value.items()}
    return list(_items(value)) if isinstance(value, ARRAYS) else value


def _items(array: Iterable[object]) -> Iterator[object]:
    for item in array:
        if isinstance(item, ARRAYS):
            yield from _items(item)
        else:
            yield _merged(item)


def _add_fields(name: str, item: Record, found: dict[str, list[object]]) -> None:
    flat: dict[str, object] = {}
    _spread(item, f"{name}.", flat, lambda *_: False)
    for field, value in flat.items():
        found.setdefault(field, []).extend(value if isinstance(value, list) else [value])
