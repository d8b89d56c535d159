"""What notebooks show: tables, drawings, plans and time lines, in which nothing of an event is ever markup."""

from __future__ import annotations

import copy
import pickle
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import coincide
from coincide.display.detections import Detections
from coincide.display.table import MOST
from coincide.errors import InputError

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = """<script>alert('1')</script><img src=x onerror="alert(2)">&\u202e"""
RULE = 'Report guessed when login where ok = false 2 times within "10 min" followed by login where ok = true for the same user.'
LOGINS = [{"type": "login", "time": f"2026-03-02T08:0{n}:00Z", "user": HOSTILE, "ok": n == 2} for n in range(3)]


class Page(HTMLParser):
    """The elements of a text, their attributes, and what is written in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words += data

    def image(self) -> str:
        source = dict(self.attributes)["src"]
        assert source is not None
        return b64decode(source.removeprefix("data:image/svg+xml;base64,")).decode()


@pytest.fixture
def book() -> coincide.Rulebook:
    return coincide.loads(RULE, "say")


@pytest.fixture
def found(book: coincide.Rulebook) -> Detections:
    return coincide.detect(book, LOGINS, why=True)


def test_detections_are_a_list(book: coincide.Rulebook, found: Detections) -> None:
    plain = coincide.detect(book, LOGINS)
    assert isinstance(plain, list)
    assert plain == found == list(found)
    assert repr(plain) == repr(list(plain))
    assert isinstance(found[:1], Detections)
    assert found[0]["type"] == "guessed"
    for again in (pickle.loads(pickle.dumps(found)), copy.copy(found), copy.deepcopy(found)):
        assert again == found
        assert isinstance(again, Detections)


def test_table_with_causes(found: Detections) -> None:
    page = Page(found._repr_html_())
    assert page.elements.count("tr") == 1 + len(found)
    assert page.elements.count("details") == len(found)
    assert "2026-03-02 08:00:00 – 08:02:00" in page.words
    assert "← completes it" in page.words
    assert "3 events" in page.words


def test_hostile_text_stays_text(book: coincide.Rulebook, found: Detections) -> None:
    strange = [{**found[0], HOSTILE: HOSTILE, "type": HOSTILE}]
    for html in (found._repr_html_(), Detections(strange)._repr_html_(), coincide.why(found[0])._repr_html_()):
        page = Page(html)
        assert not {"script", "img", "svg", "iframe"} & set(page.elements)
        assert {name for name, _ in page.attributes} <= {"class"}
        assert "<script>alert('1')</script>" in page.words
        assert "\u202e" not in page.words  # it would turn round what stands behind it
    drawn = Page(found.timeline(HOSTILE)._repr_html_())
    assert drawn.elements.count("script") == 1  # ours
    assert not list(ElementTree.fromstring(drawn.image()).iter(f"{SVG}script"))


def test_tables_have_an_end() -> None:
    html = Detections({"type": "a", "time": n, "from": []} for n in range(MOST + 20))._repr_html_()
    assert Page(html).elements.count("tr") == 1 + MOST
    assert "… and 20 more" in html
    assert "No detections" in Detections()._repr_html_()


def test_values_of_every_kind() -> None:
    page = Page(Detections([{"type": "a", "time": 5, "ok": True, "n": 1.5, "none": None, "many": [1, 2]}])._repr_html_())
    assert page.words.endswith("timetypeoknnonemanyfrom5atrue1.5[1, 2]0 events")


def test_rules_are_drawn(book: coincide.Rulebook) -> None:
    page = Page(book._repr_html_())
    assert "guessed" in "".join(ElementTree.fromstring(page.image()).itertext())
    assert RULE in page.words
    assert repr(book) == "<Rulebook: guessed>"


def test_rules_without_drawings_and_many_rules() -> None:
    many = "\n".join(f"monitor m{n} = repeat {{ push(p{n}) {{ e{n} }} }}" for n in range(300))
    page = Page(coincide.loads(many)._repr_html_())
    assert page.elements.count("img") == 12
    assert "m199 (ecl)" in page.words
    assert "… and 100 more" in page.words
    assert repr(coincide.loads(many)).endswith("m7 and 292 more>")
    sigma = "title: T\nlogsource: {category: x}\ndetection: {s: {a: '<b>'}, condition: s}\n"
    shown = Page(coincide.loads(sigma, "sigma")._repr_html_())
    assert "b" in shown.elements
    assert "a: '<b>'" in shown.words


def test_warnings_are_shown() -> None:
    book = coincide.loads("monitor m = push(p) { fail { e } }")
    assert book.warnings
    assert book.warnings[0].message in Page(book._repr_html_()).words


def test_explanation_is_text_and_tables(book: coincide.Rulebook) -> None:
    told = coincide.explain(book)
    assert isinstance(told, str)
    page = Page(told._repr_html_())
    assert page.elements.count("table") == 2
    assert "events of type login" in page.words
    assert "    reads     events of type login" in told.splitlines()
    assert pickle.loads(pickle.dumps(told)) == str(told)
    assert told.followed_by("more").endswith("\n\nmore")


def test_at_the_prompt(found: Detections, book: coincide.Rulebook) -> None:
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    assert pretty(coincide.why(found[0])) == str(coincide.why(found[0]))
    assert pretty(coincide.explain(book)) == coincide.explain(book)
    assert pretty(found) == pretty(list(found))


def test_why_not(book: coincide.Rulebook) -> None:
    answer = coincide.why(book, LOGINS[:2], rule="guessed")
    page = Page(answer._repr_html_())
    assert "guessed made no detection" in page.words
    assert not {"script", "img"} & set(page.elements)
    assert "← completes it" in Page(coincide.why(book, LOGINS, rule="guessed")._repr_html_()).words


def test_timeline(found: Detections, tmp_path: Path) -> None:
    line = found.timeline("Monday")
    page = Page(line._repr_html_())
    assert page.image() == str(line) == line._repr_svg_()
    line.save(tmp_path / "monday.svg")
    assert ElementTree.parse(tmp_path / "monday.svg").getroot().tag == f"{SVG}svg"
    name = dict(page.attributes)["data-timeline"]
    assert f'[data-timeline="{name}"]' in line._repr_html_()
    with pytest.raises(InputError, match="not kept"):
        Detections(found).timeline()


def test_what_the_script_moves_is_there(found: Detections) -> None:
    """Lanes with their ends; a number where the script reads one."""
    root = ElementTree.fromstring(str(found.timeline()))
    (lanes,) = (g for g in root.iter(f"{SVG}g") if g.get("class") == "time")
    ends = [float(lanes.attrib[f"data-{name}"]) for name in ("left", "right", "first", "last")]
    assert ends[0] < ends[1]
    assert ends[2:] == [1772438400000, 1772438520000]
    read: dict[str, Any] = {"rect": ("x", "width"), "line": ("x1", "x2"), "circle": ("cx",), "text": ("x",)}
    for element in lanes.iter():
        for name in read.get(element.tag.removeprefix(SVG), ()):
            float(element.attrib[name])
        if element.tag == f"{SVG}path":
            float(element.attrib["d"][1:].split()[0])
