"""Pictures in docs show what the pages say: they are drawn from the examples there."""

from __future__ import annotations

import runpy
from pathlib import Path

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


def test_amit() -> None:
    """If this fails, the page or what it detects has changed: run docs/pictures/make_amit.py and look at what it draws."""
    script = runpy.run_path(str(PICTURES / "make_amit.py"))
    drawn = dict(script["pictures"](script["PAGE"].read_text(encoding="utf-8")))
    assert len(drawn) == 14
    assert {path.name for path in PICTURES.glob("amit-*.svg")} == set(drawn)
    for name, text in drawn.items():
        assert (PICTURES / name).read_text(encoding="utf-8") == text, name


def test_ecco() -> None:
    """If this fails, the page or what it detects has changed: run docs/pictures/make_ecco.py and look at what it draws."""
    script = runpy.run_path(str(PICTURES / "make_ecco.py"))
    assert (PICTURES / "ecco-storm.svg").read_text(encoding="utf-8") == script["drawn"](
        script["PAGE"].read_text(encoding="utf-8")
    )
