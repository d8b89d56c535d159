"""What plans of situations tell engines, and what the cases do not reach."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from coincide.detection.situation.plan import SituationPlan
from coincide.engines.embedded import Engine
from coincide.errors import RuleError, RunError
from coincide.explanation import explanation
from coincide.expr.print import expression_text
from coincide.model.event import Event, Value, primitive, record
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText

EVENTS = """<event name="A"><eventAttribute name="x" type="number"/><eventAttribute name="k" type="string"/></event>
<event name="B"><eventAttribute name="x" type="number"/><eventAttribute name="k" type="string"/></event>"""
ALWAYS = """<lifespan name="run"><initiator><startup/></initiator><terminator><noTerminator/></terminator></lifespan>"""
BY_K = """<lifespan name="l"><initiator><eventInitiator event="A"/>{}</initiator>
<terminator><eventTerminator event="B"/></terminator><keyBy attribute="k"/></lifespan>"""


def source(text: str, name: str = "r.amit.xml") -> SourceText:
    return SourceText(name, f"<amit>{EVENTS}{text}</amit>")


def book(text: str) -> Rulebook:
    return load(source(text))


def situation(operator: str, name: str = "s", lifespan: str = "run", attributes: str = "") -> str:
    return f'<situation name="{name}" lifespan="{lifespan}">{operator}{attributes}</situation>'


def event(kind: str, time: int, **attributes: Value) -> Event:
    return primitive(kind, time * 1000, time * 1000, f"{kind}{time}", attributes)


def detected(engine: Engine, *events: Event) -> list[tuple[str, Any]]:
    return [(d["type"], d["time"]) for d in map(record, engine.process(events).events)]


def test_relevant_tests_types_and_thresholds() -> None:
    plan = book(ALWAYS + situation('<all><operandAll event="A" threshold="x &gt; 1"/></all>')).plans()[0]
    assert plan.relevant is not None
    assert expression_text(plan.relevant) == "type = 'A' and x > 1"
    assert (plan.columns, plan.timed, plan.partition) == ({"x"}, False, None)
    assert (plan.inputs.external, plan.outputs) == ({"A"}, {"s"})


@pytest.mark.parametrize("threshold", ["x is null", "coalesce(x, 1) = 1", "concat(x) = '1'"])
def test_a_test_that_a_null_can_satisfy_is_not_pushed_down(threshold: str) -> None:
    plan = book(ALWAYS + situation(f'<all><operandAll event="A" threshold="{threshold}"/></all>')).plans()[0]
    assert plan.relevant is not None
    assert expression_text(plan.relevant) == "type = 'A'"


def test_counting_with_a_local_key_needs_events_below_the_threshold() -> None:
    operator = '<atleast quantity="2"><operandAtleast event="A" threshold="x &gt; 1"/><keyBy attribute="k"/></atleast>'
    plan = book(ALWAYS + situation(operator)).plans()[0]
    assert plan.relevant is not None
    assert expression_text(plan.relevant) == "type = 'A'"


def test_a_global_key_partitions() -> None:
    plan = book(BY_K.format("") + situation('<all><operandAll event="B"/></all>', lifespan="l")).plans()[0]
    assert plan.partition == ("k",)


@pytest.mark.parametrize(("expression", "partition"), [("A.k", ("k",)), ("concat(A.k, '')", None), ("'a'", None)])
def test_a_cycle_is_partitioned_only_if_it_hands_its_key_on(expression: str, partition: tuple[str, ...] | None) -> None:
    attribute = f'<situationAttribute name="k" type="string" expression="{expression}"/>'
    rules = BY_K.format('<eventInitiator event="s"/>') + situation(
        '<all><operandAll event="A"/></all>', lifespan="l", attributes=attribute
    )
    assert book(rules).plans()[0].partition == partition


def test_situations_on_a_cycle_are_one_plan() -> None:
    rules = ALWAYS + "".join(
        situation(f'<all><operandAll event="{read}"/></all>', name) for name, read in (("p", "q"), ("q", "p"), ("r", "q"))
    )
    assert [plan.definitions for plan in book(rules).plans()] == [("p", "q"), ("r",)]


def test_a_cycle_through_another_language_is_refused() -> None:
    amit = source('<event name="pair"/>' + ALWAYS + situation('<all><operandAll event="pair"/></all>'))
    with pytest.raises(RuleError, match="consumes what it pushes, through 's'"):
        load(amit, SourceText("r.ecl", "monitor m = repeat { push(pair) { sequential { s, a } } }"))


def test_a_chain_without_end_stops_the_run() -> None:
    engine = Engine(book(ALWAYS + situation('<nth detectionMode="immediate" repeatMode="always"><operandNth event="A"/></nth>')))
    assert detected(engine, event("A", 1)) == [("s", 1)]
    rules = situation('<nth detectionMode="immediate" repeatMode="always"><operandNth event="A"/><operandNth event="s"/></nth>')
    with pytest.raises(RunError, match="a chain of more than 1000 detections ends in situation 's'"):
        detected(Engine(book(ALWAYS + rules)), event("A", 1))


def test_thousands_of_ticks_do_not_make_places_grow() -> None:
    rules = ALWAYS + situation('<every interval="1"/>') + situation('<every interval="1"/>', "t")
    engine = Engine(book(rules))
    detected(engine, event("A", 0))
    small = len(engine.snapshot())
    made = detected(engine, event("A", 5000))
    assert made[:4] == [("s", 1), ("t", 1), ("s", 2), ("t", 2)]
    assert made[-2:] == [("s", 4999), ("t", 4999)]
    assert len(engine.snapshot()) < small + 200


def test_ticks_of_many_lifespans_keep_their_places_apart() -> None:
    lifespan = """<lifespan name="l"><initiator><eventInitiator event="A" correlate="add"/></initiator>
    <terminator><expirationInterval timeInterval="1h"/></terminator></lifespan>"""
    engine = Engine(book(lifespan + situation('<every interval="10"/>', lifespan="l")))
    assert len(detected(engine, event("A", 0), event("A", 10), event("A", 500), event("B", 1005))) == 100 + 99 + 50
    places = [d.place for d in engine.process([event("B", 2005)]).events]
    assert len(set(places)) == len(places) == 300


def test_detections_of_a_recurring_timer_do_not_keep_the_clock_going() -> None:
    rules = ALWAYS + situation('<every interval="5"/>') + situation('<after interval="7"><operandAfter event="s"/></after>', "t")
    engine = Engine(book(rules))
    detected(engine, event("A", 0))
    assert engine.finish(inf).events == ()


def test_changed_rules_keep_what_is_unchanged() -> None:
    pair = situation('<atleast quantity="2"><operandAtleast event="A"/></atleast>', "pair")
    other = situation('<atleast quantity="2" ><operandAtleast event="B"/></atleast>', "other")
    ticks = situation('<every interval="10"/>', "tick")
    engine = Engine(book(ALWAYS + pair))
    assert detected(engine, event("A", 1), event("B", 2)) == []
    engine.change_rules(book(ALWAYS + other + ticks + pair))
    assert detected(engine, event("A", 3), event("B", 4), event("B", 5)) == [("pair", 3), ("other", 5)]
    assert detected(engine, event("B", 20)) == [("tick", 13)]


def test_startup_of_rules_that_come_later_is_then() -> None:
    engine = Engine(book(ALWAYS + situation('<all><operandAll event="A"/></all>')))
    detected(engine, event("B", 1))
    engine.change_rules(book(ALWAYS + situation('<every interval="10"/>', "tick")))
    assert detected(engine, event("B", 100), event("B", 125)) == [("tick", 110), ("tick", 120)]


def test_true_is_not_one_as_a_key() -> None:
    events = '<event name="C"><eventAttribute name="b" type="boolean"/></event>'
    operator = '<atleast quantity="2"><operandAtleast event="C"/><keyBy attribute="b"/></atleast>'
    engine = Engine(book(events + ALWAYS + situation(operator)))
    assert detected(engine, event("C", 1, b=True), event("C", 2, b=1.0), event("C", 3, b=False)) == []
    assert detected(engine, event("C", 4, b=True)) == [("s", 4)]


def test_a_lifespan_shared_across_stages_is_counted_once() -> None:
    lifespan = """<lifespan name="l"><initiator><eventInitiator event="A"/></initiator>
    <terminator><eventTerminator event="B"/></terminator></lifespan>"""
    inner = situation('<all><operandAll event="A"/></all>', "inner", "l")
    outer = situation('<all><operandAll event="inner"/></all>', "outer", "l")
    engine = Engine(book(lifespan + outer + inner))
    assert detected(engine, event("A", 1), event("A", 2), event("B", 3)) == [("inner", 2), ("outer", 2)]
    counted = engine.statistics()
    assert (counted["lifespans_initiated"], counted["lifespans_terminated"]) == (1, 1)
    assert counted["situations"] == {"inner": 1, "outer": 1}


def test_what_the_compiled_loop_cannot_do_has_a_plan_of_its_own() -> None:
    """So have ticks, whose timers come in another order than those of others."""
    calendar = situation('<at timePattern="*/*/* 12:00:00.000"/>', "u")
    rules = book(ALWAYS + situation('<all><operandAll event="A"/></all>') + situation('<every interval="5"/>', "t") + calendar)
    plans: list[SituationPlan] = rules.plans()  # type: ignore[assignment]
    assert [(p.definitions, bool(p.loop_reasons())) for p in plans] == [(("s",), False), (("t",), False), (("u",), True)]
    text = explanation(rules)
    assert "loop of u none: in the kernel tier, rows that concern nobody are left out and the others interpreted" in text
    assert "because of operator 'at'" in text


@pytest.mark.parametrize("mode", ["immediate", "deferred"])
def test_an_equality_is_looked_up_not_searched(mode: str) -> None:
    """A thousand candidates fit nothing, another thousand one other each: work must not be the product."""
    from coincide.engines.graph import Graph
    from coincide.model.batch import EventBatch
    from coincide.model.table import table_of

    once = ALWAYS.replace("<noTerminator/>", '<eventTerminator event="B" where="x = -1"/>')
    operator = f'<all detectionMode="{mode}" where="a.x = b.x"><operandAll event="A" as="a"/><operandAll event="B" as="b"/></all>'
    events = [event("A", n - 1000, x=-n - 2.0) for n in range(1000)] + [event("A", n, x=float(n)) for n in range(1000)]
    events += [event("B", 1000 + n, x=float(999 - n)) for n in range(1000)] + [event("B", 3000, x=-1.0)]
    graph = Graph(book(once + situation(operator)).plans("kernel"))
    state = graph.initial()
    made = graph.advance(state, EventBatch(table=table_of(events)))
    assert len(made) == 1000
    assert graph.statistics(state)["conditions"] < 10_000
