"""The latest offset of each key, in a fixed amount of memory (Kafka's SkimpyOffsetMap).

A key is kept as 128 bits of its BLAKE2b hash, so its size does not depend on its length:
24 bytes with the offset, where a Python dictionary takes about 140. Two keys of one hash would
count as one; at five million keys the probability is below 10^-24, and no way is known to make
such a pair on purpose. (Kafka uses MD5, for which one is.)
"""

from __future__ import annotations

from array import array
from hashlib import blake2b
from struct import Struct

from ..io.files import Buffer

HASH_BYTES = 16
ENTRY_BYTES = HASH_BYTES + 8
HASH_HALVES = Struct("<QQ")

SLOTS_MIN = 3
SLOTS_PER_KEY = 2
"""Half empty, probes stay short. The memory limit has precedence."""


class OffsetMapTooSmallError(ValueError):
    """The memory allowed holds no key: a matter of settings, not of the log."""


class OffsetMap:
    """An open-addressing table of hashes, probed by a second hash. Nothing is ever removed.

    Args:
        memory_bytes: the most it may take; all of it is allocated now, unless fewer keys are
            expected.
        load_factor: how full it may become, above 0 and up to 1.
        keys_max: how many keys may come, if that is known.

    Raises:
        OffsetMapTooSmallError: not even one key fits.
    """

    __slots__ = (
        "_hashes_high",
        "_hashes_low",
        "_offsets",
        "capacity",
        "latest_offset",
        "size",
        "slots",
    )

    def __init__(
        self, memory_bytes: int, load_factor: float = 0.9, keys_max: int | None = None
    ) -> None:
        slots = memory_bytes // ENTRY_BYTES
        if keys_max is not None:
            slots = min(slots, max(SLOTS_PER_KEY * keys_max, SLOTS_MIN))
        if slots < SLOTS_MIN or int(slots * load_factor) < 1:
            raise OffsetMapTooSmallError(
                f"{memory_bytes} bytes at a load factor of {load_factor} hold no key: raise "
                "log.cleaner.dedupe.buffer.size or lower log.cleaner.threads"
            )
        self.slots = _prime_at_most(slots)
        self.capacity = max(min(int(slots * load_factor), self.slots - 1), 1)
        """How many keys it takes; one slot at least stays free, where searches end."""
        self.size = 0
        """How many keys it holds."""
        self.latest_offset = -1
        """Up to here, the log has been looked at."""
        self._hashes_low = array("Q", [0]) * self.slots
        self._hashes_high = array("Q", [0]) * self.slots
        self._offsets = array("q", [0]) * self.slots  # plus one: zero says that a slot is free

    @property
    def is_full(self) -> bool:
        """Whether no other key fits."""
        return self.size >= self.capacity

    @property
    def utilization(self) -> float:
        """How much of the table is in use, from 0 to 1."""
        return self.size / self.slots

    def put(self, key: Buffer, offset: int) -> None:
        """Note that the latest record of a key lies at `offset`.

        Raises:
            ValueError: the map is full.
        """
        if self.size >= self.capacity:
            raise ValueError(f"the map holds {self.size} keys already and takes no more")
        low, high = HASH_HALVES.unpack(blake2b(key, digest_size=HASH_BYTES).digest())
        slot = self._slot_of(low, high)
        if not self._offsets[slot]:
            self._hashes_low[slot] = low
            self._hashes_high[slot] = high
            self.size += 1
        self._offsets[slot] = offset + 1
        self.latest_offset = offset

    def get(self, key: Buffer) -> int:
        """The offset noted for a key, or -1."""
        low, high = HASH_HALVES.unpack(blake2b(key, digest_size=HASH_BYTES).digest())
        return self._offsets[self._slot_of(low, high)] - 1

    def _slot_of(self, low: int, high: int) -> int:
        """The slot that holds the hash, or the free one where it belongs."""
        slots = self.slots
        slot = low % slots
        offsets, lows = self._offsets, self._hashes_low
        step = 0
        while offsets[slot] and (lows[slot] != low or self._hashes_high[slot] != high):
            step = step or 1 + high % (slots - 1)  # a prime of slots, so every one is visited
            slot = (slot + step) % slots
        return slot


def _prime_at_most(number: int) -> int:
    """The largest prime that is not above `number`, which is at least 3."""
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number -= 1
    return number
