"""What a host program registers travels to Spark's workers with the rules that use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support import expected, texts, texts_of_rows

from coincide import spark as on_spark
from coincide.amit import register, unregister
from coincide.cdl import forget_predicate, register_predicate
from coincide.engines.spark import runner
from coincide.model.batch import EventBatch
from coincide.model.event import primitive
from coincide.rulebook import load
from coincide.source import SourceText

pytestmark = pytest.mark.spark

EVENTS = [primitive("A", n * 1000, n * 1000, f"e{n}", {"x": float(n % 7)}) for n in range(50)]
AMIT = SourceText(
    "r.amit.xml",
    """<amit><event name="A"><eventAttribute name="x" type="number"/></event>
<lifespan name="l"><initiator><startup/></initiator><terminator><noTerminator/></terminator></lifespan>
<situation name="s" lifespan="l"><all><operandAll event="A" threshold="folded(x) = 2"/></all>
<situationAttribute name="y" type="number" expression="folded(A.x)"/></situation></amit>""",
)
CDL = SourceText(
    "r.cdl.yaml",
    """cd: odd
within: 1 min
sources: {A: {class: A, attributes: {x: double}}}
predicates: {p: {oddly: [A.x]}}
expressions: {X: [p]}
events: {odd: {attributes: {x: {double: A.x}}}}
""",
)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register("folded", lambda x: x % 3, ["number"], "number")
    register_predicate("oddly", lambda x: x % 2 == 1, 1, 1)
    yield
    unregister("folded")
    forget_predicate("oddly")


def test_batch_and_streaming(spark: Any) -> None:
    book = load(AMIT, CDL)
    wanted = expected(book, EVENTS)
    assert all(len(expected(load(source), EVENTS)) > 10 for source in (AMIT, CDL))
    rows = [(e.type, e.hi // 1000, e.id, e.attributes["x"]) for e in EVENTS]
    frame = spark.createDataFrame(rows, "type string, time bigint, id string, x double")
    assert texts_of_rows(frame.transform(on_spark.detect(book)).collect()) == wanted
    streamed = runner.run_streaming(book, [EventBatch(list(EVENTS))])
    assert texts(e for batch in streamed for e in batch.events) == wanted
