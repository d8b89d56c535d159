"""Free parameters (section 3.7): which assignments of values are told apart, and which of them an event concerns.

Detection is the union over all assignments. Only assignments that some event has told apart are kept; each stands for
all those that it covers and that no more specific one does. The kept ones are closed under union, so that there is always
one most specific; the free one (no value) is always there."""

from __future__ import annotations

from coincide.detection.automaton.state import DetectorState
from coincide.detection.eventsets import FREE, Assignment, Reading


def concerned(state: DetectorState, reading: Reading, uniform: bool = False) -> list[Assignment]:
    """The assignments under which some leaf holds the event; first those it is the first to show are told apart.
    `uniform`: every event shows all parameters or none, so that assignments have nothing in common."""
    needs = set(reading.held.values())
    for shown in sorted(needs - {FREE}, key=repr):
        if shown not in state.instances:
            if uniform:
                state.copy(FREE, shown)
            else:
                _tell_apart(state, shown)
    if FREE in needs:
        return list(state.instances)
    found = {assignment: None for shown in needs for assignment in _covering(state, shown)}
    return list(found)


def _tell_apart(state: DetectorState, shown: Assignment) -> None:
    known = list(state.instances)
    new = {other | shown for other in known if _compatible(other, shown)} - set(known)
    sources = {target: max((k for k in known if k <= target), key=len) for target in new}
    for target in sorted(new, key=len):
        state.copy(sources[target], target)


def _compatible(one: Assignment, other: Assignment) -> bool:
    both = one | other
    return len({parameter for parameter, _ in both}) == len(both)


def _covering(state: DetectorState, shown: Assignment) -> list[Assignment]:
    candidates = min((state.by_value.get(pair, set()) for pair in shown), key=len)
    return [assignment for assignment in candidates if shown <= assignment]


def forget_idle(state: DetectorState, assignments: list[Assignment]) -> None:
    """Where every event shows all parameters or none, an assignment that waits for nothing and has lost no start is as
    the free one: it need not be kept."""
    free = state.instances[FREE]
    if not free.idle:
        return
    for assignment in assignments:
        instance = state.instances[assignment]
        if assignment != FREE and instance.idle and instance.ended == free.ended:
            state.drop(assignment)
