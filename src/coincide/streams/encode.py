"""Detections as lines of JSON, with their keys."""

from __future__ import annotations

import msgspec

from coincide.adapters.write import KEY, records_of, with_iso_times
from coincide.engines.identity import Keys, digests_of
from coincide.model.batch import EventBatch
from coincide.rulebook import Rulebook
from coincide.streams.base import Made


class Encoder:
    """Tells keys only where somebody needs them: `shown` in the records as `_key`, or `kept` for sinks."""

    def __init__(self, rules: Rulebook, *, shown: bool = False, kept: bool = False, time_format: str = "ms") -> None:
        self.keys = Keys(digests_of(rules)) if shown or kept else None
        self._shown = shown
        self._iso = time_format == "iso"
        self._encode = msgspec.json.Encoder().encode

    def made(self, batch: EventBatch) -> list[Made]:
        records = records_of(batch)
        if self._iso:
            records = map(with_iso_times, records)
        keys = [""] * len(batch) if self.keys is None else self.keys.of(batch)
        if self._shown:
            records = ({**record, KEY: key} for record, key in zip(records, keys, strict=True))
        return [Made(key, r["type"], self._encode(r) + b"\n") for r, key in zip(records, keys, strict=True)]
