"""Random ECCO expressions: the interpreter against the denotation, however the input is cut; and printing."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from hypothesis import HealthCheck, given, settings

from coincide.lang.ecco.definition import Definition, Expression, File
from coincide.lang.ecco.parse import parse
from coincide.lang.ecco.print import print_file
from coincide.model.event import Event
from coincide.rulebook import load
from coincide.source import SourceText
from coincide.testing.check import detections
from coincide.testing.ecco import denotation, event_lists, expressions

slow = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def written(expression: Expression) -> str:
    return print_file(File(definitions=(Definition("d", False, (), expression),)))


@slow
@given(expressions())
def test_print_parses_back(expression: Expression) -> None:
    file = parse(SourceText("d.ecco", written(expression)))
    assert file.definitions[0].body == expression


@slow
@given(expressions(), event_lists())
def test_interpreter_makes_what_the_expression_denotes(expression: Expression, events: list[Event]) -> None:
    book = load(SourceText("d.ecco", written(expression)))
    expected = denotation(expression, events)
    for snapshots in (False, True):
        made = detections(book, events, cuts=range(len(events)), snapshots=snapshots, until=inf)
        found = [_plain(d, events) for d in made]
        assert set(found) == expected
        assert len(found) == len(set(found))


def _plain(record: dict[str, object], events: list[Event]) -> tuple[int, int, frozenset[int]]:
    time = record["time"]
    lo, hi = time if isinstance(time, list) else (time, time)
    numbers = {event.id: n for n, event in enumerate(events)}
    ids = record["from"]
    assert isinstance(ids, list)
    return lo, hi, frozenset(numbers[i] for i in ids)


@slow
@given(expressions(), event_lists())
def test_copies_of_one_definition_agree(expression: Expression, events: list[Event]) -> None:
    """A name does not change the meaning: what `let p = E` makes, `detect d = p` makes."""
    hidden = Definition("p", True, (), expression)
    named = print_file(File(definitions=(hidden, Definition("d", False, (), _reference()))))
    inline = detections(load(SourceText("d.ecco", written(expression))), events, until=inf)
    assert detections(load(SourceText("d.ecco", named)), events, until=inf) == [dict(record) for record in inline]


def _reference() -> Expression:
    from coincide.lang.ecco.definition import Ref

    return replace(Ref("p"))
