"""`%%coincide`, in a shell of IPython as notebooks have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import coincide

pytest.importorskip("IPython")

RULE = 'Report guessed when login where ok = false 2 times within "10 min" followed by login where ok = true for the same user.'
ROWS = [{"when": f"2026-03-02T08:0{n}:00Z", "user": "eve", "ok": n == 2} for n in range(3)]


@pytest.fixture(scope="module")
def instance() -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell

    made = InteractiveShell.instance()
    made.run_line_magic("load_ext", "coincide")
    yield made
    InteractiveShell.clear_instance()


@pytest.fixture
def shell(instance: Any) -> Any:
    instance.reset()
    instance.user_ns["rows"] = ROWS
    return instance


def cell(shell: Any, line: str, rule: str = RULE) -> Any:
    done = shell.run_cell(f"%%coincide {line}\n{rule}\n", store_history=False)
    done.raise_error()
    return done.result


def table(library: str) -> Any:
    module = pytest.importorskip(library)
    return module.Table.from_pylist(ROWS) if library == "pyarrow" else module.DataFrame(ROWS)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_of_every_library(shell: Any, library: str) -> None:
    shell.user_ns["frame"] = table(library)
    found = cell(shell, "frame --every login --time when --why --out kept")
    assert [(d["type"], d["user"], d["from"]) for d in found] == [("guessed", "eve", ["1", "2", "3"])]
    assert shell.user_ns["kept"] is found
    assert "<details>" in found._repr_html_()


def test_columns_may_be_named(shell: Any) -> None:
    shell.user_ns["rows"] = [{"its kind": "a", "seconds": 2, "name": "x"}, {"its kind": "b", "seconds": 5, "name": "y"}]
    found = cell(shell, "rows --type 'its kind' --time seconds --unit s --id name --keys", "Report ab when a followed by b.")
    assert found[0]["time"] == [2000, 5000]
    assert found[0]["from"] == ["x", "y"]
    assert "_key" in found[0]


def test_other_languages_and_time_that_goes_on(shell: Any) -> None:
    line = "rows --every beat --time when --language ecco --until 2026-03-02T09:00:00Z"
    assert [d["type"] for d in cell(shell, line, "detect quiet = beat ; not beat over 12min")] == ["quiet"]


def test_rules_alone_are_kept_and_shown(shell: Any) -> None:
    book = cell(shell, "--rules guessing")
    assert isinstance(book, coincide.Rulebook)
    assert shell.user_ns["guessing"] is book


def test_timeline(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = cell(shell, "rows --every login --time when --timeline")
    assert ">guessed</text>" in str(drawn)
    assert "'type': 'guessed'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "rule", "said"),
    [
        ("rows", "Report a when login whre ok.", "cell.say:1:21: error: expected '.', found 'whre'"),
        ("rows", "Report a when login whre ok.", "\n                        ^^^^\n    hint: did you mean 'where'?"),
        ("rws", RULE, "there is no variable 'rws'\n    hint: did you mean 'rows'?"),
        ("rows --every login", RULE, "missing time"),
        ("rows --time 'when", RULE, "No closing quotation"),
        ("rows --tme when", RULE, "unrecognized arguments: --tme"),
        ("rows --language nonsense", RULE, "not a rule file that is known"),
        ("rows --every login --time when --out 'os.x'", RULE, "'os.x' is not the name of a variable"),
    ],
)
def test_mistakes_are_told_without_a_trace(shell: Any, line: str, rule: str, said: str) -> None:
    from IPython.core.error import UsageError

    with pytest.raises(UsageError) as error:
        cell(shell, line, rule)
    assert said in str(error.value)


def test_nothing_of_the_cell_is_python(shell: Any) -> None:
    from IPython.core.error import UsageError

    shell.user_ns["touched"] = []
    for line in ("touched.append(1)", "rows --out touched[0]"):
        with pytest.raises(UsageError):
            cell(shell, f"{line} --every login --time when")
    assert shell.user_ns["touched"] == []


def test_warnings_about_rules(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cell(shell, "rows --every e --time when --language ecl", "monitor m = push(p) { fail { e } }")
    assert "cell.ecl:1:" in capsys.readouterr().err
