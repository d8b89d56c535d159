"""What does a pack of EQL's event queries cost over a stream of Windows events? Rules and events are generated: the shapes
(categories, fields, lists of patterns, exceptions) are those of published packs, the words are not."""

from __future__ import annotations

import random
from time import process_time

from benchmarks.many_sigma import FLAGS, FOLDERS, STEMS, fresh, table_rows
from benchmarks.measure import best, show
from coincide import loads
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable

RULES, EVENTS = 1_000, 200_000
CATEGORIES = ("process", "file", "registry", "network", "library")
SHARES = (55, 15, 12, 12, 6)
FIELDS = (
    "host.os.type", "event.type", "process.name", "process.executable", "process.command_line", "process.args",
    "destination.ip", "file.path",
)  # fmt: skip
WORDS = [f"{a}{b}" for a in STEMS for b in ("", "util", "exec", "ctl", "32", "host", "tool")]


def rule(dice: random.Random, number: int) -> str:
    """Two or three tests of the event, lists of names, arguments or paths, and exceptions in every second rule."""
    category = dice.choices(CATEGORIES, SHARES)[0]
    tests = ['host.os.type == "windows"']
    if category == "process":
        tests += ['event.type == "start"', f"process.name : {_names(dice)}"]
        if dice.random() < 0.6:
            tests.append(f"process.args : {_list(dice, [f'*{w}{f}*' for w, f in _pairs(dice)])}")
        if dice.random() < 0.1:
            tests.append(f'process.command_line regex~ ".*{dice.choice(WORDS)}[0-9]+ [a-z]{{3,9}}.*"')
    elif category == "network":
        tests += [f"process.name : {_names(dice)}", f'not cidrmatch(destination.ip, "10.{number % 250}.0.0/16", "127.0.0.0/8")']
    else:
        tests += ['event.type in ("creation", "change")', f"file.path : {_list(dice, [_path(dice) for _ in range(4)])}"]
    if dice.random() < 0.5:
        folder = dice.choice(FOLDERS).replace("\\", "\\\\")
        tests.append(f'not process.executable : ("{folder}*.exe", "?:\\\\Program Files\\\\{dice.choice(WORDS)}*")')
    return f"// @name rule{number}\n{category} where " + " and\n  ".join(tests)


def _pairs(dice: random.Random) -> list[tuple[str, str]]:
    return [(f"{dice.choice(WORDS)}{dice.randint(0, 400)}", dice.choice(FLAGS)) for _ in range(dice.choice((1, 2, 4)))]


def _names(dice: random.Random) -> str:
    return _list(dice, [f"{dice.choice(WORDS)}{dice.randint(0, 400)}.exe" for _ in range(dice.choice((1, 1, 2, 4, 8)))])


def _path(dice: random.Random) -> str:
    return f"?:\\\\Users\\\\*\\\\{dice.choice(WORDS)}{dice.randint(0, 400)}.*"


def _list(dice: random.Random, patterns: list[str]) -> str:
    return "(" + ", ".join(f'"{pattern}"' for pattern in patterns) + ")"


def rules(count: int) -> str:
    dice = random.Random(1)
    return ";\n".join(rule(dice, number) for number in range(count))


def events(count: int) -> EventTable:
    """Most processes are few, most command lines are one of a kind."""
    import numpy as np
    import pyarrow as pa

    dice = random.Random(2)
    names = [f"{dice.choice(WORDS)}{dice.randint(0, 400)}.exe" for _ in range(3_000)]
    kinds = dice.choices(CATEGORIES, SHARES, k=count)
    columns: dict[str, list[str | None]] = {name: [None] * count for name in FIELDS}

    def put(row: int, **values: str) -> None:
        for name, value in values.items():
            columns[name.replace("_of_", ".").replace("__", "_")][row] = value

    for row, kind in enumerate(kinds):
        name = names[int(dice.paretovariate(0.9)) % len(names)]
        line = f"{name}{dice.choice(FLAGS)} {' '.join(dice.choices(WORDS, k=4))} --id {dice.randint(0, 10**7)}"
        put(row, host_of_os_of_type="windows", process_of_name=name, process_of_executable=f"{dice.choice(FOLDERS)}{name}")
        if kind == "process":
            put(row, event_of_type=dice.choice(("start", "end")), process_of_command__line=line, process_of_args=line)
        elif kind == "network":
            put(row, event_of_type="connection", destination_of_ip=".".join(str(dice.randint(1, 254)) for _ in range(4)))
        else:
            path = f"C:\\Users\\ann\\{dice.choice(WORDS)}{dice.randint(0, 400)}.tmp"
            put(row, event_of_type=dice.choice(("creation", "change", "deletion")), file_of_path=path)
    times = np.arange(count, dtype=np.int64) * 1_000
    fields = {"type": pa.array(kinds), "id": pa.array([str(n) for n in range(count)])}
    return EventTable(times, times, {**fields, **{name: pa.array(values) for name, values in columns.items()}})


def main() -> None:
    table = events(EVENTS)
    begun = process_time()
    book = loads(rules(RULES), "eql")
    graph = Graph(book.plans("kernel"))
    state = graph.initial()
    graph.advance(state, EventBatch(table=fresh(table).take(table_rows(10))))
    loading = process_time() - begun
    taken, made = best(lambda: graph.advance(state, EventBatch(table=fresh(table))), times=2)
    one = Graph(loads(rules(1), "eql").plans("kernel"))
    first = one.initial()
    alone, _ = best(lambda: one.advance(first, EventBatch(table=fresh(table))), times=2)
    show(
        f"{RULES:,} event queries of EQL over {EVENTS:,} Windows events; {len(made):,} detections",
        {
            "loading, to the first ten events (CPU)": f"{loading:.1f} s",
            "one rule": f"{EVENTS / alone / 1e3:,.0f} k events/s",
            f"{RULES:,} rules": f"{EVENTS / taken / 1e3:,.0f} k events/s",
            "ratio of times": f"{taken / alone:.1f}",
        },
        "a small multiple of one rule",
    )


if __name__ == "__main__":
    main()
