"""Columns by name, of which some are made only when somebody asks: records with thousands of different names have thousands of
columns that are null nearly everywhere, and rules read a few of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from threading import RLock

import pyarrow as pa

Columns = Mapping[str, pa.Array]
_making = RLock()
"""Threads may ask for one column; it is made of another one, perhaps."""


class LazyColumns(Mapping[str, pa.Array]):
    """Columns, and how to make those that nobody has asked for."""

    def __init__(self, made: Columns, waiting: Mapping[str, Callable[[], pa.Array]]) -> None:
        self._made = dict(made)
        self._waiting = dict(waiting)

    def __getitem__(self, name: str) -> pa.Array:
        with _making:
            if name not in self._made:
                self._made[name] = self._waiting.pop(name)()
            return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._made or name in self._waiting

    def __iter__(self) -> Iterator[str]:
        yield from tuple(self._made)
        yield from tuple(self._waiting)

    def __len__(self) -> int:
        return len(self._made) + len(self._waiting)

    def changed(self, change: Callable[[pa.Array], pa.Array]) -> LazyColumns:
        made = {name: change(array) for name, array in self._made.items()}
        return LazyColumns(made, {name: _later(self, name, change) for name in self._waiting})


def _later(columns: LazyColumns, name: str, change: Callable[[pa.Array], pa.Array]) -> Callable[[], pa.Array]:
    return lambda: change(columns[name])


def bytes_of(columns: Columns) -> int:
    """Of those that are there."""
    made = columns._made if isinstance(columns, LazyColumns) else columns
    return sum(array.nbytes for array in made.values())


def changed(columns: Columns, change: Callable[[pa.Array], pa.Array]) -> Columns:
    """All columns, changed alike; what is not there yet is changed when it is made."""
    if isinstance(columns, LazyColumns):
        return columns.changed(change)
    return {name: change(array) for name, array in columns.items()}


def joined(names: list[str], tables: list[Columns], join: Callable[[str], pa.Array]) -> Columns:
    """Columns of several tables as one; lazily, if one of them is lazy."""
    if not any(isinstance(columns, LazyColumns) for columns in tables):
        return {name: join(name) for name in names}
    return LazyColumns({}, {name: _joining(join, name) for name in names})


def _joining(join: Callable[[str], pa.Array], name: str) -> Callable[[], pa.Array]:
    return lambda: join(name)
