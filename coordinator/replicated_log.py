"""The log of a coordinator on the partitions of its topic, through the ReplicaManager."""

from __future__ import annotations

from collections.abc import Sequence

from ..common.errors import ErrorCode
from ..common.sentinels import ACKS_ALL, NO_PRODUCER_ID
from ..common.topic_partition import TopicPartition
from ..protocol.compression.codecs import Compression
from ..protocol.records.batch import RecordBatch, iter_batches
from ..protocol.records.builder import EncodedRecords, RecordToBuild, build_batch
from ..protocol.records.control import ControlRecordType, parse_end_transaction_marker
from ..protocol.records.records import iter_records
from ..replication.append import PartitionResponse
from ..replication.partition.partition import Partition
from ..replication.replica_manager import ReplicaManager
from ..runtime.clock import Clock
from ..storage.log.append_origin import AppendOrigin
from .log import AppendCallback, AppendInTransaction, CoordinatorRecord, LoggedBatch, LoggedRecord


class ReplicatedLog:
    """`CoordinatorLog` on this broker's partitions of one topic.

    Args:
        topic: whose partitions they are.
        replica_manager: holds them.
        clock: wall time, stamped on the records.
        timeout_ms: how long an append may wait for replicas.
        compression: how batches are compressed.
    """

    def __init__(
        self,
        topic: str,
        replica_manager: ReplicaManager,
        clock: Clock,
        timeout_ms: int,
        compression: Compression = Compression.NONE,
    ) -> None:
        self._topic = topic
        self._replica_manager = replica_manager
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._compression = compression

    def append(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord] | EncodedRecords,
        on_complete: AppendCallback,
        transaction: AppendInTransaction | None = None,
    ) -> ErrorCode:
        """Append records as one batch that all in-sync replicas must have."""
        stamped: EncodedRecords | list[RecordToBuild]
        if isinstance(records, EncodedRecords):
            stamped = records
        else:
            now_ms = self._clock.now_ms()
            stamped = [(key, value, now_ms, ()) for key, value in records]
        topic_partition = TopicPartition(self._topic, partition)
        guards = {}
        if transaction is None:
            batch = build_batch(stamped, compression=self._compression)
        else:
            batch = build_batch(
                stamped,
                compression=self._compression,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                transactional=True,
            )
            if transaction.guard is not None:
                guards = {topic_partition: transaction.guard}

        def completed(results: dict[TopicPartition, PartitionResponse]) -> None:
            result = results[topic_partition]
            on_complete(result.error, result.base_offset)

        pending = self._replica_manager.append_records(
            timeout_ms=self._timeout_ms,
            required_acks=ACKS_ALL,
            internal_topics_allowed=True,
            origin=AppendOrigin.COORDINATOR,
            entries={topic_partition: memoryview(batch)},
            on_complete=completed,
            guards=guards,
        )
        return pending.partitions[topic_partition].response.error

    def flush(self) -> None:
        """Write what was appended outside of a request's pass, and complete it."""
        self._replica_manager.flush()

    def start_offset(self, partition: int) -> int:
        """The offset of the first record still there."""
        return self._led(partition).log_start_offset

    def end_offset(self, partition: int) -> int:
        """The offset after the last record."""
        return self._led(partition).log_end_offset

    def high_watermark(self, partition: int) -> int:
        """The offset before which all in-sync replicas have everything."""
        return self._led(partition).high_watermark

    def read(self, partition: int, offset: int, max_bytes: int) -> Sequence[LoggedBatch]:
        """Whole batches from `offset` on, at least one unless the log ends there.

        Raises:
            KafkaError: this broker does not lead the partition, or cannot read it.
        """
        led = self._led(partition)
        if offset >= led.log_end_offset:
            return []
        read = led.log.read(
            offset, max_bytes, upper_offset=led.log_end_offset, minimum_one_batch=True
        )
        data = read.records if isinstance(read.records, bytes) else read.records.read()
        return [_logged(batch, offset) for batch in iter_batches(data)]

    def _led(self, partition: int) -> Partition:
        return self._replica_manager.partition_or_error(TopicPartition(self._topic, partition))


def _logged(batch: RecordBatch, from_offset: int) -> LoggedBatch:
    producer_id = batch.producer_id if batch.is_transactional else NO_PRODUCER_ID
    if batch.is_control:
        return LoggedBatch(batch.next_offset, producer_id, _is_commit(batch), ())
    records = (
        LoggedRecord(record.offset, record.key, record.value)
        for record in iter_records(batch)
        if record.offset >= from_offset
    )
    return LoggedBatch(batch.next_offset, producer_id, None, records)


def _is_commit(batch: RecordBatch) -> bool | None:
    """Whether the marker commits its transaction; None where it ends none.

    Nor does one that compaction has emptied: nothing of its transaction is left.
    """
    record = next(iter_records(batch), None)
    marker = None if record is None else parse_end_transaction_marker(record)
    return None if marker is None else marker.type is ControlRecordType.COMMIT
