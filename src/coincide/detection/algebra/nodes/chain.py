"""Chains: `A ; B ; C`, `A + B` and all other binary operators, as steps that join a prefix with the next operand (5.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import msgspec

from coincide.detection.algebra.consumption import CONSUMPTIONS, LATEST, choose
from coincide.detection.algebra.nodes.base import Instant, Keys, Node, State, without
from coincide.detection.algebra.nodes.equality import SPARE, Equality, index_of
from coincide.detection.algebra.nodes.prefix import Prefix, first_prefix, joined
from coincide.detection.algebra.nodes.relations import MAYBE, Period, Relation, follows
from coincide.detection.algebra.occurrence import Composer, Occurrence, conflict, distinct
from coincide.detection.algebra.scope import Conjunct, Environment, environment, number_of_different
from coincide.lang.ecco.consumption import DEFAULT
from coincide.model.event import Value


class StepState(msgspec.Struct, array_like=True, dict=True):
    """Stores of prefixes and of right operands; what must or must not lie between them."""

    prefixes: list[Prefix] = []
    rights: list[Occurrence] = []
    between: list[Occurrence] = []


@dataclass(frozen=True, eq=False)
class Match:
    """A prefix and a right operand that fit: what they would make."""

    prefix: Prefix
    right: Occurrence
    group: Occurrence | None
    maybe: bool  # is it only maybe within the bounds?


@dataclass(eq=False)
class Between:
    """What stands between two operands of a sequence: nothing of `node` (a gap), or `least` to `most` of it (a group)."""

    node: Node
    is_group: bool
    least: int = 0
    most: int | None = None
    alias: str | None = None
    counts: tuple[Conjunct, ...] = ()
    by: Callable[[Environment], Value] | None = None  # its different values are counted

    def gap_holds(self, stored: Iterable[Occurrence], prefix: Prefix, right: Occurrence) -> bool:
        """An uncertain one that only may lie between does not count."""
        return not any(prefix.last.hi < n.lo and n.hi < right.lo and self._counts(n, prefix, right) for n in stored)

    def group(self, stored: Iterable[Occurrence], prefix: Prefix, right: Occurrence) -> list[Occurrence] | None:
        """All that lie between, in no conflict with anything before; None if they are too few or too many."""
        found: list[Occurrence] = []
        end = max(prefix.hi, right.hi)
        for g in sorted(stored, key=lambda occurrence: occurrence.order):
            if not (follows(prefix.last, g) and follows(g, right) and g.alive(end)):
                continue
            others = (prefix.occurrence, right, *found)
            if not any(conflict(g, other) for other in others) and self._counts(g, prefix, right):
                found.append(g)
        different = self.different(found)
        count = len(found) if different is None else different
        return found if self.least <= count and (self.most is None or count <= self.most) else None

    def different(self, members: Iterable[Occurrence]) -> int | None:
        return None if self.by is None else number_of_different(self.by(environment(member)) for member in members)

    def _counts(self, n: Occurrence, prefix: Prefix, right: Occurrence) -> bool:
        if not self.counts:
            return True
        names = environment(Composer().hull((prefix.occurrence, right)))
        names.update(n.aliases)
        return all(test(names) for test in self.counts)


@dataclass(eq=False)
class Step(Node):
    """Joins prefixes of `left` (an operand, or the step before) with occurrences of the right operand."""

    left: Node | None = None
    right: Node | None = None
    continues: bool = False  # is `left` the step before, of the same chain? Else it is the first operand
    relation: Relation = follows
    sequence: bool = False
    policy: str = DEFAULT
    periods: tuple[Period, ...] = ()  # `within` on the chain
    operand_periods: tuple[Period, ...] = ()  # `within` on the right operand, which cannot last
    between: Between | None = None
    conjuncts: tuple[Conjunct, ...] = ()
    equality: Equality | None = None  # of a sequence: what partners have in common
    composer: Composer = field(default_factory=Composer)
    best: str | None = None  # is the best of each side enough? By 'order', or by 'start'
    punctual: bool = True  # do occurrences always arrive at their hi? Not if another language's detections come in

    state_type: ClassVar[type | None] = StepState

    def advance(self, instant: Instant) -> list[Occurrence]:
        return [prefix.occurrence for prefix in self.prefixes(instant)]

    def prefixes(self, instant: Instant) -> list[Prefix]:
        """The step's output: the prefixes that the next step takes."""
        assert self.left is not None
        assert self.right is not None
        state: StepState = self.state(instant)
        left = self._left_prefixes(instant)
        right = self.right.advance(instant)
        if self.between is not None:
            state.between += self.between.node.advance(instant)
        elif not left and not right:
            return []  # nor has the store grown
        made = list(self._sequence(state, left, right) if self.sequence else self._other(state, left, right))
        self._prune(state, instant.now)
        return self._reduced(made)

    def _left_prefixes(self, instant: Instant) -> list[Prefix]:
        assert self.left is not None
        if self.continues:
            assert isinstance(self.left, Step)
            return self.left.prefixes(instant)
        return [first_prefix(occurrence) for occurrence in self.left.advance(instant)]

    # The two ways to join (5.2).

    def _sequence(self, state: StepState, left: list[Prefix], right: list[Occurrence]) -> Iterator[Made]:
        index = None if self.equality is None else index_of(state, state.prefixes, self.equality)
        state.prefixes += left
        if index is not None:
            index.add(left)
        for r in right:
            candidates = state.prefixes if index is None else index.partners(r)
            choice = choose(self.policy, self._fitting(state, candidates, r))
            yield from (self._make(matches) for matches in choice.groups)
            if choice.used and index is not None:
                index.remove([m.prefix for m in choice.used])
            elif choice.used:
                state.prefixes = _removed(state.prefixes, [m.prefix for m in choice.used])

    def _other(self, state: StepState, left: list[Prefix], right: list[Occurrence]) -> Iterator[Made]:
        arriving: list[tuple[Any, int, Any]] = [(r.order, 0, r) for r in right]
        arriving += [(p.occurrence.order, 1, p) for p in left]
        for _, side, x in sorted(arriving, key=lambda item: item[:2]):
            pairs = [(x, r) for r in state.rights] if side else [(p, x) for p in state.prefixes]
            fitting = self._ordered((m for p, r in pairs if (m := self.match(state, p, r))), by_right=bool(side))
            choice = choose(self.policy, fitting)
            yield from (self._make(matches) for matches in choice.groups)
            if choice.used:
                state.rights = _removed(state.rights, [m.right for m in choice.used] if side else [])
                state.prefixes = _removed(state.prefixes, [] if side else [m.prefix for m in choice.used])
            if not (fitting and CONSUMPTIONS[self.policy].consumes):
                (state.prefixes if side else state.rights).append(x)

    def _fitting(self, state: StepState, candidates: Sequence[Prefix], right: Occurrence) -> list[Match]:
        """In ascending order; where the policy takes one of them and the store stands in order, that one alone."""
        single = CONSUMPTIONS[self.policy].single
        if not (self.punctual and single):
            return self._ordered(m for p in candidates if (m := self.match(state, p, right)))
        for prefix in reversed(candidates) if single == LATEST else candidates:
            found = self.match(state, prefix, right)
            if found is not None:
                return [found]
            if single == LATEST and self._passed(prefix.hi, right.hi):
                break  # those before it ended no later
        return []

    def _ordered(self, matches: Iterable[Match], by_right: bool = False) -> list[Match]:
        return sorted(matches, key=lambda m: m.right.order if by_right else m.prefix.occurrence.order)

    # fits(p, r)

    def match(self, state: StepState, prefix: Prefix, right: Occurrence) -> Match | None:
        left = prefix.last if self.sequence else prefix.occurrence
        end = max(prefix.hi, right.hi)
        if not self.relation(left, right) or conflict(prefix.occurrence, right):
            return None
        if not (prefix.alive(end) and right.alive(end)):
            return None
        maybe = self._bounds(prefix, right)
        if maybe is None:
            return None
        fills, group = self._between(state, prefix, right)
        found = Match(prefix, right, group, maybe)
        return found if fills and self._conjuncts_hold(found) else None

    def _between(self, state: StepState, prefix: Prefix, right: Occurrence) -> tuple[bool, Occurrence | None]:
        """Is there nothing, or what should be, between them? The group, if it is not empty."""
        if self.between is None:
            return True, None
        if not self.between.is_group:
            return self.between.gap_holds(state.between, prefix, right), None
        members = self.between.group(state.between, prefix, right)
        return members is not None, self._group(members or [])

    def _group(self, members: list[Occurrence]) -> Occurrence | None:
        if not members or self.between is None:
            return None
        group = self.composer.iteration(tuple(members), self.between.different(members))
        return group.binding(self.between.alias) if self.between.alias else group

    def _bounds(self, prefix: Prefix, right: Occurrence) -> bool | None:
        """None if a bound does not hold, True if it only may hold."""
        last = prefix.last
        near, far = right.lo - last.hi, right.hi - (last.lo if last.is_point else last.hi)
        verdicts = [*self._chain_verdicts(prefix, right), *(period.holds(near, far) for period in self.operand_periods)]
        return None if None in verdicts else MAYBE in verdicts

    def _chain_verdicts(self, prefix: Prefix, right: Occurrence) -> list[str | None]:
        start, end = min(prefix.latest_start, right.latest_start), max(prefix.earliest_end, right.earliest_end)
        far = max(prefix.hi, right.hi) - min(prefix.lo, right.lo)
        return [period.holds(max(0, end - start), far) for period in self.periods]

    def _conjuncts_hold(self, match: Match) -> bool:
        """Those that need no composite are tested before there is one."""
        if not self.conjuncts:
            return True
        names = environment(None, match.prefix.occurrence, match.right)
        if match.group is not None:
            names.update(match.group.aliases)
        if not all(test(names) for test in self.conjuncts if not test.on_composite):
            return False
        if not any(test.on_composite for test in self.conjuncts):
            return True
        names = environment(self._whole([match]))
        return all(test(names) for test in self.conjuncts if test.on_composite)

    # Making.

    def _whole(self, matches: Sequence[Match]) -> Occurrence:
        parts = [m.prefix.occurrence for m in matches]
        parts += [m.group for m in matches if m.group is not None]
        whole = self.composer.hull(dict.fromkeys([*parts, *(m.right for m in matches)]))
        return replace(whole, maybe=True) if any(m.maybe for m in matches) and not whole.maybe else whole

    def _make(self, matches: Sequence[Match]) -> Made:
        latest = matches[-1]
        return Made(self.made_of(matches), latest.prefix.occurrence, latest.right)

    def made_of(self, matches: Sequence[Match]) -> Prefix:
        groups = [m.group for m in matches if m.group is not None]
        parts: list[Prefix | Occurrence] = [*(m.prefix for m in matches), *groups, *(m.right for m in matches)]
        return joined(parts, matches[-1].right, self._whole(matches))

    def _reduced(self, made: list[Made]) -> list[Prefix]:
        if self.reduces:
            best: dict[int, Made] = {}
            for m in made:
                other = best.get(m.prefix.occurrence.hi)
                if other is None or other.rank <= m.rank:
                    best[m.prefix.occurrence.hi] = m
            made = list(best.values())
        by_occurrence = {id(m.prefix.occurrence): m.prefix for m in made}
        return [by_occurrence[id(o)] for o in distinct(m.prefix.occurrence for m in made)]

    # Memory (section 8).

    def _prune(self, state: StepState, now: int) -> None:
        """What is too old fits nothing, so it may stay until there is much of it."""
        if (self.best is not None and self.equality is None) or self._is_crowded(state):
            self.forget(state, now)

    def forget(self, state: State, now: int) -> None:
        """Drops what no later occurrence can join: whatever comes ends now or later."""
        if not self.punctual:
            return
        state.prefixes = [p for p in state.prefixes if p.alive(now) and not self._too_old(p, now)]
        if not self.sequence:
            state.rights = [r for r in state.rights if r.alive(now) and not self._passed(r.lo, now)]
        if self.best is not None:
            state.prefixes = self._best_prefixes(state.prefixes)
            state.rights = [max(state.rights, key=self._rank)] if state.rights else []
        if state.between:
            least = min((p.last.hi for p in state.prefixes), default=now)
            state.between = [n for n in state.between if n.lo >= least]
        state.__dict__["kept"] = _size(state)

    def _is_crowded(self, state: StepState) -> bool:
        size: int = state.__dict__.get("kept", 0)
        return _size(state) > 2 * size + SPARE

    def _best_prefixes(self, prefixes: list[Prefix]) -> list[Prefix]:
        """One in all, or for each key that an equality compares; null equals nothing."""
        best: dict[Any, Prefix] = {}
        for prefix in prefixes:
            key = () if self.equality is None else self.equality.of_stored(prefix)
            if key is not None and (key not in best or self._rank(best[key].occurrence) <= self._rank(prefix.occurrence)):
                best[key] = prefix
        return sorted(best.values(), key=lambda prefix: prefix.occurrence.order)

    def _rank(self, occurrence: Occurrence) -> tuple[Any, ...]:
        return (occurrence.lo, occurrence.order) if self.best == "start" else occurrence.order

    def _too_old(self, prefix: Prefix, now: int) -> bool:
        last = prefix.last
        since = last.lo if last.is_point else last.hi
        return self._passed(prefix.lo, now) or any(period.certainly_passed(now - since) for period in self.operand_periods)

    def _passed(self, lo: int, now: int) -> bool:
        return any(period.certainly_passed(now - lo) for period in self.periods)

    def discard(self, state: State, keys: Keys) -> None:
        state.prefixes = without(state.prefixes, keys)
        state.rights = without(state.rights, keys)
        state.between = without(state.between, keys)


@dataclass(frozen=True, eq=False)
class Made:
    """A step's result, with the pair that stands for it when the subset policy must decide."""

    prefix: Prefix
    left: Occurrence
    right: Occurrence

    @property
    def rank(self) -> tuple[Any, ...]:
        return self.prefix.occurrence.lo, (self.left.lo, self.left.order), (self.right.lo, self.right.order)


def _size(state: StepState) -> int:
    return len(state.prefixes) + len(state.rights) + len(state.between)


def _removed(stored: list[Any], used: Iterable[Any]) -> list[Any]:
    gone = set(map(id, used))
    return [item for item in stored if id(item) not in gone]
