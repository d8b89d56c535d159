"""The kernel's state as relations that are written (columns/codec.py), and from them again."""

from __future__ import annotations

import numpy as np

from coincide.detection.automaton.layout import CONFIGURATIONS, ENDED, ENTRIES, KEY, KIND, NAMED, NODE, PLACES, RUN, TIMER
from coincide.detection.automaton.memory import Memory
from coincide.detection.automaton.relations import configurations_of, failures_of, keys_of, notes_of, now_of, stored
from coincide.detection.automaton.tables import Tables
from coincide.detection.columns.codec import Relations, Rows, compact, encode, owned_rows, put_rows, rows_at, rows_of
from coincide.detection.columns.compiling import compiled
from coincide.detection.columns.store import spread
from coincide.detection.columns.tables import NOW, Numbers, distinct
from coincide.detection.snapshots import damaged, timer_place_of


def whole(memory: Memory) -> Relations:
    """All there is. What `changes` tells next can be added to it, too: it may tell again what is here."""
    memory.settle(memory.tables.cells())
    relations = _relations(memory, False)
    relations.epoch -= 1
    return relations


def changes(memory: Memory, everything: bool) -> tuple[bytes, bool]:
    """What has changed since this was called last, or all if that is wanted or as much; and whether it is all. Runs that timers
    have failed may be among what is told: the clock is there, too."""
    everything = everything or memory.renewed
    if everything:
        memory.settle(memory.tables.cells())
    data = encode(_relations(memory, not everything))
    memory.next_epoch()
    memory.written = _sizes(memory)
    memory.renewed = False
    return data, everything


def _sizes(memory: Memory) -> tuple[int, int, int, int]:
    return len(memory.configurations), len(memory.nodes), len(memory.timers), len(memory.store)


def _relations(memory: Memory, since_last: bool) -> Relations:
    known, first_node, first_timer, first_event = memory.written if since_last else (0, 0, 0, 0)
    runs = rows_of(memory.runs, since_last)
    nodes = memory.paths(runs.numbers, first_node)
    timers = memory.used_timers(runs.numbers, nodes)
    timers = timers[timers >= first_timer]
    runs.columns["configuration"] = _written_configurations(memory, runs.numbers)
    rows = {"keys": _keys(memory, since_last)}
    rows["ended"] = _ended(memory, rows["keys"].numbers)
    rows["configurations"] = _configurations(memory, known)
    rows["timers"], rows["places"] = rows_at(memory.timers, timers), _places(memory, timers)
    rows["nodes"], rows["named"] = rows_at(memory.nodes, nodes), _named(memory, nodes)
    rows["runs"], rows["entries"] = runs, owned_rows(ENTRIES, dict.fromkeys(("run", "instant"), nodes[:0]))
    used = distinct(np.concatenate((rows["nodes"].columns["event"], rows["timers"].columns["event"])))
    events = used[used >= first_event]
    epoch, notes = max(int(memory.heads[0, NOW]), 0), notes_of(memory.failures[0], memory.now, len(memory.store))
    return Relations(KIND, rows, events, memory.store.taken(events), notes, epoch if since_last else 0, epoch + 1)


def _keys(memory: Memory, since_last: bool) -> Rows:
    """Those that wait for something or have lost a start; the others are as if they were not there."""
    rows = memory.keys.rows
    if since_last:  # a key changes when its runs do
        numbers = np.union1d(memory.keys.changed(), memory.runs.rows[memory.runs.changed(), RUN.key])
    else:
        numbers = memory.keys.live()
    busy = (rows[numbers, KEY.live] > 0) | (rows[numbers, KEY.ended] != 0)
    return rows_at(memory.keys, numbers[busy], numbers[~busy] if since_last else None)


def _ended(memory: Memory, keys: Numbers) -> Rows:
    keys, starts = _bits(keys, memory.keys.rows[keys, KEY.ended])
    return owned_rows(ENDED, {"key": keys, "automaton": np.zeros(len(keys), np.int64), "start": starts})


def _named(memory: Memory, nodes: Numbers) -> Rows:
    nodes, aliases = _bits(nodes, memory.nodes.rows[nodes, NODE.aliases])
    return owned_rows(NAMED, {"node": nodes, "alias": aliases})


def _bits(numbers: Numbers, bits: Numbers) -> tuple[Numbers, Numbers]:
    """For each bit that is set the number that it belongs to, and which bit it is."""
    used = numbers[bits != 0]
    which, rows = np.nonzero(bits[bits != 0] >> np.arange(int(bits.max(initial=0)).bit_length())[:, None] & 1)
    return used[rows], which


def _places(memory: Memory, timers: Numbers) -> Rows:
    given = [timer for timer in timers.tolist() if timer in memory.timer_places] if memory.timer_places else []
    rows = owned_rows(PLACES, {"timer": np.array(given, np.int64)})
    rows.values = [memory.timer_places[timer] for timer in given]
    return rows


def _written_configurations(memory: Memory, runs: Numbers) -> Numbers:
    """The numbers that configurations of runs have where they are written."""
    rows, known = memory.runs.rows, memory.configurations
    both = rows[runs, RUN.configuration] << 1 | rows[runs, RUN.bound]
    used, index = np.unique(both, return_inverse=True)
    numbers = [known.setdefault((n >> 1, n & 1), len(known)) for n in used.tolist()]
    return np.array(numbers, np.int64)[index] if numbers else both


def _configurations(memory: Memory, first: int) -> Rows:
    numbers, used = np.arange(first, len(memory.configurations)), tuple(range(len(memory.tables.program.definition.parameters)))
    known, values = memory.tables.configurations, []
    for (number, bound), written in memory.configurations.items():
        if written >= first:
            values.append(stored((0, *known[number], used if bound else ())))
    return Rows(CONFIGURATIONS, numbers, {"automaton": 0 * numbers}, len(memory.configurations), 0, numbers[:0], values)


# From relations.


def loaded(tables: Tables, relations: Relations, columns: frozenset[str]) -> Memory:
    """A state to go on from; what changes from then on can be told in addition to these. Raises ValueError."""
    relations, size, same = compact(relations)
    memory = Memory(tables, columns)
    for table in memory.all:
        put_rows(table, relations.rows[table.shape.name])
        table.head[NOW] = max(relations.epoch, 1)
    if len(relations.rows["entries"]):
        damaged("a run is of another kind of rule")
    if size:
        memory.store.chunks = [spread(relations.events, relations.refs, size)]
    lacking = _read_keys(memory, relations)
    _read_nodes(memory, relations)
    _read_runs(memory, relations, lacking)
    memory.failures[0], memory.now = failures_of(tables.program, relations), now_of(relations)
    cells = tables.cells()
    memory.slots([])
    memory.link(cells)
    memory.settle(cells)
    memory.written, memory.renewed = _sizes(memory), not same
    memory.swept = max(memory.swept, 2 * len(memory.nodes))
    return memory


def _read_keys(memory: Memory, relations: Relations) -> Numbers:
    """Those that have not all values are told."""
    rows = relations.rows["keys"]
    memory.keys.rows[rows.numbers, KEY.ended] = 0
    keys = keys_of(memory.tables.program, relations)
    memory.keys.known.put(keys, rows.numbers)
    ended = relations.rows["ended"].columns
    np.bitwise_or.at(memory.keys.rows[:, KEY.ended], ended["key"], 1 << ended["start"])
    return rows.numbers[[None in key for key in keys]]


def _read_nodes(memory: Memory, relations: Relations) -> None:
    rows, timers, store = memory.nodes.rows, memory.timers.rows, memory.store
    numbers, places = relations.rows["nodes"].numbers, relations.rows["places"]
    given = zip(places.columns["timer"].tolist(), places.values or [], strict=True)
    memory.timer_places = {timer: timer_place_of(place) for timer, place in given}
    named = relations.rows["named"].columns
    rows[numbers, NODE.aliases], rows[numbers, NODE.accepted] = 0, 0
    np.bitwise_or.at(rows[:, NODE.aliases], named["node"], 1 << named["alias"])
    real = numbers[rows[numbers, NODE.event] >= 0]
    timed = numbers[rows[numbers, NODE.event] < 0]
    used, index = np.unique(rows[real, NODE.event], return_inverse=True)
    rows[real, NODE.lo], rows[real, NODE.hi] = store.lo(used)[index], store.hi(used)[index]
    due = timers[rows[timed, NODE.timer], TIMER.due]
    rows[timed, NODE.lo], rows[timed, NODE.hi] = due, due
    _complete(rows, numbers)
    memory.n.sequence = rows[numbers, NODE.sequence].max(initial=0)


@compiled
def _complete(nodes: Numbers, numbers: Numbers) -> None:
    """Stamps of single events become those of paths."""
    for i in range(len(numbers)):
        node = numbers[i]
        parent = nodes[node, NODE.parent]
        nodes[node, NODE.depth] = 0
        if parent >= 0:
            nodes[node, NODE.lo] = min(nodes[node, NODE.lo], nodes[parent, NODE.lo])
            nodes[node, NODE.hi] = max(nodes[node, NODE.hi], nodes[parent, NODE.hi])
            nodes[node, NODE.depth] = nodes[parent, NODE.depth] + 1


def _read_runs(memory: Memory, relations: Relations, lacking: Numbers) -> None:
    """Every run has a key with all values, and has used all parameters or none."""
    rows, numbers, tables = memory.runs.rows, relations.rows["runs"].numbers, memory.tables
    for written, (automaton, choices, state, used) in enumerate(configurations_of(tables.program, relations)):
        if automaton or len(used) not in (0, len(tables.program.definition.parameters)):
            damaged("a run is of another kind of rule")
        local = tables.number((choices, state)), int(bool(used))
        memory.configurations[local] = written
    local_numbers = np.array([*memory.configurations, (0, 0)], np.int64)
    configuration = rows[numbers, RUN.configuration]
    rows[numbers, RUN.bound] = local_numbers[configuration, 1]
    rows[numbers, RUN.configuration] = local_numbers[configuration, 0]
    rows[numbers, RUN.sets] = 0
    busy = np.zeros(len(memory.keys), np.bool_)
    busy[rows[numbers, RUN.key]] = True
    busy |= memory.keys.column("ended") > 0
    if busy[lacking].any():
        damaged("a run is of another kind of rule")
    memory.keys.free(lacking)
