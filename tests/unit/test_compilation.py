"""Kernels are compiled beside a run: it begins in the interpreter, and its answer does not depend on when it goes over."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coincide.engines import embedded, warming
from coincide.engines.embedded import Engine
from coincide.rulebook import loads

LANGUAGES = [pytest.param(language, text, id=f"{language}-{n}") for n, (language, text) in enumerate(warming.EXAMPLES)]
EVENTS = 1_200


def _records(rules, tier, monkeypatch=None, refusals=0):
    """What is found in one large batch; a loop is ready after it has been asked for so many times."""
    asked = []

    def is_ready(loop):
        asked.append(loop)
        return len(asked) > refusals

    if monkeypatch is not None:
        monkeypatch.setattr(embedded, "is_ready", is_ready)
        monkeypatch.setattr(embedded, "PIECE", 100)
    engine = Engine(rules, tier)
    tiers = []
    step = engine._step
    engine._step = lambda batch: tiers.append({plan.tier for plan in engine.graph.plans}) or step(batch)
    made = engine.process([warming._event(number) for number in range(EVENTS)]).records()
    return made + engine.finish(2 * EVENTS).records(), tiers


@pytest.mark.parametrize(("language", "text"), LANGUAGES)
def test_a_kernel_takes_over_in_the_middle_of_a_batch(language, text, monkeypatch):
    rules = loads(text, language)
    expected, _ = _records(rules, "interpreter")
    for module in ("sequence.plan", "base"):  # which the other one takes it from
        monkeypatch.setattr(f"coincide.detection.{module}.LARGE", EVENTS // 2)
    found, tiers = _records(rules, "auto", monkeypatch, refusals=8)
    assert found == expected
    assert expected
    assert tiers[0] != tiers[-1]
    assert {"kernel"} <= tiers[-1]
    assert len(tiers) > 2


def test_a_run_with_an_empty_cache_does_not_wait(tmp_path):
    """The real thing: it is interpreted, and what was compiled meanwhile is there for the next one."""
    rules, events = tmp_path / "rules.ecl", tmp_path / "events.jsonl"
    rules.write_text(warming.EXAMPLES[0][1])
    events.write_text("".join(json.dumps(warming._event(number)) + "\n" for number in range(65_000)))
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", "from coincide.cli.main import entry; entry()", "run", str(rules), "--events", str(events)]

    def run(*more):
        return subprocess.run([*command, *more], env=environment, capture_output=True, text=True, check=True, timeout=120).stdout

    assert run() == run("--tier", "interpreter")
    kernels = Path(environment["XDG_CACHE_HOME"], "coincide", "kernels")
    deadline = time.monotonic() + 120
    while not any(kernels.glob("coincide.detection.machine.loop/*/*.nbi")):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_examples_reach_the_loops_of_all_models():
    models = ("machine", "situation.kernel", "automaton", "algebra.sequence", "sequence", "rowpattern")
    assert {loop for loop, _ in warming._examples()} == {f"coincide.detection.{model}.loop" for model in models}
