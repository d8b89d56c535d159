"""What became of the records: counts, the first reasons, the rejected records themselves, warnings."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from coincide.adapters.files import CompleteFile
from coincide.adapters.records import beyond_64_bits
from coincide.errors import Diagnostic, InputError

SHOWN = 5
"""Reasons that a report shows."""

MAPPING_HINT = "a mapping says which fields are meant: mapping=FieldMapping(type=…, time=…) (see coincide guess)"


@dataclass
class ReadReport:
    """Counts of records: `read` are all, `rejected` the bad ones among them."""

    read: int = 0
    rejected: int = 0
    reasons: list[str] = field(default_factory=list)  # the first few: FILE:LINE: reason
    huge: Counter[str] = field(default_factory=Counter)  # integers of more than 64 bits that lost digits, by attribute
    unread: Counter[str] = field(default_factory=Counter)  # records that have an attribute that nobody wanted

    def add(self, other: ReadReport) -> None:
        """What became of the records of another reader."""
        self.read += other.read
        self.rejected += other.rejected
        self.reasons += other.reasons[: SHOWN - len(self.reasons)]
        self.huge += other.huge
        self.unread += other.unread

    @property
    def accepted(self) -> int:
        return self.read - self.rejected

    @property
    def warnings(self) -> list[str]:
        return self.warnings_about(None)

    def warnings_about(self, read: frozenset[str] | None) -> list[str]:
        """About attributes that are read; None: any may be."""
        return [
            f"{beyond_64_bits(name)} ({count} of them), which lose digits: give them as text"
            for name, count in self.huge.items()
            if read is None or name in read
        ]


class Intake:
    """Where readers hand in what they have read: it counts, keeps rejects, and stops at the first one under `strict`."""

    def __init__(
        self, *, strict: bool = False, rejects: str | os.PathLike[str] | None = None, shown: int = SHOWN, before: int = 0
    ) -> None:
        self.report = ReadReport()
        self.before = before
        self._strict = strict
        self._shown = shown
        self._file = None if rejects is None else CompleteFile(rejects)

    @property
    def position(self) -> int:
        """Of the next record, from 1, over all files, or from what was `before`."""
        return self.before + self.report.read + 1

    @property
    def keeps_rejects(self) -> bool:
        return self._file is not None

    def apart(self, before: int) -> Intake:
        """For a part of the input whose records stand after so many: it keeps rejects and stops as this one does, and counts by
        itself."""
        own = Intake(strict=self._strict, shown=self._shown, before=before)
        own._file = self._file
        return own

    def counted(self, records: int) -> None:
        self.report.read += records

    def reject(self, place: str, reason: str, raw: object) -> None:
        """A bad record at `place`; `raw` is its line as bytes, or anything that JSON can say. It counts as read elsewhere."""
        report = self.report
        report.rejected += 1
        if len(report.reasons) < self._shown:
            report.reasons.append(f"{place}: {reason}")
        if self._strict:
            raise InputError(Diagnostic(f"{place}: {reason}", hint=MAPPING_HINT if reason.startswith("missing ") else None))
        if self._file is not None:
            line = raw if isinstance(raw, bytes) else msgspec.json.encode(raw, enc_hook=str)
            self._file.stream.write(line.rstrip(b"\n") + b"\n")

    def close(self, *, complete: bool) -> None:
        """Rejects appear when all was read."""
        if self._file is not None:
            (self._file.commit if complete else self._file.discard)()
            self._file = None
