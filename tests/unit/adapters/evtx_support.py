"""Files of the Windows Event Log, written by the published description of their format: a header, one chunk, XML as tokens."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from xml.etree.ElementTree import Element

CHUNK, HEADER, FIRST = 65_536, 4_096, 512
EPOCH = 116_444_736_000_000_000  # 1970 in hundreds of nanoseconds since 1601


def evtx_file(events: Sequence[tuple[Element, int]]) -> bytes:
    """Events as XML, each with its time in microseconds."""
    chunk = bytearray(FIRST)
    last = 0
    for number, (event, time) in enumerate(events, 1):
        last = len(chunk)
        chunk += struct.pack("<4sIQQ", b"\x2a\x2a\0\0", 0, number, EPOCH + time * 10) + b"\x0f\x01\x01\x00"
        _element(chunk, event)
        chunk += b"\0"
        size = len(chunk) - last + 4
        chunk[last + 4 : last + 8] = struct.pack("<I", size)
        chunk += struct.pack("<I", size)
    count = len(events)
    records = zlib.crc32(chunk[FIRST:])
    head = struct.pack("<8sQQQQIIII", b"ElfChnk\0", 1, count, 1, count, 128, last, len(chunk), records)
    chunk[: len(head)] = head
    chunk[124:128] = struct.pack("<I", zlib.crc32(bytes(chunk[:120]) + bytes(chunk[128:FIRST])))
    file = bytearray(HEADER)
    head = struct.pack("<8sQQQIHHHH", b"ElfFile\0", 0, 0, count + 1, 128, 1, 3, HEADER, 1)
    file[: len(head)] = head
    file[124:128] = struct.pack("<I", zlib.crc32(bytes(file[:120])))
    return bytes(file) + bytes(chunk.ljust(CHUNK, b"\0"))


def _element(chunk: bytearray, element: Element) -> None:
    chunk += struct.pack("<BI", 0x41 if element.attrib else 0x01, 0)
    start = len(chunk)
    _name(chunk, element.tag)
    if element.attrib:
        chunk += struct.pack("<I", 0)
        begin = len(chunk)
        for number, (name, value) in enumerate(element.attrib.items(), 1):
            chunk += b"\x46" if number < len(element.attrib) else b"\x06"
            _name(chunk, name)
            _text(chunk, value)
        chunk[begin - 4 : begin] = struct.pack("<I", len(chunk) - begin)
    chunk += b"\x02"
    if element.text:
        _text(chunk, element.text)
    for inner in element:
        _element(chunk, inner)
    chunk += b"\x04"
    chunk[start - 4 : start] = struct.pack("<I", len(chunk) - start)


def _name(chunk: bytearray, name: str) -> None:
    value = 0
    for letter in name:
        value = (value * 65599 + ord(letter)) & 0xFFFFFFFF
    chunk += struct.pack("<I", len(chunk) + 4)
    chunk += struct.pack("<IHH", 0, value & 0xFFFF, len(name)) + name.encode("utf-16-le") + b"\0\0"


def _text(chunk: bytearray, text: str) -> None:
    chunk += struct.pack("<BBH", 0x05, 0x01, len(text)) + text.encode("utf-16-le")
