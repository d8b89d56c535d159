"""Under stability policies, too, time passes when nothing comes, and a run goes on from its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_support import Kept, Listed, Script

from coincide import Engine, Rulebook, loads
from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.engines.instance import StabilityPolicy
from coincide.engines.live import Live, LiveEngine
from coincide.engines.livepolicies import LivePolicies
from coincide.engines.policies import PolicyEngine
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.streams.encode import Encoder
from coincide.streams.loop import LiveLoop
from coincide.streams.run import LiveRun, Pace

BOOK = loads(
    "detect Pair = [a(k = ?k)] ; [b(k = ?k)]\ndetect Silent = ([a(k = ?k)], [T in {T, b(k = ?k)}]) T = 5ms",
    "opera",
)
POLICIES = ["best-effort", "guaranteed", "probabilistic 0.5"]


def event(number: int, type: str, time: int, arrival: int, source: str = "s") -> Event:
    record = {"type": type, "time": time, "arrival": arrival, "source": source, "k": 1}
    return event_of(record, DEFAULT, number)


def seconds_of(policy: str, clock: str, *steps: Event | float) -> list[tuple[float, str]]:
    script = Script(*steps)
    loop = LiveLoop(LivePolicies(PolicyEngine(BOOK, policy)), clock, script.now)
    return [(round(script.now(), 4), made.type) for batch in loop.detections(script) for made in batch.events]


def test_absence_shows_by_the_wall() -> None:
    a = event(1, "a", 100, 100)
    assert seconds_of("best-effort", "wall", a, 1.0) == [(0.005, "Silent")]
    assert seconds_of("best-effort", "event", a, 1.0) == []


def test_what_is_guaranteed_waits_for_its_sources_whatever_the_hour() -> None:
    assert seconds_of("guaranteed", "wall", event(1, "a", 100, 100), 60.0, event(2, "c", 200, 200)) == [(60.0, "Silent")]


def test_what_is_probable_enough_shows_when_it_is() -> None:
    late = [event(number, "c", number * 10, number * 10 + 3) for number in range(1, 9)]
    assert seconds_of("probabilistic 0.5", "wall", *late, event(9, "a", 100, 103), 1.0) == [(0.005, "Silent")]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cut", [1, 4, 7])
def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path, policy: str, cut: int) -> None:
    events = [event(n, "ab"[n % 2], n * 3, n * 3 + n % 4, f"s{n % 2}") for n in range(1, 12)]

    def ran(folder: Path | None, end: int) -> list[bytes]:
        sink = Kept()
        pace = Pace("event", latency=0.0, checkpoint_every=0.0)
        run = LiveRun(LivePolicies(PolicyEngine(BOOK, policy)), [Listed(events, end)], [sink], Encoder(BOOK), pace, folder)
        list(run.detections())
        list(run.rest(ended=end == len(events)))
        run.close()
        return sink.lines

    whole = ran(None, len(events))
    assert ran(tmp_path, cut) + ran(tmp_path, len(events)) == whole
    assert whole


def with_policy(text: str) -> Rulebook:
    return loads(PLAIN + text, "opera")


PLAIN = "detect Pair = [a(k = ?k)] ; [b(k = ?k)]\ndetect Silent = ([a(k = ?k)], [T in {T, b(k = ?k)}]) T = 5ms\n"
OTHER = "detect Once policy best-effort = [b] ; [b]"


def live_of(text: str, delay: int) -> Live:
    book = with_policy(text)
    return LivePolicies(PolicyEngine(book, StabilityPolicy("delayed", delay=delay))) if text else LiveEngine(Engine(book), delay)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(-2, 6)), max_size=14),
    st.sets(st.integers(0, 14), max_size=4),
    st.sampled_from([0, 4000]),
)
def test_rules_without_a_policy_do_not_notice_that_others_get_one(
    steps: list[tuple[str, int]], switches: set[int], delay: int
) -> None:
    """The state goes from the total order to policies and back, between any two events, while time passes, too."""

    def ran(at: set[int]) -> list[dict[str, Any]]:
        live, text, time, latest, made = live_of("", delay), "", 10, 0, []
        for number, (kind, step) in enumerate(steps):
            if number in at:
                text = "" if text else OTHER
                told, live = live.changes(everything=True), live_of(text, delay)
                live.restore(told.data)
            time = max(0, time + step)
            latest = max(latest, time * 1000)
            made += live.arrive(EventBatch([event(number, kind, time, time)]))
            made += live.pass_time(latest + delay + 2001)  # so that what waits for its instant to pass does not
        made += live.finish(latest + 5000, closed=True)
        return [record(each) for batch in made for each in batch.events if each.type != "Once"]

    assert ran(switches) == ran(set())
