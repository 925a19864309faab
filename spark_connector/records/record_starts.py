"""Where the records of a batch begin, quickly.

From length to length takes a tenth of a microsecond a record. Producers under load fill batch
after batch with as many records of the same lengths; if the lengths lie in a batch where they
lay in one that was walked over, and are the same, then the records tile it as they tiled that.
So those are compared all at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...common.errors import ErrorCode, KafkaError

LAYOUTS_MAX = 256
WALKS_MIN = 2
RECORDS_MIN = 16
"""Fewer are walked over as fast."""

LENGTH_BYTES_MAX = 5
RECORD_BYTES_MIN = 6

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class _Layout(NamedTuple):
    lengths_at: Numbers
    """Each byte of each length."""
    lengths: Bytes
    starts: Numbers
    ends: Numbers


class RecordStarts:
    """Finds them, and remembers the layouts that it met."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[int, int], _Layout] = {}
        self._walks: dict[tuple[int, int], int] = {}

    def find(
        self,
        array: Bytes,
        position: int,
        end: int,
        count: int,
    ) -> tuple[Numbers, Numbers]:
        """Where the attributes of each record lie, and where each ends.

        Args:
            array: holds the records, decompressed.
            position: where the first record's length begins.
            end: where the last record ends.
            count: how many records there are.

        Raises:
            KafkaError: CORRUPT_MESSAGE, they do not fill these bytes.
        """
        key = (end - position, count)
        layout = self._layouts.get(key)
        if layout is not None and np.array_equal(
            array[position + layout.lengths_at], layout.lengths
        ):
            return layout.starts + position, layout.ends + position
        starts, ends = _walk(array[position:end].tobytes(), count)
        starts += position
        ends += position
        if count >= RECORDS_MIN:
            self._note_walk(key, array, position, starts, ends)
        return starts, ends

    def _note_walk(
        self, key: tuple[int, int], array: Bytes, position: int, starts: Numbers, ends: Numbers
    ) -> None:
        """Remember the layout of what comes often, but not of each batch anew."""
        walks = self._walks.get(key, 0) + 1
        if len(self._walks) >= LAYOUTS_MAX:
            self._walks.clear()
            self._layouts.clear()
        self._walks[key] = walks
        if walks < WALKS_MIN or walks & walks - 1:
            return
        # Every byte in front of a record's attributes, back to where the one before it ends.
        begins = np.concatenate(([position], ends[:-1]))
        widths = starts - begins
        at = np.concatenate([begins[widths > index] + index for index in range(widths.max())])
        self._layouts[key] = _Layout(at - position, array[at], starts - position, ends - position)


def _walk(data: bytes, count: int) -> tuple[Numbers, Numbers]:
    """From length to length; written out for those of one and two bytes."""
    starts: list[int] = []
    ends: list[int] = []
    note_start, note_end = starts.append, ends.append
    position = signs = 0
    try:
        for _ in range(count):
            length = data[position]
            position += 1
            if length >= 0x80:
                byte = data[position]
                position += 1
                length = length & 0x7F | (byte & 0x7F) << 7
                shift = 14
                while byte >= 0x80:
                    if shift > 7 * (LENGTH_BYTES_MAX - 1):
                        raise IndexError
                    byte = data[position]
                    position += 1
                    length |= (byte & 0x7F) << shift
                    shift += 7
            signs |= length
            note_start(position)
            position += length >> 1
            note_end(position)
    except IndexError:
        position = -1
    found = np.array(starts, np.int64), np.array(ends, np.int64)
    # Zigzag: a length below zero is odd.
    if position != len(data) or signs & 1 or (found[1] - found[0] < RECORD_BYTES_MIN).any():
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"its {count} records do not fill it")
    return found
