"""`coincide run`: what it prints, what it writes, what it goes on from."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from cli_support import EVENTS, FOUND, Coincide, jsonl, written

from coincide.errors import RunError


def test_prints_one_detection_a_line_in_the_order_made(coincide: Coincide, rules: Path, events: Path) -> None:
    outcome = coincide("run", rules, "--events", events)
    assert (outcome.code, outcome.records, outcome.err) == (0, FOUND, "")


def test_events_may_stand_in_any_order_and_in_several_files(coincide: Coincide, rules: Path, tmp_path: Path) -> None:
    files = [jsonl(tmp_path / f"{n}.jsonl", [{"id": str(n), **EVENTS[n - 1]}]) for n in (4, 2, 3, 1)]
    assert coincide("run", rules, "--events", *files).records == FOUND
    assert coincide("run", rules, "-e", files[0], "-e", *files[1:]).records == FOUND


def test_several_jobs_detect_the_same_in_the_same_order(coincide: Coincide, rules: Path, events: Path, tmp_path: Path) -> None:
    assert coincide("run", rules, "--events", events, "--jobs", 2).records == FOUND  # one rule reads what all keys have led to
    keyed = written(tmp_path / "keyed.ecl", "monitor pairs by door = repeat { push(pair, v: v) { sequential { open, close } } }")
    assert coincide("run", keyed, "--events", events, "--jobs", 3).records == FOUND[:2]
    assert coincide("run", keyed, "--events", events, "--jobs", 0).err == "error: there can be 1 to 256 jobs, not 0\n"
    refused = coincide("run", keyed, "--events", events, "--jobs", 2, "--snapshot", tmp_path / "state")
    assert refused.err == "error: --jobs is for files and the embedded engine, without --snapshot, --resume and --stats\n"


def test_rules_may_stand_anywhere(coincide: Coincide, tmp_path: Path, events: Path) -> None:
    one = written(tmp_path / "1.ecl", "monitor a = repeat { push(x) { open } }")
    two = written(tmp_path / "2.ecl", "monitor b = repeat { push(y) { x } }")
    expected = coincide("run", one, two, "--events", events).out
    assert expected
    assert coincide("run", "--events", events, one, two).out == expected
    assert coincide("run", one, "--events", events, "--tier", "interpreter", two).out == expected


def test_standard_input(coincide: Coincide, rules: Path, events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(events.read_bytes())))
    assert coincide("run", rules, "--events", "-").records == FOUND


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_output_file(coincide: Coincide, rules: Path, events: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"found.{ending}"
    outcome = coincide("run", rules, "--events", events, "--out", out)
    assert (outcome.code, outcome.out) == (0, "")
    if ending == "jsonl":
        assert [json.loads(line) for line in out.read_text().splitlines()] == FOUND
    else:
        import pyarrow.parquet

        assert pyarrow.parquet.read_table(out).column("type").to_pylist() == ["pair", "pair", "twice"]


def test_an_output_is_complete_or_absent(coincide: Coincide, rules: Path, tmp_path: Path) -> None:
    bad = jsonl(tmp_path / "bad.jsonl", [*EVENTS, {"type": "open"}])
    out = tmp_path / "out" / "found.jsonl"
    out.parent.mkdir()
    assert coincide("run", rules, "--events", bad, "--out", out, "--strict").code == 2
    assert list(out.parent.iterdir()) == []
    out.write_text("of yesterday")
    assert coincide("run", rules, "--events", bad, "--out", out, "--strict").code == 2
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    assert out.read_text() == "of yesterday"


def test_warnings_go_to_standard_error_and_the_run_goes_on(coincide: Coincide, tmp_path: Path, events: Path) -> None:
    rules = written(tmp_path / "once.ecl", "monitor once =\n  push(x) { open }\n")
    outcome = coincide("run", rules, "--events", events)
    assert outcome.code == 0
    assert [record["type"] for record in outcome.records] == ["x"]
    head, line, caret = outcome.err.splitlines()
    assert head == f"{rules}:1:9: warning: monitor 'once' can push a bounded number of times only (no repeat?)"
    assert (line.strip(), caret.index("^")) == ("monitor once =", 4 + 8)


def test_an_endless_machine_is_told_of_and_the_run_goes_on(coincide: Coincide) -> None:
    case = Path(__file__).parents[2] / "conformance/cases/ecl/machine-never-settles-late"
    assert coincide("run", case / "rules.ecl", "--events", case / "events.jsonl").code == 0


def test_bad_records_are_left_out_and_told_of(coincide: Coincide, rules: Path, tmp_path: Path) -> None:
    lines = [json.dumps(record) for record in EVENTS]
    bad = [
        '{"type": "open", "ti',
        '{"type": "open"}',
        '{"time": 3}',
        '{"type": "open", "time": true}',
        "[1]",
        "7",
        '{"type": true, "time": 1}',
    ]
    events = written(tmp_path / "events.jsonl", "\n".join([lines[0], *bad, *lines[1:]]) + "\n")
    rejects = tmp_path / "rejects.jsonl"
    outcome = coincide("run", rules, "--events", events, "--rejects", rejects)
    assert outcome.code == 0
    assert [record["type"] for record in outcome.records] == ["pair", "pair", "twice"]
    assert rejects.read_text().splitlines() == bad
    first, *reasons, more = outcome.err.splitlines()
    assert first == f"warning: 7 of 11 records left out, kept in {rejects}"
    assert reasons[1] == f"    {events}:3: missing time"
    assert more == "    and 2 more"


def test_strict_stops_at_the_first_bad_record(coincide: Coincide, rules: Path, tmp_path: Path) -> None:
    events = jsonl(tmp_path / "events.jsonl", [EVENTS[0], {"type": "open"}])
    outcome = coincide("run", rules, "--events", events, "--strict")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {events}:2: missing time\n    hint: a mapping says which fields are meant")


def test_fields_of_other_names(coincide: Coincide, rules: Path, tmp_path: Path) -> None:
    records = [
        {"kind": e["type"], "at": e["time"] / 1000, "n": f"r{i}", "door": e["door"], "v": e.get("v")}
        for i, e in enumerate(EVENTS)
    ]  # type: ignore[operator]
    events = jsonl(tmp_path / "log.jsonl", records)
    fields = ["--type-field", "kind", "--time-field", "at", "--id-field", "n", "--time-unit", "s"]
    found = coincide("run", rules, "--events", events, *fields).records
    assert found == [{**record, "from": [f"r{int(record['from'][0]) - 1}"]} for record in FOUND]  # type: ignore[index]


def test_all_events_of_one_type(coincide: Coincide, tmp_path: Path) -> None:
    rules = written(tmp_path / "hot.ecl", "monitor m = repeat { push(hot, v: v) { reading and v > 30 } }")
    events = written(tmp_path / "readings.csv", "time,v\n1,20\n2,31\n")
    outcome = coincide("run", rules, "--events", events, "--type", "reading")
    assert outcome.records == [{"type": "hot", "time": 2, "from": ["2"], "v": 31}]


@pytest.mark.parametrize("until", ["1000", "2026-03-01T12:00:00Z", "2026-03-01", "inf", "-5"])
def test_until(coincide: Coincide, rules: Path, events: Path, until: str) -> None:
    assert coincide("run", rules, "--events", events, f"--until={until}").records == FOUND


@pytest.mark.parametrize("cut", range(len(EVENTS) + 1))
def test_a_run_in_two_parts_is_one_run(coincide: Coincide, rules: Path, tmp_path: Path, cut: int) -> None:
    records = [{"id": str(n), **event} for n, event in enumerate(EVENTS, 1)]
    parts = [jsonl(tmp_path / "1.jsonl", records[:cut]), jsonl(tmp_path / "2.jsonl", records[cut:])]
    state = tmp_path / "state"
    first = coincide("run", rules, "--events", parts[0], "--snapshot", state)
    second = coincide("run", rules, "--events", parts[1], "--resume", state)
    assert (first.code, second.code, first.err + second.err) == (0, 0, "")
    assert first.records + second.records == FOUND


def test_events_before_the_state_are_late(coincide: Coincide, rules: Path, events: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    coincide("run", rules, "--events", events, "--snapshot", state)
    outcome = coincide("run", rules, "--events", events, "--resume", state)
    assert outcome.code == 0
    assert "3 events are older than the state" in outcome.err


@pytest.mark.parametrize("content", [b"", b"\x00\x01", b"text", b"\x95\x63\x00\xc0\x00\x80"])
def test_what_is_no_snapshot(coincide: Coincide, rules: Path, events: Path, tmp_path: Path, content: bytes) -> None:
    state = tmp_path / "state"
    state.write_bytes(content)
    outcome = coincide("run", rules, "--events", events, "--resume", state)
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: '{state}' is not a snapshot")


def test_a_run_that_cannot_finish(
    coincide: Coincide, rules: Path, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise RunError("a chain of more than 1000 detections")

    monkeypatch.setattr("coincide.engines.choice.detections", stop)
    out = tmp_path / "found.jsonl"
    outcome = coincide("run", rules, "--events", events, "--out", out)
    assert (outcome.code, outcome.err) == (1, "error: a chain of more than 1000 detections\n")
    assert not out.exists()


def test_definitions_that_start_afresh_are_named(coincide: Coincide, rules: Path, events: Path, tmp_path: Path) -> None:
    state, later = tmp_path / "state", jsonl(tmp_path / "later.jsonl", [{"type": "open", "time": 50, "door": "a"}])
    assert coincide("run", rules, "--events", events, "--snapshot", state).code == 0
    rules.write_text(rules.read_text().replace("pair, pair", "pair, pair, pair"))
    outcome = coincide("run", rules, "--events", later, "--resume", state, "--snapshot", state)
    assert outcome.code == 0
    assert outcome.err == f"note: new or changed since '{state}' was taken, so starting afresh: twice\n"


@pytest.mark.parametrize("option", ["--out", "--rejects", "--snapshot", "--stats"])
def test_an_output_does_not_replace_an_input(coincide: Coincide, rules: Path, events: Path, option: str) -> None:
    content = events.read_bytes()
    outcome = coincide("run", rules, "--events", events, option, events.parent / "." / events.name)
    assert (outcome.code, outcome.out, events.read_bytes()) == (2, "", content)
    assert outcome.err == f"error: {option} would replace '{events}', which is read too\n"


def test_two_outputs_are_two_files(coincide: Coincide, rules: Path, events: Path, tmp_path: Path) -> None:
    same = tmp_path / "same.jsonl"
    outcome = coincide("run", rules, "--events", events, "--out", same, "--rejects", same)
    assert (outcome.code, same.exists()) == (2, False)
    assert "which --out writes too" in outcome.err


def test_names_that_no_event_had_are_told_with_the_nearest(coincide: Coincide, tmp_path: Path, events: Path) -> None:
    rules = written(tmp_path / "typo.ecl", "monitor pairs by dor = repeat { push(pair, v: v) { sequential { opn, close } } }")
    outcome = coincide("run", rules, "--events", events)
    heads = [line for line in outcome.err.splitlines() if "warning" in line]
    assert (outcome.code, outcome.out) == (0, "")
    assert heads == [
        f"{rules}:1:65: warning: no event had the type 'opn'; did you mean 'open' (2 events)?",
        f"{rules}:1:18: warning: no event had the key 'dor'; did you mean 'door' (4 events)?",
    ]


def test_a_run_without_events_says_so_in_one_line(coincide: Coincide, tmp_path: Path, rules: Path) -> None:
    outcome = coincide("run", rules, "--events", written(tmp_path / "none.jsonl", ""))
    assert (outcome.code, outcome.err) == (0, "warning: there were no events\n")


def test_lost_digits_are_told_only_where_they_are_read(coincide: Coincide, tmp_path: Path) -> None:
    events = jsonl(tmp_path / "events.jsonl", [{"type": "a", "time": 1, "seen": 2**64 + 1, "other": 2**70 + 1}])
    reads = written(tmp_path / "reads.ecl", "monitor m = repeat { push(x, seen: seen) { a } }")
    told = "warning: attribute 'seen' has integers of more than 64 bits (1 of them), which lose digits: give them as text\n"
    assert coincide("run", reads, "--events", events).err == told
    hands_on = written(tmp_path / "all.ecco", "detect x = a")
    assert {"'seen'", "'other'"} <= set(coincide("run", hands_on, "--events", events).err.split())


def test_whole_numbers_of_64_bits_come_out_as_they_are(coincide: Coincide, tmp_path: Path) -> None:
    """Also those that doubles could hold but would write with an exponent."""
    numbers = [2**53 + 1, 2**63 - 1, -(2**63), 2**60, 10**16, 12345678901234567]
    events = jsonl(tmp_path / "events.jsonl", [{"type": "a", "time": n, "n": number} for n, number in enumerate(numbers)])
    rules = written(tmp_path / "all.ecl", "monitor m = repeat { push(x, n: n) { a } }")
    outcome = coincide("run", rules, "--events", events)
    assert outcome.err == ""
    assert [line.partition('"n":')[2] for line in outcome.out.splitlines()] == [f"{number}}}" for number in numbers]


def test_times_have_one_form_a_run(coincide: Coincide, tmp_path: Path) -> None:
    rules = written(tmp_path / "pair.ce", "detect Pair = [A] ; [B]")
    given = [{"type": kind, "time": time} for kind, time in (("A", 1000), ("B", "1970-01-01T00:00:02.000250Z"))]
    events = jsonl(tmp_path / "events.jsonl", given)
    assert [d["time"] for d in coincide("run", rules, "--events", events).records] == [[1000, 2000.25]]
    iso = coincide("run", rules, "--events", events, "--time-format", "iso")
    assert [d["time"] for d in iso.records] == [["1970-01-01T00:00:01.000Z", "1970-01-01T00:00:02.000250Z"]]
    single = written(tmp_path / "b.ce", "detect X = [B]")
    assert [d["time"] for d in coincide("run", single, "-e", events, "--time-format", "iso").records] == [
        "1970-01-01T00:00:02.000250Z"
    ]
    refused = coincide("run", rules, "--events", events, "--time-format", "is")
    assert (refused.code, refused.err) == (2, "error: unknown time format 'is'\n    hint: did you mean 'iso'?\n")


def test_late_events_have_the_form_of_the_run(coincide: Coincide, tmp_path: Path) -> None:
    rules = written(tmp_path / "pair.ce", "sources s\ndetect Pair = [A] ; [B]")
    given = [{"type": "A", "time": time, "source": "s", "arrival": 5000 + n} for n, time in enumerate((2000, 1000))]
    late, events = tmp_path / "late.jsonl", jsonl(tmp_path / "events.jsonl", given)
    options = ("--policy", "guaranteed", "--late", late, "--time-format", "iso")
    assert coincide("run", rules, "--events", events, *options).code == 0
    (record,) = [json.loads(line) for line in late.read_text().splitlines()]
    assert (record["time"], record["arrival"]) == ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:05.001Z")


def test_keys_of_detections(coincide: Coincide, rules: Path, events: Path, tmp_path: Path) -> None:
    found = coincide("run", rules, "--events", events, "--keys").records
    keys = [d.pop("_key") for d in found]
    assert found == FOUND
    assert len(set(keys)) == len(FOUND)
    again = [d["_key"] for d in coincide("run", rules, "--events", events, "--keys", "--tier", "kernel").records]
    assert again == keys
    coincide("run", rules, "--events", events, "--keys", "--out", tmp_path / "found.parquet")
    import pyarrow.parquet as pq

    assert pq.read_table(tmp_path / "found.parquet").column("_key").to_pylist() == keys
