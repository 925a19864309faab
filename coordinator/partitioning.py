"""Which partition of a coordinators' topic keeps a key, and so which broker coordinates it.

Clients of any broker of the cluster must be sent to the same one, so this is Kafka's own
arithmetic: Java's String.hashCode, made positive by Utils.abs, modulo the partitions.
"""

from __future__ import annotations

import struct

INT32_MIN = -(2**31)


def java_string_hash(text: str) -> int:
    """Java's `String.hashCode`, over UTF-16 units: a signed 32-bit number."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
        result = (31 * result + unit) & 0xFFFFFFFF
    return result - 2**32 if result >= 2**31 else result


def partition_for(key: str, partitions: int) -> int:
    """The partition that keeps `key`: a group id or a transactional id."""
    number = java_string_hash(key)
    return (0 if number == INT32_MIN else abs(number)) % partitions
