"""Under stability policies, too, time passes when nothing comes, and a run goes on from its checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_support import Kept, Listed, Script

from coincide import loads
from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.engines.livepolicies import LivePolicies
from coincide.engines.policies import PolicyEngine
from coincide.model.event import Event
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
