"""The other commands: help, check and analyse, explain, debug, and that all of them are quiet and plain when piped."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import RULES, Coincide, written

from coincide import __version__
from coincide.cli import commands

COMMANDS = ["run", "test", "check", "analyse", "explain", "draw", "debug"]


def test_version(coincide: Coincide) -> None:
    outcome = coincide("--version")
    assert (outcome.code, outcome.out) == (0, f"coincide {__version__}\n")


def test_help_lists_all_commands(coincide: Coincide) -> None:
    outcome = coincide("--help")
    assert outcome.code == 0
    assert all(f"    {command} " in outcome.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(coincide: Coincide, command: str) -> None:
    outcome = coincide(command, "--help")
    assert outcome.code == 0
    assert f"example:\n  coincide {command} " in outcome.out


def test_check_for_people(coincide: Coincide, tmp_path: Path) -> None:
    more = ["wide = repeat { push(x) { v > 5 } }", "narrow = repeat { push(x) { v > 10 } }", "never = push(y) { false }"]
    text = RULES + "".join(f"monitor {monitor}\n" for monitor in more)
    outcome = coincide("check", written(tmp_path / "rules.ecl", text))
    assert outcome.code == 0
    assert outcome.out.startswith("5 detectors, 2 warnings\n")
    assert "rules.ecl:5:9: warning: vacuous: monitor 'never' can never push" in outcome.err
    assert "  outputs      none, whatever happens" in outcome.out
    assert "narrow is contained in wide" in outcome.out
    assert "\x1b" not in outcome.out + outcome.err


def test_check_counts_what_it_shows(coincide: Coincide, tmp_path: Path) -> None:
    query = "SELECT * FROM events MATCH_RECOGNIZE (ORDER BY time MEASURES COUNT(*) AS n PATTERN (A+) DEFINE A AS v > 1)"
    outcome = coincide("check", written(tmp_path / "rules.mr.sql", query))
    assert "on a stream" in outcome.err
    assert outcome.out == f"1 detector, {outcome.err.count(': warning: ')} warnings\n".replace(" 1 warnings", " 1 warning")


def test_check_of_many_monitors_compares_them_only_when_asked(coincide: Coincide, tmp_path: Path) -> None:
    text = "".join(f"monitor m{n} = repeat {{ push(out{n}) {{ a and v > {n} }} }}\n" for n in range(70))
    rules = written(tmp_path / "rules.ecl", text)
    shown = coincide("check", rules)
    assert shown.code == 0
    assert "--all" in shown.out
    assert "is covered by" not in shown.out
    answer = json.loads(coincide("check", "--json", rules).out)
    assert len(answer["monitors"]) == 70
    assert answer["left_out"] == ["pairs", "system"]
    few = written(tmp_path / "few.ecl", "".join(text.splitlines(keepends=True)[:3]))
    assert "m1 is covered by m0" in coincide("check", few).out
    assert json.loads(coincide("analyse", few, "--all").out)["pairs"]


def test_check_as_json_is_analyse(coincide: Coincide, rules: Path, events: Path) -> None:
    outcome = coincide("check", rules, "--json", "--events", events)
    answer = json.loads(outcome.out)
    assert answer["monitors"]["pairs"]["depends"] == {"pair": ["close", "open"]}
    assert "quenched_now" in answer["monitors"]["pairs"]
    assert coincide("analyse", rules, "--events", events).out == outcome.out


def test_check_compares_two_files(coincide: Coincide, tmp_path: Path) -> None:
    one = written(tmp_path / "1.ecl", "monitor m = repeat { push(x) { a } }")
    two = written(tmp_path / "2.ecl", "monitor n = repeat { push(x) { sequential { a } } }")
    three = written(tmp_path / "3.ecl", "monitor m = repeat { push(x) { sequential { a, a } } }")
    assert "the two files are equivalent" in coincide("check", one, "--other", two).out
    assert "1 event can tell them apart" in coincide("check", one, "--other", three).out
    assert "would keep their state: m" in coincide("check", one, "--other", one).out


def test_explain(coincide: Coincide, rules: Path) -> None:
    text = coincide("explain", rules).out
    for line in (
        "2 detectors of 1 file, in 2 stages",
        "    key       door: independent for each value",
        "    reads     events of every type; detections pair",
        "    columns   type, time, id, door, v",
        "    filter    (type = 'open' or type = 'close') or (type = 'pair')",
    ):
        assert line in text.splitlines()
    assert "interpreter, as asked for" in coincide("explain", rules, "--tier", "interpreter").out


def test_explain_for_spark(coincide: Coincide, rules: Path) -> None:
    text = coincide("explain", rules, "--engine", "spark").out
    assert "in one partition: 'twice' has no key" in text


def test_explain_tells_what_is_shared(coincide: Coincide, tmp_path: Path) -> None:
    text = "monitor m = repeat { push(x) { a } }\nmonitor n = repeat { push(x) { a } }"
    shown = coincide("explain", written(tmp_path / "rules.ecl", text)).out
    assert "2 definitions with the same key read each event once; 1 distinct test, 1 distinct machine" in shown


def test_debug_parse_prints_rules_that_mean_the_same(coincide: Coincide, rules: Path, tmp_path: Path) -> None:
    printed = coincide("debug", "parse", rules)
    again = coincide("debug", "parse", written(tmp_path / "again.ecl", printed.out))
    assert printed.code == again.code == 0
    assert again.out == printed.out


def test_debug_definition(coincide: Coincide, rules: Path) -> None:
    lines = coincide("debug", "definition", rules, "--only", "pairs").out.splitlines()
    assert lines[0].startswith("Monitor name=pairs keys=(door)")
    assert "        Predicate label=open" in lines
    assert "          test: type = 'open'" in lines


def test_debug_machine_prints_machines_that_run(coincide: Coincide, rules: Path, events: Path, tmp_path: Path) -> None:
    text = coincide("debug", "machine", rules).out
    machines = written(tmp_path / "machines.ecl", text)
    assert text.count("machine ") == 2
    expected = coincide("run", rules, "--events", events).out
    assert coincide("run", machines, "--events", events).out == expected


def test_debug_plan(coincide: Coincide, rules: Path) -> None:
    lines = coincide("debug", "plan", rules).out.splitlines()
    assert lines[0] == "stage 1: pairs"
    assert "  machine 0 of twice: tests 0; pushes twice; starts at (0, 0)" in lines
    assert "stage 1: pairs" not in coincide("debug", "plan", rules, "--only", "twice").out


@pytest.mark.parametrize(
    ("name", "text"), [("v.ce", "event Enter(who string)\n"), ("v.amit.yaml", "events: {a: }\n"), ("v.ecco", ""), ("v.ecl", "")]
)
def test_check_of_a_vocabulary(coincide: Coincide, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    outcome = coincide("check", tmp_path / name)
    assert (outcome.code, outcome.out, outcome.err) == (0, "0 detectors, 0 warnings\n", "")


def test_each_command_is_found_by_its_name() -> None:
    assert [commands._command(name).name for name in commands.COMMANDS] == [*commands.COMMANDS]


def test_a_command_is_set_up_without_the_others() -> None:
    code = "import sys; from coincide.cli.commands import parsed; parsed(['check', 'r.ecl'])"
    code += "; print('coincide.cli.run' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_what_is_sent_to_a_cluster(coincide: Coincide, tmp_path: Path) -> None:
    """Files of a folder, each by its name; a mapping of the package is there already."""
    pytest.importorskip("pyspark")
    for name in ("a.ecl", "more/b.ecl"):
        written(tmp_path / "rules" / name, f"monitor {name[-5]} = repeat {{ push({name[-5]}x) {{ go }} }}")
    job = ("--source", "events", "--sink", "found", "--mapping", "windows", "--print")
    words = shlex.split(coincide("spark-submit", tmp_path / "rules", *job).out)
    files = [str(tmp_path / "rules" / name) for name in ("a.ecl", "more/b.ecl")]
    assert words[words.index("--files") + 1] == ",".join(files)
    assert words[words.index(files[0]) :][:2] == files
    assert words[words.index("--py-files") + 1] == "coincide.zip"
    partitions = "spark.sql.shuffle.partitions"
    assert not [word for word in words if partitions in word]
    streamed = coincide("spark-submit", tmp_path / "rules", *job, "--checkpoint", "kept", "--conf", f"{partitions}=16").out
    assert [word for word in shlex.split(streamed) if partitions in word] == [f"{partitions}=8", f"{partitions}=16"]
    written(tmp_path / "rules" / "more" / "a.ecl", "monitor c = repeat { push(cx) { go } }")
    assert "2 files are called 'a.ecl'" in coincide("spark-submit", tmp_path / "rules", *job).err
