"""docs/kernels.md is what plans say of their tiers; and a rule that is interpreted leaves the others theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide import loads
from coincide.testing.coverage import page

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    written = (ROOT / "docs" / "kernels.md").read_text()
    made = page(ROOT / "tests" / "conformance" / "cases")
    assert made == written, "python -m coincide.testing.coverage tests/conformance/cases > docs/kernels.md"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("detect slow = [A] || [B]\ndetect fast = [A] ; [B]", "ce"),
        ("detect slow per k = a*{2}\ndetect fast per k = a ; b", "ecco"),
    ],
)
def test_what_is_interpreted_leaves_others_their_tier(text: str, language: str) -> None:
    reasons = {name: plan.tier_reasons() for plan in loads(text, language).plans("kernel") for name in plan.definitions}
    assert reasons["slow"]
    assert not reasons["fast"]
