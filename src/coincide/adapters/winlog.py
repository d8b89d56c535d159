"""Events of Windows as JSON, in the forms that tools write, as records of one form: `EventID`, `Channel`, `Provider_Name`,
`Computer`, `EventRecordID` and the fields of the event's data, under the names that Windows (and Sysmon) give them.

    {"Event": {"System": {…}, "EventData": {…}}}         the XML of an event as evtx_dump, python-evtx and others turn it to JSON
    {"winlog": {"event_id": …, "event_data": {…}}, …}    Winlogbeat and the Elastic Agent; their own fields stay as well
    {"EventID": …, "Channel": …, "Image": …, …}          flat: NXLog, the datasets of OTRF, Get-WinEvent | ConvertTo-Json"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from coincide.adapters.mapping import TIMESTAMP
from coincide.adapters.records import BadRecord
from coincide.model.stamp import MILLISECOND, iso_instant

TIMES = ("time", TIMESTAMP, "SystemTime", "EventTime", "TimeCreated", "UtcTime")
"""Of flat records, the likeliest first."""
SYSTEM = {"EventRecordID", "Channel", "Computer", "Level", "Task", "Opcode", "Keywords", "Version"}
BEATS = {"channel": "Channel", "provider_name": "Provider_Name", "record_id": "EventRecordID", "computer_name": "Computer"}
PLAIN = frozenset({str, int, float, bool, type(None)})
XML = frozenset({"#text", "xmlns", "@xmlns", "@Name"})
DATE = re.compile(r"/Date\((-?\d+)\)/")
MISSING = "missing EventID: not an event of Windows"

Record = dict[str, object]


def windows_record(raw: object) -> Record:
    """Raises BadRecord."""
    if not isinstance(raw, dict):
        raise BadRecord("not an object of fields")
    event = raw.get("Event")
    winlog = raw.get("winlog")
    if isinstance(event, dict):
        record = _of_xml(event)
    elif isinstance(winlog, dict):
        record = _of_beats(raw, winlog)
    else:
        record = dict(raw)
        record.setdefault("EventID", record.get("Id"))
        record["time"] = next((_time(record[name]) for name in TIMES if record.get(name) is not None), None)
    if record.get("EventID") is None:
        raise BadRecord(MISSING)
    record["EventID"] = _number(record["EventID"])
    return record


def _of_xml(event: Mapping[str, object]) -> Record:
    system = event.get("System")
    if not isinstance(system, dict):
        raise BadRecord(MISSING)
    record: Record = {name: value for name in system if name in SYSTEM and (value := _text(system[name])) is not None}
    record["EventID"] = _text(system.get("EventID"))
    record["time"] = _attribute(system.get("TimeCreated"), "SystemTime")
    record["Provider_Name"] = _attribute(system.get("Provider"), "Name")
    record["ProcessID"] = _attribute(system.get("Execution"), "ProcessID")
    for part in ("EventData", "UserData"):
        record.update(_data(event.get(part)))
    return record


def _of_beats(raw: Mapping[str, object], winlog: Mapping[str, object]) -> Record:
    """What is told beside them has no other name in front."""
    code = winlog.get("event_id")
    if code is None and isinstance(event := raw.get("event"), dict):
        code = event.get("code")
    named: Record = {ours: winlog[theirs] for theirs, ours in BEATS.items() if winlog.get(theirs) is not None}
    return {**_data(winlog.get("event_data")), **named, "EventID": code, **raw}


def _data(data: object) -> Record:
    """Fields of EventData: an object, a list of `Data` with names, or an element of its own (UserData)."""
    if isinstance(data, dict) and len(data) > 1 and PLAIN.issuperset(map(type, data.values())) and XML.isdisjoint(data):
        return data  # nearly all
    return dict(_fields(data))


def _fields(data: object) -> Iterator[tuple[str, object]]:
    if isinstance(data, list):
        for one in data:
            yield from _fields(one)
        return
    if not isinstance(data, dict):
        return
    name = _attribute(data, "Name")
    if isinstance(name, str) and ("#text" in data or len(data) == 1):
        yield name, data.get("#text")
        return
    for key, value in data.items():
        if str(key).startswith(("#", "@", "xmlns")):
            continue
        if isinstance(value, (dict, list)) and (key == "Data" or _is_element(value)):
            yield from ([(str(key), _texts(value))] if _is_plain_list(value) else _fields(value))
        else:
            yield str(key), _text(value)


def _is_element(value: object) -> bool:
    return isinstance(value, dict) and "#text" not in value


def _is_plain_list(value: object) -> bool:
    return isinstance(value, list) and not any(isinstance(one, dict) and _attribute(one, "Name") is not None for one in value)


def _texts(value: object) -> list[object]:
    return [_text(one) for one in value] if isinstance(value, list) else [_text(value)]


def _text(value: object) -> object:
    """What an element says; its attributes do not count."""
    if isinstance(value, dict):
        return value.get("#text")
    return [_text(one) for one in value] if isinstance(value, list) else value


def _attribute(element: object, name: str) -> object:
    if not isinstance(element, dict):
        return None
    inside = element.get("#attributes")
    attributes = inside if isinstance(inside, dict) else element
    return next((attributes[key] for key in (name, f"@{name}") if key in attributes), None)


def _number(value: object) -> object:
    """Event ids are numbers, whatever a tool wrote."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else value


def _time(value: object) -> object:
    """ISO-8601, also with a space; PowerShell's dates."""
    if not isinstance(value, str):
        return value
    date = DATE.fullmatch(value)
    return iso_instant(int(date[1]) * MILLISECOND) if date else value
