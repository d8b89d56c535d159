"""`coincide why`: why a detection was made, or why none was."""

from __future__ import annotations

import argparse
from typing import Any

from coincide.cli.command import (
    Command,
    Given,
    field_arguments,
    field_mapping,
    load_rules,
    part_rules_from_events,
    rules_argument,
)
from coincide.cli.reasons import show_causes

DESCRIPTION = """\
Tell why a detection was made, or why none was.

With --detection, the tree of what led to the one that has this key (`coincide run --keys` shows keys; they are the same on
every engine). Otherwise, for a rule, a key and a time without a detection: how far each match came and what stopped
it, the nearest first. What is named has been tried: put right in the events, it makes the detection appear.

example:
  coincide why theft.ecl --events monday.jsonl --rule thief --key item=7 --at 2026-03-02T10:00Z 2026-03-02T11:00Z
  coincide why theft.ecl --events monday.jsonl --detection 3f2a9c0d11e4b7a8
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    rules_argument(parser, nargs="*")
    text = "events: files or folders, as `coincide run` reads them"
    parser.add_argument("--events", "-e", nargs="+", action="extend", required=True, metavar="FILE", help=text)
    parser.add_argument("--rule", metavar="NAME", help="the rule, or what it makes (if there is one rule only: that)")
    text = "for which key: NAME=VALUE, or the value alone where the rule has a key of its own; may be given again"
    parser.add_argument("--key", metavar="KEY", action="append", default=[], help=text)
    text = "from when to when (milliseconds or ISO-8601); one instant is the time around it, as far as the rule looks"
    parser.add_argument("--at", metavar="TIME", nargs="+", help=text)
    parser.add_argument("--detection", metavar="KEY", help="the detection that has this key")
    parser.add_argument("--until", metavar="TIME", help="let time go on after the last event: milliseconds, ISO-8601, or inf")
    parser.add_argument("--tries", metavar="N", type=int, default=3_000, help="look no further after so many (default: 3000)")
    parser.add_argument("--json", action="store_true", help="all of it, as JSON")
    field_arguments(parser)


def tell_why(given: Given) -> int:
    from coincide import api
    from coincide.errors import CoincideError

    part_rules_from_events(given)
    if not given.rules:
        raise CoincideError("no rule files are given: coincide why RULES --events FILE")
    if given.detection is not None and (given.rule or given.key or given.at):
        raise CoincideError("--detection names one detection: --rule, --key and --at ask why there is none")
    book, mapping = load_rules(given), field_mapping(given)
    if given.detection is not None:
        cause = api.why(book, given.events, given.until, detection=given.detection, mapping=mapping)
        return _show(cause.tree) if given.json else show_causes([cause])
    at = given.at if given.at is None or len(given.at) > 1 else given.at[0]
    if given.at is not None and len(given.at) > 2:
        raise CoincideError("--at takes an instant, or two: from when to when")
    options: dict[str, Any] = {"rule": given.rule, "key": _key(given.key), "at": at, "tries": given.tries}
    answer = api.why(book, given.events, given.until, mapping=mapping, **options)
    if given.json:
        return _show(answer.record)
    if answer.detections:
        return show_causes(answer.detections)
    print(answer)
    return 0


def _key(given: list[str]) -> dict[str, str] | list[str] | None:
    """`user=eve`, or values alone."""
    if not given:
        return None
    named = dict(entry.partition("=")[::2] for entry in given if "=" in entry)
    return named if len(named) == len(given) else given


def _show(answer: dict[str, Any]) -> int:
    import msgspec

    print(msgspec.json.encode(answer, enc_hook=str).decode())
    return 0


WHY = Command("why", DESCRIPTION, _arguments, tell_why)
