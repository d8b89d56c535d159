"""All that one page shows: files, events, and the last run of the rules over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock, Thread
from typing import Any

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.detection.base import Detector
from coincide.editing import diagnostics
from coincide.errors import CoincideError, Diagnostic, InputError, nearest
from coincide.rulebook import Rulebook, load
from coincide.studio.files import Files
from coincide.studio.live import Live
from coincide.studio.running import Run
from coincide.studio.store import Store, opened


class Session:
    """What is asked of it may come from several threads; what changes it does so under a lock."""

    def __init__(
        self, files: Files, options: Mapping[str, Any], mapping: FieldMapping = DEFAULT, format: str | None = None
    ) -> None:
        self.files, self.options, self.mapping, self.format = files, options, mapping, format
        self.store = Store()
        self.run: Run | None = None
        self.live: Live | None = None
        self.accepted: set[int] = set()
        self.lock = Lock()
        self._runs = 0
        self._book: tuple[Sequence[object], Rulebook | None, tuple[Diagnostic, ...]] | None = None

    # Rules.

    def checked(self, changed: tuple[str, str] | None = None) -> tuple[Rulebook | None, tuple[Diagnostic, ...]]:
        """The rules as they are in the editor, None where there are errors, with all that there is to say of them."""
        try:
            texts = self.files.sources(changed)
        except CoincideError as error:
            return None, error.diagnostics
        if self._book is None or self._book[0] != texts:
            self._book = (texts, *self._loaded(texts))
        return self._book[1:]

    def _loaded(self, texts: Sequence[Any]) -> tuple[Rulebook | None, tuple[Diagnostic, ...]]:
        if not texts:
            return None, ()
        try:
            book = load(*texts, **self.options)
            return book, (*book.warnings, *book.remarks)
        except CoincideError as error:
            return None, error.diagnostics
        except RecursionError:
            return None, (Diagnostic("the rules are too deeply nested"),)

    def beside(self, name: str) -> list[Diagnostic]:
        """What there is to say of a file that is not among those that are run, together with them."""
        if name in self.files.loaded:
            return []
        return diagnostics(self.files.source(name, self.files.text(name)), self.files.sources())

    def book(self) -> Rulebook:
        """Raises RuleError."""
        book, diagnostics = self.checked()
        if book is None:
            raise CoincideError(*diagnostics) if diagnostics else CoincideError("there are no rules yet")
        return book

    def detector(self, name: str, book: Rulebook | None = None) -> Detector:
        detectors = (book or self.book()).detectors
        found = next((d for d in detectors if d.name == name), None)
        if found is None:
            raise InputError(Diagnostic(f"there is no rule '{name}'", hint=nearest(name, [d.name for d in detectors])))
        return found

    def describe(self, diagnostic: Diagnostic) -> dict[str, Any]:
        """A diagnostic with its place in an editor."""
        out: dict[str, Any] = {"severity": diagnostic.severity, "message": diagnostic.message, "hint": diagnostic.hint}
        if (span := diagnostic.span) is not None:
            out |= {
                "file": self.files.name_in(span.file),
                "line": span.line,
                "column": span.column,
                "start": span.start,
                "end": span.end,
            }
        return out

    # Events.

    def open(self, names: Sequence[str]) -> None:
        """Read events from files. Raises InputError; then all stays as it was."""
        book = self.checked()[0]
        mapping = self.mapping if book is None else book.fields(self.mapping)
        store = opened(names, mapping, self.format)
        store.lanes.sort()
        live = self.live
        if live is not None:
            live.stop()
        with self.lock:
            self._forget_run()
            self.live, self.store = None, store

    def listen(self, urls: Sequence[str], delay: int = 0, clock: str | None = None) -> None:
        """Events will come from there, once the rules run: up to `delay` microseconds later than later ones."""
        self.live = Live(urls, self.mapping, delay, clock)
        self.store = self.live.store

    # Runs.

    def start(self) -> Run:
        """A run of the rules as they are now, in a thread of its own; one that is under way ends, but a live one goes on with
        them. Raises RuleError."""
        book = self.book()
        if self.live is not None:
            return self._start_live(book, self.live)
        with self.lock:
            self._forget_run()
            self._runs += 1
            self.run = run = Run(book, self.store, self.mapping, self._runs)
            Thread(target=run.go, name="run", daemon=True).start()
        return run

    def _start_live(self, book: Rulebook, live: Live) -> Run:
        with self.lock:
            self._runs += 1
            self.accepted.clear()
            book.check_endless()
            live.mapping = book.fields(live.mapping)
            self.store = live.store
            self.run = live.change_rules(book, self._runs) if live.running else live.start(book, self._runs)
            return self.run

    @property
    def looks_back(self) -> bool:
        """Is what is shown a part of a live run that goes on?"""
        return self.live is not None and self.store is not self.live.store

    def look_back(self) -> Run:
        """What has come so far can be gone through, while more comes. Raises InputError."""
        live = self.live
        if live is None or live.run is None or not live.running:
            raise InputError("there is no live run to look back at")
        store = live.store.ordered()
        with self.lock:
            self.accepted.clear()
            self._runs += 1
            self.store, self.run = store, Run(live.run.book, store, self.mapping, self._runs)
            Thread(target=self.run.go, name="run", daemon=True).start()
        return self.run

    def return_to_live(self) -> None:
        live = self.live
        if live is not None and self.looks_back:
            with self.lock:
                self._forget_run()
                self.store, self.run = live.store, live.run

    def stop(self) -> None:
        """A live run ends; what has come can be gone through as if it stood in a file."""
        live = self.live
        if live is not None:
            live.stop()
            live.join()
            with self.lock:
                self._forget_run()
                self.live, self.store = None, live.store.ordered()

    def _forget_run(self) -> None:
        self.accepted.clear()
        if self.run is not None:
            self.run.cancelled = True
            self.run = None

    def last_run(self) -> Run:
        if self.run is None:
            raise InputError("nothing has been run yet")
        return self.run

    def close(self) -> None:
        if self.live is not None:
            self.live.stop()
        with self.lock:
            self._forget_run()
