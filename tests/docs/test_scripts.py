"""Scripts that come with pages, in a browser: the line of time in notebooks, and "which language for what" on the site."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coincide

markdown = pytest.importorskip("markdown")
sync = pytest.importorskip("playwright.sync_api", reason="scripts are not tried in a browser: playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("scripts are not tried in a browser: there is no chromium (apt-get install chromium)", allow_module_level=True)

ROOT = Path(__file__).parents[2]
PLACES = """() => [...document.querySelector('[data-timeline] > div').shadowRoot.querySelectorAll('g.time > *')]
    .map((each) => each.getBoundingClientRect()).map((box) => box.left + box.width / 2)"""
RULES = "Report pair when open followed by close."


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    with sync.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        made = browser.new_page()
        made.on("pageerror", lambda error: pytest.fail(str(error)))
        yield made
        browser.close()


def test_a_line_of_time_is_zoomed_and_moved(page: Any) -> None:
    events = [{"type": "open", "time": 1_000}, {"type": "close", "time": 5_000}, {"type": "open", "time": 9_000}]
    shown = coincide.detect(coincide.loads(RULES, "say"), events, why=True).timeline()
    page.set_content(shown._repr_html_())

    def places() -> list[float]:
        """Where the diamonds and strokes of the lanes are."""
        return list(page.evaluate(PLACES))

    whole = places()
    page.click("[data-timeline] button >> nth=0")
    closer = places()
    assert max(closer) - min(closer) > 1.5 * (max(whole) - min(whole))
    box = page.locator("[data-timeline] svg").bounding_box()
    page.mouse.move(box["x"] + 400, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 60)
    page.mouse.up()
    assert places()[-1] == pytest.approx(closer[-1] + 100, abs=3)
    page.click("[data-timeline] button >> nth=2")
    assert places() == pytest.approx(whole, abs=0.5)


def test_languages_that_lack_something_step_back(page: Any) -> None:
    text = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
    script = (ROOT / "website" / "theme" / "assets" / "javascripts" / "choose.js").read_text(encoding="utf-8")
    page.set_content(markdown.markdown(text, extensions=["tables", "md_in_html"]) + f"<script>{script}</script>")
    answer = page.locator(".needs [role=status]")
    assert answer.inner_text() == "Tick what you need."
    boxes, heads = page.locator(".needs input"), page.locator(".needs th").all_inner_texts()[1:]
    for number in range(boxes.count()):
        boxes.nth(number).check()
        row = page.locator(".needs tbody tr").nth(number).locator("td").all_inner_texts()[1:]
        fitting = [head for head, cell in zip(heads, row, strict=True) if cell.strip()]
        assert answer.inner_text() == f"Take {', '.join(fitting)}."
        assert page.locator(".needs th.lacks").all_inner_texts() == [head for head in heads if head not in fitting]
        boxes.nth(number).uncheck()
