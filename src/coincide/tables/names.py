"""Names of columns: fields inside structs, and names as an engine resolves them that takes no heed of case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from coincide.expr.tree import Expr, Reference
from coincide.lang.matchrecognize.definition import Query
from coincide.syntax import rebuilt, walk

Rename = Callable[[str], str]


def names_read(query: Query) -> list[str]:
    """The columns that a query reads of its table."""
    clause = query.clause
    trees = [*(m.value for m in clause.measures), *(c.test for c in clause.conditions)]
    trees += [] if query.source.where is None else [query.source.where]
    keys = [*(c.name for c in clause.partition), *(k.name for k in clause.order)]
    return list(dict.fromkeys([*keys, *(n.name for tree in trees for n in walk(tree) if isinstance(n, Reference))]))


def nested_names(names: Iterator[str] | list[str], schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    """Of names that are not columns, those of fields inside structs, as paths."""
    paths = {name: tuple(name.split(".")) for name in names if name not in schema.names and "." in name}
    return {name: path for name, path in paths.items() if _leads_somewhere(path, schema)}


def _leads_somewhere(path: tuple[str, ...], schema: pa.Schema) -> bool:
    kind: pa.DataType = pa.struct(list(schema)) if len(set(schema.names)) == len(schema.names) else pa.null()
    for part in path:
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return False
        kind = kind.field(part).type
    return True


def is_nested(name: str, schema: pa.Schema) -> bool:
    """Is it a column that was made of a field inside a struct?"""
    return "." in name and _leads_somewhere(tuple(name.split(".")), schema)


def with_nested(table: pa.Table, query: Query) -> pa.Table:
    """The table with a column for each field inside a struct that the query reads."""
    for name, path in nested_names(names_read(query), table.schema).items():
        column = table.column(path[0])
        for part in path[1:]:
            column = pc.struct_field(column, part)
        table = table.append_column(name, column)
    return table


def fitted(query: Query, names: list[str]) -> Query:
    """The query with its columns spelt as the table spells them, where only the case differs."""
    folded: dict[str, list[str]] = {}
    for name in names:
        folded.setdefault(name.lower(), []).append(name)

    def rename(name: str) -> str:
        if name in names:
            return name
        head, dot, rest = name.partition(".")
        if name.lower() not in folded and dot and (found := folded.get(head.lower(), ())):
            return found[0] + dot + rest if len(found) == 1 else name
        found = folded.get(name.lower(), ())
        return found[0] if len(found) == 1 else name

    return _renamed(query, rename)


def _renamed(query: Query, rename: Rename) -> Query:
    def rewrite(node: Expr) -> Expr:
        return replace(node, name=rename(node.name)) if isinstance(node, Reference) else rebuilt(node, rewrite)

    clause, where = query.clause, query.source.where
    return replace(
        query,
        source=query.source if where is None else replace(query.source, where=rewrite(where)),
        clause=replace(
            clause,
            partition=tuple(replace(c, name=rename(c.name)) for c in clause.partition),
            order=tuple(replace(k, name=rename(k.name)) for k in clause.order),
            measures=tuple(replace(m, value=rewrite(m.value)) for m in clause.measures),
            conditions=tuple(replace(c, test=rewrite(c.test)) for c in clause.conditions),
        ),
    )
