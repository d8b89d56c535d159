"""What rules read beside their own text: tables, zones. It is read once, when they are loaded, and can travel with them to where
no files are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, TypeVar

from coincide.access import reading_nothing

Key = tuple[str, ...]
Attachments = Mapping[Key, Any]
Value = TypeVar("Value")
TEXT = "text"
"""The first part of the keys of texts, which are as much a part of the rules as their own; the second is a file's name."""

_given: ContextVar[Attachments] = ContextVar("given", default=MappingProxyType({}))
_read: ContextVar[dict[Key, Any] | None] = ContextVar("read", default=None)


def attachment(key: Key, read: Callable[[], Value]) -> Value:
    """What was attached to the rules that are being loaded, otherwise what `read` reads."""
    given, found = _given.get(), _read.get()
    value: Value = given[key] if key in given else found[key] if found is not None and key in found else read()
    if found is not None:
        found[key] = value
    return value


def attached(kind: str) -> dict[str, Any]:
    """What was attached under keys of this kind, by name."""
    return {key[1]: value for key, value in _given.get().items() if key[0] == kind}


@contextmanager
def loading() -> Iterator[Attachments]:
    """Collects what is read meanwhile."""
    found: dict[Key, Any] = {}
    token = _read.set(found)
    try:
        yield found
    finally:
        _read.reset(token)


@contextmanager
def giving(attachments: Attachments) -> Iterator[None]:
    """Rules that are loaded meanwhile find these, and read nothing."""
    token = _given.set(attachments)
    try:
        with reading_nothing():
            yield
    finally:
        _given.reset(token)
