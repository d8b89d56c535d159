"""`coincide state`: what a kept state holds."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coincide.cli.command import (
    Command,
    Given,
    field_arguments,
    field_mapping,
    load_rules,
    part_rules_from_events,
    rules_argument,
)

if TYPE_CHECKING:
    from coincide.detection.base import Unfinished
    from coincide.engines.holdings import Holding
    from coincide.rulebook import Rulebook
    from coincide.streams.checkpoints import Checkpoint

DESCRIPTION = """\
Show what a kept state holds: open lifespans, matches in progress, timers, by rule and key.

The state is a snapshot (--snapshot), the folder of a live run's checkpoints (--checkpoint), or the checkpoint of a streaming
query on Spark, which has its rules with it; for the others, give the rules that were run. With --events there need be no state:
the rules are run over the events, up to the instant --at.

example:
  coincide state state.bin theft.ecl
  coincide state theft.ecl --events monday.jsonl --at 2026-03-02T10:15Z
  coincide state /checkpoints/logins --rule Missing
"""
COLUMNS = ("rule", "key", "what", "since", "due", "events")
SHOWN = 4
"""Ids of events that are shown."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("state", metavar="STATE", type=Path, help="a snapshot, or a folder with checkpoints")
    rules_argument(parser, nargs="*")
    parser.add_argument("--events", "-e", nargs="+", action="extend", metavar="FILE", help="run the rules over these events")
    parser.add_argument(
        "--at", metavar="TIME", help="with --events: at this instant (milliseconds or ISO-8601; default: the end)"
    )
    parser.add_argument("--rule", metavar="NAME", help="only of this rule")
    parser.add_argument("--key", metavar="VALUE", action="append", help="only for this key; of several parts, given so often")
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="so many lines of each part (default: 20)")
    parser.add_argument("--json", action="store_true", help="everything, as JSON Lines")
    field_arguments(parser)


def show_state(given: Given) -> int:
    found = _of_events(given) if given.events else _holdings(given.state, load_rules(given) if given.rules else None)
    own = [holding.of(given.rule, given.key) for holding in found]
    for line in _json(own) if given.json else _text(own, given.limit):
        print(line)
    return 0


def _of_events(given: Given) -> list[Holding]:
    """What stands first is a rule file then, too."""
    from coincide import api

    given.rules = [str(given.state), *given.rules]
    part_rules_from_events(given)
    return [api.held(load_rules(given), given.events, given.at, mapping=field_mapping(given))]


def _holdings(path: Path, book: Rulebook | None) -> list[Holding]:
    from coincide.adapters.files import readable
    from coincide.engines.holdings import checkpoint_holdings, is_spark_checkpoint, snapshot_holdings
    from coincide.errors import InputError

    if is_spark_checkpoint(path):
        from coincide.engines.spark.holdings import stream_holdings

        return stream_holdings(path, book)
    with readable(str(path)):
        path.stat()
    checkpoint = _last_checkpoint(path) if path.is_dir() else None
    if book is None:
        raise InputError(f"give the rules that '{path}' is of, too: coincide state {path} RULES")
    if checkpoint is not None:
        return checkpoint_holdings(checkpoint.state, checkpoint.changes, book)
    with readable(str(path)):
        return snapshot_holdings(path.read_bytes(), book)


def _last_checkpoint(path: Path) -> Checkpoint:
    from coincide.errors import InputError
    from coincide.streams.checkpoints import last_checkpoint

    checkpoint = last_checkpoint(path)
    if checkpoint is None:
        raise InputError(f"'{path}' holds no checkpoints")
    return checkpoint


def _text(holdings: Sequence[Holding], limit: int) -> Iterator[str]:
    from coincide.expr.quantities import counted

    for holding in holdings:
        own = holding.unfinished
        name = f"{holding.name}: " if holding.name else ""
        yield f"{name}clock {_instant(holding.clock) or 'not begun'}, {counted(holding.waiting, 'event')} waiting"
        yield from _table([_cells(each) for each in own[:limit]])
        if len(own) > limit:
            counts = Counter(each.rule for each in own)
            yield f"  … of {len(own):,}: {', '.join(f'{kind} {count:,}' for kind, count in counts.most_common(10))}"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
        for row in (COLUMNS, *rows):
            yield ("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()


def _cells(each: Unfinished) -> tuple[str, ...]:
    from coincide.engines.holdings import key_of

    key = ", ".join(str(part) for part in key_of(each))
    return each.rule, key, each.what, _instant(each.since), _instant(each.due), _events(each)


def _events(each: Unfinished) -> str:
    ids = [key[4] for key in each.origin]
    return ", ".join(ids[:SHOWN]) + (f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else "")


def _instant(time: int | None) -> str:
    from coincide.model.stamp import iso_instant

    return "" if time is None else iso_instant(time)


def _json(holdings: Sequence[Holding]) -> Iterator[str]:
    import msgspec

    from coincide.engines.holdings import unfinished_record

    for holding in holdings:
        named = {"part": holding.name} if holding.name else {}
        for each in holding.unfinished:
            yield msgspec.json.encode({**named, **unfinished_record(each)}, enc_hook=str).decode()


STATE = Command("state", DESCRIPTION, _arguments, show_state)
