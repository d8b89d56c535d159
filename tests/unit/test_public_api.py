"""The package's front door: what it offers, the examples of its documentation, events of every form."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import coincide
from coincide import api
from coincide.errors import CoincideError, InputError, RuleError
from coincide.model.event import primitive

RULES = "monitor pairs by door = repeat { push(pair) { sequential { open, close } } }"
EVENTS = [
    {"type": "close", "time": 30, "door": "a", "id": "2"},
    {"type": "open", "time": 10, "door": "a", "id": "1"},
]
FOUND = [{"type": "pair", "time": 30, "from": ["2"], "door": "a"}]


@pytest.mark.parametrize("module", [coincide, api])
def test_examples(module: Any) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_all_names_are_there_and_no_others_are_promised() -> None:
    offered = "[getattr(coincide, name) for name in coincide.__all__ if name[0] != '_']"
    script = f"import coincide, coincide.detection.base; print(all(map(callable, {offered})))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "True\n"
    assert set(coincide.__all__) <= set(dir(coincide))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = coincide.nothing


def test_the_import_is_light() -> None:
    script = "import sys, coincide; print([m for m in sys.modules if m.startswith('coincide.')])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_files_and_tables_whose_disorder_is_bounded(tmp_path: Path) -> None:
    times = [1, 4, 2, 5]
    (file := tmp_path / "events.jsonl").write_text("".join(f'{{"type": "t", "time": {time}}}\n' for time in times))
    rules = coincide.loads("monitor each = repeat { push(each) { t } }")
    for events in (file, [{"type": "t", "time": time} for time in times]):
        assert [made["time"] for made in coincide.run(rules, events, delay=2)] == sorted(times)
        with pytest.warns(coincide.DataWarning, match="1 event came too late"):
            assert [made["time"] for made in coincide.run(rules, events, delay="1ms")] == [1, 4, 5]


def test_records_events_and_generators(tmp_path: Path) -> None:
    rules = coincide.loads(RULES)
    assert coincide.detect(rules, EVENTS) == FOUND
    assert coincide.detect(rules, (event for event in EVENTS)) == FOUND
    objects = [primitive(e["type"], e["time"] * 1000, e["time"] * 1000, e["id"], {"door": e["door"]}) for e in EVENTS]  # type: ignore[arg-type, operator]
    assert coincide.detect(rules, objects) == FOUND
    assert list(coincide.run(rules, EVENTS, until="inf")) == FOUND
    assert coincide.detect(rules, []) == []


def test_paths_of_rules_and_events(tmp_path: Path) -> None:
    rules, events = tmp_path / "rules.ecl", tmp_path / "events.csv"
    rules.write_text(RULES)
    events.write_text("type,time,door,id\nclose,30,a,2\nopen,10,a,1\n")
    assert coincide.detect(rules, events) == FOUND
    assert coincide.detect([str(rules)], [events]) == FOUND


def test_tables() -> None:
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    rules = coincide.loads(RULES)
    for table in (pandas.DataFrame(EVENTS), polars.DataFrame(EVENTS), polars.LazyFrame(EVENTS), arrow.Table.from_pylist(EVENTS)):
        assert coincide.detect(rules, table) == FOUND


def test_bad_events() -> None:
    rules = coincide.loads(RULES)
    with pytest.raises(InputError, match="record 3: missing time"):
        coincide.detect(rules, [*EVENTS, {"type": "open"}])
    assert coincide.detect(rules, [*EVENTS, {"type": "open"}], strict=False) == FOUND
    with pytest.raises(InputError, match="not int"):
        coincide.detect(rules, [1])  # type: ignore[list-item]


def test_bad_rules() -> None:
    with pytest.raises(RuleError, match=r"rules.ecl:1:13: error: expected"):
        coincide.loads("monitor m = }")


def test_unknown_engines_and_times() -> None:
    with pytest.raises(CoincideError, match="did you mean 'embedded'"):
        coincide.detect(coincide.loads(RULES), EVENTS, engine="embeded")
    with pytest.raises(CoincideError, match="is not a time"):
        coincide.detect(coincide.loads(RULES), EVENTS, until="soon")
