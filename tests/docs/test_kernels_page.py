"""docs/kernels.md is what plans say of their tiers; and a rule that is interpreted leaves the others theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coincide import loads
from coincide.testing.coverage import page, why_interpreted

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    written = (ROOT / "docs" / "kernels.md").read_text()
    made = page(ROOT / "tests" / "conformance" / "cases")
    assert made == written, "python -m coincide.testing.coverage tests/conformance/cases > docs/kernels.md"


DESCRIPTIONS = """<cds>
  <cd id="slow"><sources><source class="a" anchor="A"/></sources>
    <predicates><predicate name="any" anchor="P">A</predicate></predicates>
    <expressions><expression anchor="X">P</expression></expressions><events><event class="slow"/></events>
    <preferences><preference><better>X</better></preference></preferences></cd>
  <cd id="fast"><sources><source class="a" anchor="A"/><time anchor="T" trigger="A"><relative>1</relative></time></sources>
    <predicates><predicate name="any" anchor="P">T</predicate></predicates>
    <expressions><expression anchor="X">P</expression></expressions><events><event class="fast"/></events></cd>
</cds>"""
SITUATIONS = """<amit><event name="a"/><event name="z"/><lifespan name="L">
    <initiator><eventInitiator event="a"/></initiator><terminator><eventTerminator event="z"/></terminator></lifespan>
  <situation name="slow" lifespan="L"><operator><at timePattern="**/**/**** 00:00:00.000"/></operator></situation>
  <situation name="fast" lifespan="L"><operator><every interval="5"/></operator></situation></amit>"""


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("detect slow = [A] || [B]\ndetect fast = [A] ; [B]", "ce"),
        ("detect slow per k = a*{2}\ndetect fast per k = a ; b", "ecco"),
        (DESCRIPTIONS, "cdl.xml"),
        (SITUATIONS, "amit.xml"),
    ],
)
def test_what_is_interpreted_leaves_others_their_tier(text: str, language: str) -> None:
    plans: dict[str, Any] = {name: plan for plan in loads(text, language).plans("kernel") for name in plan.definitions}
    assert why_interpreted(plans["slow"])
    assert not why_interpreted(plans["fast"])
    assert plans["fast"].tier == "kernel"
