"""Answers in JSON, those that refuse too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from coincide.errors import Diagnostic

_encode = msgspec.json.Encoder().encode


class Refused(Exception):
    """A request that is not done, with the reason."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        diagnostics: Iterable[Diagnostic] = (),
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers
        self.diagnostics, self.more = tuple(diagnostics), dict(more or {})


def answer(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(_encode(content), status, headers, "application/json")


def refusal(refused: Refused) -> Response:
    details = {"diagnostics": diagnostics_data(refused.diagnostics)} if refused.diagnostics else {}
    return answer({"error": refused.message, **details, **refused.more}, refused.status, refused.headers)


def diagnostics_data(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    return [_diagnostic_data(diagnostic) for diagnostic in diagnostics]


def _diagnostic_data(diagnostic: Diagnostic) -> dict[str, Any]:
    span = diagnostic.span
    place = {} if span is None else {"file": span.file, "line": span.line, "column": span.column}
    hint = {} if diagnostic.hint is None else {"hint": diagnostic.hint}
    return {"severity": diagnostic.severity, "message": diagnostic.message, **place, **hint}
