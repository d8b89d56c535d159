"""Entries of systemd's journal as `journalctl -o json` writes them, as records.

Fields keep their names; the ones that syslog has, too, are there under those of the Elastic Common Schema as well."""

from __future__ import annotations

from collections.abc import Mapping

from coincide.adapters.records import BadRecord
from coincide.adapters.syslog import SEVERITIES
from coincide.model.stamp import iso_instant

TYPE = "journal"
TIME = "__REALTIME_TIMESTAMP"
SAME = {
    "_HOSTNAME": "host.hostname",
    "SYSLOG_IDENTIFIER": "process.name",
    "_PID": "process.pid",
    "_EXE": "process.executable",
    "_CMDLINE": "process.command_line",
    "_UID": "user.id",
    "MESSAGE": "message",
}
NUMBERS = frozenset({"_PID", "_UID", "_GID", "PRIORITY", "SYSLOG_PID", "SYSLOG_FACILITY", "CODE_LINE"})


def journal_record(raw: object) -> dict[str, object]:
    """Raises BadRecord."""
    if not isinstance(raw, Mapping):
        raise BadRecord("not an object of fields")
    fields = {name: _value(name, value) for name, value in raw.items()}
    try:
        time = iso_instant(int(raw[TIME]))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise BadRecord(f"missing {TIME}") from None
    severity = fields.get("PRIORITY")
    named: dict[str, object] = {SAME[name]: value for name, value in fields.items() if name in SAME}
    if isinstance(severity, int) and 0 <= severity < len(SEVERITIES):
        named["log.syslog.severity.name"] = SEVERITIES[severity]
    return {"type": TYPE, "time": time, "id": fields.get("__CURSOR"), **fields, **named}


def _value(name: str, value: object) -> object:
    """Texts that are not UTF-8 come as arrays of bytes; of a field that comes several times all values count."""
    if isinstance(value, list):
        if value and all(type(byte) is int and 0 <= byte < 256 for byte in value):
            return bytes(value).decode("utf-8", "replace")
        return [_value(name, one) for one in value]
    is_number = name in NUMBERS and isinstance(value, str) and value.isascii() and value.isdecimal()
    return int(value) if is_number else value  # type: ignore[call-overload]
