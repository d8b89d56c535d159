"""An event, or an end, so far off that a rule which acts of itself could not get there."""

from __future__ import annotations

import pytest

import coincide
from coincide.engines.choice import TIERS
from coincide.engines.embedded import Engine
from coincide.errors import RunError
from coincide.model.batch import EventBatch
from coincide.source import SourceText

COUNTED = ("counted.ecco", "detect n = a^COUNT over 10")
TICKING = (
    "ticking.amit.xml",
    """<amit>
  <event name="on"/><event name="off"/>
  <lifespan name="L">
    <initiator><eventInitiator event="on"/></initiator>
    <terminator><eventTerminator event="off"/></terminator>
  </lifespan>
  <situation name="tick" lifespan="L"><operator><every interval="10"/></operator></situation>
</amit>""",
)
FAR = "9999-12-31T23:59:59Z"


def engine(rules: tuple[str, str], tier: str = "auto") -> Engine:
    return Engine(SourceText(*rules), tier)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("columns", [False, True])
def test_what_was_found_before_is_given_out_then_the_run_stops(tier: str, columns: bool) -> None:
    detecting = engine(COUNTED, tier)
    events = [{"type": "a", "time": time} for time in (1, 25, FAR)]
    batch = detecting._batch(events)
    with pytest.raises(RunError, match=r"'n' acts every 10ms, so 2\.5·10\^13 times") as stopped:
        detecting.process(EventBatch(table=batch.table) if columns else batch)
    assert stopped.value.detections is not None
    assert [found["count"] for found in stopped.value.detections.records()] == [1, 0]


def test_an_open_lifespan_ticks() -> None:
    detecting = engine(TICKING)
    assert len(detecting.process([{"type": "on", "time": 0}, {"type": "other", "time": 35}])) == 3
    with pytest.raises(RunError, match="'tick' acts every 10ms"):
        detecting.process({"type": "off", "time": FAR})


RENEWED = (
    "renewed.amit.xml",
    """<amit>
  <event name="on"/><event name="alive"/>
  <lifespan name="L">
    <initiator><eventInitiator event="on"/><eventInitiator event="quiet"/></initiator>
    <terminator><expirationInterval timeInterval="10"/></terminator>
  </lifespan>
  <situation name="quiet" lifespan="L"><operator><not><operandNot event="alive"/></not></operator></situation>
</amit>""",
)


def test_a_lifespan_may_be_opened_by_its_own_end() -> None:
    detecting = engine(RENEWED)
    assert len(detecting.process([{"type": "on", "time": 0}, {"type": "other", "time": 35}])) == 3
    with pytest.raises(RunError, match="'quiet' acts every 10ms"):
        detecting.process({"type": "other", "time": FAR})


def test_nothing_ticks_in_a_lifespan_that_has_ended() -> None:
    detecting = engine(TICKING)
    times = [("on", 0), ("off", 15), ("on", FAR), ("off", "9999-12-31T23:59:59.025Z")]
    made = detecting.process([{"type": type, "time": time} for type, time in times])
    assert len(made) == 3  # one, then two


def test_an_end_may_be_too_far_off() -> None:
    detecting = engine(COUNTED)
    detecting.process({"type": "a", "time": 1})
    with pytest.raises(RunError, match="`until` too far off"):
        detecting.finish(FAR)
    assert engine(COUNTED).finish("inf").records() == []


@pytest.mark.parametrize("policy", ["best-effort", "probabilistic 0.5", "guaranteed"])
def test_an_arrival_may_be_too_far_off(policy: str) -> None:
    """Under a policy timers fire one by one, as arrivals let them: that would never end, either."""
    events = [{"type": "on", "time": 0, "arrival": 0}, {"type": "on", "time": 35, "arrival": 36}]
    far = {"type": "other", "time": FAR if policy == "guaranteed" else 40, "arrival": FAR}
    rules = coincide.load(SourceText(*TICKING))
    assert coincide.detect(rules, events, policy=policy)
    with pytest.raises(RunError, match="'tick' acts every 10ms"):
        coincide.detect(rules, [*events, far, {**far, "type": "last"}], policy=policy)
