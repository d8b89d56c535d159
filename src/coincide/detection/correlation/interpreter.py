"""A description, message by message: the paper's Algorithm 1 as section 4 of the specification completes it."""

from __future__ import annotations

from coincide.detection.base import Clock
from coincide.detection.correlation.collection import fill, is_possible
from coincide.detection.correlation.live import Instance, Live
from coincide.detection.correlation.program import GroupProgram, Program, SourceProgram, TermProgram
from coincide.detection.correlation.state import State, expiry_of
from coincide.detection.correlation.values import matched
from coincide.detection.correlation.view import Members, Message, View
from coincide.detection.eventwise import Cause, Timer, step_eventwise
from coincide.model.batch import EventBatch
from coincide.model.event import Event, united_origin
from coincide.model.numbers import is_number
from coincide.model.stamp import MILLISECOND

FARTHEST = 2**62
"""Instants lie within this many microseconds of the epoch; what is due later never is."""

Part = tuple[SourceProgram, Message]


class Interpreter:
    """Steps one description; `order` is its number among all definitions."""

    def __init__(self, program: Program, order: int) -> None:
        self.program = program
        self.order = order
        classes = {source.message_class for source in program.sources}
        self._by_class = {kind: [s for s in program.sources if s.message_class in (kind, "*")] for kind in classes if kind}
        self._others = self._by_class.get("*", [])  # what reads messages of all other classes

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        made = step_eventwise(
            batch,
            clock,
            state.timers,
            lambda event, cause: self._on_event(state, event, cause),
            lambda timer, cause: self._on_timer(state, timer, cause),
        )
        return state, made

    def _on_event(self, state: State, event: Event, cause: Cause) -> None:
        sources = self._by_class.get(event.type, self._others)
        if not sources:
            return
        now = max(cause.now, event.hi)
        self._forget(state, now)
        matches = ((s, m) for s in sources if (m := s.match(event, now, self.program.slots)) is not None)
        parts = [(s, m) for s, m in matches if self._accepts(state, s, m, now)]
        if parts:
            self._process(state, parts, now, cause)

    def _on_timer(self, state: State, timer: Timer, cause: Cause) -> None:
        number, trigger = timer.payload
        state.pending.discard((number, trigger.place))
        source, due = self.program.sources[number], timer.due
        self._forget(state, due)
        message = Message(source.anchor, due, due, None, None, None, (), timer.place, {}, trigger.place)
        self._process(state, [(source, message)], due, cause)
        self._over(state, number, trigger)

    # A message (4.2)

    def _forget(self, state: State, now: int) -> None:
        for source, history in zip(self.program.sources, state.history, strict=True):
            gone = history.forget(now)
            for consumed in state.consumed if gone and source.is_collection else ():
                consumed.difference_update((source.number, place) for place in gone)
        for live in state.live:
            live.forget(now)

    def _accepts(self, state: State, source: SourceProgram, message: Message, now: int) -> bool:
        """Is it no duplicate for the source (4.7), nor too old?"""
        duplicates = source.duplicates
        old = source.within is not None and now - message.lo > source.within
        if duplicates == "accept" or old:
            return not old
        content = source.content(message)
        if duplicates == "unchanged":
            if state.last[source.number].get(message.source) == content:
                return False
            state.last[source.number][message.source] = content
            return True
        return self._is_new(state.seen[source.number], source, (content, message.lo, message.hi), now)

    def _is_new(
        self, seen: dict[tuple[object, int, int], int], source: SourceProgram, key: tuple[object, int, int], now: int
    ) -> bool:
        while source.within is not None and seen and now - seen[first := next(iter(seen))] > source.within:
            del seen[first]
        if key in seen:
            return False
        seen[key] = key[1]
        return True

    def _process(self, state: State, parts: list[Part], now: int, cause: Cause) -> None:
        for source, message in parts:
            if source.in_history:
                state.history[source.number].add(message)
            self._set_timers(state, source, message, now, cause)
        made = [(group, n) for group in self.program.groups for n in self._offer(state, group, parts, now)]
        for group, number in made:
            instance = state.live[group.number].instances.get(number)
            if instance is not None and instance.complete:
                self._publish(state, group, number, instance, now, cause)

    def _set_timers(self, state: State, source: SourceProgram, message: Message, now: int, cause: Cause) -> None:
        for number in source.triggers:
            due = self._due(number, source, message, now)
            if due is not None and now <= due <= FARTHEST:
                cause.set_timer(self.order, due, (number, message))
                state.pending.add((number, message.place))

    def _due(self, number: int, source: SourceProgram, message: Message, now: int) -> int | None:
        view = View((None,) * self.program.slots, now).with_message(source.number, message)
        value = self.program.dues[number](view)
        relative = self.program.sources[number].is_relative
        if not relative:
            value = matched(value, "time_t")
        if not is_number(value) or abs(value) > FARTHEST:
            return None
        return round(float(value) * MILLISECOND) + (now if relative else 0)

    def _offer(self, state: State, group: GroupProgram, parts: list[Part], now: int) -> list[int]:
        """Instances that the message makes in a group, by number."""
        live = state.live[group.number]
        trial = _Trial(self.program, state, group, now)
        if not group.pos:
            place = next((m.place for s, m in parts if s.number in group.cols), None)
            number = None if place is None else trial.without_singles(place)
            return [] if number is None else [number]
        mine = [(s, m) for s, m in parts if s.number in group.pos]
        todo: list[tuple[int | None, Part]] = [(None, part) for part in mine]
        pairs = sorted((n, order) for order, (s, m) in enumerate(mine) for n in live.partners(s.number, m))
        todo += [(n, mine[order]) for n, order in pairs]
        return [made for n, part in todo if (made := trial.extend(n, *part)) is not None]

    def _publish(self, state: State, group: GroupProgram, number: int, instance: Instance, now: int, cause: Cause) -> None:
        members = [m for some in (instance.members or {}).values() for m in some]
        messages = [*instance.mapped, *members]
        stamp = min(m.lo for m in messages), max(m.hi for m in messages)
        origin = united_origin(messages)
        view = View(instance.messages, now, instance.members, instance.computed, True)
        for publication in self.program.publications[group.trigger]:
            values = publication.values(view)
            cause.emit(self.order, publication.message_class, stamp, values, origin, publication.source, publication.hidden)
        state.live[group.number].drop(number)
        self._consume(state, group, instance.members or {})

    def _consume(self, state: State, group: GroupProgram, members: Members) -> None:
        """Members are used up; one that every group using it has consumed leaves history (4.1)."""
        for collection in group.consumed.intersection(members):
            state.consumed[group.number].update((collection, m.place) for m in members[collection])
            users = [g.number for g in self.program.groups if collection in g.cols]
            gone = {m.place for m in members[collection] if all((collection, m.place) in state.consumed[user] for user in users)}
            state.history[collection].remove(gone)
            for user in users:
                state.consumed[user] -= {(collection, place) for place in gone}

    def _over(self, state: State, time: int, trigger: Message) -> None:
        """What waits for a time event that has been processed cannot complete any more."""
        source = self.program.sources[time].trigger
        for group, live in zip(self.program.groups, state.live, strict=True):
            for number in live.mapping(source, trigger.place) if time in group.pos else ():
                if live.instances[number].messages[time] is None:
                    live.drop(number)


class _Trial:
    """Tries new instances of one group for the message in work."""

    def __init__(self, program: Program, state: State, group: GroupProgram, now: int) -> None:
        self.program = program
        self.state = state
        self.group = group
        self.now = now
        self.live: Live = state.live[group.number]

    def without_singles(self, place: object) -> int | None:
        """A group of collections only: the message must become a member."""
        nothing: tuple[Message | None, ...] = (None,) * self.program.slots
        return self._try(Instance(nothing, tuple(range(len(self.group.terms)))), None, None, place)

    def extend(self, number: int | None, source: SourceProgram, message: Message) -> int | None:
        """The instance with this number (None: the empty one) with one more message; the number of what comes of it."""
        parent = None if number is None else self.live.instances.get(number)
        if number is not None and parent is None:
            return None  # dropped meanwhile
        if not self._may_join(parent, source, message):
            return None
        before: tuple[Message | None, ...] = parent.messages if parent else (None,) * self.program.slots
        messages = (*before[: source.number], message, *before[source.number + 1 :])
        terms = parent.terms if parent else tuple(range(len(self.group.terms)))
        instance = Instance(messages, terms, computed=dict(parent.computed) if parent else {})
        return self._try(instance, number, source.number, None)

    def _may_join(self, parent: Instance | None, source: SourceProgram, message: Message) -> bool:
        """A time event joins only instances that map what set it."""
        if parent is None:
            return not source.is_time
        if source.is_time and ((x := parent.messages[source.trigger]) is None or x.place != message.trigger):
            return False
        if not self.program.cd.disjoint:
            return True
        return all(set(message.origin).isdisjoint(m.origin) for m in parent.mapped)

    def _try(self, instance: Instance, parent: int | None, newly: int | None, place: object) -> int | None:
        if self._waits_in_vain(instance):
            return None
        view = View(instance.messages, self.now, None, instance.computed)
        mapped = frozenset(n for n, m in enumerate(instance.messages) if m is not None)
        terms = tuple(t for t in instance.terms if self._early(self.group.terms[t], view, mapped, newly))
        instance.complete = mapped >= self.group.pos
        if instance.complete:
            terms = self._completed(instance, terms, view, place)
        instance.terms = terms
        return self._prefer(instance, parent) if terms else None

    def _waits_in_vain(self, instance: Instance) -> bool:
        """For a time event that is over, or was never set."""
        for time in self.group.times:
            trigger = instance.messages[self.program.sources[time].trigger]
            if instance.messages[time] is None and trigger is not None and (time, trigger.place) not in self.state.pending:
                return True
        return False

    def _early(self, term: TermProgram, view: View, mapped: frozenset[int], newly: int | None) -> bool:
        return all(test(view) for sources, test in term.early if sources <= mapped and (newly in sources or not sources))

    def _completed(self, instance: Instance, terms: tuple[int, ...], view: View, place: object) -> tuple[int, ...]:
        """The first term that holds with its collections filled, which the instance keeps."""
        view.complete = True
        for number in terms:
            term = self.group.terms[number]
            members = fill(self.program, self.state, self.group, term, view)
            if place is not None and not any(m.place == place for some in members.values() for m in some):
                continue
            filled = View(view.messages, self.now, members, view.computed, True)
            if all(test(filled) for test in term.late) and all(
                is_possible(self.program, self.state, absence, filled) is wanted for absence, wanted in term.presence
            ):
                instance.members = members
                return (number,)
        return ()

    def _prefer(self, instance: Instance, parent: int | None) -> int | None:
        losers: set[int] = set()
        before = None if parent is None else self._view(self.live.instances[parent])
        own = self._view(instance)
        own.previous = before
        chosen = [p for p in self.program.preferences if p.self_ is None or p.self_(own) is True]
        for preference in chosen:
            if preference.better is None:
                continue
            for number in self.live.rivals(preference.rivals, instance):
                own.other = self._view(self.live.instances[number])
                if preference.other is None or preference.other(own) is True:
                    better = preference.better(own)
                    if better is False:
                        return None
                    if better is True:
                        losers.add(number)
        own.other = None
        if parent is not None:
            for preference in chosen:
                better = None if preference.previous is None else preference.previous(own)
                if better is False:
                    return None
                if better is True:
                    losers.add(parent)
        for number in losers:
            self.live.drop(number)
        return self.live.add(instance, expiry_of(self.program, instance.messages))

    def _view(self, instance: Instance) -> View:
        return View(instance.messages, self.now, instance.members, instance.computed, instance.complete)
