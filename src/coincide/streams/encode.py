"""Detections as lines of JSON, with their keys."""

from __future__ import annotations

import msgspec

from coincide.adapters.write import KEY, records_of, with_iso_times
from coincide.engines.identity import Keys, digests_of, makers
from coincide.model.batch import EventBatch
from coincide.rulebook import Rulebook
from coincide.streams.base import Made


class Encoder:
    """Tells keys only where somebody needs them: `shown` in the records as `_key`, or `kept` for sinks; likewise the names of
    rules, if they are to be `named`."""

    def __init__(
        self, rules: Rulebook, *, shown: bool = False, kept: bool = False, time_format: str = "ms", named: bool = False
    ) -> None:
        self.keys = Keys(digests_of(rules)) if shown or kept else None
        self._names = names_of(rules) if named else None
        self._shown = shown
        self._iso = time_format == "iso"
        self._encode = msgspec.json.Encoder().encode

    def change_rules(self, rules: Rulebook) -> None:
        if self.keys is not None:
            self.keys.change_rules(digests_of(rules))
        if self._names is not None:
            self._names = names_of(rules)

    def made(self, batch: EventBatch) -> list[Made]:
        records = records_of(batch)
        if self._iso:
            records = map(with_iso_times, records)
        keys = [""] * len(batch) if self.keys is None else self.keys.of(batch)
        if self._shown:
            records = ({**record, KEY: key} for record, key in zip(records, keys, strict=True))
        if self._names is None:
            return [Made(key, r["type"], self._encode(r) + b"\n") for r, key in zip(records, keys, strict=True)]
        rules = [self._names[number] for number in makers(batch)]
        return [Made(key, r["type"], self._encode(r) + b"\n", rule) for r, key, rule in zip(records, keys, rules, strict=True)]


def names_of(rules: Rulebook) -> dict[int, str]:
    """The names of definitions, by the numbers that `maker` tells."""
    return {detector.order: detector.name for detector in rules.detectors}
