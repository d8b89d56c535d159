"""Where enrichment and node context come from (section 4.6): what descriptions name, and what is registered."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from coincide.access import check_databases, permitted_file
from coincide.attachments import attached, attachment
from coincide.lang.cdl.functions import PredicateKind, registered_predicates
from coincide.lang.cdl.shape import fail
from coincide.lang.cdl.tables import Function, Lookup, NoTable, cell, check_column, csv_table, parquet_table, read_rows
from coincide.lang.cdl.values import instant
from coincide.model.event import Value
from coincide.model.stamp import MILLISECOND

if TYPE_CHECKING:
    from coincide.lang.cdl.definition import Description, Provider

PASSWORD = re.compile(r"(://[^/@:]*):[^/@]*@")
LOOKUP, CONTEXT = "registered look-up", "registered context"


class Context(Protocol):
    """The node's own attributes."""

    def read(self, name: str, now: int) -> Value:
        """The value that holds at an instant (microseconds)."""


@dataclass(frozen=True)
class History:
    """Node context from a file: a value holds from its time on."""

    instants: Mapping[str, Sequence[int]]
    values: Mapping[str, Sequence[Value]]

    def read(self, name: str, now: int) -> Value:
        before = bisect_right(self.instants.get(name, ()), now)
        return self.values[name][before - 1] if before else None


def context_history(path: Path) -> History:
    found: dict[str, list[tuple[int, Value]]] = {}
    rows, header = read_rows(path)
    for column in ("time", "attribute", "value"):
        check_column(column, sorted(header))
    for row in rows:
        moment = instant(row.get("time", ""))
        if moment is not None:
            found.setdefault(row.get("attribute", ""), []).append((round(moment * MILLISECOND), cell(row.get("value"))))
    for changes in found.values():
        changes.sort(key=lambda change: change[0])
    return History(
        {name: [at for at, _ in changes] for name, changes in found.items()},
        {name: [value for _, value in changes] for name, changes in found.items()},
    )


# What an installation registers


@dataclass(frozen=True)
class Installed:
    """What was registered when a description was loaded, or travelled with it."""

    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    contexts: Sequence[Context] = ()
    predicates: Mapping[str, PredicateKind] = field(default_factory=dict)


_lookups: dict[str, Lookup] = {}
_contexts: list[Context] = []


def register_provider(name: str, provider: Lookup | Callable[[Any, str], Any]) -> None:
    """A provider of this installation, known to all descriptions that are loaded from now on: an object with `find` (such as
    `table` makes), or a function of key and column."""
    _lookups[name] = provider if hasattr(provider, "find") else Function(provider)


def register_context(context: Context) -> None:
    """Node context of this installation, asked after what descriptions name."""
    _contexts.append(context)


def forget_providers() -> None:
    _lookups.clear()
    _contexts.clear()


def installed() -> Installed:
    contexts = [*attached(CONTEXT).values()] or [*_contexts]
    return Installed({**_lookups, **attached(LOOKUP)}, contexts, registered_predicates())


def used_lookup(name: str, cd: Description) -> Lookup | None:
    """The provider of a look-up. One that is registered travels with the rules that use it."""
    for provider in (*cd.providers, *cd.shared):
        if provider.name == name and provider.kind != "context":
            opened: Lookup = provider.opened
            return opened
    known = cd.installed.lookups
    return attachment((LOOKUP, name), lambda: known[name]) if name in known else None


def use_contexts(cd: Description) -> None:
    """They travel with the rules."""
    for number, context in enumerate(cd.installed.contexts):
        attachment((CONTEXT, str(number)), lambda context=context: context)  # type: ignore[misc]


# What descriptions name


def _sql(provider: Provider) -> Lookup:
    check_databases()
    from coincide.lang.cdl.sql import sql_table

    return sql_table(provider.base, provider.href, provider.key or "")


KINDS: dict[str, Callable[[Provider], Any]] = {
    "csv": lambda provider: csv_table(path_of(provider), provider.key or ""),
    "parquet": lambda provider: parquet_table(path_of(provider), provider.key or ""),
    "sql": _sql,
    "context": lambda provider: context_history(path_of(provider)),
}


def path_of(provider: Provider) -> Path:
    return permitted_file(provider.base, provider.href)


def read_provider(provider: Provider) -> Any:
    """A look-up or a context."""
    place = (provider.kind, provider.base, provider.href, provider.key or "")
    return attachment(place, lambda: KINDS[provider.kind](provider))


def check_provider(provider: Provider) -> None:
    if provider.kind not in KINDS:
        fail(provider.span, f"unknown kind of provider '{provider.kind}'", f"one of {', '.join(KINDS)}")
    shown = PASSWORD.sub(r"\1:***@", provider.href)
    message = f"cannot read '{shown}'"
    try:
        assert provider.opened is not None
    except NoTable as error:
        fail(provider.span, message, str(error))
    except ImportError as error:
        extra = ": pip install 'coincide[sql]' brings it" if error.name == "sqlalchemy" else ""
        fail(provider.span, message, f"{error.name} is not installed{extra}")
    except OSError as error:
        fail(provider.span, message, error.strerror or str(error))
    except Exception as error:  # whatever a reader of some format raises
        fail(provider.span, message, str(error).splitlines()[0] if str(error) else None)


def open_providers(cd: Description) -> tuple[dict[str, Lookup], list[Context]]:
    """Look-ups by name and the node contexts in order; what comes first counts."""
    lookups: dict[str, Lookup] = {}
    contexts: list[Context] = []
    for provider in (*cd.providers, *cd.shared):
        if provider.kind == "context":
            contexts.append(provider.opened)
        else:
            lookups.setdefault(provider.name, provider.opened)
    return {**cd.installed.lookups, **lookups}, [*contexts, *cd.installed.contexts]
