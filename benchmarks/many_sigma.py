"""What does a pack of Sigma rules cost over a stream of Windows events? Rules and events are generated: the shapes (log sources,
fields, modifiers, filters) are those of published packs, the words are not."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks.measure import best, show
from coincide import load
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable

RULES, EVENTS = 3_000, 200_000
STEMS = ("net", "ps", "wm", "reg", "cert", "bit", "mshta", "sc", "run")
ENDINGS = ("", "32", "svc", "cmd", "host", "tool", "x64", "help")
WORDS = [f"{a}{b}{c}" for a in STEMS for b in ("", "util", "exec", "ctl") for c in ENDINGS]
FLAGS = [
    f" {sign}{word}" for sign in "-/" for word in ("enc", "nop", "urlcache", "decode", "add", "create", "delete", "query", "all")
]
FOLDERS = [
    "C:\\Windows\\System32\\",
    "C:\\Windows\\SysWOW64\\",
    "C:\\Program Files\\Vendor\\",
    "C:\\Users\\ann\\AppData\\Local\\Temp\\",
]
SOURCES = {
    "process_creation": ("Image", "CommandLine", "ParentImage", "OriginalFileName", "ParentCommandLine"),
    "file_event": ("TargetFilename", "Image"),
    "registry_set": ("TargetObject", "Details", "Image"),
    "image_load": ("ImageLoaded", "Image"),
    "network_connection": ("DestinationHostname", "Image", "DestinationPort"),
    "ps_script": ("ScriptBlockText",),
}
SHARES = (50, 15, 15, 8, 5, 7)


def rule(dice: random.Random, number: int) -> str:
    """A selection of one to three fields, at times a second one, and a filter in every third rule."""
    source = dice.choices(list(SOURCES), SHARES)[0]
    fields = SOURCES[source]
    selections = {"selection": _selection(dice, fields)}
    condition = "selection"
    if dice.random() < 0.3:
        selections["selection_two"] = _selection(dice, fields)
        condition = "all of selection*"
    if dice.random() < 0.33:
        selections["filter_main"] = _selection(dice, fields)
        condition += " and not 1 of filter_*"
    level = dice.choice(("low", "medium", "high", "critical"))
    lines = [f"title: Rule {number}", f"id: {number:08d}-0000-4000-8000-000000000000", "status: test"]
    lines += [
        "description: |",
        f"    Detects what number {number} is about, which somebody wrote down",
        "    in two lines.",
        "references:",
    ]
    lines += [f"    - https://example.com/{number}/{n}" for n in range(2)]
    lines += ["author: Somebody, Somebody Else", "date: 2026-01-01", "modified: 2026-02-02", "tags:", "    - attack.execution"]
    lines += ["    - attack.t1059.001", "falsepositives:", "    - Unlikely", f"level: {level}"]
    lines += ["logsource:", f"    category: {source}", "    product: windows", "detection:"]
    for name, items in selections.items():
        lines.append(f"    {name}:")
        for key, values in items.items():
            lines += [f"        {key}:", *(f"            - {_quoted(value)}" for value in values)]
    return "\n".join([*lines, f"    condition: {condition}", ""])


def _quoted(value: str | int) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _selection(dice: random.Random, fields: tuple[str, ...]) -> dict[str, list[Any]]:
    items: dict[str, list[Any]] = {}
    for field in dice.sample(fields, dice.randint(1, min(2, len(fields)))):
        key, values = _item(dice, field)
        items[key] = values
    return items


def _item(dice: random.Random, field: str) -> tuple[str, list[Any]]:
    many = dice.choice((1, 1, 2, 4, 8))
    if field == "DestinationPort":
        return field, [dice.randint(1, 65535) for _ in range(many)]
    if field in ("Image", "ParentImage", "ImageLoaded"):
        return f"{field}|endswith", [f"\\{dice.choice(WORDS)}{dice.randint(0, 400)}.exe" for _ in range(many)]
    if field == "OriginalFileName":
        return field, [f"{dice.choice(WORDS)}{dice.randint(0, 400)}.exe" for _ in range(many)]
    if dice.random() < 0.04:
        return f"{field}|re", [f"{dice.choice(WORDS)}\\d+\\s+[a-z]{{{dice.randint(3, 9)}}}"]
    if dice.random() < 0.06:
        return field, [f"*{dice.choice(WORDS)}?{dice.choice(FLAGS)}*{dice.randint(0, 999)}*" for _ in range(many)]
    every = "|all" if dice.random() < 0.25 and many > 1 else ""
    return f"{field}|contains{every}", [f"{dice.choice(WORDS)}{dice.randint(0, 400)}{dice.choice(FLAGS)}" for _ in range(many)]


def rules(count: int, folder: Path) -> None:
    dice = random.Random(1)
    for number in range(count):
        (folder / f"rule_{number:05d}.yml").write_text(rule(dice, number))


def events(count: int) -> EventTable:
    """Most processes are few, most command lines are one of a kind."""
    import numpy as np
    import pyarrow as pa

    dice = random.Random(2)
    images = [f"{dice.choice(FOLDERS)}{dice.choice(WORDS)}{dice.randint(0, 400)}.exe" for _ in range(3_000)]
    kinds = dice.choices(list(SOURCES), SHARES, k=count)
    columns: dict[str, list[Any]] = {name: [None] * count for names in SOURCES.values() for name in names}
    for row, kind in enumerate(kinds):
        image = images[int(dice.paretovariate(0.9)) % len(images)]
        words = " ".join(dice.choices(WORDS, k=4))
        text = f'"{image}"{dice.choice(FLAGS)} {words} --id {dice.randint(0, 10**7)}'
        for name in SOURCES[kind]:
            if name == "DestinationPort":
                columns[name][row] = float(dice.choice((80, 443, dice.randint(1, 65535))))
            elif name in ("Image", "ParentImage", "ImageLoaded"):
                columns[name][row] = image
            elif name == "OriginalFileName":
                columns[name][row] = image.rpartition("\\")[2]
            else:
                columns[name][row] = text if dice.random() < 0.7 else f"C:\\Users\\ann\\{dice.choice(WORDS)}{row % 5000}.tmp"
    times = np.arange(count, dtype=np.int64) * 1_000
    fields = {"type": pa.array([f"windows.{kind}" for kind in kinds]), "id": pa.array([str(n) for n in range(count)])}
    return EventTable(times, times, {**fields, **{name: pa.array(values) for name, values in columns.items()}})


def fresh(table: EventTable) -> EventTable:
    """Without the columns that an earlier run has made of it."""
    return EventTable(table.lo, table.hi, table.fields)


def main() -> None:
    table = events(EVENTS)
    with tempfile.TemporaryDirectory() as name:
        rules(RULES, Path(name))
        begun = process_time()
        book = load(name)
        graph = Graph(book.plans("kernel"))
        state = graph.initial()
        graph.advance(state, EventBatch(table=fresh(table).take(table_rows(10))))
        loading = process_time() - begun
        taken, made = best(lambda: graph.advance(state, EventBatch(table=fresh(table))), times=2)
        one = Graph(load(Path(name) / "rule_00000.yml").plans("kernel"))
        first = one.initial()
        alone, _ = best(lambda: one.advance(first, EventBatch(table=fresh(table))), times=2)
    show(
        f"{RULES:,} rules of Sigma over {EVENTS:,} Windows events; {len(made):,} detections",
        {
            "loading, to the first ten events (CPU)": f"{loading:.1f} s",
            "one rule": f"{EVENTS / alone / 1e3:,.0f} k events/s",
            f"{RULES:,} rules": f"{EVENTS / taken / 1e3:,.0f} k events/s",
            "ratio of times": f"{taken / alone:.1f}",
        },
        "50 k events/s, 200 k better; 20 s",
    )


def table_rows(count: int) -> Any:
    import numpy as np

    return np.arange(count)


if __name__ == "__main__":
    main()
