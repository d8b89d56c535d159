"""Plots beside the tables, where a folder is given for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Pictures:
    folder: Path | None = None

    def lines(self, name: str, title: str, x: str, y: str, at: Sequence[float], series: Mapping[str, Sequence[float]]) -> None:
        if self.folder is None:
            return
        figure, axes = _axes(title, x, y)
        for number, (label, values) in enumerate(series.items()):
            axes.plot(at, values, marker="osD^"[number % 4], linestyle=("-", "--")[number % 2], label=label)
        axes.legend(frameon=False)
        self._write(figure, name)

    def bars(self, name: str, title: str, x: str, y: str, values: Mapping[str, float]) -> None:
        if self.folder is None:
            return
        figure, axes = _axes(title, x, y)
        axes.bar(list(values), list(values.values()), color="#0b7285")
        if max(map(len, values), default=0) > 6:
            axes.tick_params("x", labelrotation=20)
        self._write(figure, name)

    def _write(self, figure: Any, name: str) -> None:
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})


def _axes(title: str, x: str, y: str) -> tuple[Any, Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "coincide"  # the same picture, the same file
    figure = Figure(figsize=(7, 4))
    axes = figure.subplots()
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
