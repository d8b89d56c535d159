"""Functions of a host program (AMIT-62)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coincide.engines.embedded import Engine
from coincide.errors import RuleError, RunError
from coincide.lang.amit.functions import register, unregister
from coincide.model.event import Value, primitive, record
from coincide.source import SourceText

RULES = """<amit>
  <event name="A"><eventAttribute name="x" type="number"/></event>
  <lifespan name="l"><initiator><startup/></initiator><terminator><noTerminator/></terminator></lifespan>
  <situation name="s" lifespan="l">
    <all><operandAll event="A" threshold="twice(x) > 2"/></all>
    <situationAttribute name="v" type="number" expression="twice(A.x) + 1"/>
  </situation>
</amit>"""


@pytest.fixture
def twice() -> Iterator[list[Value]]:
    """`twice`, which is also wrong at 7, absent-minded at 8 and broken at 9; the arguments that it got."""
    calls: list[Value] = []

    def function(x: float) -> object:
        calls.append(x)
        if x == 9:
            raise ValueError("nine")
        return "fourteen" if x == 7 else [16] if x == 8 else int(2 * x)

    register("twice", function, ["number"], "number")
    yield calls
    unregister("twice")


def detect(*values: Value) -> list[Value]:
    engine = Engine(SourceText("r.amit.xml", RULES))
    events = [primitive("A", n, n, str(n), {"x": value}) for n, value in enumerate(values)]
    return [record(event)["v"] for event in engine.process(events).events]


def test_it_is_called_and_its_results_are_numbers(twice: list[Value]) -> None:
    assert detect(1.0, 2.0, 3.0) == [5, 7]


def test_null_without_a_call_for_null_or_a_wrong_type(twice: list[Value]) -> None:
    assert detect(None, "2", True) == []
    assert twice == []


def test_a_result_of_another_type_is_null(twice: list[Value]) -> None:
    assert detect(7.0, 8.0) == []


def test_a_failure_stops_the_run(twice: list[Value]) -> None:
    with pytest.raises(RunError, match="function 'twice' failed: nine"):
        detect(9.0)


@pytest.mark.parametrize("name", ["abs", "sum", "twice"])
def test_a_name_is_taken_once(name: str, twice: list[Value]) -> None:
    with pytest.raises(RuleError, match=f"function '{name}' exists already"):
        register(name, lambda: None, [], "unknown")


def test_types_are_checked_as_for_any_function(twice: list[Value]) -> None:
    rules = RULES.replace("twice(x)", "twice('x')")
    with pytest.raises(RuleError, match="'twice' wants a number, not a string"):
        Engine(SourceText("r.amit.xml", rules))
    with pytest.raises(RuleError, match="wrong number of arguments of 'twice'"):
        Engine(SourceText("r.amit.xml", RULES.replace("twice(x)", "twice(x, x)")))


def test_it_is_not_there_unless_it_is_registered() -> None:
    with pytest.raises(RuleError, match="unknown function 'twice'"):
        Engine(SourceText("r.amit.xml", RULES))
