"""A folder that files are put into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from coincide.adapters.read import ending_of, read_files
from coincide.errors import InputError
from coincide.model.batch import EventBatch
from coincide.streams.base import Delivery, Position, Reading, Source

POLL = 0.2
"""Seconds between two looks; a file that has not changed between two of them is taken to be complete."""


class WatchedFolder(Source):
    """`watch:DIR`: files of any known format, by name, each when it is complete. A position tells the files that were read,
    and of the one that is being read how many batches were, and how many records came before it."""

    def __init__(self, url: str, reading: Reading) -> None:
        super().__init__(url, reading)
        self.folder = Path(url.removeprefix("watch:"))
        if not self.folder.is_dir():
            raise InputError(f"'{self.folder}' is not a folder")

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        read, name, batches, before = position or ([], None, 0, 0)
        done = set(read)
        report = self.reading.intake.report
        sizes: dict[str, tuple[int, int]] = {}
        while not self.closed.is_set():
            looked = self._look()
            complete = [file for file, size in looked.items() if sizes.get(file) == size and file not in done]
            for file in sorted(complete):
                if again := file == name:
                    report.read = before
                begun = report.read
                for number, batch in enumerate(self._read(file), 1):
                    if not again or number > batches:
                        yield self.delivery(batch, [sorted(done), file, number, begun])
                done.add(file)
            sizes = looked
            self.closed.wait(POLL)

    def _look(self) -> dict[str, tuple[int, int]]:
        found = {}
        for path in self.folder.iterdir():
            if path.is_file() and not path.name.startswith(".") and self._is_known(path):
                state = path.stat()
                found[path.name] = (state.st_size, state.st_mtime_ns)
        return found

    def _is_known(self, path: Path) -> bool:
        try:
            return self.reading.format is not None or bool(ending_of(path.name))
        except InputError:
            return False

    def _read(self, file: str) -> Iterator[EventBatch]:
        return read_files([str(self.folder / file)], self.reading.mapping, self.reading.intake, self.reading.format)
