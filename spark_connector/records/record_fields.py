"""The fields of many records at once.

Each field of every record is read before the next field of any: a varint of all of them is a
few operations on arrays. Keys and values are not copied one by one either; they become an Arrow
array over the records' own bytes, in which what lies between them is an element, too, and every
other one is taken.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...common.errors import ErrorCode, KafkaError
from ...protocol.records.records import HEADER_BYTES_MIN, HEADERS_MAX
from ...protocol.varints import read_zigzag_varint
from .record_starts import Bytes, Numbers

VARINT_BYTES_MAX = 10


class RecordFields:
    """The fields of records that lie in one array.

    Args:
        array: the bytes in which they lie, in their order.
        starts: where the attributes of each record lie.
        ends: where each record ends.

    Raises:
        KafkaError: CORRUPT_MESSAGE, the parts of a record do not add up to its length.
    """

    def __init__(self, array: Bytes, starts: Numbers, ends: Numbers) -> None:
        self._array = array
        self._ends = ends
        self.timestamp_deltas, at = self._varints(starts + 1)
        self.offset_deltas, at = self._varints(at)
        self._key_lengths, self._keys_at = self._varints(at)
        self._key_ends = self._behind(self._keys_at, self._key_lengths)
        self._value_lengths, self._values_at = self._varints(self._key_ends)
        self._value_ends = self._behind(self._values_at, self._value_lengths)
        self.header_counts, self._headers_at = self._varints(self._value_ends)
        has_none = self.header_counts == 0
        fits = np.where(has_none, self._headers_at == ends, self._headers_at < ends)
        if not fits.all() or (self.header_counts < 0).any():
            raise _corrupt("a record whose parts do not add up to its length")

    def keys(self, rows: Numbers | None) -> pa.Array:
        """The keys, of these rows or of all."""
        return self._binary(self._keys_at, self._key_ends, self._key_lengths, rows)

    def values(self, rows: Numbers | None) -> pa.Array:
        """The values, of these rows or of all."""
        return self._binary(self._values_at, self._value_ends, self._value_lengths, rows)

    def headers(self, rows: Numbers | None, kind: pa.DataType) -> pa.Array:
        """The headers, null where a record has none."""
        positions = range(len(self.header_counts)) if rows is None else rows.tolist()
        counts = self.header_counts.tolist()
        if not any(counts):
            return pa.nulls(len(positions), kind)
        return pa.array([self._headers(row) if counts[row] else None for row in positions], kind)

    def _headers(self, row: int) -> list[tuple[str, bytes | None]]:
        start, count = int(self._headers_at[row]), int(self.header_counts[row])
        data = self._array[start : self._ends[row]].tobytes()
        position, end = 0, len(data)
        if count > HEADERS_MAX + (end - position) // HEADER_BYTES_MIN:
            raise _corrupt(f"a record with {count} headers")
        found = []
        try:
            for _ in range(count):
                name, position = _nullable(data, position, end)
                value, position = _nullable(data, position, end)
                if name is None:
                    raise _corrupt("a header without a name")
                found.append((name.decode("utf-8"), value))
        except UnicodeDecodeError as error:
            raise _corrupt("a header whose name is no text") from error
        if position != end:
            raise _corrupt("a record whose parts do not add up to its length")
        return found

    def _binary(
        self, starts: Numbers, ends: Numbers, lengths: Numbers, rows: Numbers | None
    ) -> pa.Array:
        bounds = np.empty(2 * len(starts), np.int32)
        bounds[0::2] = starts
        bounds[1::2] = ends
        both = pa.Array.from_buffers(
            pa.binary(),
            len(bounds) - 1,
            [None, pa.py_buffer(bounds), pa.py_buffer(self._array)],
        )
        positions = np.arange(0, len(bounds), 2) if rows is None else rows * 2
        is_null = lengths < 0
        if rows is not None:
            is_null = is_null[rows]
        mask = is_null if is_null.any() else None
        return both.take(pa.array(positions, pa.int64(), mask=mask))

    def _behind(self, starts: Numbers, lengths: Numbers) -> Numbers:
        ends = starts + np.maximum(lengths, 0)
        if (ends > self._ends).any() or (lengths < -1).any():
            raise _corrupt("a field longer than its record")
        return ends

    def _varints(self, positions: Numbers) -> tuple[Numbers, Numbers]:
        """The signed number at each position, and the position behind it."""
        array = self._array
        # What lies behind the end of a damaged record is read as anything, and found out below.
        first = array.take(positions, mode="clip")
        raw = (first & 0x7F).astype(np.uint64)
        positions = positions + 1
        open_ = np.flatnonzero(first & 0x80)
        shift = 7
        while open_.size:
            if shift >= 7 * VARINT_BYTES_MAX:
                raise _corrupt("an endless number")
            at = positions[open_]
            byte = array.take(at, mode="clip")
            raw[open_] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            positions[open_] += 1
            open_ = open_[byte >= 0x80]
            shift += 7
        return (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(
            np.int64
        ), positions


def _nullable(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_zigzag_varint(data, position)
    if length < 0:
        return None, position
    if position + length > end:
        raise _corrupt("a field longer than its record")
    return data[position : position + length], position + length


def _corrupt(what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"it holds {what}")
