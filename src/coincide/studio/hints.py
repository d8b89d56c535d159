"""What the editor on the page asks of a text that may be half written. Names of types and attributes are those of the events
that are open, too."""

from __future__ import annotations

from collections import Counter
from typing import Any

from coincide.editing import Names, completions, hover, tokens
from coincide.source import SourceText
from coincide.studio.session import Session

MOST = 200
"""Completions that are shown."""


def tokens_of(session: Session, name: str, text: str) -> list[dict[str, Any]]:
    marks = tokens(session.files.source(name, text))
    return [{"start": mark.start, "end": mark.end, "kind": mark.kind} for mark in marks]


def completions_at(session: Session, name: str, text: str, offset: int) -> list[dict[str, Any]]:
    source = session.files.source(name, text)
    found = completions(source, min(offset, len(text)), _others(session, source), _names(session))
    return [
        {
            "label": each.name,
            "kind": each.kind,
            "detail": each.detail,
            "insert": each.text,
            "start": each.span.start,
            "end": each.span.end,
            "rank": each.rank,
        }
        for each in found[:MOST]
    ]


def hover_at(session: Session, name: str, text: str, offset: int) -> dict[str, Any]:
    source = session.files.source(name, text)
    found = hover(source, min(offset, len(text)), _others(session, source), _names(session))
    return {"text": None} if found is None else {"text": found.text, "start": found.span.start, "end": found.span.end}


def _others(session: Session, source: SourceText) -> list[SourceText]:
    return [other for other in session.files.sources() if other.name != source.name]


def _names(session: Session) -> Names:
    """Of events evenly from all that are open."""
    types: dict[str, Counter[str]] = {}
    for event in session.store.sample:
        types.setdefault(event.type, Counter()).update(list(event.attributes))
    return Names(types, session.store.seen.types)
