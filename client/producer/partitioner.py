"""Which partition a record goes to: by its key, or the one that is being filled.

Kafka's partitioning: a key's murmur2 hash, so that records of one key stay in order, whichever
Kafka client writes them. Records without a key fill one partition for `batch_size` bytes, then
another, picked at random (KIP-480; KIP-794's strictly uniform form, without weights by load).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from random import Random

_SEED = 0x9747B28C
_MIX = 0x5BD1E995
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF

REMEMBERED_KEYS_MAX = 4096
REMEMBERED_KEY_BYTES_MAX = 64
"""The hashes of short keys are remembered: a topic's records often share few of them."""


def murmur2(data: bytes) -> int:
    """The 32-bit MurmurHash2 of Kafka's clients, as an unsigned number.

    Source: `org.apache.kafka.common.utils.Utils.murmur2`.
    """
    length = len(data)
    hashed = _SEED ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _MIX & _MASK
        word = (word ^ word >> 24) * _MIX & _MASK
        hashed = hashed * _MIX & _MASK ^ word
    if length > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _MIX & _MASK
    hashed = (hashed ^ hashed >> 13) * _MIX & _MASK
    return hashed ^ hashed >> 15


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The partition of a topic with so many that a key's records go to."""
    hashed = _murmur2_of_short(key) if len(key) <= REMEMBERED_KEY_BYTES_MAX else murmur2(key)
    return (hashed & _POSITIVE) % partition_count


@lru_cache(maxsize=REMEMBERED_KEYS_MAX)
def _murmur2_of_short(key: bytes) -> int:
    return murmur2(key)


class StickyPartition:
    """The partition of one topic that records without a key go to for the moment.

    Args:
        switch_bytes: after so many another one is picked.
        random: picks.
    """

    __slots__ = ("_produced_bytes", "_random", "_switch_bytes", "partition")

    def __init__(self, switch_bytes: int, random: Random) -> None:
        self.partition: int | None = None
        """None before the first record."""
        self._switch_bytes = switch_bytes
        self._produced_bytes = 0
        self._random = random

    def current(self, available: Sequence[int]) -> int:
        """The partition, picked from those available if it is time for another.

        Args:
            available: the partitions that have a leader; at least one.
        """
        if self.partition is None or self._produced_bytes >= self._switch_bytes:
            self.partition = available[self._random.randrange(len(available))]
            self._produced_bytes = 0
        return self.partition

    def produced(self, size: int) -> None:
        """A batch of so many bytes was closed for sending."""
        self._produced_bytes += size
