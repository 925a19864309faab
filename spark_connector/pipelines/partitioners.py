"""Which partition a key belongs to, as producers compute it."""

from __future__ import annotations

import zlib
from collections.abc import Callable

MULTIPLIER = 0x5BD1E995
SEED = 0x9747B28C
MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash of Java's `Utils.murmur2`, as an unsigned number of 32 bits."""
    length = len(data)
    value = SEED ^ length
    for start in range(0, length - length % 4, 4):
        word = int.from_bytes(data[start : start + 4], "little") * MULTIPLIER & MASK
        word ^= word >> 24
        value = (value * MULTIPLIER & MASK) ^ (word * MULTIPLIER & MASK)
    rest = length % 4
    if rest:
        value ^= int.from_bytes(data[-rest:], "little")
        value = value * MULTIPLIER & MASK
    value ^= value >> 13
    value = value * MULTIPLIER & MASK
    return value ^ (value >> 15)


def by_murmur2(key: bytes, partitions: int) -> int:
    """The partition that Java's clients (and kafka-python) choose."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def by_crc32(key: bytes, partitions: int) -> int:
    """The partition that librdkafka's clients choose by default."""
    return zlib.crc32(key) % partitions


PARTITIONERS: dict[str, Callable[[bytes, int], int]] = {"murmur2": by_murmur2, "crc32": by_crc32}
