"""The pictures of docs/opera.md are those that its own commands draw of its own rules."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from test_docs import ROOT, blocks

from coincide.cli.main import main

PAGE = ROOT / "docs" / "opera.md"
DRAWN = re.findall(r"^\$ (coincide draw .* --out (\S+\.svg))$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_picture_of_the_page_is_drawn_there() -> None:
    shown = set(re.findall(r"\(pictures/(\S+\.svg)\)", PAGE.read_text(encoding="utf-8")))
    assert shown == {name for _, name in DRAWN}


@pytest.mark.parametrize(("command", "name"), DRAWN)
def test_pictures_are_up_to_date(command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(PAGE):
        if found := re.search(r"file=(\S+\.ce)", block.info):
            Path(found[1]).write_text(block.text, encoding="utf-8")
    assert main(shlex.split(command)[1:]) == 0
    kept = PAGE.parent / "pictures" / name
    assert Path(name).read_text() == kept.read_text(), f"draw it again: {command}, to {kept}"
