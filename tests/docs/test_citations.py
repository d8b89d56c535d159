"""What comments cite is there: sections and tags lead to the reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
SECTION = re.compile(r"[Ss]ections? (\d+(?:\.\d+)*)((?:(?:,| and| to) \d+(?:\.\d+)*)*)")
TAG = re.compile(r"\b(AMIT|ECL|OP|ECCO|CDL|D|DIST|SIGMA|EQL|MR)-\d+\b")
PAGES = {
    "ecl": ("lang/ecl", "detection/machine", "analysis"),
    "amit": ("lang/amit", "detection/situation"),
    "opera": ("lang/opera", "lang/pretty", "detection/automaton", "opera.py", "service.py", "engines/policies.py", "draw"),
    "ecco": ("lang/ecco", "detection/algebra"),
    "sigma": ("lang/sigma", "detection/selection", "languages/sigma.py"),
    "cdl": ("lang/cdl", "detection/correlation", "model/compound.py"),
    "match-recognize": ("lang/matchrecognize", "detection/rowpattern", "languages/matchrecognize.py", "tables"),
    "eql": ("lang/eql", "detection/sequence", "languages/eql.py"),
    "distribution-cordies": ("distribution",),
}
"""Whose page a file cites when it says no other."""


def files() -> Iterator[Path]:
    yield from sorted((ROOT / "src").rglob("*.py"))


def page_of(file: Path) -> str | None:
    inside = file.relative_to(ROOT / "src" / "coincide").as_posix()
    found = [page for page, places in PAGES.items() if any(inside.startswith(place) for place in places)]
    return found[0] if found else None


@lru_cache
def headings(page: str) -> frozenset[str]:
    text = (REFERENCE / f"{page}.md").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^#+ (\d+(?:\.\d+)*)", text, re.MULTILINE))


def cited_sections(file: Path) -> Iterator[tuple[str, str]]:
    """(page, section) of every citation. Papers have sections, too: those that are said to be theirs do not count."""
    for line in file.read_text(encoding="utf-8").splitlines():
        for found in SECTION.finditer(line):
            before = line[: found.start()]
            named = re.findall(r"([\w-]+)\.md|\b(Opera|CDL|ECCO|Amit|ECL|EQL)\b,? *$", before)
            page = (named[-1][0] or named[-1][1].lower()) if named else page_of(file)
            if page and "paper" not in before[-30:]:
                yield from ((page, number) for number in (found[1], *re.findall(r"\d+(?:\.\d+)*", found[2])))


@pytest.mark.parametrize(
    "file", [pytest.param(f, id=str(f.relative_to(ROOT / "src"))) for f in files() if SECTION.search(f.read_text())]
)
def test_sections(file: Path) -> None:
    missing = [f"{page}.md, section {number}" for page, number in cited_sections(file) if number not in headings(page)]
    assert not missing


def test_tags() -> None:
    reference = "\n".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md"))
    known = {m[0] for m in TAG.finditer(reference)}
    cited = {(m[0], str(file.relative_to(ROOT))) for file in files() for m in TAG.finditer(file.read_text(encoding="utf-8"))}
    assert len(cited) > 20
    assert not sorted((tag, file) for tag, file in cited if tag not in known)
