"""What can be said of one monitor or machine literal (ecl.md, section 7). Everything is found when it is asked for: the
warnings of a load need D only, reports need D° too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import combinations
from math import inf

from coincide.analysis.automaton import Answer, Automaton, Exploration
from coincide.analysis.depend import deciding
from coincide.analysis.letters import Alphabet, LimitExceeded, alphabet
from coincide.analysis.partition import reaching, strong_components
from coincide.detection.machine.transducer import OUTCOMES, Configuration, transducer
from coincide.expr.scalar import EventScope, condition, event_field
from coincide.lang.ecl.definition import Correlation, Modes, Monitor, Parallel, Predicate
from coincide.lang.ecl.definition import Machine as MachineLiteral
from coincide.model.event import Event
from coincide.syntax import walk

Definition = Monitor | MachineLiteral


def as_multiset(answer: Answer) -> Answer:
    return tuple(sorted(answer))


def _size(definition: Definition) -> int:
    """Nodes that a step may visit."""
    return sum(1 for _ in walk(definition.body)) if isinstance(definition, Monitor) else 1


class MonitorAnalysis:
    """All questions raise LimitExceeded if it is `limited`, except those that the text alone answers."""

    def __init__(self, definition: Definition, work: float = inf) -> None:
        """`work`: how many nodes may be visited before it counts as too large to tell anything."""
        self.definition = definition
        self.work = work
        self.transducer = transducer(definition)
        self.labels: tuple[Predicate, ...] = self.transducer.labels

    @cached_property
    def limited(self) -> bool:
        """Are there too many letters or states to tell anything?"""
        try:
            return not self.deterministic.states
        except LimitExceeded:
            return True

    # The machines.

    @cached_property
    def alphabet(self) -> Alphabet:
        return alphabet([label.test for label in self.labels], self.definition.keys)

    @cached_property
    def deterministic(self) -> Exploration:
        """D."""
        return Exploration(self.transducer, self.alphabet.letters, self.work / _size(self.definition))

    @cached_property
    def minimal(self) -> Automaton:
        """D°."""
        return self.deterministic.automaton.minimal(as_multiset)

    @cached_property
    def _answered(self) -> list[set[int]]:
        """For each state of D those that follow with an output."""
        answers = self.deterministic.answers
        return [{target for target, answer in edges if answers[answer]} for edges in self.deterministic.edges]

    @cached_property
    def _successors(self) -> list[set[int]]:
        return [{target for target, _ in edges} for edges in self.deterministic.edges]

    # The questions.

    @property
    def vacuous(self) -> bool:
        return not any(self._answered)

    @property
    def trivial(self) -> bool:
        return all(self.deterministic.answers)

    @cached_property
    def live(self) -> bool:
        """Asked of D: D° may merge a state that is over with one that hangs."""
        able = reaching(self._successors, (state for state, targets in enumerate(self._answered) if targets))
        return all(state in able or self._outcome(c) for state, c in enumerate(self.deterministic.configurations))

    @cached_property
    def recurrent(self) -> bool:
        if self.vacuous:
            return False
        component = strong_components(self._successors)
        return any(component[state] == component[t] for state, targets in enumerate(self._answered) for t in targets)

    @property
    def outcomes(self) -> list[str]:
        found = (self._outcome(configuration) for configuration in self.deterministic.configurations)
        return sorted({outcome for outcome in found if outcome is not None})

    def _outcome(self, configuration: Configuration) -> str | None:
        return OUTCOMES.get(configuration) if isinstance(self.definition, Monitor) else None

    @cached_property
    def emitted(self) -> set[str]:
        """The tokens that some input makes it emit."""
        return {self.transducer.outputs[output].token for answer in self.deterministic.answers for output in answer}

    @property
    def dead(self) -> list[str]:
        return sorted({output.token for output in self.transducer.outputs} - self.emitted)

    @cached_property
    def forgets(self) -> bool:
        """Can the start, or what is as good, be reached again from everywhere? Then keys come and go."""
        if len(reaching(self._successors, [0])) == self.deterministic.states:
            return True
        return len(reaching(self.minimal.following, [0])) == self.minimal.states

    def depends(self) -> dict[str, list[str]]:
        return {token: self._influences(token) for token in sorted(self.emitted)}

    def _influences(self, token: str) -> list[str]:
        def only(answer: Answer) -> Answer:
            return tuple(symbol for symbol in answer if symbol[0] == token)

        columns = self.minimal.minimal(only).columns
        chosen = deciding(dict(zip(self.alphabet.letters, columns, strict=True)), len(self.labels))
        return sorted(label.label for i, label in enumerate(self.labels) if chosen >> i & 1)

    # Quenching: letters without interest.

    def quenched(self, states: Iterable[int] = (0,)) -> list[list[str]]:
        """In all of these states of D°."""
        silent = {number for number, answer in enumerate(self.minimal.answers) if not answer}
        rows = [(s, self.minimal.following[s], self.minimal.answering[s]) for s in set(states)]
        letters = zip(self.alphabet.letters, self.minimal.columns, strict=True)
        return self.named(letter for letter, c in letters if all(f[c] == s and a[c] in silent for s, f, a in rows))

    def quenched_always(self) -> list[list[str]]:
        return self.quenched(range(self.minimal.states))

    def quenched_after(self, events: Sequence[Event]) -> list[list[str]]:
        """In the present state of every key seen; keys to come are at the start."""
        blocks = self.deterministic.automaton.blocks(as_multiset)
        present = self._run(events)
        now = {blocks[self.deterministic.numbers[configuration]] for configuration in present}
        return self.quenched(now | {0} if self.definition.keys else now)

    def _run(self, events: Sequence[Event]) -> Iterable[Configuration]:
        """The configurations, one for each key, after the events in total order."""
        tests = [condition(label.test, EventScope()) for label in self.labels]
        keys = [event_field(key) for key in self.definition.keys]
        present: dict[tuple[object, ...], Configuration] = {} if keys else {(): self.transducer.start}
        for event in sorted(events, key=lambda event: event.origin):
            values = [key(event) for key in keys]
            if None in values:
                continue
            key = tuple((type(value), value) for value in values)  # 1 and true are different keys
            letter = sum(1 << i for i, test in enumerate(tests) if test(event))
            present[key] = self.transducer.step(present.get(key, self.transducer.start), letter)[0]
        return present.values()

    def named(self, letters: Iterable[int]) -> list[list[str]]:
        """Letters as sorted lists of labels, sorted."""
        names = [label.label for label in self.labels]
        return sorted(sorted(name for i, name in enumerate(names) if letter >> i & 1) for letter in letters)

    # The text.

    @property
    def modes(self) -> list[Modes]:
        """Mode expressions, inner after outer."""
        if not isinstance(self.definition, Monitor):
            return []
        return [part for part in walk(self.definition.body) if isinstance(part, Modes)]

    @property
    def overlapping_guards(self) -> list[tuple[Predicate, Predicate]]:
        bits = {label.label: 1 << i for i, label in enumerate(self.labels)}
        pairs = [pair for modes in self.modes for pair in combinations([mode.guard for mode in modes.modes], 2)]

        def together(one: Predicate, other: Predicate) -> bool:
            both = bits[one.label] | bits[other.label]
            return any(letter & both == both for letter in self.alphabet.letters)

        return [pair for pair in pairs if together(*pair)]

    @property
    def components(self) -> int:
        return _components(self.definition.body) if isinstance(self.definition, Monitor) else 1


def _components(body: Correlation) -> int:
    return sum(map(_components, body.parts)) if isinstance(body, Parallel) else 1
