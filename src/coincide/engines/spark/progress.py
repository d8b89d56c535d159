"""What a streaming query does, for who watches it: a line for each micro-batch."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryListener

from coincide.adapters.timeunits import time_warning
from coincide.engines.spark.rejects import TIMES
from coincide.engines.spark.stateful import METRICS
from coincide.engines.spark.tablework import MATCHING
from coincide.engines.spark.watching import Watched
from coincide.errors import CoincideError

HINT = (
    "nothing has had its turn yet: events wait until a time is seen that is `delay` later (10 seconds, unless detect was given "
    "another), such as that of a heartbeat; with `idle` the wall clock counts when nothing comes"
)
ROWS_ENDING = "_rows"


def progress(query: StreamingQuery | Watched, out: TextIO | None = None) -> Progress:
    """Print a line for each micro-batch of a query (to standard error, or `out`), and at a terminal or in a notebook show a bar
    with what it has come to. That times seem to be in another unit, and why a first try shows nothing, is said once. `stop` ends
    that; so does the end of the query."""
    running = query.query if isinstance(query, Watched) else query
    if "connect" in type(running).__module__:
        raise CoincideError(
            "progress needs a listener, and those of Spark Connect can stand still for ever: see query.lastProgress"
        )
    return Progress(query, out)


def progress_line(told: Any) -> str:
    """A micro-batch in words: what Spark and the state have counted of it."""
    rows, state = (_counts(told.observedMetrics, of_rows) for of_rows in (True, False))
    counts = {
        "rows": rows.get("rows", told.numInputRows),
        **{name: state.get(name, 0) for name in ("consumed", "waiting", "late")},
        "rejected": rows.get("rejected", 0) + state.get("ahead", 0),
    }
    words = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count or name in ("rows", "consumed", "waiting"))
    return f"micro-batch {told.batchId}: {words}; {told.batchDuration / 1000:.1f} s"


def _counts(observed: Mapping[str, Any], of_rows: bool) -> Counter[str]:
    """What rules and row patterns have counted, of the rows that came or of what became of them."""
    own = [(name, found) for name, found in observed.items() if name.startswith((METRICS, MATCHING)) and name != TIMES]
    return sum((Counter(found.asDict()) for name, found in own if name.endswith(ROWS_ENDING) == of_rows), Counter())


def unit_warning(observed: Mapping[str, Any]) -> str | None:
    """Are the times of a micro-batch in another unit than they are taken for?"""
    times = observed.get(TIMES)
    if times is None or times["earliest"] is None:
        return None
    warning = time_warning(times["earliest"], times["latest"], times["unit"])
    return None if warning is None else warning.render()


@dataclass
class Waiting:
    """Has anything had its turn yet?"""

    consumed: int = 0
    warned: bool = False

    def puzzles(self, counts: Mapping[str, int]) -> bool:
        """May somebody wonder, after a micro-batch, why nothing is detected? Once."""
        self.consumed += counts.get("consumed", 0)
        self.warned, before = self.warned or (bool(counts.get("waiting")) and not self.consumed), self.warned
        return self.warned and not before


class Progress(StreamingQueryListener):  # type: ignore[misc]
    """A listener of the session that hears one query."""

    def __init__(self, query: StreamingQuery | Watched, out: TextIO | None = None) -> None:
        self._query = query
        self._out = out or sys.stderr
        self._rows = self._batches = 0
        self._waiting = Waiting()
        self._of_units = False  # was anything said of them?
        self._screen = _screen(self._out)
        self._spark = SparkSession.active()
        self._spark.streams.addListener(self)

    def stop(self) -> None:
        self._spark.streams.removeListener(self)
        self._screen.stop()

    # What Spark calls.

    def onQueryStarted(self, event: Any) -> None:
        """It has, before."""

    def onQueryProgress(self, event: Any) -> None:
        told = event.progress
        if str(told.id) == str(self._running.id):
            self._batches += 1
            self._rows += told.numInputRows
            self._screen.line(progress_line(told))
            if self._waiting.puzzles(_counts(told.observedMetrics, of_rows=False)):
                self._screen.line(HINT)
            if not self._of_units and (warning := unit_warning(told.observedMetrics)) is not None:
                self._of_units = True
                self._screen.line(warning)
            self._screen.sum(f"{self._batches:,} micro-batches, {self._rows:,} rows")

    def onQueryIdle(self, event: Any) -> None:
        """Nothing has come: there is nothing to say."""

    def onQueryTerminated(self, event: Any) -> None:
        if not isinstance(self._query, Watched) and str(event.id) == str(self._query.id):
            self._screen.stop()

    @property
    def _running(self) -> StreamingQuery:
        return self._query.query if isinstance(self._query, Watched) else self._query


class _Screen:
    """Where lines go, and what they have come to is seen: in a file or a pipe, not."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def line(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def sum(self, text: str) -> None: ...
    def stop(self) -> None: ...


class _Terminal(_Screen):
    """A bar, always below the lines."""

    def __init__(self, out: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(file=out), transient=True)
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def line(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def sum(self, text: str) -> None:
        self._bar.update(self._task, description=text)

    def stop(self) -> None:
        self._bar.stop()


class _Notebook(_Screen):
    """A bar of the browser's in the cell. (Rich would need ipywidgets.)"""

    def __init__(self, out: TextIO) -> None:
        from IPython.display import HTML, display

        super().__init__(out)
        self._html, self._sum = HTML, "no micro-batch yet"
        self._cell: Any = display(self._shown(), display_id=True)

    def sum(self, text: str) -> None:
        self._sum = text
        self._cell.update(self._shown())

    def stop(self) -> None:
        self._cell.update(self._shown(' value="1"'))

    def _shown(self, value: str = "") -> Any:
        return self._html(f"<progress{value}></progress> {self._sum}")


def _screen(out: TextIO) -> _Screen:
    if "ipykernel" in sys.modules:
        from IPython import get_ipython

        if hasattr(get_ipython(), "kernel"):
            return _Notebook(out)
    return _Terminal(out) if out.isatty() else _Screen(out)
