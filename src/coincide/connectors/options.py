"""Options of formats, as Spark gives them: texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql.types import StructType

from coincide.errors import CoincideError, Diagnostic, nearest

COMMON = ("path", "maxOffsetsPerTrigger", "minPartitions")
TRUTH = {"true": True, "false": False}


class Options:
    """Those of one format. Names are the same in upper and lower case, as everywhere in Spark; unknown ones are refused."""

    def __init__(self, format: str, given: Mapping[str, str], known: Sequence[str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}
        self._format = format
        if unknown := sorted(self._given.keys() - {name.lower() for name in known}):
            hint = nearest(unknown[0], known) or f"known: {', '.join(known)}"
            raise CoincideError(Diagnostic(f"format '{format}': unknown option '{unknown[0]}'", hint=hint))

    @property
    def url(self) -> str:
        if (url := self._given.get("path")) is None:
            scheme = self._format.removeprefix("coincide-")
            raise CoincideError(f"format '{self._format}': where is it? .load(\"{scheme}://…\")")
        return url

    def of(self, name: str, default: str) -> str:
        return self._given.get(name.lower(), default)

    def number(self, name: str) -> int | None:
        """One above zero."""
        if (text := self._given.get(name.lower())) is None:
            return None
        if not text.isdecimal() or int(text) == 0:
            raise CoincideError(f"format '{self._format}': {name} must be a number above zero, not '{text}'")
        return int(text)

    def flag(self, name: str, default: bool) -> bool:
        text = self._given.get(name.lower(), str(default)).lower()
        if text not in TRUTH:
            raise CoincideError(f"format '{self._format}': {name} must be true or false, not '{text}'")
        return TRUTH[text]


def check_schema(format: str, given: StructType, own: StructType) -> None:
    """Raises CoincideError for columns that the format does not have."""
    if given != own:
        hint = "coincide.spark.decoded(frame, schema) makes columns of records"
        raise CoincideError(Diagnostic(f"format '{format}' has columns of its own: {', '.join(own.names)}", hint=hint))
