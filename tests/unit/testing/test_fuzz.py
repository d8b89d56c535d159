"""The fuzzers: the same mutants each time, and whatever goes wrong is told with its number."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from coincide.errors import CoincideError
from coincide.testing.fuzz.__main__ import main
from coincide.testing.fuzz.events import LARGE, EventFuzzer, answer
from coincide.testing.fuzz.mutation import mutate_packed, mutate_text, packed, unpacked
from coincide.testing.fuzz.rules import RuleFuzzer
from coincide.testing.fuzz.work import Difference, outcomes, random_of, tried

CASES = Path(__file__).parents[2] / "conformance/cases"


@dataclass(frozen=True)
class Bad:
    """An attempt that goes wrong in one of the ways in which attempts do."""

    way: str
    limit = 0.1

    def shown(self) -> str:
        return self.way

    def run(self) -> str:
        if self.way == "crash":
            raise KeyError(self.way)
        if self.way == "difference":
            raise Difference("a is not b")
        if self.way == "death":
            os._exit(3)
        while self.way == "hang":
            time.process_time()
        return "run"


class BadFuzzer:
    def attempt(self, random: Random) -> Bad:
        return Bad(random.choice(["crash", "difference", "death", "hang", "run"]))


def test_each_way_to_go_wrong_is_told_and_the_rest_is_tried() -> None:
    found = list(outcomes(BadFuzzer(), 1, range(20), jobs=2))
    assert sorted(outcome.number for outcome in found) == list(range(20))
    for outcome in found:
        way = BadFuzzer().attempt(random_of(1, outcome.number)).way
        assert outcome.word == way
        assert (outcome.finding is None) == (way == "run")


def test_the_same_seed_gives_the_same_mutants() -> None:
    texts = [[RuleFuzzer(CASES / "pretty").attempt(random_of(7, number)).shown() for number in range(5)] for _ in range(2)]
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 5


def test_mutants_of_text_and_data_differ_from_what_they_were() -> None:
    data = packed([1, {"a": b"x"}, packed({"b": [2, 3]})])
    assert unpacked(data)[2] == [{"b": [2, 3]}]
    assert sum(mutate_packed(data, Random(number)) != data for number in range(100)) > 90
    assert sum(mutate_text("monitor a = b", Random(number), ["c"]) != "monitor a = b" for number in range(100)) > 60


def test_one_mutant_can_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--corpus", str(CASES / "ecl"), "--only", "3"]) == 0
    assert "--- r" in capsys.readouterr().out  # refused or run


def test_a_folder_without_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--corpus", str(tmp_path), "--count", "1"]) == CoincideError.exit_code
    assert "--corpus" in capsys.readouterr().err


def test_an_attempt_here_tells_where_it_went_wrong() -> None:
    number = next(n for n in range(50) if BadFuzzer().attempt(random_of(0, n)).way == "crash")
    outcome = tried(BadFuzzer(), 0, number, armed=False)
    assert outcome.finding == "crash: KeyError at testing/fuzz/work.py:_ran"
    assert "KeyError: 'crash'" in outcome.detail


def test_rules_that_name_a_policy_are_compared_as_events_arrive(tmp_path: Path) -> None:
    """What came too late and how late detections were made is a part of the answer."""
    fuzzer = EventFuzzer(CASES / "opera-policies/policy-per-detector")
    attempt = next(a for n in range(50) if len((a := fuzzer.attempt(random_of(1, n))).lines) < LARGE)
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join(json.dumps(event).encode() for event in attempt.example.events))
    answers = [answer(str(file), attempt.example, "embedded", tier, 1 << 20) for tier in ("interpreter", "kernel")]
    assert answers[0] == answers[1]
    assert {"latency", "read"} <= {name for told in answers[0] for name in told}
    assert attempt.run() == "small"


@pytest.mark.parametrize(("what", "count"), [("rules", 400), ("events", 8), ("state", 40)])
def test_a_fixed_share(what: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Of what `python -m coincide.testing.fuzz` tries with many."""
    cases = CASES if what == "rules" else CASES / "ecl"  # kernels of other models take longer to compile
    code = main([what, "--corpus", str(cases), "--count", str(count), "--seed", "10"])
    assert code == 0, capsys.readouterr().out
