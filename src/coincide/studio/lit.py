"""Where a rule stands at a moment, in the picture of it: how much has come to each node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from coincide.analysis.letters import LimitExceeded
from coincide.analysis.monitor import MonitorAnalysis, as_multiset
from coincide.detection.base import Detector
from coincide.detection.keys import key_value
from coincide.detection.limits import Wrapped
from coincide.draw.graph import Drawing
from coincide.draw.rules import drawing
from coincide.draw.states import state_names
from coincide.engines.embedded import Engine
from coincide.errors import CoincideError
from coincide.model.event import plain
from coincide.studio import lit_trees

Key = tuple[str, ...]
Lit = dict[str, int]


def lit(detector: Detector, engine: Engine, key: Key | None = None) -> Lit:
    """By the names of nodes. With a `key`, of what is under way for that one only."""
    try:
        drawn = drawing(detector, automaton=True)
    except CoincideError:  # too large to be drawn
        return {}
    found = _plan_and_state(detector, engine)
    if drawn is None or found is None:
        return {}
    plan, state = found
    light = LIGHTS.get(detector.language, _under_way)
    return {name: count for name, count in light(detector, drawn, plan, state, key).items() if count}


def _plan_and_state(detector: Detector, engine: Engine) -> tuple[Any, Any] | None:
    for plan, state in zip(engine.graph.plans, engine.state.states, strict=True):
        if detector.name in plan.definitions:
            inner: Any = plan
            while isinstance(inner, Wrapped):
                inner, state = inner.plan, state.inner
            return inner, state
    return None


def _is(own: Any, key: Key | None) -> bool:
    return key is None or tuple(str(plain(key_value(part))) for part in own) == key


def _automaton(detector: Detector, drawn: Drawing, plan: Any, state: Any, key: Key | None) -> Lit:
    """Runs, at the states that they have come to."""
    names = state_names(detector.definition)
    found: Counter[str] = Counter()
    for assignment, instance in state.instances.items():
        if _is([value for _, value in sorted(assignment)], key):
            for own, states in zip(names, instance.runs, strict=True):
                found.update(own.get((run.choices, run.state), "") for runs in states.values() for run in runs.values())
    return found


def _machine(detector: Detector, drawn: Drawing, plan: Any, state: Any, key: Key | None) -> Lit:
    """Keys that have left the start, at the states of the smallest machine. One of several parts is not drawn."""
    monitor = [d.name for d in plan.detectors].index(detector.name)
    columns = [column for column in state if (monitor, 0) in column.parts]
    if len(plan.group.parts[monitor]) != 1 or not columns:
        return {}
    analysis = MonitorAnalysis(detector.definition)
    try:
        blocks, numbers = analysis.deterministic.automaton.blocks(as_multiset), analysis.deterministic.numbers
    except LimitExceeded:
        return {}
    at = [numbers.get(where) for own, where in columns[0].configurations.items() if _is(own, key)]
    return Counter(f"q{blocks[number]}" for number in at if number is not None and number < len(blocks))


def _situation(detector: Detector, drawn: Drawing, plan: Any, state: Any, key: Key | None) -> Lit:
    """Open lifespans, and the candidates of each operand in them."""
    found: Counter[str] = Counter()
    span = next(node.name for node in drawn.nodes if node.shape == "span")
    after = [node.name for node in drawn.nodes]
    operator = next(node.name for node in drawn.nodes if node.shape == "operator")
    operands = [node.name for node in drawn.nodes[after.index(operator) + 1 :] if node.shape == "event"]
    for lifespan in (each for by_key in state.open for some in by_key.values() for each in some):
        program = plan.group.lifespans[lifespan.definition]
        for situation in program.situations:
            if situation.name == detector.name and _is(lifespan.key, key):
                found[span] += 1
                content = lifespan.contents.get(situation.number)
                for partition in () if content is None else content.partitions.values():
                    found.update({name: len(own) for name, own in zip(operands, partition.candidates, strict=False)})
    return found


def _sequence(detector: Detector, drawn: Drawing, plan: Any, state: Any, key: Key | None) -> Lit:
    """Sequences that are not complete, at the last item that has come."""
    items = [node.name for node in drawn.nodes if node.name.startswith("e") and node.shape == "event"]
    found: Counter[str] = Counter()
    for own, pending_state in state.keys.items():
        if _is(own, key):
            found.update(name for name, pending in zip(items, pending_state.slots, strict=False) if pending is not None)
            found["timer"] += len(pending_state.waiting)
            found.update({name: len(taken) for name, taken in zip(items, pending_state.taken, strict=False)})
    return found


def _tree(detector: Detector, drawn: Drawing, plan: Any, state: Any, key: Key | None) -> Lit:
    """Occurrences that operators keep, at the parts that they are of."""
    return lit_trees.tree(detector, plan, state, lambda own: _is(own, key))


def _messages(detector: Detector, drawn: Drawing, plan: Any, state: Any, key: Key | None) -> Lit:
    """Messages that wait for others, at their sources. There are no keys."""
    return lit_trees.messages(detector, plan, state)


def _rows(detector: Detector, drawn: Drawing, plan: Any, state: Any, key: Key | None) -> Lit:
    """Partitions, at the variables that may take their next row."""
    return lit_trees.rows(detector, plan, state, lambda own: _is([value for _, value in own], key))


def _under_way(detector: Detector, drawn: Drawing, plan: Any, state: Any, key: Key | None) -> Lit:
    """Where nothing finer can be told: how much is under way, at what would be made of it."""
    own = [each for each in plan.unfinished(state) if each.rule == detector.name and _is(each.key, key)]
    result = next((node.name for node in drawn.nodes if node.shape == "result"), drawn.nodes[-1].name)
    return {result: len(own)}


LIGHTS: dict[str, Callable[[Detector, Drawing, Any, Any, Key | None], Lit]] = {
    "opera": _automaton,
    "pretty": _automaton,
    "ecl": _machine,
    "amit": _situation,
    "eql": _sequence,
    "ecco": _tree,
    "cdl": _messages,
    "matchrecognize": _rows,
}
