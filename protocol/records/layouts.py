"""Where the records of batches begin that come again and again in the same form.

A producer under load fills its batches up to the same size with as many records, most often of
the same lengths. If the lengths lie in a batch where they lay in one that was walked over, and
are the same, then they add up to this batch as they did to that: the first one proves where
the second begins, and so on to the end. So they are taken from their places in one call, and
compared in another.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from ..varints import read_raw_zigzag
from .batch import BATCH_HEADER_BYTES, Buffer
from .walk import RECORD_BYTES_MIN, lengths_add_up

RECORDS_MIN = 6
"""Batches of fewer records are walked over as fast."""

RECORDS_MAX = 255
"""Those of more are not remembered, so that a layout takes some twenty kilobytes at most."""

LAYOUTS_MAX = 64

WALKS_MIN = 4
"""So many batches of a size and a count are walked over before their layout is remembered, and
twice as many each time that another takes its place: learning costs as much as a few walks."""

Layout = tuple[Callable[[Buffer], tuple[bytes, ...]], tuple[bytes, ...]]
"""Takes the lengths out of a batch, and what they have to be."""


class RecordLayouts:
    """The layouts of the batches that came most lately, by size and number of records."""

    __slots__ = ("_known", "_walks")

    def __init__(self) -> None:
        self._known: dict[int, Layout] = {}
        self._walks: dict[int, int] = {}
        """How often one was walked over, the latest to come last."""

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._known)

    def lengths_add_up(self, batch: Buffer, count: int) -> bool:
        """Whether exactly `count` records fill a batch behind its header.

        Args:
            batch: a whole one, uncompressed, and nothing else.
            count: as its header says it.
        """
        size = len(batch)
        if count == 1 and _is_one_record(batch, size):
            return True
        if not RECORDS_MIN <= count <= RECORDS_MAX:
            return lengths_add_up(batch, BATCH_HEADER_BYTES, size, count)
        key = size << 8 | count
        known = self._known.get(key)
        if known is not None and known[0](batch) == known[1]:
            return True
        if not lengths_add_up(batch, BATCH_HEADER_BYTES, size, count):
            return False
        self._note_walk(key, batch, count)
        return True

    def _note_walk(self, key: int, batch: Buffer, count: int) -> None:
        walks = self._walks.get(key, 0) + 1
        if walks == 1 and len(self._walks) >= LAYOUTS_MAX:
            oldest = next(iter(self._walks))
            del self._walks[oldest]
            self._known.pop(oldest, None)
        self._walks[key] = walks
        if walks >= WALKS_MIN and walks & walks - 1 == 0:
            self._known[key] = _layout_of(batch, count)


def _is_one_record(batch: Buffer, size: int) -> bool:
    """Whether what follows the header is one record, whose length takes one byte or two.

    Says no as well where it is one that is longer, or written in another way.
    """
    body = size - BATCH_HEADER_BYTES - 1
    if body < 64:
        return body >= RECORD_BYTES_MIN and batch[BATCH_HEADER_BYTES] == body << 1
    body -= 1
    return (
        body < 1 << 13
        and batch[BATCH_HEADER_BYTES] == (body << 1 & 0x7F | 0x80)
        and batch[BATCH_HEADER_BYTES + 1] == body >> 6
    )


def _layout_of(batch: Buffer, count: int) -> Layout:
    """The layout of a batch whose lengths add up to it."""
    position = BATCH_HEADER_BYTES
    places = [f"{position}x"]
    for _ in range(count):
        raw, body = read_raw_zigzag(batch, position)
        end = body + (raw >> 1)
        places.append(f"{body - position}s{end - body}x")
        position = end
    take = Struct("".join(places)).unpack_from
    return take, take(batch)
