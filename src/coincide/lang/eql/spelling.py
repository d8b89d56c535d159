"""Values as texts (section 4, `==`)."""

from __future__ import annotations

from coincide.expr.functions import number_text
from coincide.model.numbers import number_of


def spelled(value: object) -> str | None:
    """A text is itself; numbers and booleans as JSON writes them, whole numbers without a fraction."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(number_of(value) if isinstance(value, int) else value) if isinstance(value, (int, float)) else None
