"""What all that notebooks show has in common: a style that touches nothing else on the page, and pictures shut off from it.

No script is needed, and no text of a rule or an event can be markup. Colours are those of the notebook, light or dark."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from importlib.resources import files

from coincide.causes import Cause
from coincide.report.markup import Markup, Part, element, joined

STYLES = {"dim": "faint", "red": "inner", "bold red": "found", "green": "note"}
"""Of a line that tells a cause: the class for each style of the terminal."""


def shown(*parts: Part) -> str:
    """The HTML of one output."""
    return element("div", element("style", Markup(part("page.css"))), *parts, class_="coincide")


@cache
def part(name: str) -> str:
    """A file of this folder."""
    return files("coincide.display").joinpath(name).read_text(encoding="utf-8")


def picture(svg: str, words: str) -> Markup:
    """An image by itself: its styles and names are its own, and nothing in it can run."""
    data = b64encode(svg.encode()).decode()
    return Markup(f'<img src="data:image/svg+xml;base64,{data}" alt="{joined(words)}">')


def tree(cause: Cause) -> Markup:
    """What led to a detection, as `coincide run --why` prints it."""
    lines = [joined(*(element("span", text, class_=STYLES.get(style)) for text, style in line), "\n") for line in cause.lines()]
    return element("pre", *lines)
