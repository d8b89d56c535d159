"""Opera, drawn: expressions as plumbing (section 6, graphical composition) and as their automata (section 3.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from coincide.draw.graph import Arrow, Drawing, Kind, Node, joined, wrapped
from coincide.lang.opera.definition import (
    Alternation,
    Atom,
    Concatenation,
    Definition,
    Empty,
    EventSet,
    Expression,
    Group,
    Iteration,
    Parallel,
    Sequence,
    Timing,
    Union,
)
from coincide.lang.opera.print import core_text, set_text, time_text

NOTE = 28  # letters of a line of notes


def composition(definition: Definition) -> Drawing:
    """Atoms are taps, concatenation a pipe, sequence a pipe with a valve, `|` a junction, `||` a tank with two inlets, `*` a
    loop, timing a timed valve. What flows out at the end is the detection."""
    plumber = _Plumber()
    piece = plumber.laid(definition.body, ())
    plumber.nodes.append(Node("result", "result", definition.name))
    plumber.connect(piece.outlets, ("result",), "pipe")
    return Drawing(definition.name, caption(definition), tuple(plumber.nodes), joined(plumber.arrows))


def caption(definition: Definition) -> str:
    attributes = ", ".join(a.name for a in definition.attributes)
    return core_text(definition.body) + (f"  with {attributes}" if attributes else "")


Names = tuple[str, ...]


@dataclass(frozen=True)
class Piece:
    """What has been laid: where flow enters, and where it leaves."""

    inlets: Names
    outlets: Names


class _Plumber:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.arrows: list[Arrow] = []

    def connect(self, outlets: Names, inlets: Names, kind: Kind) -> None:
        self.arrows += [Arrow(outlet, inlet, kind) for outlet in outlets for inlet in inlets]

    def laid(self, expression: Expression, around: tuple[EventSet, ...]) -> Piece:
        match expression:
            case Atom():
                return self._one("tap", *_tap(expression, around))
            case Concatenation() | Sequence():
                return self._chain([self.laid(part, around) for part in expression.parts], isinstance(expression, Sequence))
            case Alternation():
                return self._alternatives([self.laid(part, around) for part in expression.parts])
            case Iteration():
                return self._loop(self.laid(expression.body, around))
            case Group():
                return self.laid(expression.body, (*around, expression.domain))
            case Parallel():
                return self._tank(self.laid(expression.left, ()), self.laid(expression.right, ()), around)
            case Timing():
                return self._timed(expression, around)
        assert isinstance(expression, Empty)
        return self._one("junction", "eps", ())

    def _one(self, shape: str, label: str, notes: Iterable[str]) -> Piece:
        name = f"n{len(self.nodes)}"
        self.nodes.append(Node(name, shape, label, tuple(notes)))  # type: ignore[arg-type]
        return Piece((name,), (name,))

    def _chain(self, pieces: list[Piece], strong: bool) -> Piece:
        for one, other in pairwise(pieces):
            self.connect(one.outlets, other.inlets, "valve" if strong else "pipe")
        return Piece(pieces[0].inlets, pieces[-1].outlets)

    def _alternatives(self, pieces: list[Piece]) -> Piece:
        end = self._one("junction", "", ())
        for piece in pieces:
            self.connect(piece.outlets, end.inlets, "pipe")
        return Piece(tuple(inlet for piece in pieces for inlet in piece.inlets), end.outlets)

    def _loop(self, body: Piece) -> Piece:
        """What has passed comes back to where it may go round again, or on."""
        turn = self._one("junction", "*", ())
        self.connect(turn.outlets, body.inlets, "pipe")
        self.connect(body.outlets, turn.inlets, "pipe")
        return turn

    def _tank(self, left: Piece, right: Piece, around: tuple[EventSet, ...]) -> Piece:
        tank = self._one("tank", "both", _notes(around))
        for side in (left, right):
            self.connect(side.outlets, tank.inlets, "pipe")
        return Piece((*left.inlets, *right.inlets), tank.outlets)

    def _timed(self, timing: Timing, around: tuple[EventSet, ...]) -> Piece:
        first = self.laid(timing.first, around)
        valve = self._one("timer", f"{timing.timer} = {time_text(timing.time)}", ())
        second = self.laid(timing.second, around)
        self.connect(first.outlets, valve.inlets, "pipe")
        self.connect(valve.outlets, second.inlets, "pipe")
        return Piece(first.inlets, second.outlets)


def _tap(atom: Atom, around: tuple[EventSet, ...]) -> tuple[str, tuple[str, ...]]:
    """Its label, and what else is in its domain: that shuts it."""
    label = ("!" if atom.negated else "") + ", ".join(set_text(item.events) for item in atom.items)
    own = () if atom.domain is None else (atom.domain,)
    return label, _notes((*own, *around))


def _notes(domains: Iterable[EventSet]) -> tuple[str, ...]:
    texts = dict.fromkeys(text for domain in domains for text in _members(domain))
    return wrapped(f"in {', '.join(texts)}", NOTE) if texts else ()


def _members(domain: EventSet) -> list[str]:
    return [set_text(member) for member in domain.members] if isinstance(domain, Union) else [set_text(domain)]
