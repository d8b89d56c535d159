"""`coincide state`: what a kept state holds."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coincide.cli.command import Command, Given, load_rules, rules_argument

if TYPE_CHECKING:
    from coincide.detection.base import Unfinished
    from coincide.engines.holdings import Holding
    from coincide.rulebook import Rulebook

DESCRIPTION = """\
Show what a kept state holds: open lifespans, matches in progress, timers, by rule and key.

The state is a snapshot (--snapshot), the folder of a live run's checkpoints (--checkpoint), or the checkpoint of a streaming
query on Spark, which has its rules with it; for the others, give the rules that were run.

example:
  coincide state state.bin theft.ecl
  coincide state /checkpoints/logins --rule Missing
"""
COLUMNS = ("rule", "key", "what", "since", "due")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("state", metavar="STATE", type=Path, help="a snapshot, or a folder with checkpoints")
    rules_argument(parser, nargs="*")
    parser.add_argument("--rule", metavar="NAME", help="only of this rule")
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="so many lines of each part (default: 20)")
    parser.add_argument("--json", action="store_true", help="everything, as JSON Lines")


def show_state(given: Given) -> int:
    book = load_rules(given) if given.rules else None
    found = _holdings(given.state, book)
    for line in _json(found, given.rule) if given.json else _text(found, given.rule, given.limit):
        print(line)
    return 0


def _holdings(path: Path, book: Rulebook | None) -> list[Holding]:
    from coincide.adapters.files import readable
    from coincide.engines.holdings import checkpoint_holdings, is_spark_checkpoint, snapshot_holdings
    from coincide.errors import InputError

    if is_spark_checkpoint(path):
        from coincide.engines.spark.holdings import stream_holdings

        return stream_holdings(path, book)
    if book is None:
        raise InputError(f"give the rules that '{path}' is of, too: coincide state {path} RULES")
    if not path.is_dir():
        with readable(str(path)):
            return snapshot_holdings(path.read_bytes(), book)
    from coincide.streams.checkpoints import last_checkpoint

    checkpoint = last_checkpoint(path)
    if checkpoint is None:
        raise InputError(f"'{path}' holds no checkpoints")
    return checkpoint_holdings(checkpoint.state, checkpoint.changes, book)


def _own(holding: Holding, rule: str | None) -> list[Unfinished]:
    """Those that are due first come first."""
    own = [each for each in holding.unfinished if rule is None or each.rule == rule]
    return sorted(own, key=lambda each: (each.due is None, each.due or 0, each.since or 0))


def _text(holdings: Sequence[Holding], rule: str | None, limit: int) -> Iterator[str]:
    from coincide.expr.quantities import counted

    for holding in holdings:
        own = _own(holding, rule)
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
    key = ", ".join(str(part) for part in _key(each))
    return each.rule, key, each.what, _instant(each.since) or "", _instant(each.due) or ""


def _key(each: Unfinished) -> list[Any]:
    from coincide.detection.keys import key_value
    from coincide.model.event import plain

    return [plain(key_value(part)) for part in each.key]


def _instant(time: int | None) -> str | None:
    from coincide.model.stamp import iso_instant

    return None if time is None else iso_instant(time)


def _json(holdings: Sequence[Holding], rule: str | None) -> Iterator[str]:
    import msgspec

    for holding in holdings:
        for each in _own(holding, rule):
            times = {"since": _instant(each.since), "due": _instant(each.due)}
            told = {"rule": each.rule, "key": _key(each), "what": each.what, **times}
            named = {"part": holding.name, **told} if holding.name else told
            yield msgspec.json.encode({name: value for name, value in named.items() if value is not None}, enc_hook=str).decode()


STATE = Command("state", DESCRIPTION, _arguments, show_state)
