"""Lines of syslog as records: RFC 5424, RFC 3164, and what daemons write to files (without priority, also with ISO-8601 times).

Fields have the names of the Elastic Common Schema. Lines of RFC 3164 tell neither year nor zone: they are in UTC, and of the
latest year in which they are not later than a day after `written`, when the log was last written to."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from coincide.adapters.records import BadRecord

TYPE = "syslog"
FACILITIES = [
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"),
    *("ntp", "audit", "alert", "clock", *(f"local{number}" for number in range(8))),
]
SEVERITIES = ["emergency", "alert", "critical", "error", "warning", "notice", "informational", "debug"]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
LEAP = 8
"""So many years back there is a 29th of February."""

PRIORITY = re.compile(r"<(\d{1,3})>")
CURRENT = re.compile(r"(\d{1,3}) (\S+) (\S+) (\S+) (\S+) (\S+) ", re.ASCII)  # version, time, host, app, process, message id
ELEMENT = re.compile(r'\[([^\s=\]"]+)((?: [^\s=\]"]+="(?:[^"\\\]]|\\.)*")*)\]', re.DOTALL)
PARAMETER = re.compile(r' ([^\s=\]"]+)="((?:[^"\\\]]|\\.)*)"', re.DOTALL)
OLD_TIME = re.compile(r"([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)(\.\d{1,6})? ", re.ASCII)
ISO_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\S+) ", re.ASCII)
TAG = re.compile(r"([^\s:\[\]]{1,128})(?:\[([^\]]*)\])?: ?")
NONE = "-"

Record = dict[str, object]


def syslog_reader(written: datetime) -> Callable[[bytes], Record]:
    """From a line to a record. Raises BadRecord."""

    def read(line: bytes) -> Record:
        text = line.decode("utf-8", "replace").rstrip("\r\n").removeprefix("\ufeff")
        record: Record = {"type": TYPE}
        if priority := PRIORITY.match(text):
            record.update(_priority(int(priority[1])))
            text = text[priority.end() :]
            if current := CURRENT.match(text):
                return record | _current(current, text[current.end() :])
        return record | _old(text, written)

    return read


def _priority(number: int) -> Record:
    facility, severity = divmod(number, 8)
    if facility >= len(FACILITIES):
        raise BadRecord("a priority is at most 191")
    return {
        "log.syslog.priority": number,
        "log.syslog.facility.name": FACILITIES[facility],
        "log.syslog.severity.name": SEVERITIES[severity],
        "log.syslog.severity.code": severity,
    }


def _current(head: re.Match[str], rest: str) -> Record:
    """RFC 5424."""
    version, time, host, name, process, message_id = head.groups()
    if version != "1":
        raise BadRecord(f"syslog of version {version}: only version 1 is known")
    if time == NONE:
        raise BadRecord("missing time")
    record: Record = {"time": time, **_header(host, name, process)}
    if message_id != NONE:
        record["log.syslog.msgid"] = message_id
    data, message = _structured(rest)
    return record | data | ({"message": message.removeprefix("\ufeff")} if message else {})


def _structured(text: str) -> tuple[Record, str]:
    """Structured data, and what is left."""
    found: Record = {}
    if text.startswith(NONE):
        text = text[1:]
    elif not text.startswith("["):
        raise BadRecord("structured data must be '-' or in brackets")
    else:
        while element := ELEMENT.match(text):
            for name, value in PARAMETER.findall(element[2]):
                found[f"log.syslog.structured_data.{element[1]}.{name}"] = re.sub(r'\\(["\\\]])', r"\1", value)
            text = text[element.end() :]
    if text[:1] not in ("", " "):
        raise BadRecord("structured data is not closed")
    return found, text[1:]


def _header(host: str, name: str, process: str) -> Record:
    given: Record = {}
    if host != NONE:
        given["host.hostname"] = host
    if name != NONE:
        given["process.name"] = name
    if process != NONE:
        given["process.pid"] = int(process) if process.isascii() and process.isdecimal() else process
    return given


def _old(text: str, written: datetime) -> Record:
    """RFC 3164, or the same with a time of today."""
    if iso := ISO_TIME.match(text):
        time, text = iso[1], text[iso.end() :]
    elif old := OLD_TIME.match(text):
        time, text = _dated(old, written), text[old.end() :]
    else:
        raise BadRecord("not syslog: it must begin with a priority or a time")
    host, _, rest = text.partition(" ")
    tag = TAG.match(rest)
    if tag is None:
        return {"time": time, "host.hostname": host, "message": rest}
    return {"time": time, **_header(host, tag[1], tag[2] or NONE), "message": rest[tag.end() :]}


def _dated(old: re.Match[str], written: datetime) -> str:
    month, day, hour, minute, second, fraction = old.groups()
    latest = written + timedelta(days=1)
    for year in range(latest.year, latest.year - LEAP - 1, -1):
        try:
            moment = datetime(year, 1 + MONTHS.index(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
        except ValueError:
            continue
        if moment <= latest:
            return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction or ''}Z"
    raise BadRecord(f"'{old[0].strip()}' is not a time")
