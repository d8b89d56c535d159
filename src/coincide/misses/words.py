"""What is told of a near miss: how far it came, and what stopped it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.records import is_untyped
from coincide.expr.print import expression_text
from coincide.expr.tree import Between, Compare, Expr, In, Like, Reference, without_aliases
from coincide.lang.shared.wants import holds
from coincide.misses.edits import Add, Change, Edit, Move, Remove
from coincide.model.event import HEARTBEAT, Event, Value, plain
from coincide.model.numbers import is_number
from coincide.model.stamp import MILLISECOND, milliseconds
from coincide.syntax import walk

SHOWN = 5
"""Events that are named one by one; of more, the last."""

UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
TESTS = Compare | In | Between | Like


@dataclass(frozen=True)
class Words:
    """`clock` tells instants; time had come to `end`; `there` are the types of the events near; `key` is what the question is
    about, and need not be told again; `tests` are those of the rule."""

    clock: Callable[[int], str]
    end: int
    there: frozenset[str]
    key: Mapping[str, Value]
    tests: Sequence[Expr]
    mapping: FieldMapping = DEFAULT

    def miss(self, matched: Sequence[Event], lacks: Sequence[str]) -> str:
        """`A at 10:02, B at 10:03; C at 10:14 is 1 min 20 s too late`."""
        came = ", ".join(self.event(event) for event in matched[-SHOWN:])
        more = len(matched) - SHOWN
        begin = [f"{more:,} before, {came}" if more > 0 else came] if came else []
        stopped = [line if (n := lacks.count(line)) == 1 else f"{line} ({n} times)" for line in dict.fromkeys(lacks)]
        return "; ".join([*begin, *stopped])

    def event(self, event: Event) -> str:
        return f"{event.type} at {self.clock(event.hi)}"

    def edit(self, edit: Edit, matched: Sequence[Event]) -> str:
        if isinstance(edit, Move):
            return f"{self.event(edit.event)} is {lasting(abs(edit.by))} too {'late' if edit.by < 0 else 'early'}"
        if isinstance(edit, Change):
            return f"{self.event(edit.event)} came, but {self._wrong(edit)}"
        if isinstance(edit, Remove):
            return f"{self.event(edit.event)} stops it"
        if isinstance(edit, Add) and edit.event.type == HEARTBEAT:
            return f"it is due at {self.clock(edit.event.hi)}, and time has come to {self.clock(self.end)} only"
        assert isinstance(edit, Add)
        return self._lacking(edit, any(event.type == edit.event.type for event in matched))

    def _wrong(self, edit: Change) -> str:
        name, old, bound = edit.attribute, edit.old, edit.bound
        if bound is not None and is_number(old):
            above = bound > old or (bound == old and is_number(edit.value) and edit.value > old)
            words = ("below" if above else "above") if edit.reached else ("not above" if above else "not below")
            return f"{name} {value_text(old)} is {words} {value_text(bound)}"
        if old is None:
            return f"has no {name} (such as {value_text(edit.value)})"
        return f"{name} is {value_text(old)}" + ("" if edit.value is None else f", not {value_text(edit.value)}")

    def _lacking(self, edit: Add, one_is_there: bool) -> str:
        """That there is none of the type at all says enough; if there are others, when it would have had to come."""
        event = edit.event
        having = ", ".join(dict.fromkeys(self._conditions_on(event)))
        kind = "" if is_untyped(event, self.mapping) else f" of type {event.type}"
        what = f"no {'other ' if one_is_there else ''}event{kind}{f' with {having}' if having else ''}"
        if event.type not in self.there:
            return what
        if edit.earliest is not None and edit.latest is not None:
            return f"{what} from {self.clock(edit.earliest)} to {self.clock(edit.latest)}"
        if edit.latest is not None:
            return f"{what} until {self.clock(edit.latest)}"
        return what if edit.earliest is None else f"{what} from {self.clock(edit.earliest)} on"

    def _conditions_on(self, event: Event) -> Iterator[str]:
        """What it would have to have, in the rule's words where it has any."""
        for name, value in event.attributes.items():
            if name not in self.key:
                tests = [node for node in self._about(name) if holds(node, event)]
                yield expression_text(without_aliases(tests[0])) if tests else f"{name} {value_text(value)}"

    def broken(self, edit: Edit) -> Iterator[str]:
        """The comparisons of the rule that do not hold, but would with the new value."""
        if isinstance(edit, Change):
            now = edit.changed(edit.event)
            flipped = [n for n in self._about(edit.attribute) if not holds(n, edit.event) and holds(n, now)]
            yield from map(expression_text, flipped[:1])

    def _about(self, attribute: str) -> Iterator[Expr]:
        """Tests of one attribute alone."""
        for node in (node for tree in self.tests for node in walk(tree) if isinstance(node, TESTS)):
            if {inner.name for inner in walk(node) if isinstance(inner, Reference)} == {attribute}:
                yield node


def value_text(value: Value) -> str:
    shown = plain(value)
    if isinstance(shown, bool):
        return str(shown).lower()
    return f"'{shown}'" if isinstance(shown, str) else str(shown)


def lasting(microseconds: int) -> str:
    """A duration in words: `1 min 20 s`."""
    rest, parts = microseconds // MILLISECOND, []
    for size, unit in UNITS:
        whole, rest = divmod(rest, size)
        parts += [f"{whole} {unit}"] if whole else []
    fine = milliseconds(rest * MILLISECOND + microseconds % MILLISECOND)
    return " ".join([*parts, f"{fine} ms"] if fine or not parts else parts)
