"""Operators over columns: the compiled loop."""
