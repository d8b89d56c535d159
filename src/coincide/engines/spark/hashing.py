"""Spark's hash of a key (`xxhash64`), for detections: they go to the task that has the events with their key."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from coincide.model.event import Value

SEED = 42
MASK = 2**64 - 1
P1, P2, P3, P4, P5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def key_hash(values: Iterable[Value]) -> int:
    """The hash of columns with these values: numbers are doubles, null changes nothing."""
    hashed = SEED
    for value in values:
        if isinstance(value, bool):
            hashed = _hash_int(int(value), hashed)
        elif isinstance(value, float | int):
            hashed = _hash_long(struct.unpack("<Q", struct.pack("<d", float(value) + 0.0))[0], hashed)
        elif isinstance(value, str):
            hashed = _hash_bytes(value.encode(), hashed)
    return hashed - 2**64 if hashed >> 63 else hashed


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> (64 - bits)) & MASK


def _mixed(number: int) -> int:
    number = (number ^ number >> 33) * P2 & MASK
    number = (number ^ number >> 29) * P3 & MASK
    return number ^ number >> 32


def _with_word(hashed: int, word: int) -> int:
    hashed ^= _rotated(word * P2 & MASK, 31) * P1 & MASK
    return (_rotated(hashed, 27) * P1 + P4) & MASK


def _with_half(hashed: int, half: int) -> int:
    hashed ^= half * P1 & MASK
    return (_rotated(hashed, 23) * P2 + P3) & MASK


def _hash_int(number: int, seed: int) -> int:
    return _mixed(_with_half((seed + P5 + 4) & MASK, number & 0xFFFFFFFF))


def _hash_long(number: int, seed: int) -> int:
    return _mixed(_with_word((seed + P5 + 8) & MASK, number))


def _hash_bytes(data: bytes, seed: int) -> int:
    size, at = len(data), 0
    hashed = (seed + P5) & MASK
    if size >= 32:
        lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        for at in range(0, size - 31, 32):
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_rotated((lane + word * P2) & MASK, 31) * P1 & MASK for lane, word in zip(lanes, words, strict=True)]
        at += 32
        hashed = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & MASK
        for lane in lanes:
            hashed = ((hashed ^ _rotated(lane * P2 & MASK, 31) * P1 & MASK) * P1 + P4) & MASK
    hashed = (hashed + size) & MASK
    while at + 8 <= size:
        hashed, at = _with_word(hashed, struct.unpack_from("<Q", data, at)[0]), at + 8
    if at + 4 <= size:
        hashed, at = _with_half(hashed, struct.unpack_from("<I", data, at)[0]), at + 4
    for byte in data[at:]:
        hashed = _rotated(hashed ^ byte * P5 & MASK, 11) * P1 & MASK
    return _mixed(hashed)
