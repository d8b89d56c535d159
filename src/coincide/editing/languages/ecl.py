"""ECL: monitors, machines, named predicates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from coincide.editing.lexing import HASH, lexed, ours
from coincide.editing.marks import ATTRIBUTE, DETECTOR, EVENT, FILE, KEYWORD, Mark
from coincide.editing.walking import Role, Walk, role
from coincide.lang.ecl.parse import OPERATORS, RESERVED
from coincide.source import SourceText

PREDICATE, STATE, TRANSITION = "predicate", "state", "transition"
ITEM_WORDS = ("on", "clear", "none")
CLOSED = frozenset({")", "}", ";", "true", "false", "null"})


def walk_of(source: SourceText) -> EclWalk:
    return EclWalk(list(lexed(source, ours(OPERATORS), HASH)))


def marks(source: SourceText) -> Iterator[Mark]:
    walk = walk_of(source)
    yield from walk.types()
    yield from walk.marks()


class EclWalk(Walk):
    keywords = RESERVED
    spaced_calls = True

    def starts(self, at: int) -> bool:
        if self.owner(at) != -1:
            return False
        return self.text(at) in ("monitor", "machine") or self.defines_predicate(at)

    def defines_predicate(self, at: int) -> bool:
        """`name =` behind something that is complete."""
        if not self.is_name(at) or self.text(at + 1) != "=":
            return False
        before = self.token(at - 1)
        complete = before.kind in ("text", "number", "open") or self.word(at - 1) in CLOSED or self.is_name(at - 1)
        return at == 0 or (complete and self.text(at - 2) not in ("monitor", "machine"))

    def role(self, at: int) -> Role | None:
        if self.text(at - 1) in ("monitor", "machine"):
            return role(DETECTOR, True)
        if self.owner(at) == -1 and self.first(at) == at:
            return role(PREDICATE, True, FILE)
        if self._is_key(at):
            return role(ATTRIBUTE)
        owner = self.owner(at)
        if self.text(owner) == "(" and self.text(owner - 1) == "push":
            return self._pushed(at, owner)
        if self.text(self.first(at)) == "machine" and owner != -1 and self.owner(owner) == -1:
            return self._in_item(at, owner)
        return self._tested(at)

    def _is_key(self, at: int) -> bool:
        """Behind `by`, before the body."""
        first = self.first(at)
        if self.owner(at) != -1 or self.text(first + 2) != "by":
            return False
        return not any(self.text(n) in ("=", "{") for n in range(first, at))

    def _pushed(self, at: int, owner: int) -> Role | None:
        if at == owner + 1:
            return role(EVENT, True)
        return role(ATTRIBUTE, True) if self.text(at + 1) == ":" else None

    def _in_item(self, at: int, owner: int) -> Role | None:
        """`NAME: STATES on TEST clear STATES -> STATES`, `initial STATES`, `order NAMES`."""
        start = at
        while start - 1 > owner and self.text(start - 1) != ";":
            start -= 1
        if at == start:
            return role(TRANSITION, True, self.scope(at)) if self.text(at + 1) == ":" else role(KEYWORD)
        if self.text(start) == "order" and self.text(start + 1) != ":":
            return role(TRANSITION, False, self.scope(at))
        item = [self.text(n) for n in range(start, at)]
        if self.text(at) in ITEM_WORDS and self.text(at - 1) not in (":", "&", "|", "->", ","):
            return role(KEYWORD)
        if "on" in item[2:] and not {"clear", "->"} & set(item[item.index("on", 2) :]):
            return self._tested(at)
        initial = self.text(start) == "initial" and self.text(start + 1) != ":"
        return role(STATE, initial, self.scope(at))

    def _tested(self, at: int) -> Role | None:
        """A predicate of the file or a type of events; None where it is a value."""
        if self.is_call(at):
            return None
        defining = self.text(at - 1) == "=" and (self.first(at) == at - 2 or self._begins_body(at - 1))
        if self.is_value(at, looking_back=not defining):
            return None
        return role(PREDICATE, False, FILE) if self.named(at) in self.predicates else role(EVENT)

    def _begins_body(self, sign: int) -> bool:
        first = self.first(sign)
        return self.text(first) == "monitor" and not any(self.text(n) == "=" for n in range(first, sign))

    @cached_property
    def predicates(self) -> frozenset[str]:
        found = (at for at in set(self.statements) if self.defines_predicate(at))
        return frozenset(self.named(at) for at in found)
