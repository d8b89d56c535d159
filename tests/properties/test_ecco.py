"""Random ECCO expressions: the interpreter against the denotation, however the input is cut; policies; printing."""

from __future__ import annotations

from math import inf

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coincide.detection.algebra.chain import Step
from coincide.detection.algebra.negation import Negation
from coincide.lang.ecco.definition import Definition, Expression, File, Policy, Ref, With
from coincide.lang.ecco.parse import parse
from coincide.lang.ecco.print import print_file
from coincide.model.event import Event
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.check import detections
from coincide.testing.ecco import all_expressions, denotation, event_lists, expressions

slow = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
POLICIES = ("unrestricted", "recent", "chronicle", "continuous", "cumulative", "subset")


def written(*definitions: Definition) -> str:
    return print_file(File(definitions=definitions))


def loaded(*definitions: Definition) -> Rulebook:
    return load(SourceText("d.ecco", written(*definitions)))


def detector(expression: Expression) -> Definition:
    return Definition("d", False, (), expression)


@slow
@given(expressions())
def test_print_parses_back(expression: Expression) -> None:
    file = parse(SourceText("d.ecco", written(detector(expression))))
    assert file.definitions[0].body == expression


@slow
@given(expressions(), event_lists())
def test_interpreter_makes_what_the_expression_denotes(expression: Expression, events: list[Event]) -> None:
    book = loaded(detector(expression))
    expected = denotation(expression, events)
    made = detections(book, events, cuts=range(len(events)), until=inf)
    found = [_plain(d, events) for d in made]
    assert set(found) == expected
    assert len(found) == len(set(found))


def _plain(record: dict[str, object], events: list[Event]) -> tuple[int, int, frozenset[int]]:
    time, ids = record["time"], record["from"]
    lo, hi = time if isinstance(time, list) else (time, time)
    numbers = {event.id: n for n, event in enumerate(events)}
    assert isinstance(ids, list)
    return lo, hi, frozenset(numbers[i] for i in ids)


@slow
@given(expressions(), event_lists())
def test_a_name_does_not_change_the_meaning(expression: Expression, events: list[Event]) -> None:
    """What `let p = E` makes, `detect d = p` makes."""
    named = loaded(Definition("p", True, (), expression), detector(Ref("p")))
    assert detections(named, events, until=inf) == detections(loaded(detector(expression)), events, until=inf)


@slow
@given(all_expressions(), st.sampled_from(POLICIES), event_lists())
def test_cuts_and_snapshots_change_nothing(expression: Expression, policy: str, events: list[Event]) -> None:
    book = loaded(detector(With(expression, (Policy(policy),))))
    whole = detections(book, events, until=inf)
    assert detections(book, events, cuts=range(len(events)), until=inf) == whole
    assert detections(book, events, cuts=range(len(events)), snapshots=True, until=inf) == whole


@slow
@given(all_expressions(), st.sampled_from(POLICIES), event_lists())
def test_forgetting_changes_nothing(expression: Expression, policy: str, events: list[Event]) -> None:
    """What is dropped early (section 8) would not have been taken."""
    body = With(expression, (Policy(policy),))
    made = detections(loaded(detector(body)), events, until=inf)
    assert detections(_remembering(loaded(detector(body))), events, until=inf) == made


def _remembering(book: Rulebook) -> Rulebook:
    for plan in book.compiled.plans:
        for program in plan.programs:  # type: ignore[attr-defined]
            for node in program.nodes:
                if isinstance(node, Step):
                    node.punctual, node.best = False, None
                if isinstance(node, Negation):
                    node.reach, node.keeps_one = None, False
    return book
