"""Detections as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import msgspec

from coincide.streams.base import Made, Position, Sink

_decode = msgspec.json.Decoder().decode


class CsvLines(Sink):
    """What another sink writes as lines of JSON, with the columns that are named, and a header first. Which attributes detections
    have shows only when they are made, so somebody has to say."""

    def __init__(self, sink: Sink, columns: Sequence[str]) -> None:
        super().__init__(sink.url)
        self.once = sink.once
        self.keyed = sink.keyed
        self._sink, self._columns = sink, columns

    def open(self, position: Position) -> None:
        self._sink.open(position)
        if not position:
            self._sink.write([Made("", "", _line(self._columns))])

    def write(self, made: Sequence[Made]) -> None:
        self._sink.write([each._replace(line=self._row(each.line)) for each in made])

    def commit(self) -> Position:
        return self._sink.commit()

    def make_safe(self) -> None:
        self._sink.make_safe()

    def close(self) -> None:
        self._sink.close()

    def _row(self, line: bytes) -> bytes:
        record = _decode(line)
        return _line([_cell(record.get(name)) for name in self._columns])


def _cell(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def _line(cells: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
