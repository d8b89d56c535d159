"""What a definition compiles to, whatever the tier."""

from __future__ import annotations

from functools import cached_property

from coincide.detection.automaton.attributes import Attributes
from coincide.detection.automaton.construction import Automaton, Numbering
from coincide.detection.automaton.state import Failures, Run
from coincide.detection.eventsets import Leaves
from coincide.errors import log_warning
from coincide.expr.tree import Reference
from coincide.lang.opera.attributes import aggregate_parts, used_aliases
from coincide.lang.opera.definition import Definition, Timing
from coincide.lang.opera.print import core_text
from coincide.model.event import Event
from coincide.model.stamp import milliseconds
from coincide.syntax import walk


class Program:
    """A detector's automata and all that their steps need to know. `order` is its number among all definitions."""

    def __init__(self, definition: Definition, order: int = 0, sides: frozenset[str] = frozenset()) -> None:
        numbering = Numbering()
        self.definition = definition
        self.name = definition.name
        self.order = order
        self.sides = sides  # types that sides of its `||` make elsewhere
        self.restart = definition.restart
        self.root = Automaton(definition.body, numbering)
        self.automata: list[Automaton] = numbering.automata
        self.timings: list[Timing] = numbering.timings
        self.leaves: Leaves = numbering.leaves
        self.aliases = used_aliases(definition.computed)
        self.attributes = Attributes(definition)
        self.types = frozenset(leaf.name for leaf in self.leaves.leaves if leaf.name is not None)
        self.every = any(leaf.external_only for leaf in self.leaves.leaves)

    def reads(self, event: Event) -> bool:
        return event.type in self.types or (self.every and not event.is_detection)

    @cached_property
    def start_runs(self) -> list[list[Run]]:
        """For each automaton, the runs that stand at its start groups."""
        return [[Run(start.choices, start.state) for start in automaton.starts] for automaton in self.automata]

    @cached_property
    def read_later(self) -> frozenset[str]:
        """Attributes of matched events that the `with` and `where` clauses read."""
        nodes = [n for a in self.definition.computed for n in walk(a.value) if isinstance(n, Reference)]
        return frozenset(parts[1] if (parts := aggregate_parts(node.name)) else node.name for node in nodes)

    @cached_property
    def uniform(self) -> bool:
        """Does every leaf bind the same parameters, or none?"""
        return len({frozenset(p for _, p in leaf.bindings) for leaf in self.leaves.leaves} - {frozenset()}) <= 1

    def report_end(self, failures: Failures, automaton: Automaton, start: int, event: Event) -> None:
        """Section 3.4: the end of a start group is counted, and warned of once."""
        key = automaton.number, start
        failures[key] = failures.get(key, 0) + 1
        if failures[key] == 1:
            (group,) = automaton.starts[start].state
            texts = dict.fromkeys(core_text(automaton.positions[p].part.expression) for _, p in sorted(group))
            named = f"{event.type} '{event.id}'" if event.id is not None else event.type
            when = milliseconds(event.hi)
            log_warning("%s: the start %s has failed on %s at %s and detects no more", self.name, " | ".join(texts), named, when)
