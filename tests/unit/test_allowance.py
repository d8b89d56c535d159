"""A bound on detections: the run stops soon after it, and says which rule it was."""

from __future__ import annotations

import pytest

import coincide
from coincide.errors import InputError, RunError

EACH_WITH_EACH = coincide.loads("detect calm = stop\ndetect pairs = start ; stop", "ecco")
EVENTS = [{"type": "start" if n < 300 else "stop", "time": n} for n in range(600)]


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_the_rule_that_makes_too_many_is_named(tier: str) -> None:
    engine = coincide.Engine(EACH_WITH_EACH, tier, max_detections=3_000)
    with pytest.raises(RunError, match=r":2:1: error: more than 3,000 detections, [\d,]+ of them by 'pairs'") as stopped:
        engine.process(EVENTS)
    assert stopped.value.detections is not None
    assert len(stopped.value.detections) <= 3_000


def test_what_is_within_the_bound_is_as_without_it() -> None:
    some = EVENTS[250:350]
    assert coincide.detect(EACH_WITH_EACH, some, max_detections=2_550) == coincide.detect(EACH_WITH_EACH, some)
    with pytest.raises(RunError, match="more than 2,549 detections"):
        coincide.detect(EACH_WITH_EACH, some, max_detections=2_549)


def test_it_is_refused_where_nobody_counts() -> None:
    with pytest.raises(InputError, match="without policies"):
        coincide.detect(EACH_WITH_EACH, EVENTS[:1], max_detections=1, policy="best-effort")
