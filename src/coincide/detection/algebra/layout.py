"""A definition's state as tables (columns/tables.py), where the kernel tier covers it: what both tiers write and read.

Operators keep *occurrences*: a leaf has an event, others have two operands. Those that *wait* for partners do so in a store of an
operator, under a key (the attributes of `per`, then those that equalities tie), one after another by their turns; what operators
count or remember for each key is in *registers*. Windows keep
*members*, each an event, and under which keys windows are *observed* since when, also if nothing is in them."""

from __future__ import annotations

from coincide.detection.columns.tables import KEYED_DENSELY, Shape

KEYS = Shape("keys", "", valued=True, use=KEYED_DENSELY)
OCCURRENCES = Shape("occurrences", "operator left>occurrences? right>occurrences? event>events?")
WAITING = Shape("waiting", "occurrence>occurrences key>keys store turn")
OPERATORS = (KEYS, OCCURRENCES, WAITING)
REGISTERS = Shape("registers", "key>keys register value")
"""In addition, where operators have some."""

MEMBERS = Shape("members", "key>keys event>events")
OBSERVED = Shape("observed", "key>keys window since", owner="key", grows=True)
WINDOWS = (KEYS, MEMBERS, OBSERVED)

SEQUENCE_KIND, WINDOW_KIND = "operators", "window"
