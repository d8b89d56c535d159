"""`coincide run --why` and `coincide draw --events`: what led to detections, as trees and as a picture."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_support import FOUND, RULES, Coincide, jsonl, written

TREES = """\
30  pair  door=a  v=7
  ├ 10  open  door=a
  └ 30  close  door=a  v=7  ← completes it

40  pair  door=b
  ├ 20  open  door=b
  └ 40  close  door=b  ← completes it

40  twice
  ├ 30  pair  door=a  v=7
  │   ├ 10  open  door=a
  │   └ 30  close  door=a  v=7
  └ 40  pair  door=b  ← completes it
      ├ 20  open  door=b
      └ 40  close  door=b

"""


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_trees(coincide: Coincide, rules: Path, events: Path, tmp_path: Path, tier: str) -> None:
    outcome = coincide("run", rules, "--events", events, "--why", "--tier", tier)
    assert (outcome.code, outcome.out, outcome.err) == (0, TREES, "")
    out = tmp_path / "found.jsonl"
    assert coincide("run", rules, "--events", events, "--why", "--out", out).out == TREES
    assert len(out.read_text().splitlines()) == len(FOUND)


def test_events_of_before_the_run(coincide: Coincide, tmp_path: Path) -> None:
    rules = written(tmp_path / "r.ce", "detect P = ([a], eps ; [b]) T = 1h\n")
    state, parts = tmp_path / "state", [jsonl(tmp_path / f"{n}.jsonl", [{"type": n, "time": ord(n)}]) for n in "ab"]
    assert coincide("run", rules, "--events", parts[0], "--snapshot", state, "--why").code == 0
    outcome = coincide("run", rules, "--events", parts[1], "--resume", state, "--why")
    assert outcome.out.splitlines()[1:3] == ["  ├ 97  event 1, of before this run", "  └ 98  b  ← completes it"]


def test_only_in_this_process(coincide: Coincide, rules: Path, events: Path) -> None:
    outcome = coincide("run", rules, "--events", events, "--why", "--engine", "spark")
    assert (outcome.code, "--why is for the embedded engine" in outcome.err) == (2, True)


def test_a_run_drawn(coincide: Coincide, rules: Path, events: Path, tmp_path: Path) -> None:
    picture = tmp_path / "run.svg"
    assert coincide("draw", rules, "--events", events, "--out", picture).code == 0
    words = [e.text for e in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert {"rules.ecl", "open", "close", "pair", "twice", "a", "b"} <= set(words)
    assert "4 events, 3 detections  ·  10 to 40 ms" in words
    only = coincide("draw", "--events", events, rules, "--only", "twice").out
    assert (">twice<" in only, ">pair<" in only, only.count("<circle")) == (True, False, 4)


def test_many_detections_are_a_strip(coincide: Coincide, tmp_path: Path) -> None:
    rules = written(tmp_path / "r.ecl", "monitor m = repeat { push(x) { a } }\n")
    events = jsonl(tmp_path / "e.jsonl", [{"type": "a", "time": t} for t in range(1000)])
    drawn = coincide("draw", rules, "--events", events, "--until", "2000").out
    assert (">1,000<" in drawn, drawn.count("<path")) == (True, 0)


@pytest.mark.parametrize("options", [["--format", "dot"], ["--out", "x.mmd"]])
def test_a_run_is_drawn_as_svg_only(coincide: Coincide, rules: Path, events: Path, options: list[str]) -> None:
    outcome = coincide("draw", rules, "--events", events, *options)
    assert (outcome.code, "as SVG only" in outcome.err) == (2, True)


def test_rules_are_still_drawn_without_events(coincide: Coincide, tmp_path: Path) -> None:
    assert coincide("draw", written(tmp_path / "r.ecl", RULES)).out.startswith("digraph")
