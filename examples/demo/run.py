"""The demonstration: a day's events, seven rules, what they find and why, and a picture of it all.

    python examples/demo/run.py [FOLDER]

writes events, detections and the picture into FOLDER (demo-output)."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from generate import generate
from rich.console import Console

import coincide
from coincide.api import observed
from coincide.causes import Causes
from coincide.cli.reasons import show_causes
from coincide.draw.stream import timeline_of
from coincide.model.event import Event

RULES = [Path(__file__).with_name(name) for name in ("rules.ecl", "rules.amit.xml")]


def main(folder: Path) -> None:
    console = Console(highlight=False, soft_wrap=True)
    records = generate()
    book = coincide.load(*RULES)
    begun = time.perf_counter()
    found = coincide.detect(book, records)
    taken = time.perf_counter() - begun
    causes = observed(book, records)

    rules = " ".join(map(_shown, RULES))
    console.print(f"\n[bold]A day at a small company[/bold]: {len(records):,} events, {len(book.detectors)} rules in {rules}\n")
    show_causes(causes.all())
    _count(console, causes.events, causes.detections)
    picture = _write(folder, records, found, causes)
    console.print(
        f"\n{len(records):,} events read and run through all rules in {taken:.2f} s. Picture: [bold]{_shown(picture)}[/bold]"
    )
    command, events = f".venv/bin/coincide run {rules}", _shown(folder / "events.jsonl")
    console.print(f"\nThe same by hand:\n  {command} --events {events} --why")
    console.print(f"What the rules mean, without events:\n  .venv/bin/coincide check {rules}\n")


def _count(console: Console, events: Sequence[Event], found: Sequence[Event]) -> None:
    for title, counts in (("events", Counter(e.type for e in events)), ("detections", Counter(e.type for e in found))):
        listed = ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
        console.print(f"[cyan]{title:<10}[/cyan]  {listed}")


def _write(folder: Path, records: Sequence[object], found: Sequence[object], causes: Causes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "events.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(records))
    (folder / "detections.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(found))
    picture = folder / "timeline.svg"
    picture.write_text(timeline_of(causes, title="A day at a small company"), encoding="utf-8")
    return picture


def _shown(path: Path) -> str:
    """The path as somebody in this folder would type it."""
    return str(path.resolve().relative_to(Path.cwd())) if path.resolve().is_relative_to(Path.cwd()) else str(path)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
