"""Rules that change while a stream goes on: the query is exchanged between two micro-batches, and goes on from its checkpoint."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from os import PathLike
from threading import Event, Thread
from typing import TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from coincide.engines.choice import Duration, duration_microseconds
from coincide.errors import CoincideError
from coincide.rulebook import Rulebook, RuleSource, load, rule_files
from coincide.source import SourceText

LOG = logging.getLogger("coincide.spark")
LOOK = 0.05
"""Seconds between two looks at a query."""
PATIENCE = 60.0
"""Seconds that a micro-batch may still take. One that takes longer is broken off, and taken again by the new rules."""

Given: TypeAlias = RuleSource | Sequence[RuleSource] | DataFrame
Rules = RuleSource | Sequence[RuleSource] | Callable[[], Given]
Start = Callable[[Rulebook], StreamingQuery]


def watched(rules: Rules, start: Start, every: Duration = "5 s") -> Watched:
    """A stream whose rules are files or folders that are looked at every so often, or what a function gives: such, or a table
    with the columns `name` (of a file, whose ending tells the language) and `text`. `start` makes a query of rules, always with
    one checkpoint:

        watched("rules/", lambda rules: events.transform(detect(rules, checkpoint=C)).writeStream….start())
        watched(lambda: spark.table("rules"), …)

    Rules that cannot be read or loaded are told in the log, and those before them stay. Rules that did not change keep their
    state."""
    return Watched(rules, start, duration_microseconds(every) / 1e6)


class Watched:
    """What is running now is `query`."""

    def __init__(self, rules: Rules, start: Start, every: float) -> None:
        self._rules, self._start, self._every = rules, start, every
        self._texts = self._read()
        self._refused: list[SourceText] | None = None
        self._told: str | None = None
        self._failure: BaseException | None = None
        self._stopped = Event()
        self.query = start(load(*self._texts))
        self._thread = Thread(target=self._watch, name="coincide rules", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self.query.stop()

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """As a query has it: True when it has ended, its error if that was one. Changes of rules do not count."""
        end = None if timeout is None else time.monotonic() + timeout
        while self._thread.is_alive():
            if end is not None and time.monotonic() >= end:
                return False
            self._thread.join(LOOK)
        if self._failure is not None:
            raise self._failure
        return bool(self.query.awaitTermination(0)) if self.query.isActive else True

    def _watch(self) -> None:
        try:
            while self.query.isActive and not self._stopped.wait(self._every):
                self._look()
            if error := self.query.exception():
                raise error
        except Exception as error:
            self._failure = error

    def _look(self) -> None:
        try:
            texts = self._read()
            self._told = None if texts == self._texts else self._told
            if texts in (self._texts, self._refused):
                return
            self._refused = texts
            rules = load(*texts)
        except Exception as error:  # of a table that cannot be reached just now, too: a stream outlives that
            self._tell_refused(error)
            return
        self._end_between_micro_batches()
        try:
            self.query = self._start(rules)
            self._texts, self._refused, self._told = texts, None, None
        except CoincideError as error:  # rules that a stream cannot have, say
            self._tell_refused(error)
            self.query = self._start(load(*self._texts))

    def _read(self) -> list[SourceText]:
        given = self._rules() if callable(self._rules) else self._rules
        if isinstance(given, DataFrame):
            given = [SourceText(name, text) for name, text in sorted(given.select("name", "text").collect())]
        found = rule_files([given] if isinstance(given, (str, PathLike, SourceText)) else given)
        if not found:
            raise CoincideError("there are no rules")
        return found

    def _end_between_micro_batches(self) -> None:
        end = time.monotonic() + PATIENCE
        while self.query.isActive and self.query.status["isTriggerActive"] and time.monotonic() < end:
            time.sleep(LOOK)
        self.query.stop()

    def _tell_refused(self, error: Exception) -> None:
        """Once, however often it is met."""
        line = next(iter(str(error).splitlines()), type(error).__name__)
        if line != self._told:
            LOG.error("the rules stay as they are: %s", line)
        self._told = line
