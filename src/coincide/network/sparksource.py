"""The stream of a network as a streaming DataFrame: messages by number, read by the executors from the broker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from coincide.network.broker import Message
from coincide.network.natsbroker import NatsBroker

FORMAT = "coincide-network"
SCHEMA = "number bigint, time bigint, subject string, data binary"
MOST = 100_000
"""Messages of the stream, also of subjects that are not read, in one micro-batch."""
PIECE = 20_000
"""So many a task."""


class NetworkSource(DataSource):  # type: ignore[misc]
    """Options: `url`, `network`, `domain`, `subjects` (a JSON array), and `after`: the number of the last message not to read."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> NetworkReader:
        return NetworkReader(self.options)


class Range(InputPartition):  # type: ignore[misc]
    """Messages after `start`, up to and with `end`."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class NetworkReader(DataSourceStreamReader):  # type: ignore[misc]
    """Offsets are numbers of messages, so whatever is read again is the same."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._broker: NatsBroker | None = None
        self._planned = int(options["after"])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_broker": None}

    def initialOffset(self) -> dict[str, int]:
        return {"number": int(self._options["after"])}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        """Earlier versions of Spark say neither where they are nor how much they want."""
        if self._broker is None:
            self._broker = self._connected()
        before = int(start["number"]) if start else self._planned
        self._planned = max(before, min(self._broker.end(), before + MOST))
        return {"number": self._planned}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Range]:
        first, last = int(start["number"]), int(end["number"])
        self._planned = last
        return [Range(at, min(at + PIECE, last)) for at in range(first, last, PIECE)]

    def read(self, partition: Range) -> Iterator[Message]:
        broker = self._connected()
        try:
            reader = broker.open(json.loads(self._options["subjects"]), partition.start)
            while True:
                whole = reader.caught_up
                messages = reader.take()
                for message in messages:
                    if message.number > partition.end:
                        return
                    yield message
                if whole:
                    return
                if not messages:
                    broker.wait(0.05)
        finally:
            broker.close()

    def stop(self) -> None:
        if self._broker is not None:
            self._broker.close()

    def _connected(self) -> NatsBroker:
        return NatsBroker(self._options["url"], self._options["network"], domain=self._options.get("domain"))
