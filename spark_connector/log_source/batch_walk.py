"""The batches of a slice, read where the file is mapped into memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from ...protocol.records.batch import BATCH_HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC_V2, RecordBatch
from ...protocol.records.validation import has_valid_crc
from ..errors import SparkConnectorError
from .slices import LogSlice

SHORTEST_LENGTH = BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES


@contextmanager
def mapped(path: str) -> Iterator[memoryview]:
    """A file's bytes.

    Raises:
        SparkConnectorError: it cannot be opened; a broker may have deleted it meanwhile.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise SparkConnectorError(f"{path} cannot be read: {error.strerror}") from None
    try:
        if os.fstat(descriptor).st_size == 0:
            yield memoryview(b"")
            return
        # It is unmapped with the last batch that refers to it.
        mapping = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
        mapping.madvise(mmap.MADV_SEQUENTIAL)
        yield memoryview(mapping)
    finally:
        os.close(descriptor)


class BatchWalk:
    """Goes through a slice, batch by batch.

    Args:
        data: the whole file.
        slice_: where to go.
        checks_crcs: whether each checksum is compared.
        skips_damage: whether to go on behind what is no sound batch.
    """

    def __init__(
        self, data: memoryview, slice_: LogSlice, *, checks_crcs: bool, skips_damage: bool
    ) -> None:
        self._data = data
        self._slice = slice_
        self._checks_crcs = checks_crcs
        self._skips_damage = skips_damage

    def batches(self) -> Iterator[RecordBatch]:
        """Those that may hold requested offsets; the buffer of each is the file's.

        Raises:
            SparkConnectorError: one is damaged, and that is not to be skipped.
        """
        slice_ = self._slice
        position, end = slice_.start_position, slice_.end_position
        if end > len(self._data):
            self._damaged(len(self._data), "the file is shorter than it was")
            end = len(self._data)
        next_offset = slice_.segment
        while position < end:
            batch = self._batch_at(position, end)
            if batch is None:
                return
            position += batch.size_in_bytes
            if batch.base_offset < next_offset or batch.last_offset_delta < 0:
                self._damaged(batch.position, f"its offsets begin again at {batch.base_offset}")
                continue
            next_offset = batch.next_offset
            if batch.base_offset >= slice_.until_offset:
                return
            if batch.last_offset < slice_.first_offset:
                continue
            if self._checks_crcs and not has_valid_crc(batch):
                self._damaged(batch.position, "its checksum is wrong")
                continue
            yield batch

    def _batch_at(self, position: int, end: int) -> RecordBatch | None:
        """The batch there, or None at the end of what can be read."""
        rest = end - position
        if rest < BATCH_HEADER_BYTES:
            self._end(position, f"only {rest} bytes are left")
            return None
        batch = RecordBatch(self._data, position)
        if batch.magic != MAGIC_V2 or batch.batch_length < SHORTEST_LENGTH:
            if self._slice.is_tail and not any(self._data[position:end]):
                return None  # preallocated space
            self._end(position, "there is no record batch", is_torn=False)
            return None
        if batch.size_in_bytes > rest:
            self._end(position, f"its {batch.size_in_bytes} bytes go beyond the end")
            return None
        return batch

    def _end(self, position: int, problem: str, *, is_torn: bool = True) -> None:
        """Nothing can be read from here on; at a log's end a crash may have left that."""
        if not (is_torn and self._slice.is_tail):
            self._damaged(position, problem)

    def _damaged(self, position: int, problem: str) -> None:
        if not self._skips_damage:
            damaged(self._slice.path, position, problem)


def damaged(path: str, position: int, problem: str) -> NoReturn:
    """Fail because of a batch.

    Raises:
        SparkConnectorError: always.
    """
    raise SparkConnectorError(
        f"{path} is damaged at {position}: {problem}; option 'mode' set to DROPMALFORMED would"
        " leave out what cannot be read"
    )
