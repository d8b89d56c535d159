"""A detector's state as tables (columns/tables.py): what both tiers write and read.

- A *key* has the values of the parameters, in the order of their names; null where an assignment leaves one open.
- A *configuration* is what runs can have in common: their automaton, and as values their choices, their state and the numbers of
  the parameters that they have used.
- The events of a run are a path of *nodes* to the root. A node has an event, or the timer whose time event it is.
- A *timer* follows from what set it, an event or another timer; or its place is given."""

from __future__ import annotations

from coincide.detection.columns.records import columns
from coincide.detection.columns.tables import KEYED, SHARED, Shape

KIND = "automaton"

# `ended`: starts of the kernel's one automaton that have ended, as bits; `live`: number of runs.
KEYS = Shape("keys", "", "ended live", valued=True, use=KEYED)
ENDED = Shape("ended", "key>keys automaton start", owner="key")
CONFIGURATIONS = Shape("configurations", "automaton", valued=True, use=SHARED)
# `rank`: its number among those set at the same time. Numbers of timers are in the order of setting.
TIMERS = Shape("timers", "due timing event>events? timer>timers? rank")
PLACES = Shape("places", "timer>timers", owner="timer", valued=True)
# `sequence` orders all events that were consumed. `aliases` as bits; `lo` and `hi` of the whole path; `child`: the latest one;
# `runs`: those that the step has made here.
NODES = Shape("nodes", "parent>nodes? event>events? timer>timers? sequence", "aliases lo hi depth child sibling runs accepted")
NAMED = Shape("named", "node>nodes alias", owner="node")
# A part for each timing: the timer that the run waits for. `bound`: have its events used the parameters? `sets`: timers to be set
# when the step ends, as bits; `previous` and `next`: in its list; `same`: the next of those that the step has made at its node.
RUNS = Shape("runs", "key>keys configuration>configurations node>nodes", "bound sets previous next same", parts="timer>timers?")
ENTRIES = Shape("entries", "run>runs instant", owner="run")  # section 3.6
SHAPES = (KEYS, ENDED, CONFIGURATIONS, TIMERS, PLACES, NODES, NAMED, RUNS, ENTRIES)

TABLES = (KEYS, TIMERS, NODES, RUNS)  # of the kernel
KEY, TIMER, NODE, RUN = (shape.columns for shape in TABLES)
OF = columns("of", " ".join(shape.name for shape in TABLES))  # numbers of heads
