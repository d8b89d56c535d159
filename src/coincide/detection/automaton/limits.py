"""`limit` is for the plans of all languages."""

from __future__ import annotations

from coincide.detection.limits import Limits, Table

__all__ = ["Limits", "Table"]
