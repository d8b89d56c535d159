"""Mutated rule files: refused with a diagnostic, or accepted and then printed, described and run over the case's events."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import ClassVar

from coincide.adapters.mapping import DEFAULT as DEFAULT_MAPPING
from coincide.adapters.records import event_of
from coincide.engines.embedded import Engine
from coincide.errors import CoincideError
from coincide.languages.registry import MODULES, language_of
from coincide.model.event import Event, primitive, record
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.fuzz.corpus import Example, examples
from coincide.testing.fuzz.mutation import mutate_text, tokens
from coincide.testing.fuzz.work import Difference

SHORTEST = 1000
"""Microseconds between the events of a run: a rule may well ask for a tick each microsecond, and should not get many."""

PRINTED = {".amit.yaml": ".amit.xml", ".cdl.yaml": ".cdl.xml"}
"""Forms of rule files that are printed in another one."""


@dataclass(frozen=True)
class RuleAttempt:
    limit: ClassVar[float] = 4.0
    files: tuple[SourceText, ...]
    changed: int
    events: list[Event]

    def shown(self) -> str:
        return self.files[self.changed].text

    def run(self) -> str:
        try:
            book = load(*self.files)
            _ = book.warnings
        except CoincideError as error:
            str(error)
            return "refused"
        _check_printed(book)
        return self._detected(book)

    def _detected(self, book: Rulebook) -> str:
        try:
            engine = Engine(book)
            for detection in (*engine.process(self.events).events, *engine.finish().events):
                record(detection)
        except CoincideError as error:
            str(error)
            return "stopped"
        return "run"


class RuleFuzzer:
    def __init__(self, corpus: Path) -> None:
        self._examples = examples(corpus)
        # More of a mutant is seen where what it was made from has no error.
        self._accepted = [example for example in self._examples if example.is_accepted]
        self._events = {example.name: close_events(example) for example in self._examples}
        self._pools = _pools(self._examples)

    def attempt(self, random: Random) -> RuleAttempt:
        example = random.choice(self._examples if random.random() < 0.2 or not self._accepted else self._accepted)
        changed = random.randrange(len(example.rules))
        source = example.rules[changed]
        text = mutate_text(source.text, random, self._pools[_ending(source)])
        files = (*example.rules[:changed], SourceText(source.name, text), *example.rules[changed + 1 :])
        return RuleAttempt(files, changed, self._events[example.name])


def close_events(example: Example) -> list[Event]:
    """The example's events a millisecond apart at most, from an early time on, in the same order."""
    try:
        events = [event_of(item, DEFAULT_MAPPING, number) for number, item in enumerate(example.events, 1)]
    except ValueError:
        return []
    return _closer(sorted(events, key=lambda event: event.origin))


def _closer(events: list[Event]) -> list[Event]:
    instants = sorted({instant for event in events for instant in (event.lo, event.hi)})
    near = {instants[0]: 0} if instants else {}
    for before, after in pairwise(instants):
        near[after] = near[before] + min(after - before, SHORTEST)
    return [primitive(e.type, near[e.lo], near[e.hi], e.id or "", e.attributes, e.source, e.space) for e in events]


def _check_printed(book: Rulebook) -> None:
    """What a language prints means the same."""
    for source, file in book.files:
        language = language_of(source.name)
        ending = _ending(source)
        name = source.name.removesuffix(ending) + PRINTED.get(ending, ending)
        try:
            text = language.print_file(file)
        except CoincideError:  # it says that it cannot, as .say does of what is nested too deep for it
            return
        try:
            again = language.parse(SourceText(name, text))
        except CoincideError as error:
            raise Difference(f"{language.name}: what is printed is refused\n{text}\n{error}") from error
        if again != file:
            raise Difference(f"{language.name}: what is printed means something else\n{text}")


def _pools(examples: list[Example]) -> dict[str, list[str]]:
    """For each ending, the words of all its files, and each file's lines."""
    pools: dict[str, dict[str, None]] = {ending: {} for ending in MODULES}
    for example in examples:
        for source in example.rules:
            words = [*tokens(source.text), *source.text.splitlines(keepends=True)]
            pools[_ending(source)].update(dict.fromkeys(words))
    return {ending: list(words) for ending, words in pools.items()}


def _ending(source: SourceText) -> str:
    return next(ending for ending in MODULES if source.name.endswith(ending))
