"""MATCH_RECOGNIZE over plain tables: columns with types in, columns with types out, no events."""
