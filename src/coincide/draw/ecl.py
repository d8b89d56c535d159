"""ECL monitors, drawn: the minimal deterministic machine, with the shortest conditions that tell its arrows apart.

Events that change nothing and emit nothing are not shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from coincide.analysis.automaton import Answer
from coincide.analysis.letters import LimitExceeded
from coincide.analysis.monitor import Definition, MonitorAnalysis
from coincide.draw.graph import Arrow, Drawing, Node, joined, wrapped
from coincide.errors import CoincideError
from coincide.lang.ecl.definition import Monitor

LARGEST = 60
"""States of a machine that somebody can still read."""

PUSHES = " → "
NOTE = 24  # letters of a line
MOST = 3  # parts of a way that are told

Literal = tuple[int, bool]
"""A predicate by its number, and whether it must hold."""


def machine(definition: Definition) -> Drawing:
    analysis = MonitorAnalysis(definition)
    try:
        minimal = analysis.minimal
    except LimitExceeded:
        raise CoincideError(f"the machine of '{definition.name}' has too many states to be drawn") from None
    if minimal.states > LARGEST:
        raise CoincideError(f"the machine of '{definition.name}' has {minimal.states} states: too many to be drawn")
    names = [label.label for label in analysis.labels]
    letters = dict(zip(analysis.alphabet.letters, minimal.columns, strict=True))
    arrows = [Arrow("start", "q0", "begin")]
    for state in range(minimal.states):
        following, answering = minimal.following[state], minimal.answering[state]
        edges = {letter: (following[c], minimal.answers[answering[c]]) for letter, c in letters.items()}
        arrows += _arrows(state, edges, names)
    ways = _ways(arrows)
    states = [Node(f"q{n}", "state", str(n), ways.get(f"q{n}", ())) for n in range(minimal.states)]
    return Drawing(definition.name, _caption(definition), (Node("start", "start"), *states), joined(arrows))


def _ways(arrows: Sequence[Arrow]) -> dict[str, tuple[str, ...]]:
    """What a state stands for: the shortest way to it, in the words of the rule."""
    found: dict[str, tuple[str, ...]] = {"q0": ()}
    waiting = ["q0"]
    while waiting:
        name = waiting.pop(0)
        for arrow in arrows:
            if arrow.source == name and arrow.target not in found:
                found[arrow.target] = (*found[name], arrow.labels[0].partition(PUSHES)[0])
                waiting.append(arrow.target)
    return {name: wrapped(f"after {_counted(way)}", NOTE) for name, way in found.items() if way}


def _counted(way: Sequence[str]) -> str:
    """`failed ×3, accepted`; of a long way the last part."""
    parts = [(what, len(list(run))) for what, run in groupby(way)]
    texts = [what if count == 1 else f"{what} ×{count}" for what, count in parts]
    return ", ".join(["…", *texts[-MOST:]] if len(texts) > MOST else texts)


def _caption(definition: Definition) -> str:
    key = f", one for each {', '.join(definition.keys)}" if definition.keys else ""
    return f"{'monitor' if isinstance(definition, Monitor) else 'machine'} {definition.name}{key}"


def _arrows(state: int, edges: dict[int, tuple[int, Answer]], names: Sequence[str]) -> Iterator[Arrow]:
    for target, answer in sorted(set(edges.values())):
        if target == state and not answer:
            continue
        chosen = [letter for letter, edge in edges.items() if edge == (target, answer)]
        others = [letter for letter, edge in edges.items() if edge != (target, answer)]
        pushed = PUSHES + ", ".join(str(symbol[0]) for symbol in answer) if answer else ""
        for condition in _conditions(chosen, others, len(names)):
            yield Arrow(f"q{state}", f"q{target}", "weak", (_text(condition, names) + pushed,))


def _conditions(chosen: Iterable[int], others: Sequence[int], labels: int) -> list[tuple[Literal, ...]]:
    """Conditions that hold of the chosen letters and of no other ones; each is as short as dropping literals makes it."""
    found: list[tuple[Literal, ...]] = []
    for letter in sorted(chosen, key=int.bit_count):
        if any(_holds(condition, letter) for condition in found):
            continue
        literals = [(label, bool(letter >> label & 1)) for label in range(labels)]
        for literal in sorted(literals, key=lambda some: some[1]):  # rather keep what must hold
            shorter = [other for other in literals if other != literal]
            if not any(_holds(shorter, other) for other in others):
                literals = shorter
        found.append(tuple(literals))
    return found


def _holds(condition: Iterable[Literal], letter: int) -> bool:
    return all(bool(letter >> label & 1) == wanted for label, wanted in condition)


def _text(condition: Sequence[Literal], names: Sequence[str]) -> str:
    return " and ".join(names[label] if wanted else f"not {names[label]}" for label, wanted in condition) or "any event"
