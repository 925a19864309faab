"""Batches are gathered until there are enough rows, then decoded at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...common.errors import KafkaError
from ...common.sentinels import INT64_MAX, NO_SEQUENCE
from ...protocol.compression.codecs import Compression
from ...protocol.compression.decompression import decompress
from ...protocol.records.batch import BATCH_HEADER_BYTES, SEQUENCE_MASK, RecordBatch
from ..batch_sizes import GATHERED_BYTES, bounded
from ..kafka_source.columns import MICROSECONDS, TIMESTAMP_MS_MAX, arrow_schema, repeated
from .record_fields import RecordFields
from .record_starts import Bytes, Numbers, RecordStarts

ROWS_MIN = 32_768
"""With so many a record batch of Arrow is complete."""

BATCH_DECOMPRESSED_BYTES_MAX = 512 << 20
"""A single batch that decompresses to more is refused."""

INT64_MIN = -INT64_MAX - 1

Section = memoryview | bytes
"""The records of a batch, decompressed."""


class RowBounds(NamedTuple):
    """Which records become rows."""

    first_offset: int
    until_offset: int
    start_ms: int = INT64_MIN
    until_ms: int = INT64_MAX


class GatheredBatches:
    """Batches on their way to one record batch of Arrow.

    Args:
        columns: the columns of a row, with their types in SQL.
        bounds: which records become rows.
        constants: what is the same in all rows, by column.
        batch_bytes_max: how much a record batch of Arrow may have.
        refuse: is told of a batch that is damaged; it is left out where that does not raise.
    """

    def __init__(
        self,
        columns: Mapping[str, str],
        bounds: RowBounds,
        constants: Mapping[str, Any],
        batch_bytes_max: int,
        refuse: Callable[[RecordBatch, KafkaError], None],
    ) -> None:
        self._columns = columns
        self._schema = arrow_schema(dict(columns))
        self._bounds = bounds
        self._constants = constants
        self._batch_bytes_max = batch_bytes_max
        self._bytes_max = min(GATHERED_BYTES, batch_bytes_max)
        self._refuse = refuse
        self._layouts = RecordStarts()
        self._batches: list[RecordBatch] = []
        self._sections: list[Section] = []
        self._rows = self._bytes = 0

    def add(self, batch: RecordBatch) -> Iterator[pa.RecordBatch]:
        """Decompress a batch's records and keep them; gives what is complete without them."""
        if batch.records_count == 0 and batch.size_in_bytes == BATCH_HEADER_BYTES:
            return  # the cleaner keeps a producer's last batch, without records
        section: Section
        try:
            if batch.compression is Compression.NONE:
                start = batch.position + BATCH_HEADER_BYTES
                section = memoryview(batch.buffer)[start : batch.position + batch.size_in_bytes]
            else:
                section = decompress(
                    batch.compression, batch.records_section(), BATCH_DECOMPRESSED_BYTES_MAX
                )
        except KafkaError as error:
            self._refuse(batch, error)
            return
        if self._rows >= ROWS_MIN or self._bytes + len(section) > self._bytes_max:
            yield from self.taken()
        self._batches.append(batch)
        self._sections.append(section)
        self._rows += batch.records_count
        self._bytes += len(section)

    def taken(self) -> Iterator[pa.RecordBatch]:
        """What was gathered, decoded; nothing if no record of it matches."""
        batches, sections = self._batches, self._sections
        self._batches, self._sections = [], []
        self._rows = self._bytes = 0
        if not batches:
            return
        try:
            found = self._decoded(batches, sections)
        except KafkaError as error:
            if len(batches) == 1:
                self._refuse(batches[0], error)
                return
            # Each by itself, to tell which it is and keep the others.
            for batch, section in zip(batches, sections, strict=True):
                self._batches, self._sections = [batch], [section]
                yield from self.taken()
            return
        if found.num_rows:
            yield from bounded(found, self._batch_bytes_max)

    def _decoded(
        self, batches: Sequence[RecordBatch], sections: Sequence[Section]
    ) -> pa.RecordBatch:
        array, positions = _in_one_array(sections)
        starts, ends = [], []
        for batch, section, position in zip(batches, sections, positions, strict=True):
            each_starts, each_ends = self._layouts.find(
                array, position, position + len(section), batch.records_count
            )
            starts.append(each_starts)
            ends.append(each_ends)
        fields = RecordFields(array, np.concatenate(starts), np.concatenate(ends))
        rows = _Rows(batches, fields, self._bounds)
        arrays = [
            repeated(self._constants[name], kind, rows.count)
            if name in self._constants
            else rows.column(name, field.type)
            for (name, kind), field in zip(self._columns.items(), self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _in_one_array(sections: Sequence[Section]) -> tuple[Bytes, Sequence[int]]:
    """An array that holds all sections, and where in it each begins.

    Where they lie in the same memory, one after another, it is that: nothing is copied.
    """
    memory = _memory(sections[0])
    if all(_memory(each) is memory for each in sections):
        buffers = [pa.py_buffer(each) for each in sections]
        first = buffers[0].address
        size = buffers[-1].address + buffers[-1].size - first
        shared = pa.foreign_buffer(first, size, memory)
        return np.frombuffer(shared, np.uint8), [each.address - first for each in buffers]
    ends = list(accumulate(map(len, sections)))
    return np.frombuffer(b"".join(sections), np.uint8), [0, *ends[:-1]]


def _memory(section: Section) -> object:
    """What owns the bytes of a section."""
    return section.obj if isinstance(section, memoryview) else section


class _Rows:
    """The columns of decoded records."""

    def __init__(
        self, batches: Sequence[RecordBatch], fields: RecordFields, bounds: RowBounds
    ) -> None:
        self._batches = batches
        self._fields = fields
        self._counts = np.array([batch.records_count for batch in batches], np.int64)
        self._offsets = self._of_batch("base_offset") + fields.offset_deltas
        self._timestamps = np.where(
            self._of_batch("uses_log_append_time", np.bool_),
            self._of_batch("max_timestamp"),
            self._of_batch("base_timestamp") + fields.timestamp_deltas,
        )
        mask = (
            (self._offsets >= bounds.first_offset)
            & (self._offsets < bounds.until_offset)
            & (self._timestamps >= bounds.start_ms)
            & (self._timestamps < bounds.until_ms)
        )
        self._rows: Numbers | None = None if mask.all() else np.flatnonzero(mask)
        self.count = len(mask) if self._rows is None else len(self._rows)

    def column(self, name: str, kind: pa.DataType) -> pa.Array:
        """One column of the rows.

        Args:
            name: Spark's.
            kind: its type in Arrow.
        """
        values: pa.Array = getattr(self, f"_column_{name.lower()}")(kind)
        return values

    def _of_batch(self, name: str, kind: Any = np.int64) -> Any:
        """A field of the batch's header, for each record."""
        values = np.array([getattr(batch, name) for batch in self._batches], kind)
        return np.repeat(values, self._counts)

    def _chosen(self, values: Any, kind: pa.DataType) -> pa.Array:
        return pa.array(values if self._rows is None else values[self._rows]).cast(kind)

    def _column_key(self, kind: pa.DataType) -> pa.Array:
        return self._fields.keys(self._rows)

    def _column_value(self, kind: pa.DataType) -> pa.Array:
        return self._fields.values(self._rows)

    def _column_headers(self, kind: pa.DataType) -> pa.Array:
        return self._fields.headers(self._rows, kind)

    def _column_offset(self, kind: pa.DataType) -> pa.Array:
        return self._chosen(self._offsets, kind)

    def _column_timestamp(self, kind: pa.DataType) -> pa.Array:
        fitting = np.clip(self._timestamps, -TIMESTAMP_MS_MAX, TIMESTAMP_MS_MAX)
        return self._chosen(fitting * MICROSECONDS, pa.int64()).cast(kind)

    def _column_timestamptype(self, kind: pa.DataType) -> pa.Array:
        return self._chosen(self._of_batch("uses_log_append_time", np.int32), kind)

    def _column_position(self, kind: pa.DataType) -> pa.Array:
        return self._chosen(self._of_batch("position"), kind)

    def _column_leaderepoch(self, kind: pa.DataType) -> pa.Array:
        return self._chosen(self._of_batch("partition_leader_epoch", np.int32), kind)

    def _column_producerid(self, kind: pa.DataType) -> pa.Array:
        return self._chosen(self._of_batch("producer_id"), kind)

    def _column_producerepoch(self, kind: pa.DataType) -> pa.Array:
        return self._chosen(self._of_batch("producer_epoch", np.int32), kind)

    def _column_sequence(self, kind: pa.DataType) -> pa.Array:
        base = self._of_batch("base_sequence")
        counted = (base + self._fields.offset_deltas) & SEQUENCE_MASK
        return self._chosen(np.where(base == NO_SEQUENCE, NO_SEQUENCE, counted), kind)

    def _column_istransactional(self, kind: pa.DataType) -> pa.Array:
        return self._chosen(self._of_batch("is_transactional", np.bool_), kind)

    def _column_iscontrol(self, kind: pa.DataType) -> pa.Array:
        return self._chosen(self._of_batch("is_control", np.bool_), kind)
