"""A run on a line of time: a picture, and where scripts run one that can be zoomed."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path

from coincide.display.page import part, picture, shown
from coincide.report.markup import Markup, element


@dataclass(frozen=True)
class Timeline:
    """A drawing as SVG text (`str` of it). A notebook shows the picture; where scripts run, it can be zoomed."""

    svg: str = field(repr=False)

    def __str__(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> None:
        """As a file that every browser shows."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        # The script looks for its picture by a name: in some notebooks it runs before the picture is on the page.
        name = sha256(self.svg.encode()).hexdigest()[:16]
        script = Markup(part("zoom.js").replace("$TIMELINE", name))
        return shown(element("div", picture(self.svg, "events and detections"), data_timeline=name), element("script", script))
