"""`coincide format`, of every language."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.cli.main import main

WILD = {
    "a.ecl": ("# why\nmonitor   m=push(x){a}\n", "# why\nmonitor m = push(x) { a }\n"),
    "a.ce": ("detect X=[a]   [b]  # both\n", "detect X = [a] [b]  # both\n"),
    "a.say": ("report x\n when a.\n", "Report x when a.\n"),
    "a.ecco": ("detect x=a;b\n", "detect x = a ; b\n"),
    "a.amit.xml": (
        '<amit><!-- no more --><event name="a"></event></amit>',
        '<amit>\n  <!-- no more -->\n  <event name="a"/>\n</amit>',
    ),
}


@pytest.mark.parametrize("name", WILD)
def test_layout(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, made = WILD[name]
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert main(["format", "--check", str(file)]) == 1
    assert main(["format", "--write", str(file)]) == 0
    assert file.read_text(encoding="utf-8") == made
    assert main(["format", "--check", str(file)]) == 0
    capsys.readouterr()


def test_what_has_no_layout_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.yml"
    file.write_text("title: x\nlogsource: {category: c}\ndetection: {s: {a: 1}, condition: s}\n", encoding="utf-8")
    assert main(["format", str(file)]) == 2
    assert "no layout of its own" in capsys.readouterr().err
    assert main(["format", str(tmp_path / "none.ecl")]) == 2
    assert "cannot be read" in capsys.readouterr().err
