"""The state of windows over columns as relations that are written (columns/codec.py), and from them again."""

from __future__ import annotations

import numpy as np

from coincide.detection.algebra.layout import KEYS, MEMBERS, OBSERVED, WINDOW_KIND
from coincide.detection.algebra.relations import keys_of
from coincide.detection.algebra.window.observed import Observed
from coincide.detection.algebra.window.windows import WindowKernel, WindowMemory
from coincide.detection.columns.codec import Relations, Rows, compact, owned_rows


def relations(memory: WindowMemory, since_last: bool = False) -> Relations:
    """All there is, which what `changes` tells next can be added to; or what has changed."""
    size = memory.dropped + len(memory.hi)
    first_key, first, first_observed, dropped = memory.written if since_last else (0, memory.dropped, 0, memory.dropped)
    members = np.arange(max(first, memory.dropped), size)
    here = members - memory.dropped
    observed = memory.observed.take(np.arange(first_observed, len(memory.observed.slot)))
    keys = np.arange(first_key, len(memory.slots))
    rows = {
        "keys": Rows(KEYS, keys, {}, len(memory.slots), values=memory.slots.known.taken(keys)),
        "members": Rows(
            MEMBERS, members, {"key": memory.slot[here], "event": members}, size, freed=np.arange(dropped, memory.dropped)
        ),
        "observed": owned_rows(OBSERVED, {"key": observed.slot, "window": observed.window, "since": observed.since}),
    }
    notes = {"events": np.array([size]), "next": np.array([] if memory.next is None else [memory.next], np.int64)}
    since = memory.epoch if since_last else 0
    return Relations(WINDOW_KIND, rows, members, memory.events.taken(here), notes, since, memory.epoch)


def loaded(kernel: WindowKernel, relations: Relations) -> WindowMemory:
    """A state to go on from; what changes from then on can be told in addition to these. They have been checked."""
    relations, size, same = compact(relations)
    memory, rows = kernel.fresh(), relations.rows
    memory.slots.of(keys_of(rows["keys"], memory.slots.parts))
    members, event = rows["members"], rows["members"].columns["event"]
    memory.slot = members.columns["key"]
    memory.dropped = int(members.numbers[0]) if len(members) else size
    memory.events.add(relations.events, np.searchsorted(relations.refs, event))
    memory.hi = np.concatenate([memory.slot[:0], *(chunk.hi for chunk in memory.events.chunks)])
    following = relations.notes["next"]
    memory.next = int(following[0]) if len(following) else None
    observed = rows["observed"].columns
    distinct = np.unique(np.stack([observed[name] for name in ("key", "window", "since")]), axis=1)
    memory.observed = Observed(*distinct)
    memory.epoch = max(relations.epoch, 1)
    if same and np.array_equal(event, np.arange(memory.dropped, size)) and np.array_equal(event, members.numbers):
        memory.go_on()
    else:
        memory.dropped = 0
    return memory
