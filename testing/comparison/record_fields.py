"""Record batches as fields, for a comparison that says in which of them two batches differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...common.errors import KafkaError
from ...common.sentinels import NO_EPOCH
from ...protocol.records.batch import BATCH_HEADER_BYTES, RecordBatch, iter_batches

Buffer = bytes | bytearray | memoryview

BATCH_FIELDS = (
    "base_offset",
    "batch_length",
    "partition_leader_epoch",
    "attributes",
    "last_offset_delta",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "records_count",
)
"""Compared always. The checksum is not, since it covers the producer id and the times."""

TIME_FIELDS = ("base_timestamp", "max_timestamp")
"""Compared where a client set them: not in markers, nor where the topic takes the log's time."""


def batches_of(records: Buffer | None) -> list[dict[str, Any]] | bytes | None:
    """The batches of a field of type Records, each as its header's fields and its payload.

    Args:
        records: what the field holds.

    Returns:
        The bytes themselves if they are older message sets or no records at all.
    """
    if records is None:
        return None
    try:
        return list(_batches(records))
    except KafkaError:
        return bytes(records)


def _batches(records: Buffer) -> Iterator[dict[str, Any]]:
    position = 0
    for batch in iter_batches(records):
        fields = {name: getattr(batch, name) for name in BATCH_FIELDS}
        if not (batch.is_control or batch.uses_log_append_time):
            fields |= {name: getattr(batch, name) for name in TIME_FIELDS}
        yield {**fields, "payload": bytes(batch.records_section())}
        position += batch.size_in_bytes
    rest = bytes(records[position:])
    if rest:
        yield _cut(rest)


def _cut(rest: bytes) -> dict[str, Any]:
    """A batch that a size limit cut short: what is left of it, without what may differ."""
    if len(rest) < BATCH_HEADER_BYTES:
        return {"bytes_left": len(rest)}
    batch = RecordBatch(rest)
    epoch = max(batch.partition_leader_epoch, NO_EPOCH)
    return {
        "base_offset": batch.base_offset,
        "batch_length": batch.batch_length,
        "partition_leader_epoch": epoch,
        "bytes_left": len(rest),
    }
