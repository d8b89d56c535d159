"""Which queries the compiled loop can do, and why not where it cannot."""

from __future__ import annotations

from coincide.lang.eql.definition import JOIN, SAMPLE, Query


def reasons(query: Query) -> tuple[str, ...]:
    return (f"it is a {query.kind}",) if query.kind in (SAMPLE, JOIN) else ()
