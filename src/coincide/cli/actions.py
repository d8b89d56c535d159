"""Actions on the command line: what detections start."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from coincide.cli.command import Given

if TYPE_CHECKING:
    from coincide.model.batch import EventBatch
    from coincide.rulebook import Rulebook
    from coincide.streams.base import Sink

SECOND = 1_000_000


def action_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("actions")
    text = (
        "start something for each detection of a type (`*` stands for anything): a command with its arguments, which gets the "
        "detection as JSON on its standard input; http(s)://… (a webhook); mailto:…; alertmanager+http(s)://HOST:PORT"
    )
    group.add_argument("--on", nargs=2, action="append", default=[], metavar=("TYPE", "ACTION"), help=text)
    text = "after one, tell of further detections of the type as one, so often: 5min"
    group.add_argument("--on-every", metavar="TIME", default="0", help=text)
    text = "tell detections apart by these attributes, too: host,user"
    group.add_argument("--on-by", metavar="NAME,…", default="", help=text)


def open_actions(book: Rulebook, given: Given) -> list[Sink]:
    """`on_every` is in microseconds."""
    if not given.on:
        return []
    from coincide.streams.actions import action_sinks

    by = [name.strip() for name in given.on_by.split(",") if name.strip()]
    made = [output for detector in book.detectors for output in detector.outputs]
    return action_sinks([(pattern, target) for pattern, target in given.on], given.on_every / SECOND, by, made)


@contextmanager
def writing(book: Rulebook, given: Given, sinks: Sequence[Sink]) -> Iterator[Callable[[EventBatch], None]]:
    """Sinks of a run that is not live."""
    if not sinks:
        yield lambda batch: None
        return
    from coincide.streams.encode import Encoder

    encoder = Encoder(book, shown=given.keys, kept=any(sink.keyed for sink in sinks), time_format=given.time_format)

    def write(batch: EventBatch) -> None:
        made = encoder.made(batch)
        for sink in sinks:
            sink.write(made)

    with ExitStack() as stack:
        for sink in sinks:
            sink.open(None)
            stack.callback(sink.close)
        yield write
