"""What the formats of logs have in common: messages with numbers, which are there as often as they are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from coincide.connectors.options import COMMON, Options, check_schema
from coincide.errors import CoincideError

OPTIONS = (*COMMON, "startingOffsets", "failOnDataLoss")


class Closed(Protocol):
    def close(self) -> None: ...


Log = TypeVar("Log", bound=Closed)
Name = TypeVar("Name")


class Ranges(ABC, Generic[Log]):
    """How messages between two numbers are read by tasks, as options say. It goes to the tasks, without the log."""

    format: ClassVar[str]
    numbered: ClassVar[bool] = False
    """May one begin with a number?"""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = Options(self.format, options, OPTIONS)
        self.url = given.url
        self.start = given.of("startingOffsets", "earliest")
        if self.start not in ("earliest", "latest") and not (self.numbered and self.start.isdecimal()):
            known = "earliest, latest or a number" if self.numbered else "earliest or latest"
            raise CoincideError(f"startingOffsets must be {known}, not '{self.start}'")
        self.most = given.number("maxOffsetsPerTrigger")
        self.tasks = given.number("minPartitions") or 1
        self.losses_fail = given.flag("failOnDataLoss", True)
        self._log: Log | None = None

    @abstractmethod
    def opened(self) -> Log: ...

    @property
    def log(self) -> Log:
        if self._log is None:
            self._log = self.opened()
        return self._log

    def divided(self, spans: Mapping[Name, tuple[int, int]]) -> list[tuple[Name, int, int]]:
        """Named spans between two numbers, in parts of about the same size: as many as tasks are wanted, or more."""
        some = [(name, begin, end) for name, (begin, end) in spans.items() if begin < end]
        size = -(-sum(end - begin for _, begin, end in some) // self.tasks)
        return [(name, at, min(at + size, end)) for name, begin, end in some for at in range(begin, end, size)]

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.most is None else ReadMaxRows(self.most)

    def stop(self) -> None:
        if self._log is not None:
            self._log.close()
        self._log = None


class LogFormat(DataSource):  # type: ignore[misc]
    """A format, by its columns and by who reads them."""

    columns: ClassVar[StructType]
    batch: ClassVar[type[Ranges[Any]]]
    stream: ClassVar[type[Ranges[Any]]]

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self.batch(options)  # what is wrong with them is told at once

    @classmethod
    def name(cls) -> str:
        return cls.batch.format

    def schema(self) -> StructType:
        return self.columns

    def reader(self, schema: StructType) -> Any:
        check_schema(self.name(), schema, self.columns)
        return self.batch(self.options)

    def streamReader(self, schema: StructType) -> Any:
        check_schema(self.name(), schema, self.columns)
        return self.stream(self.options)


def rows(columns: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
