"""The table of records: batches are gathered until there are enough rows, then decoded at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...common.errors import KafkaError
from ...common.sentinels import NO_SEQUENCE
from ...protocol.compression.codecs import Compression
from ...protocol.compression.decompression import decompress
from ...protocol.records.batch import BATCH_HEADER_BYTES, SEQUENCE_MASK, RecordBatch
from ..batch_sizes import GATHERED_BYTES, bounded
from ..kafka_source.columns import MICROSECONDS, TIMESTAMP_MS_MAX, arrow_schema, repeated
from .batch_walk import BatchWalk, damaged
from .options import LogOptions
from .record_fields import PADDING, RecordFields
from .record_starts import Numbers, RecordStarts
from .slices import LogSlice
from .tables import RECORD_COLUMNS

ROWS_MIN = 32_768
"""So much is gathered for a record batch of Arrow, and no more than one batch beyond it."""

BATCH_DECOMPRESSED_BYTES_MAX = 512 << 20
"""A single batch that decompresses to more is refused."""


def record_rows(
    data: memoryview, slice_: LogSlice, options: LogOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The records of a slice.

    Raises:
        SparkConnectorError: a batch is damaged, and that is not to be skipped.
    """
    walk = BatchWalk(
        data, slice_, checks_crcs=options.checks_crcs, skips_damage=options.skips_damage
    )
    gathered = _Gathered(slice_, options, columns)
    for batch in walk.batches():
        if not gathered.wants(batch):
            continue
        gathered.add(batch)
        if gathered.is_full:
            yield from gathered.taken()
    yield from gathered.taken()


class _Gathered:
    """Batches on their way to one record batch of Arrow."""

    def __init__(self, slice_: LogSlice, options: LogOptions, columns: Sequence[str]) -> None:
        self._slice = slice_
        self._options = options
        self._schema = arrow_schema({name: RECORD_COLUMNS[name] for name in columns})
        self._layouts = RecordStarts()
        self._aborted: dict[int, list[tuple[int, int]]] = {}
        for producer, first, last in slice_.aborted:
            self._aborted.setdefault(producer, []).append((first, last))
        self._batches: list[RecordBatch] = []
        self._sections: list[memoryview | bytes] = []
        self._rows = self._bytes = 0

    def wants(self, batch: RecordBatch) -> bool:
        """Whether any of a batch's records may belong to the table."""
        if batch.is_control:
            return self._options.includes_control
        if batch.max_timestamp < self._options.start_ms:
            return False
        if batch.is_transactional and batch.producer_id in self._aborted:
            return not any(
                first <= batch.base_offset <= last
                for first, last in self._aborted[batch.producer_id]
            )
        return True

    def add(self, batch: RecordBatch) -> None:
        """Decompress a batch's records and keep them."""
        section: memoryview | bytes
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
        self._batches.append(batch)
        self._sections.append(section)
        self._rows += batch.records_count
        self._bytes += len(section)

    @property
    def is_full(self) -> bool:
        """Whether it is time to decode."""
        return self._rows >= ROWS_MIN or self._bytes >= min(
            GATHERED_BYTES, self._options.batch_bytes_max
        )

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
            yield from bounded(found, self._options.batch_bytes_max)

    def _decoded(
        self, batches: Sequence[RecordBatch], sections: Sequence[memoryview | bytes]
    ) -> pa.RecordBatch:
        data = b"".join((*sections, PADDING))
        array = np.frombuffer(data, np.uint8)
        starts, ends = [], []
        position = 0
        for batch, section in zip(batches, sections, strict=True):
            end = position + len(section)
            count = batch.records_count
            each_starts, each_ends = self._layouts.find(data, array, position, end, count)
            starts.append(each_starts)
            ends.append(each_ends)
            position = end
        fields = RecordFields(data, array, np.concatenate(starts), np.concatenate(ends))
        return _Rows(self._slice, self._options, batches, fields).batch(self._schema)

    def _refuse(self, batch: RecordBatch, error: KafkaError) -> None:
        if not self._options.skips_damage:
            damaged(self._slice.path, batch.position, str(error))


class _Rows:
    """The columns of decoded records."""

    def __init__(
        self,
        slice_: LogSlice,
        options: LogOptions,
        batches: Sequence[RecordBatch],
        fields: RecordFields,
    ) -> None:
        self._slice = slice_
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
            (self._offsets >= slice_.first_offset)
            & (self._offsets < slice_.until_offset)
            & (self._timestamps >= options.start_ms)
            & (self._timestamps < options.until_ms)
        )
        self._rows: Numbers | None = None if mask.all() else np.flatnonzero(mask)
        self._count = len(mask) if self._rows is None else len(self._rows)

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """The columns of a schema."""
        arrays = [getattr(self, f"_column_{field.name.lower()}")(field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

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

    def _column_topic(self, kind: pa.DataType) -> pa.Array:
        return repeated(self._slice.topic, "STRING", self._count)

    def _column_partition(self, kind: pa.DataType) -> pa.Array:
        return repeated(self._slice.partition, "INT", self._count)

    def _column_folder(self, kind: pa.DataType) -> pa.Array:
        return repeated(self._slice.folder, "STRING", self._count)

    def _column_segment(self, kind: pa.DataType) -> pa.Array:
        return repeated(self._slice.segment, "BIGINT", self._count)

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
