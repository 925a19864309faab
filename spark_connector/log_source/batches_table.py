"""The table of batches: what their headers say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from ...common.errors import KafkaError
from ...protocol.records.batch import RecordBatch
from ...protocol.records.validation import has_valid_crc
from ..kafka_source.columns import MICROSECONDS, TIMESTAMP_MS_MAX, arrow_schema
from .batch_walk import BatchWalk
from .options import LogOptions
from .slices import LogSlice
from .tables import BATCHES, ROWS_PER_ARROW_BATCH


def batch_rows(
    data: memoryview, slice_: LogSlice, options: LogOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The batches of a slice, control batches included.

    Raises:
        SparkConnectorError: a batch is damaged, and that is not to be skipped.
    """
    walk = BatchWalk(
        data, slice_, checks_crcs=options.checks_crcs, skips_damage=options.skips_damage
    )
    schema = arrow_schema({name: BATCHES[name] for name in columns})
    same = {
        "topic": slice_.topic,
        "partition": slice_.partition,
        "folder": slice_.folder,
        "segment": slice_.segment,
    }
    matching = (each for each in walk.batches() if _is_in_time(each, options))
    while batches := list(islice(matching, ROWS_PER_ARROW_BATCH)):
        arrays = []
        for field in schema:
            if field.name in same:
                values = [same[field.name]] * len(batches)
            else:
                values = [_FIELDS[field.name](each) for each in batches]
            arrays.append(pa.array(values, field.type))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _is_in_time(batch: RecordBatch, options: LogOptions) -> bool:
    return options.start_ms <= batch.max_timestamp < options.until_ms


def _microseconds(timestamp_ms: int) -> int:
    return max(-TIMESTAMP_MS_MAX, min(timestamp_ms, TIMESTAMP_MS_MAX)) * MICROSECONDS


def _compression(batch: RecordBatch) -> str:
    try:
        return batch.compression.name.lower()
    except KafkaError:
        return "unknown"


_FIELDS: dict[str, Callable[[RecordBatch], Any]] = {
    "position": lambda batch: batch.position,
    "size": lambda batch: batch.size_in_bytes,
    "baseOffset": lambda batch: batch.base_offset,
    "lastOffset": lambda batch: batch.last_offset,
    "count": lambda batch: batch.records_count,
    "baseTimestamp": lambda batch: _microseconds(batch.base_timestamp),
    "maxTimestamp": lambda batch: _microseconds(batch.max_timestamp),
    "timestampType": lambda batch: int(batch.uses_log_append_time),
    "leaderEpoch": lambda batch: batch.partition_leader_epoch,
    "producerId": lambda batch: batch.producer_id,
    "producerEpoch": lambda batch: batch.producer_epoch,
    "baseSequence": lambda batch: batch.base_sequence,
    "isTransactional": lambda batch: batch.is_transactional,
    "isControl": lambda batch: batch.is_control,
    "compression": _compression,
    "crc": lambda batch: batch.crc,
    "hasValidCrc": has_valid_crc,
}
