"""What brokers' data folders hold of a partition, once the brokers are gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from odradek.protocol.records import iter_batches, iter_records
from odradek.protocol.records.validation import has_valid_crc
from odradek.storage import TopicPartition
from odradek.storage.checkpoint.checkpoint_file import read_offsets
from odradek.storage.file_names import LOG_START_OFFSETS_FILE
from odradek.storage.io.read_only_files import READ_ONLY_FILES

from .replication_checker import ProducerEpoch, Replica


def read_replica(broker_id: int, data_dir: Path, topic: str, partition: int) -> Replica:
    """All whole batches of a replica.

    Raises:
        AssertionError: there is none, or a batch of it is damaged.
    """
    folder = data_dir / f"{topic}-{partition}"
    assert folder.is_dir(), f"broker {broker_id} has no {folder.name}"
    starts = read_offsets(READ_ONLY_FILES, str(data_dir / LOG_START_OFFSETS_FILE))
    batches: dict[int, bytes] = {}
    for segment in sorted(folder.glob("*.log")):
        data = segment.read_bytes()
        for batch in iter_batches(data):
            assert has_valid_crc(batch), f"{segment} is damaged at {batch.position}"
            batches[batch.base_offset] = data[batch.position : batch.position + batch.size_in_bytes]
    start = starts.get(TopicPartition(topic, partition), 0)
    return Replica(broker_id, start, batches)


def producers_of(batches: Mapping[int, bytes]) -> dict[int, ProducerEpoch]:
    """By offset, in which epoch of which producer a record was sent."""
    return {
        offset: (batch.producer_id, batch.producer_epoch)
        for data in batches.values()
        for batch in iter_batches(data)
        for offset in range(batch.base_offset, batch.next_offset)
    }


def values_of(batches: Mapping[int, bytes], end_offset: int) -> Iterator[tuple[int, bytes]]:
    """(offset, value) of every record before `end_offset`."""
    for _, data in sorted(batches.items()):
        for batch in iter_batches(data):
            for record in iter_records(batch):
                if record.offset < end_offset:
                    assert record.value is not None
                    yield record.offset, bytes(record.value)
