"""Monitors beside one another: pairs, a whole file as one system, two files (ecl.md, section 7; ECL-27, ECL-32)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import combinations

from coincide.analysis.automaton import Answer, Automaton, product
from coincide.analysis.letters import Alphabet, LimitExceeded, alphabet
from coincide.analysis.monitor import MonitorAnalysis, as_multiset
from coincide.analysis.partition import depths
from coincide.expr.tree import Expr
from coincide.lang.ecl.definition import File, Predicate
from coincide.lang.ecl.names import mentions, outputs
from coincide.lang.ecl.print import definition_text

LIMITED: dict[str, object] = {"limit": True}

Tagged = tuple[int, MonitorAnalysis]
"""A monitor with the file that it is of: a label of another file is a label of its own."""

LabelKey = tuple[int, str, Expr]
"""The test counts too: files that are loaded together may each have a predicate of the same name."""


@dataclass(frozen=True)
class Comparison:
    """Of what the one side emits with what the other does, over the letters of both."""

    exact: bool
    contained: bool
    covered: bool
    equivalent: bool
    distinguish: int | None


class Joint:
    """Monitors with equal keys over one alphabet."""

    def __init__(self, monitors: Sequence[Tagged]) -> None:
        if any(monitor.limited for _, monitor in monitors):
            raise LimitExceeded
        self.monitors = monitors
        self._bits: dict[LabelKey, int] = {}
        tests: list[Expr] = []
        for file, monitor in monitors:
            for label in monitor.labels:
                key = _key(file, label)
                if key not in self._bits:
                    self._bits[key] = len(tests)
                    tests.append(label.test)
        self.alphabet: Alphabet = alphabet(tests, monitors[0][1].definition.keys)

    def automaton(self, tags: Sequence[int]) -> Automaton:
        """All monitors at once; each thing emitted with the tag of its monitor. Built up one by one, so that too many
        states are noticed with the first monitors that make them."""
        return reduce(product, (self._aligned(*pair).tagged(tag) for pair, tag in zip(self.monitors, tags, strict=True)))

    def _aligned(self, file: int, monitor: MonitorAnalysis) -> Automaton:
        """The monitor's D over the letters of all."""
        own = monitor.deterministic.automaton
        columns = dict(zip(monitor.alphabet.letters, own.columns, strict=True))
        places = [self._bits[_key(file, label)] for label in monitor.labels]
        seen = sum(1 << place for place in places)
        known: dict[int, int] = {}
        for letter in {letter & seen for letter in self.alphabet.letters}:
            known[letter] = columns[sum(1 << i for i, place in enumerate(places) if letter >> place & 1)]
        return own.over([known[letter & seen] for letter in self.alphabet.letters])


def _key(file: int, label: Predicate) -> LabelKey:
    return file, label.label, label.test


def compare(joint: Joint, sides: Sequence[int]) -> tuple[Comparison, Comparison]:
    """The monitors of side 0 with those of side 1, and the other way round."""
    both = joint.automaton(sides)
    split = [(_side(answer, 0), _side(answer, 1)) for answer in both.answers]
    different = {number for number, (one, other) in enumerate(split) if one != other}
    first = min(
        (depth + 1 for depth, row in zip(depths(both.following), both.answering, strict=True) if not different.isdisjoint(row)),
        default=None,
    )

    def seen_from(one: int, other: int) -> Comparison:
        contained = all(pair[one] <= pair[other] for pair in split)
        covered = all(pair[other] or not pair[one] for pair in split)
        return Comparison(joint.alphabet.exact, contained, covered, not different, first)

    return seen_from(0, 1), seen_from(1, 0)


def _side(answer: Answer, side: int) -> Counter[object]:
    return Counter(symbol for tag, symbol in answer if tag == side)


def pairs(monitors: Sequence[MonitorAnalysis]) -> dict[str, dict[str, object]]:
    """All ordered pairs of different monitors with equal keys."""
    found = dict(_both_ways(monitors))
    names = [monitor.definition.name for monitor in monitors]
    return {f"{names[i]},{names[j]}": found[i, j] for i, j in sorted(found)}


def _both_ways(monitors: Sequence[MonitorAnalysis]) -> Iterator[tuple[tuple[int, int], dict[str, object]]]:
    for (i, one), (j, other) in combinations(enumerate(monitors), 2):
        if one.definition.keys == other.definition.keys:
            forth, back = _compared([(0, one), (0, other)], (0, 1))
            yield (i, j), forth
            yield (j, i), back


def _compared(monitors: Sequence[Tagged], sides: Sequence[int]) -> tuple[dict[str, object], dict[str, object]]:
    try:
        forth, back = compare(Joint(monitors), sides)
    except LimitExceeded:
        return dict(LIMITED), dict(LIMITED)
    return asdict(forth), asdict(back)


def system(monitors: Sequence[MonitorAnalysis]) -> dict[str, object]:
    """One machine of all, which keeps apart what each emits."""
    try:
        joint = Joint([(0, monitor) for monitor in monitors])
        states = joint.automaton(range(len(monitors))).minimal(as_multiset).states
    except LimitExceeded:
        return dict(LIMITED)
    return {"letters": len(joint.alphabet.letters), "states": states}


def other_system(this: Sequence[MonitorAnalysis], other: Sequence[MonitorAnalysis]) -> dict[str, object]:
    """All that the one file emits with all that the other does, without regard to monitors."""
    sides = [0] * len(this) + [1] * len(other)
    return _compared(list(zip(sides, [*this, *other], strict=True)), sides)[0]


def independent(file: File) -> bool:
    """Does no monitor of the file mention an output of the file?"""
    emitted = {token for definition in file.detectors for token in outputs(definition)}
    return not any(emitted & mentions(definition) for definition in file.detectors)


def one_key_list(*files: File) -> bool:
    return len({definition.keys for file in files for definition in file.detectors}) == 1


def unchanged(this: File, other: File) -> list[str]:
    """The monitors that would keep their state if the other file replaced this one (section 11)."""
    texts = {definition_text(definition) for definition in other.detectors}
    return sorted(definition.name for definition in this.detectors if definition_text(definition) in texts)
