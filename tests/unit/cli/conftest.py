"""Fixtures of the command's tests."""

from cli_support import coincide, events, rules

__all__ = ["coincide", "events", "rules"]
