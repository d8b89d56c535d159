"""Opera's automata, drawn: the states of section 3.2. A double circle generates a detection, a double arrow is strong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from coincide.detection.automaton.construction import Automaton, Choices, Numbering, Position, State
from coincide.draw.graph import Arrow, Drawing, Node, joined, wrapped
from coincide.draw.opera import NOTE, caption
from coincide.lang.opera.definition import Atom, Definition, Union
from coincide.lang.opera.print import set_text, time_text

Key = tuple[Choices, State, bool]
"""A state under the choices that a run has made, generative or not."""


def automata(definition: Definition) -> Drawing:
    """The automaton, below those of the sides of `||` in it."""
    numbering = Numbering()
    Automaton(definition.body, numbering)
    nodes: list[Node] = []
    arrows: list[Arrow] = []
    letters = dict(zip(reversed(numbering.automata), _letters(), strict=False))
    for automaton in letters:
        part = _Part(automaton, numbering, letters)
        nodes += part.nodes
        arrows += part.arrows
    return Drawing(definition.name, caption(definition), tuple(nodes), joined(arrows))


def state_names(definition: Definition) -> list[dict[tuple[Choices, State], str]]:
    """For each automaton, in the order in which detection numbers them, what its states are called in the drawing."""
    numbering = Numbering()
    Automaton(definition.body, numbering)
    letters = dict(zip(reversed(numbering.automata), _letters(), strict=False))
    parts = [_Part(automaton, numbering, letters) for automaton in numbering.automata]
    return [{key[:2]: name for key, name in reversed(part.names.items())} for part in parts]


def _letters() -> Iterator[str]:
    """S for the states of the outermost automaton, and others for the sides, left before right, outer before inner."""
    yield from "SQPVUXW"
    yield from (f"S{n}." for n in count(1))


class _Part:
    """One automaton: its states are found by following all transitions from its starts."""

    def __init__(self, automaton: Automaton, numbering: Numbering, letters: Mapping[Automaton, str]) -> None:
        self.automaton = automaton
        self.timings = numbering.timings
        self.letters = letters
        self.letter = letters[automaton]
        self.nodes: list[Node] = []
        self.arrows: list[Arrow] = []
        self.names: dict[Key, str] = {}
        self._waiting: list[Key] = []
        for number, start in enumerate(automaton.starts):
            begin = f"start-{self.letter}{number}"
            self.nodes.append(Node(begin, "start"))
            self.arrows.append(Arrow(begin, self._state((start.choices, start.state, False)), "begin"))
        while self._waiting:
            self._leave(self._waiting.pop(0))

    def _state(self, key: Key) -> str:
        if key not in self.names:
            name = f"{self.letter}{len(self.names)}"
            self.names[key] = name
            self._waiting.append(key)
            self.nodes.append(Node(name, "final" if key[2] else "state", name, self._domain(key[1])))
        return self.names[key]

    def _leave(self, key: Key) -> None:
        choices, state, _ = key
        for strong, number in sorted({transition for group in state for transition in group}):
            position = self.automaton.positions[number]
            for target, words in self._targets(position, choices):
                self.arrows.append(Arrow(self.names[key], self._state(target), "strong" if strong else "weak", words))

    def _targets(self, position: Position, choices: Choices) -> Iterator[tuple[Key, tuple[str, ...]]]:
        label = self._label(position)
        for outcome in self.automaton.outcomes(position.number, choices):
            timers = tuple(f"sets {self._timer(number)}" for number in outcome.sets)
            yield (outcome.choices, outcome.state, outcome.accept), (*wrapped(label, NOTE), *timers)
        for missing, side in zip(position.partner_missing, (0, 1), strict=True):
            if missing >= 0:
                yield (*self.automaton.waiting(missing, choices), False), (f"{self._sides(position)[side]} only",)

    def _timer(self, number: int) -> str:
        timing = self.timings[number]
        return f"{timing.timer} = {time_text(timing.time)}"

    def _domain(self, state: State) -> tuple[str, ...]:
        """Everything that some group of the state does not ignore."""
        positions = [self.automaton.positions[p] for p in sorted({p for group in state for _, p in group})]
        texts: dict[str, None] = {}
        for position in positions:
            for events in position.written_domain:
                members = events.members if isinstance(events, Union) else (events,)
                texts.update((set_text(member), None) for member in members)
            texts.update((self.timings[number].timer, None) for number in sorted(position.timers))
        return wrapped("{" + ", ".join(texts) + "}", NOTE) if texts else ()

    def _label(self, position: Position) -> str:
        if position.awaits is None:
            atom = position.part.expression
            assert isinstance(atom, Atom)
            return ("!" if atom.negated else "") + ", ".join(set_text(item.events) for item in atom.items)
        left, right = self._sides(position)
        return {"both": f"{left} and {right}", "left": left, "right": right}[position.awaits]

    def _sides(self, position: Position) -> list[str]:
        """A side is named by the letter of its states."""
        return [self.letters[side] for side in self.automaton.sides[position.node]]
