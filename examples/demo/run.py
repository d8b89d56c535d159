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
from coincide.api import in_order
from coincide.draw.leading import leading_events
from coincide.draw.timeline import timeline
from coincide.engines.choice import detections
from coincide.model.event import Event, record
from coincide.model.stamp import format_instant

RULES = [Path(__file__).with_name(name) for name in ("rules.ecl", "rules.amit.xml")]
SHOWN = 5
"""Events that led to a detection, at most."""


def main(folder: Path) -> None:
    console = Console(highlight=False, soft_wrap=True)
    records = generate()
    book = coincide.load(*RULES)
    begun = time.perf_counter()
    events = [event for batch in in_order(records) for event in batch.events]
    found = [event for batch in detections(book, in_order(records)) for event in batch.events]
    taken = time.perf_counter() - begun
    leads = leading_events(book, events, found)

    rules = " ".join(map(_shown, RULES))
    console.print(f"\n[bold]A day at a small company[/bold]: {len(events):,} events, {len(book.detectors)} rules in {rules}\n")
    for detection, led in zip(found, leads, strict=True):
        _tell(console, detection, led)
    _count(console, events, found)
    picture = _write(folder, records, found, leads)
    console.print(
        f"\n{len(events):,} events read and run through all rules in {taken:.2f} s. Picture: [bold]{_shown(picture)}[/bold]"
    )
    console.print(f"\nThe same by hand:\n  .venv/bin/coincide run {rules} --events {_shown(folder / 'events.jsonl')}")
    console.print(f"What the rules mean, without events:\n  .venv/bin/coincide check {rules}\n")


def _tell(console: Console, detection: Event, led: Sequence[Event]) -> None:
    console.print(f"[dim]{_clock(detection)}[/dim]  [bold red]{detection.type}[/bold red]  {_attributes(detection)}")
    if len(led) > SHOWN:
        console.print(f"            [dim]… after {len(led) - SHOWN} others of the same key[/dim]")
    for event in led[-SHOWN:]:
        last = event is led[-1]
        console.print(f"  [dim]{'└' if last else '├'} {_clock(event)}[/dim]  {event.type}  {_attributes(event)}", end="")
        console.print(f"  [green]← {_ends(event, detection)}[/green]" if last else "")
    console.print()


def _ends(last: Event, detection: Event) -> str:
    return "completes it" if last.hi == detection.hi else f"nothing more until {_clock(detection)}"


def _count(console: Console, events: Sequence[Event], found: Sequence[Event]) -> None:
    for title, counts in (("events", Counter(e.type for e in events)), ("detections", Counter(e.type for e in found))):
        listed = ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
        console.print(f"[cyan]{title:<10}[/cyan]  {listed}")


def _write(folder: Path, records: Sequence[object], found: Sequence[Event], leads: Sequence[Sequence[Event]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = [record(event) for event in found]
    (folder / "events.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(records))
    (folder / "detections.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(made))
    picture = folder / "timeline.svg"
    marked = {number: [record(event) for event in led[-SHOWN:]] for number, led in enumerate(leads)}
    events = [event for event in records if isinstance(event, dict)]
    picture.write_text(timeline(events, made, title="A day at a small company", label=_who, leads=marked), encoding="utf-8")
    return picture


def _who(detection: object) -> str:
    assert isinstance(detection, dict)
    return " ".join(str(detection[name]) for name in ("user", "host", "server", "door") if name in detection)


def _attributes(event: Event) -> str:
    return "  ".join(f"{name}={value}" for name, value in event.attributes.items())


def _clock(event: Event) -> str:
    return format_instant(event.hi)[11:19]


def _shown(path: Path) -> str:
    """The path as somebody in this folder would type it."""
    return str(path.resolve().relative_to(Path.cwd())) if path.resolve().is_relative_to(Path.cwd()) else str(path)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
