"""What the kernel tier can do (section 9), and why not where it cannot."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.detection.automaton.construction import Automaton
from coincide.detection.automaton.program import Program
from coincide.lang.opera.definition import Alternation, Iteration
from coincide.lang.shared.times import At
from coincide.syntax import walk

MOST_STATES = 4096
WORD = 62  # bits of a machine integer that serve as a set


def reasons(program: Program) -> Iterator[str]:
    if len(program.automata) > 1:
        yield "uses parallelization"
    if any(isinstance(t.time, At) and t.time.of_day is not None and str(t.time.zone) != "UTC" for t in program.timings):
        yield "uses a timer at a time of day in a time zone"
    if max(len(program.timings), len(program.aliases)) > WORD:
        yield f"has more than {WORD} timers or aliases"
    yield from _about_parameters(program)
    if len(program.automata) == 1 and _many_states(program.root):
        yield f"has more than {MOST_STATES:,} states"


def _about_parameters(program: Program) -> Iterator[str]:
    """Parameters are keys if every leaf compares the same attributes with them: an event then is of one assignment."""
    bindings = {frozenset(leaf.bindings) for leaf in program.leaves.leaves}
    if len(bindings) > 1:
        yield "has items or domains that do not carry every parameter in the same attribute"
    elif any(len({parameter for _, parameter in some}) < len(some) for some in bindings):
        yield "compares several attributes of one event with a parameter"


def key(program: Program) -> tuple[tuple[str, str], ...]:
    """(attribute, parameter) of the key that every event carries."""
    leaves = program.leaves.leaves
    return tuple(sorted(leaves[0].bindings, key=lambda pair: pair[1])) if leaves else ()


def _many_states(automaton: Automaton) -> bool:
    """Counted with all that can be left of a state when some of its groups fail. Where nothing forks or repeats, a state is one
    position, strongly or weakly entered."""
    if 2 * len(automaton.positions) <= MOST_STATES and not any(
        isinstance(node, Alternation | Iteration) for node in walk(automaton.root.expression)
    ):
        return False
    found = {(start.choices, start.state) for start in automaton.starts}
    if len(found) > WORD:
        return True
    waiting, count = list(found), 0
    while waiting:
        choices, state = waiting.pop()
        count += 2 ** min(len(state), WORD) - 1
        if count > MOST_STATES:
            return True
        for position in {p for group in state for _, p in group}:
            for outcome in automaton.outcomes(position, choices):
                after = outcome.choices, outcome.state
                if outcome.state and after not in found:
                    found.add(after)
                    waiting.append(after)
    return False
