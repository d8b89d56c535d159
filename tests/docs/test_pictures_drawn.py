"""Pictures that a page draws with its own commands, of its own rules and events, are the ones that it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from test_docs import ROOT, blocks

from coincide.cli.main import main

PAGES = [ROOT / "docs" / name for name in ("opera.md", "drawing.md")]
COMMAND = re.compile(r"^\$ (coincide draw .* --out (\S+\.svg))$", re.MULTILINE)
DRAWN = [(page, *found) for page in PAGES for found in COMMAND.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_of_a_page_is_drawn_there(page: Path) -> None:
    shown = set(re.findall(r"\(pictures/(\S+\.svg)\)", page.read_text(encoding="utf-8")))
    assert shown == {name for where, _, name in DRAWN if where == page}


@pytest.mark.parametrize(("page", "command", "name"), DRAWN, ids=[name for _, _, name in DRAWN])
def test_pictures_are_up_to_date(page: Path, command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(page):
        if found := re.search(r"file=(\S+)", block.info):
            Path(found[1]).write_text(block.text, encoding="utf-8")
    assert main(shlex.split(command)[1:]) == 0
    kept = page.parent / "pictures" / name
    assert Path(name).read_text() == kept.read_text(), f"draw it again: {command}, to {kept}"
