"""Remembered messages at completion: members of collections (4.3), and whether an absent source could be there (3.3)."""

from __future__ import annotations

from coincide.detection.correlation.program import Absence, GroupProgram, Program, SourceProgram, TermProgram
from coincide.detection.correlation.state import State
from coincide.detection.correlation.view import Members, Message, View
from coincide.model.event import Place


def fill(program: Program, state: State, group: GroupProgram, term: TermProgram, view: View) -> Members:
    """The members of the group's collections for a complete instance."""
    members: dict[int, tuple[Message, ...]] = dict.fromkeys(group.cols, ())
    mapped = {m.place for m in view.messages if m is not None}
    origins = {key for m in view.messages if m is not None for key in m.origin} if program.cd.disjoint else set()
    for collection in group.cols:
        source = program.sources[collection]
        tests = (*source.join_tests, *term.member.get(collection, ()))
        # What is filled already can be read: a join filter may use an aggregate of another collection.
        so_far = View(view.messages, view.now, members, view.computed, True)
        members[collection] = tuple(
            m
            for m in state.history[collection].candidates(view)
            if m.place not in mapped
            and (collection, m.place) not in state.consumed[group.number]
            and origins.isdisjoint(m.origin)
            and _holds(tests, so_far, source, m)
        )
    return members


def _holds(tests: tuple[object, ...], view: View, source: SourceProgram, message: Message) -> bool:
    if not tests:
        return True
    trial = view.with_message(source.number, message)
    return all(test(trial) for test in tests)  # type: ignore[operator]


def is_possible(program: Program, state: State, absence: Absence, view: View) -> bool:
    """Is there a way to choose remembered messages for the unmapped sources that makes the value defined?"""
    return _choose(program, state, absence, view, absence.unmapped)


def _choose(program: Program, state: State, absence: Absence, view: View, left: tuple[int, ...]) -> bool:
    if not left:
        return absence.defined(view)
    source = program.sources[left[0]]
    if source.is_collection:
        candidates = (view.members or {}).get(source.number, ())
        return any(_choose(program, state, absence, view.with_message(source.number, m), left[1:]) for m in candidates)
    taken = {m.place for m in view.messages if m is not None}
    for message in state.history[source.number].candidates(view):
        if message.place in taken or not _trigger_matches(source, message, view):
            continue
        if _holds(source.join_tests, view, source, message):
            trial = view.with_message(source.number, message)
            if _choose(program, state, absence, trial, left[1:]):
                return True
    return False


def _trigger_matches(source: SourceProgram, message: Message, view: View) -> bool:
    if not source.is_time:
        return True
    trigger = view.messages[source.trigger]
    place: Place | None = None if trigger is None else trigger.place
    return place is not None and place == message.trigger
