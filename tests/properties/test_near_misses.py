"""Why a rule made no detection, for random rules of every language over random events: what is named is in the data, once put
right it makes the detection appear, and nothing of it can be left out. And where a detection is destroyed, it is found again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st
from test_correlations import descriptions, streams
from test_eql_queries import queries
from test_eql_queries import records as eql_records
from test_row_patterns import partitioned
from test_sigma_rules import records as sigma_records
from test_sigma_rules import rules as sigma_rules

import coincide
from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.detection.base import Detector
from coincide.detection.situation import interpreter
from coincide.errors import RuleError, RunError
from coincide.lang.amit.print import print_file as amit_text
from coincide.lang.ecco.definition import Definition, File
from coincide.lang.ecco.print import print_file as ecco_text
from coincide.lang.opera.print import core_text
from coincide.misses.answer import Answer, Miss, why_not
from coincide.misses.trial import Question
from coincide.model.event import Event, record
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing import amit, ecco, ecl, opera

TRIES = 600
MAXIMUM, FEW = 12, 4
ENOUGH, ROUNDS = 8, 30
BRIEFLY = ("opera",)
"""Languages in which eight rules are found soonest."""

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]  # what it is about is long anyway, and to find less takes long

examples = settings(max_examples=MAXIMUM, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True, scope="module")
def short_chains() -> Iterator[None]:
    """Cycles of situations may detect more and more in every round: the run is stopped early."""
    before, interpreter.LONGEST_CHAIN = interpreter.LONGEST_CHAIN, 4
    yield
    interpreter.LONGEST_CHAIN = before


@dataclass
class Problem:
    name: str
    text: str
    raw: list[dict[str, Any]]

    def book(self) -> Rulebook:
        try:
            return load(SourceText(self.name, self.text))
        except RuleError:
            assume(False)
            raise


def problem(name: str, texts: st.SearchStrategy[str], events: st.SearchStrategy[Any]) -> st.SearchStrategy[Problem]:
    return st.builds(lambda text, some: Problem(name, text, records_of(some)), texts, events)


def records_of(events: list[Event] | list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With ids of their own."""
    made = [record(event) if isinstance(event, Event) else event for event in events]
    return [{**one, "id": str(one.get("id", number))} for number, one in enumerate(made, 1)]


PROBLEMS = {
    "ecl": problem("r.ecl", ecl.rule_texts(), ecl.event_lists()),
    "amit": problem("r.amit.xml", amit.rule_files(cycles=False).map(amit_text), amit.event_lists(12)),
    "opera": problem("r.ce", opera.expressions().map(lambda body: f"detect X = {core_text(body)}\n"), opera.events()),
    "ecco": problem(
        "r.ecco",
        ecco.expressions().map(lambda body: ecco_text(File(definitions=(Definition("d", False, (), body),)))),
        ecco.event_lists(),
    ),
    "cdl": problem("r.cdl.xml", descriptions(), streams()),
    "eql": problem("r.eql", queries(), st.lists(eql_records, max_size=10)),
    "sigma": problem("r.yml", sigma_rules(), st.lists(sigma_records, max_size=10)),
    "rows": partitioned().map(lambda drawn: Problem("r.mr.sql", drawn[0], records_of(drawn[1]))),
}


def events_of(book: Rulebook, raw: list[dict[str, Any]]) -> list[Event]:
    mapping = book.fields(DEFAULT)
    return sorted((event_of(one, mapping, number) for number, one in enumerate(raw, 1)), key=lambda event: event.origin)


def asked(book: Rulebook, detector: Detector, raw: list[dict[str, Any]], tries: int = TRIES) -> Answer:
    return why_not(book, events_of(book, raw), Question(detector, {}), tries=tries)


def put_right(raw: list[dict[str, Any]], lacks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By what is told alone. What it names must be there, as it says."""
    found = {one["id"]: dict(one) for one in raw}
    for edit in lacks:
        name = edit["event"]["id"]
        assert (name in found) is (edit["edit"] != "add")
        if edit["edit"] == "add":
            found[name] = edit["event"]
        elif edit["edit"] == "remove":
            del found[name]
        elif edit["edit"] == "move":
            found[name]["time"] = edit["to"]
        else:
            assert found[name].get(edit["attribute"]) == edit["from"]
            found[name][edit["attribute"]] = edit["to"]
    return list(found.values())


def made(book: Rulebook, detector: Detector, raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        return [found for found in coincide.detect(book, raw, tier="interpreter") if found["type"] in detector.outputs]
    except RunError:
        assume(False)
        raise


def check(book: Rulebook, detector: Detector, raw: list[dict[str, Any]], miss: Miss) -> None:
    told = miss.record
    ids = {one["id"] for one in raw}
    assert all(one["id"] in ids for one in told["matched"])
    assert told["detection"] in made(book, detector, put_right(raw, told["lacks"]))
    for left_out in told["lacks"]:
        rest = [edit for edit in told["lacks"] if edit is not left_out]
        assert not made(book, detector, put_right(raw, rest))


def visible(book: Rulebook) -> list[Detector]:
    """Rules whose detections are given out, and are nobody else's."""
    outputs = [output for detector in book.detectors for output in detector.outputs]
    return [d for d in book.detectors if d.outputs and all(outputs.count(o) == 1 for o in d.outputs) and not _is_internal(d)]


def _is_internal(detector: Detector) -> bool:
    return detector.language == "amit" and detector.definition.situation.internal


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("language", PROBLEMS)
def test_what_is_named_makes_the_detection_appear(language: str, in_full: bool) -> None:
    """That there are misses at all is not asked for here, where examples differ each time: of the random monitors of ECL in one
    run, none may push."""
    most = MAXIMUM if in_full else FEW

    @settings(examples, max_examples=(5 if language == "ecl" else 1) * most)  # most random monitors never push
    @given(PROBLEMS[language])
    def on_random_rules(drawn: Problem) -> None:
        book = drawn.book()
        for detector in visible(book):
            answer = asked(book, detector, drawn.raw)
            assert bool(answer.detections) is bool(made(book, detector, drawn.raw))
            for miss in answer.misses:
                check(book, detector, drawn.raw, miss)

    on_random_rules()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "language", [name if name in BRIEFLY else pytest.param(name, marks=pytest.mark.matrix) for name in PROBLEMS]
)
def test_what_was_destroyed_is_found(language: str) -> None:
    """A detection is there; one of its events is taken away, and with it the detection. Then that it lacks is told, or something
    nearer. The search is bounded, so this is no law as the other is: the examples are the same each time, and enough of them."""
    destroyed = found_again = 0
    tried = set[str]()  # a rule counts once, over whichever events

    @settings(examples, max_examples=5 * MAXIMUM, database=None)
    @given(PROBLEMS[language], st.integers(0, 3))
    def on_random_rules(drawn: Problem, number: int) -> None:
        nonlocal destroyed, found_again
        book = drawn.book()
        for detector in visible(book):
            for found in made(book, detector, drawn.raw)[:1]:
                taken = found["from"][number % len(found["from"])] if found["from"] else None
                rest = [one for one in drawn.raw if one["id"] != taken]
                if taken is None or drawn.text in tried or made(book, detector, rest):
                    continue
                tried.add(drawn.text)
                destroyed += 1
                answer = asked(book, detector, rest, 2 * TRIES)
                for miss in answer.misses[:1]:
                    found_again += len(miss.edits) <= 2
                    check(book, detector, rest, miss)

    for number in range(ROUNDS):
        if destroyed < ENOUGH:
            seed(number)(on_random_rules)()
    assert destroyed >= ENOUGH
    assert found_again >= 0.75 * destroyed
