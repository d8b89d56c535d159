"""Policies, providers, registered predicates, restarts: what the cases do not show."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.engines.embedded import Engine
from coincide.errors import RuleError
from coincide.lang.cdl.functions import forget_predicate, register_predicate
from coincide.lang.cdl.providers import forget_providers, register_context, register_provider
from coincide.model.event import Event, record
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText


def rules(text: str, folder: Path | None = None) -> Rulebook:
    return load(SourceText(str((folder or Path()) / "rules.cdl.xml"), text))


def events(*raw: dict[str, Any]) -> list[Event]:
    return [event_of({"id": f"{r['type']}{r['time']}", **r}, DEFAULT, n) for n, r in enumerate(raw, 1)]


def run(book: Rulebook, given: list[Event], until: float | None = None) -> list[dict[str, Any]]:
    engine = Engine(book)
    return [record(e) for e in (*engine.process(given).events, *engine.finish(until).events)]


def origins(made: list[dict[str, Any]]) -> list[str]:
    return [" ".join(d["from"]) for d in made]


# Policies, compared on one stream (section 7, consumption)

STREAM = events(*({"type": t, "time": n, "k": 1} for n, t in enumerate("aabb", 1)))
PAIR = """<cd id="c"><sources>
  <source class="a" anchor="A"><attribute name="k" type="int"/></source>
  <source class="b" anchor="B"><attribute name="k" type="int"/></source>
</sources><predicates>
  <predicate name="equal" anchor="J">A.k, B.k</predicate><predicate name="before" anchor="S">A, B</predicate>
  <predicate name="complete" anchor="C"/><predicate name="complete" of="other" anchor="OC"/>
  <predicate name="shares" anchor="SH"/><predicate name="equivalent" anchor="EQ"/><predicate name="true" anchor="T"/>
  <predicate name="equal" anchor="SB">B.id, other.B.id</predicate>
  <predicate name="preferGreater" anchor="LATER">A.time, other.A.time</predicate>
  <predicate name="preferLess" anchor="EARLIER">A.time, other.A.time</predicate>
</predicates><expressions>
  <expression anchor="X">J and S</expression><expression anchor="DONE">C</expression><expression anchor="YES">T</expression>
  <expression anchor="NO">not T</expression><expression anchor="OPEN">SH and not OC</expression>
  <expression anchor="USED">SH and OC</expression><expression anchor="SAME">EQ and (SB or not C)</expression>
  <expression anchor="RECENT">LATER</expression><expression anchor="OLDEST">EARLIER</expression>
</expressions><events><event class="pair" trigger="X"/></events>
<preferences>{}</preferences></cd>"""
POLICIES = {
    "all combinations": ("", ["a1 b3", "a2 b3", "a1 b4", "a2 b4"]),
    "use an A once": ("<preference><self>DONE</self><previous>YES</previous></preference>", ["a1 b3", "a2 b3"]),
    "chronicle": (
        "<preference><self>DONE</self><other>OPEN</other><better>YES</better></preference>"
        "<preference><other>USED</other><better>NO</better></preference>",
        ["a1 b3", "a2 b4"],
    ),
    "most recent": ("<preference><other>SAME</other><better>RECENT</better></preference>", ["a2 b3", "a2 b4"]),
    "oldest": ("<preference><other>SAME</other><better>OLDEST</better></preference>", ["a1 b3", "a1 b4"]),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_policies(policy: str) -> None:
    preferences, expected = POLICIES[policy]
    assert origins(run(rules(PAIR.format(preferences)), STREAM)) == expected


# Installations: predicates, providers, context

ONE = """<cd id="c">{providers}
<sources><source class="m" anchor="M"><attribute name="x" type="int"/>{attributes}</source></sources>
<predicates><predicate {predicate}</predicate></predicates><expressions><expression anchor="X">P</expression></expressions>
<events><event class="e"><attribute name="y" type="{type}">{value}</attribute></event></events></cd>"""


def one(
    predicate: str = 'name="any" anchor="P">M', value: str = "M.x", type: str = "int", providers: str = "", attributes: str = ""
) -> str:
    given = f"<providers>{providers}</providers>" if providers else ""
    return ONE.format(predicate=predicate, value=value, type=type, providers=given, attributes=attributes)


@pytest.fixture
def installation() -> Iterator[None]:
    yield
    forget_providers()
    forget_predicate("oddly")


MESSAGES = events(*({"type": "m", "time": n, "x": n} for n in range(1, 5)))


@pytest.mark.usefixtures("installation")
def test_a_registered_predicate() -> None:
    with pytest.raises(RuleError, match="unknown predicate 'Oddly'"):
        rules(one('name="Oddly" anchor="P">M.x'))
    register_predicate("oddly", lambda x: None if x == 3 else x % 2 == 1, 1, 1)
    assert origins(run(rules(one('name="Oddly" anchor="P">M.x')), MESSAGES)) == ["m1"]
    with pytest.raises(RuleError, match="takes 1 arguments, not 2"):
        rules(one('name="oddly" anchor="P">M.x, 1'))
    with pytest.raises(ValueError, match="built-in"):
        register_predicate("EQUAL", lambda *_: True)


@pytest.mark.usefixtures("installation")
def test_a_function_as_a_provider() -> None:
    register_provider("double", lambda key, column: key * 2 if column == "twice" else None)
    made = run(rules(one(value="lookup('double', 'twice', M.x)")), MESSAGES[:2])
    assert [d["y"] for d in made] == [2, 4]


@pytest.mark.usefixtures("installation")
def test_context_of_the_installation() -> None:
    class Clock:
        def read(self, name: str, now: int) -> float | None:
            return now / 1000 if name == "now" else None

    register_context(Clock())
    assert [d["y"] for d in run(rules(one(value="node('now') + coalesce(node('other'), 100)")), MESSAGES[:2])] == [101, 102]


def test_tables(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('x,name,n,z\n1,"a, b",007,\n2,true,-0.5,q\n2,later,1,1\n', encoding="utf-8")
    csv = '<provider name="t" kind="csv" href="t.csv" key="x"/>'

    def column(name: str, type: str) -> list[Any]:
        made = run(rules(one(value=f"lookup('t', '{name}', M.x)", type=type, providers=csv), tmp_path), MESSAGES[:3])
        return [d.get("y") for d in made]

    assert column("name", "string") == ["a, b", None, None]
    assert column("name", "boolean") == [None, True, None]
    assert column("n", "string") == ["007", None, None]
    assert column("n", "double") == [None, -0.5, None]
    assert column("z", "string") == [None, "q", None]
    assert column("nowhere", "string") == [None, None, None]


def test_parquet_tables(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"x": [1, 2], "name": ["one", "two"]}), os.fspath(tmp_path / "t.parquet"))
    given = '<provider name="t" kind="parquet" href="t.parquet" key="x"/>'
    attribute = '<attribute name="who" type="string"><lookup provider="t" column="name">x</lookup></attribute>'
    made = run(rules(one(value="M.who", type="string", providers=given, attributes=attribute), tmp_path), MESSAGES)
    assert [d["y"] for d in made] == ["one", "two"]


# Time events and the rest of the graph


def test_timers_that_are_due_at_once_and_never() -> None:
    text = """<cd id="c"><sources><source class="m" anchor="M"><attribute name="x" type="int"/></source>
      <time anchor="T" trigger="M"><relative>M.x - 2</relative></time></sources>
      <predicates><predicate name="any" anchor="P">T</predicate></predicates>
      <expressions><expression anchor="X">P</expression></expressions>
      <events><event class="e"><attribute name="at" type="time_t">T.time</attribute></event></events></cd>"""
    made = run(rules(text), MESSAGES, until=float("inf"))
    assert [(d["from"], d["time"], d["at"]) for d in made] == [(["m2"], 2, 2), (["m3"], [3, 4], 4), (["m4"], [4, 6], 6)]


BETWEEN = """<cd id="between"><sources><source class="busy" access="internal" anchor="B"/></sources>
  <predicates><predicate name="any" anchor="P">B</predicate></predicates>
  <expressions><expression anchor="X">P</expression></expressions>
  <events><event class="relay" access="internal"/></events></cd>"""


def test_a_description_between_two_monitors() -> None:
    """What is internal is seen by all detectors and given out to nobody."""
    monitors = SourceText(
        "1.ecl", "monitor first = repeat { push(busy) { m } }\nmonitor last = repeat { push(done) { relay } }\n"
    )
    made = run(load(monitors, SourceText("2.cdl.xml", BETWEEN)), MESSAGES[:1])
    assert [(d["type"], d["from"]) for d in made] == [("busy", ["m1"]), ("done", ["m1"])]


# Snapshots and changed rules

WAITING = PAIR.format("")


def test_a_description_that_is_replaced_by_an_equal_one_keeps_its_state() -> None:
    engine = Engine(rules(WAITING))
    engine.process(STREAM[:2])
    engine.change_rules(rules(WAITING.replace('id="c"', 'id="c" version="2"')))
    assert len(engine.process(STREAM[2:3])) == 2
    engine.change_rules(rules(WAITING.replace("J and S", "S and J")))
    assert len(engine.process(STREAM[3:])) == 0


def test_what_comes_too_early_to_follow_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message of equal key that has to come before another one is offered to none of the thousands that came earlier."""
    from coincide.detection.correlation.interpreter import _Trial

    tried = []
    attempt = _Trial.extend
    monkeypatch.setattr(_Trial, "extend", lambda self, *given: tried.append(given) or attempt(self, *given))
    book = rules(PAIR.format("<preference><self>DONE</self><previous>YES</previous></preference>"))
    given = events(*({"type": "ba"[n % 2], "time": 5 * n + 1, "k": 1} for n in range(600)))
    assert origins(run(book, given)) == [f"a{10 * n - 4} b{10 * n + 1}" for n in range(1, 300)]
    assert len(tried) == 600 + 299  # each by itself, and each b with the one a before it


def test_state_of_another_version_is_refused() -> None:
    from coincide.detection.correlation import encoding
    from coincide.detection.correlation.plan import CorrelationPlan

    (plan,) = rules(WAITING).plans()
    assert isinstance(plan, CorrelationPlan)
    data = encoding.encode(plan.program, plan.initial())
    with pytest.raises(ValueError, match="of version 7"):
        encoding.decode(plan.program, data[:1] + b"\x07" + data[2:])


def test_consumed_members_leave_no_trace() -> None:
    text = """<cd id="c"><sources><collection class="m" anchor="G"><attribute name="x" type="int"/></collection></sources>
      <predicates><predicate anchor="P">count(G) &gt;= 2</predicate></predicates>
      <expressions><expression anchor="X">P</expression></expressions><events><event class="two"/></events></cd>"""
    (plan,) = rules(text).plans()
    engine = Engine(rules(text))
    assert origins([record(e) for e in engine.process(MESSAGES).events]) == ["m1 m2", "m3 m4"]
    (state,) = engine._state.states
    assert plan.encode(state) == plan.encode(plan.initial())
