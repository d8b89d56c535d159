"""Where a rule of ECCO, CDL or row patterns stands, in the picture of it: what is kept of each part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from coincide.detection.algebra.construction.build import Builder
from coincide.detection.algebra.construction.surroundings import Surroundings
from coincide.detection.algebra.nodes.base import Node
from coincide.detection.algebra.nodes.chain import Step
from coincide.detection.algebra.nodes.negation import Negation
from coincide.detection.algebra.nodes.selection import Nth
from coincide.detection.algebra.nodes.silence import Absence
from coincide.detection.algebra.plan import occurrences
from coincide.detection.algebra.program import Program
from coincide.detection.base import Detector
from coincide.detection.correlation.plan import CorrelationPlan
from coincide.detection.rowpattern.search import Search
from coincide.draw import cdl, ecco
from coincide.draw.rowpattern import state_names
from coincide.lang.ecco.definition import Expression

Lit = Counter[str]
Chosen = Callable[[Any], bool]
"""Is it of the key that is looked at?"""


# ECCO: what operators keep of their operands.


def tree(detector: Detector, plan: Any, state: Any, chosen: Chosen) -> Lit:
    number, program = next((n, each) for n, each in enumerate(plan.programs) if each.name == detector.name)
    names = _names(program)
    found: Lit = Counter()
    for key, copy in state.copies[number].items():
        if chosen(key):
            for node, own in zip(program.nodes, copy.states, strict=True):
                for part, count in _operand_counts(node, own):
                    found[_name(part, names)] += count
    return found


@dataclass(eq=False)
class _Watched(Builder):
    """Tells which node was made of which part of the definition."""

    made: dict[int, int] = field(default_factory=dict)

    def node(self, expression: Expression, around: Surroundings) -> Node:
        found = super().node(expression, around)
        self.made.setdefault(found.number, id(expression))  # a filter is drawn as what it filters
        return found


def _names(program: Program) -> dict[int, str]:
    """Of nodes in the picture, by the numbers of those that run."""
    linked = program.linked
    builder = _Watched(linked.definition, linked.setting, program.names, not linked.late)
    builder.build()
    drawn = ecco.node_names(replace(linked.definition, body=builder.body))
    return {number: drawn[part] for number, part in builder.made.items() if part in drawn}


def _name(node: Node, names: dict[int, str]) -> str:
    """What only wraps another is drawn as that."""
    while node.number not in names and node.children:
        node = node.children[0]
    return names.get(node.number, "")


def _operand_counts(node: Node, state: Any) -> Iterator[tuple[Node, int]]:
    """How many occurrences of which operands."""
    match node:
        case Step():
            between = None if node.between is None else node.between.node
            counts = (_reached(node), state.prefixes), (node.right, state.rights), (between, state.between)
            yield from ((operand, len(some)) for operand, some in counts if operand is not None)
        case Negation():
            yield node.children[0], len(state.pending)
            yield node.children[1], len(state.negated) + len(state.living)
        case Nth():
            yield node.children[0], max(state.counts.values(), default=0)
        case Absence():
            yield node, int(state.armed)
        case Node(children=(operand, *_)):
            yield operand, len({id(each) for each in occurrences(state)})


def _reached(step: Step) -> Node | None:
    """The operand that its prefixes have come to."""
    return step.left.right if step.continues and isinstance(step.left, Step) else step.left


# CDL: messages that combinations hold, what is collected, and times that are waited for.


def messages(detector: Detector, plan: CorrelationPlan, state: Any) -> Lit:
    names = cdl.node_names(detector.definition)
    sources = plan.program.sources
    instances = [instance for live in state.live for instance in live.instances.values()]
    held = {(number, m.place) for each in instances for number, m in enumerate(each.messages) if m is not None}
    found = Counter(names[sources[number].anchor] for number, _ in held)
    for source, history in zip(sources, state.history, strict=True):
        if source.is_collection:
            found[names[source.anchor]] += len(list(history))
    found.update(names[sources[timer.payload[0]].anchor] for timer in state.timers.live())
    return found


# Row patterns: the variables that may take the next row.


def rows(detector: Detector, plan: Any, state: Any, chosen: Chosen) -> Lit:
    searching = plan.program.searching
    names = state_names(detector.definition)
    found: Lit = Counter()
    for partition in state.partitions.values():
        if partition.pending is not None and chosen(partition.key):
            search = Search(searching, partition.start, partition.number, set())
            search.go_on(partition, False)
            found.update(names[searching.automaton.states[n]] for n in search.waiting(partition.count))
    return found
