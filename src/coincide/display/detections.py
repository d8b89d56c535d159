"""What a run has found, as a list that notebooks show as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from coincide.errors import Diagnostic, InputError

if TYPE_CHECKING:
    from coincide.causes import Causes
    from coincide.display.timeline import Timeline


class Detections(list[dict[str, Any]]):
    """Records in the order made, a list like any other. A notebook shows a table; where the run was kept (`why=True`) each row
    unfolds to what led to it, and `timeline` draws the run."""

    def __init__(self, found: Iterable[dict[str, Any]] = (), causes: Causes | None = None) -> None:
        super().__init__(found)
        self._causes = causes

    @overload
    def __getitem__(self, index: SupportsIndex) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Detections: ...

    def __getitem__(self, index: SupportsIndex | slice) -> dict[str, Any] | Detections:
        return Detections(super().__getitem__(index)) if isinstance(index, slice) else super().__getitem__(index)

    def timeline(self, title: str = "Events and detections") -> Timeline:
        """All events and detections of the run on a line of time, with threads to what led to each detection."""
        from coincide.display.timeline import Timeline
        from coincide.draw.stream import timeline_of

        if self._causes is None:
            raise InputError(Diagnostic("the events of this run were not kept", hint="find them with detect(…, why=True)"))
        return Timeline(timeline_of(self._causes, title))

    def _repr_html_(self) -> str:
        from coincide.display.table import table_html

        return table_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Detections, (list(self),)  # what it knows does not travel
