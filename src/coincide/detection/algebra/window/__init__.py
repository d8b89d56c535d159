"""Windows over columns."""
