"""What the analysis says of random monitors, against runs of them; and the structural reading of expressions against the
machine of the construction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coincide.analysis.letters import alphabet
from coincide.analysis.monitor import MonitorAnalysis
from coincide.analysis.report import analyse
from coincide.detection.machine.construction import construct
from coincide.detection.machine.literal import LiteralTransducer
from coincide.detection.machine.transducer import OUTCOMES, ExpressionTransducer, Transducer
from coincide.expr.scalar import EventScope, condition
from coincide.lang.ecl.definition import File, Mode, Monitor
from coincide.lang.ecl.names import predicates
from coincide.model.event import Event, Value, primitive
from coincide.testing.ecl import KEY, TEXT, TYPES, VALUES, rule_files

Letters = Sequence[int]

numbers: st.SearchStrategy[Value] = st.sampled_from((None, True, 0.0, 1.0, 2.0, 3.0, 1.5, -1.0, "1"))
texts: st.SearchStrategy[Value] = st.sampled_from((None, "x", "xy", "y", "", 1.0))
keys: st.SearchStrategy[Value] = st.sampled_from((None, 1.0, "1", True))
kinds = st.sampled_from((*TYPES, "other", "x1"))


@st.composite
def events(draw: st.DrawFn) -> Event:
    attributes = {name: draw(numbers) for name in VALUES} | {TEXT: draw(texts), KEY: draw(keys)}
    return primitive(draw(kinds), draw(st.integers(0, 9)) * 1000, 9000, str(draw(st.integers(1, 99))), attributes, "s")


def outputs(transducer: Transducer, letters: Letters) -> Iterator[list[Any]]:
    configuration = transducer.start
    for letter in letters:
        configuration, emitted = transducer.step(configuration, letter)
        yield [transducer.outputs[output].symbol for output in emitted]


def words(analysis: MonitorAnalysis, data: st.DataObject, size: int = 12) -> list[int]:
    return data.draw(st.lists(st.sampled_from(analysis.alphabet.letters), max_size=size))


def first(file: File) -> MonitorAnalysis:
    analysis = MonitorAnalysis(file.detectors[0])
    assume(not analysis.limited)
    return analysis


@given(rule_files(detectors=2), st.lists(events(), min_size=1, max_size=20))
def test_every_event_has_a_possible_letter(file: File, sample: list[Event]) -> None:
    for definition in file.detectors:
        labels = list(predicates(definition))
        found = set(alphabet([label.test for label in labels], definition.keys).letters)
        tests = [condition(label.test, EventScope()) for label in labels]
        for event in sample:
            if not definition.keys or event.attributes.get(definition.keys[0]) is not None:
                assert sum(1 << i for i, test in enumerate(tests) if test(event)) in found


@given(rule_files(detectors=1), st.data())
def test_answers_agree_with_runs(file: File, data: st.DataObject) -> None:
    analysis = first(file)
    letters = words(analysis, data)
    answers = list(outputs(analysis.transducer, letters))
    if analysis.vacuous:
        assert not any(answers)
    if analysis.trivial:
        assert all(answers)
    assert not {token for answer in answers for token, _ in answer} & set(analysis.dead)
    if not analysis.recurrent:  # no output lies on a cycle, so there are fewer of them than states
        assert sum(1 for answer in answers if answer) < analysis.deterministic.states


@given(rule_files(detectors=1), st.data())
def test_the_minimal_machine_answers_as_the_monitor_does(file: File, data: st.DataObject) -> None:
    analysis = first(file)
    letters = words(analysis, data)
    columns = dict(zip(analysis.alphabet.letters, analysis.minimal.columns, strict=True))
    state = 0
    for letter, emitted in zip(letters, outputs(analysis.transducer, letters), strict=True):
        answer = analysis.minimal.answers[analysis.minimal.answering[state][columns[letter]]]
        assert answer == tuple(sorted((token, tuple(sorted(attributes))) for token, attributes in emitted))
        state = analysis.minimal.following[state][columns[letter]]


@given(rule_files(detectors=1), st.data())
def test_what_is_quenched_always_can_be_left_out(file: File, data: st.DataObject) -> None:
    analysis = first(file)
    letters = words(analysis, data)
    quenched = analysis.quenched_always()
    kept = [letter for letter in letters if analysis.named([letter])[0] not in quenched]
    assert [Counter(o) for o in outputs(analysis.transducer, letters) if o] == [
        Counter(o) for o in outputs(analysis.transducer, kept) if o
    ]


@given(rule_files(detectors=1), st.data())
def test_only_what_it_depends_on_matters(file: File, data: st.DataObject) -> None:
    """Two inputs that agree on a deciding set give the same outputs of the token; the answer contains such a set."""
    analysis = first(file)
    letters = words(analysis, data)
    for token, labels in analysis.depends().items():
        mask = sum(1 << i for i, label in enumerate(analysis.labels) if label.label in labels)
        alike = [data.draw(st.sampled_from([b for b in analysis.alphabet.letters if a & mask == b & mask])) for a in letters]
        one, other = (
            [Counter(o for o in answer if o[0] == token) for answer in outputs(analysis.transducer, word)]
            for word in (letters, alike)
        )
        assert one == other


@settings(max_examples=60)
@given(rule_files(detectors=2, depth=2, keys=False, chained=False), st.data())
def test_pairs_agree_with_runs(file: File, data: st.DataObject) -> None:
    assume(len(file.detectors) == 2)
    report: Any = analyse(file)
    pair = report["pairs"]["m1,m2"]
    assume("limit" not in pair)
    sample = data.draw(st.lists(events(), max_size=8))
    one, other = (list(outputs(MonitorAnalysis(d).transducer, letters_of(d, sample))) for d in file.detectors)
    for length, (a, b) in enumerate(zip(one, other, strict=True), 1):
        assert not pair["contained"] or Counter(a) <= Counter(b)
        assert not pair["covered"] or b or not a
        if Counter(a) != Counter(b):
            assert not pair["equivalent"]
            assert length >= pair["distinguish"]
            break


def letters_of(definition: Any, sample: list[Event]) -> list[int]:
    tests = [condition(label.test, EventScope()) for label in MonitorAnalysis(definition).labels]
    return [sum(1 << i for i, test in enumerate(tests) if test(event)) for event in sample]


@settings(max_examples=60)
@given(rule_files(detectors=1, depth=2, keys=False), st.data())
def test_distinguish_is_the_length_of_a_shortest_witness(file: File, data: st.DataObject) -> None:
    """Against the whole or a part of itself: all words up to a few letters are tried."""
    body = file.detectors[0]
    assume(isinstance(body, Monitor))
    assert isinstance(body, Monitor)
    other = Monitor("other", (), data.draw(st.sampled_from([*_inside(body)])), "")
    pair: Any = analyse(File((), (body, other)))["pairs"]
    assume("limit" not in pair["m1,other"])
    found = pair["m1,other"]["distinguish"]
    letters = alphabet([label.test for label in MonitorAnalysis(body).labels]).letters
    assume(len(letters) <= 4)
    assert _shortest(body, other, letters, 4) == (found if found is not None and found <= 4 else None)


def _inside(monitor: Monitor) -> Iterator[Any]:
    yield monitor.body
    yield from (part.body if isinstance(part, Mode) else part for part in monitor.body.children)


def _shortest(one: Monitor, other: Monitor, letters: Letters, longest: int) -> int | None:
    """By breadth-first search over whole words; the labels of the other are some of those of the one."""
    first_, second = ExpressionTransducer(one.body), ExpressionTransducer(other.body)
    place = {label.label: i for i, label in enumerate(first_.labels)}
    present = [(first_.start, second.start)]
    for length in range(1, longest + 1):
        following = []
        for a, b in present:
            for letter in letters:
                narrow = sum(1 << i for i, label in enumerate(second.labels) if letter >> place[label.label] & 1)
                (a2, out_a), (b2, out_b) = first_.step(a, letter), second.step(b, narrow)
                if Counter(first_.outputs[o].symbol for o in out_a) != Counter(second.outputs[o].symbol for o in out_b):
                    return length
                following.append((a2, b2))
        present = following
    return None


@settings(max_examples=150)
@given(rule_files(detectors=1, machines=False), st.data())
def test_the_structural_reading_is_the_machine_of_the_construction(file: File, data: st.DataObject) -> None:
    (monitor,) = file.detectors
    assert isinstance(monitor, Monitor)
    built = construct(monitor)
    structural, machine = ExpressionTransducer(monitor.body), LiteralTransducer(built.machine)
    letters = data.draw(st.lists(st.integers(0, (1 << len(structural.labels)) - 1), max_size=15))
    place = {label.label: i for i, label in enumerate(machine.labels)}
    configuration, active = structural.start, machine.start
    for letter in letters:
        same = sum(1 << place[label.label] for i, label in enumerate(structural.labels) if letter >> i & 1)
        configuration, emitted = structural.step(configuration, letter)
        active, pushed = machine.step(active, same)
        assert Counter(structural.outputs[o].symbol for o in emitted) == Counter(machine.outputs[o].symbol for o in pushed)
        names = {machine.states[state] for state in active}
        outcome = "success" if built.success in names else "failure" if built.failure in names else None
        assert (OUTCOMES.get(configuration) if configuration in (1, 2) else None) == outcome
