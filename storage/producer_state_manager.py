"""The producers of one log: are their batches new, in order, from the current epoch?

Kafka's ProducerStateManager and ProducerAppendInfo. Batches are *staged* first: they
count in the checks of those after them, and are either published or dropped together.
"""

from __future__ import annotations

from ..protocol.errors import ErrorCode, KafkaError
from ..protocol.records.batch import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    SEQUENCE_MASK,
    RecordBatch,
)
from ..protocol.records.control import parse_end_transaction_marker
from ..protocol.records.records import iter_records
from .append_origin import AppendOrigin
from .producer_state import BATCHES_RETAINED, UNKNOWN_PRODUCER, BatchMetadata, ProducerState
from .topic_partition import TopicPartition


class ProducerStateManager:
    """Producer states by producer id, staged over published.

    Args:
        topic_partition: named in error messages.
    """

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        self.published: dict[int, ProducerState] = {}
        self._staged: dict[int, ProducerState] = {}
        self.open_transactions: dict[int, int] = {}
        """Of published batches: producer id to the first offset of its transaction."""

    def get(self, producer_id: int) -> ProducerState:
        """The latest state of a producer, with what is staged."""
        state = self._staged.get(producer_id)
        if state is None:
            state = self.published.get(producer_id, UNKNOWN_PRODUCER)
        return state

    def first_unstable_offset(self) -> int | None:
        """Where the earliest open transaction begins."""
        return min(self.open_transactions.values()) if self.open_transactions else None

    def stage(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        offset_delta: int,
        base_offset: int,
        timestamp: int,
        *,
        transactional: bool,
        origin: AppendOrigin,
    ) -> BatchMetadata | None:
        """Check a data batch and remember it until `publish` or `drop`.

        Args:
            producer_id: who wrote it.
            producer_epoch: the producer's epoch.
            base_sequence: its first record's sequence number.
            offset_delta: last offset minus first.
            base_offset: the offset it would get.
            timestamp: its latest record's, in ms.
            transactional: whether it is part of a transaction.
            origin: sequences are checked of clients' batches only.

        Returns:
            None, or the batch appended earlier that this one repeats; then nothing is
            staged.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or
                INVALID_TXN_STATE.
        """
        state = self.get(producer_id)
        batches = state.batches
        last_sequence = NO_SEQUENCE
        if base_sequence >= 0:  # coordinators number nothing
            last_sequence = (base_sequence + offset_delta) & SEQUENCE_MASK
        if producer_epoch != state.producer_epoch:
            self._check_new_epoch(producer_id, state, producer_epoch, base_sequence, origin)
            batches = ()
        elif origin is AppendOrigin.CLIENT and base_sequence != (
            (batches[-1].last_sequence + 1) & SEQUENCE_MASK if batches else 0
        ):
            duplicate = state.find_batch(base_sequence, last_sequence)
            if duplicate is not None:
                return duplicate
            self._refuse_gap(producer_id, state, base_sequence)
        txn_first_offset = state.current_txn_first_offset
        if transactional:
            if txn_first_offset < 0:
                txn_first_offset = base_offset
        elif txn_first_offset >= 0 and origin is not AppendOrigin.REPLICATION:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} has a transaction open in {self._topic_partition} "
                "and wrote a batch outside of it",
            )
        batch = BatchMetadata(last_sequence, base_offset + offset_delta, offset_delta, timestamp)
        self._staged[producer_id] = ProducerState(
            producer_epoch,
            (*batches[1 - BATCHES_RETAINED :], batch),
            timestamp,
            state.coordinator_epoch,
            txn_first_offset,
        )
        return None

    def stage_marker(self, batch: RecordBatch, origin: AppendOrigin) -> None:
        """Take in a control batch: a marker ends its producer's transaction.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED, unless it
                comes from the leader; CORRUPT_MESSAGE or INVALID_RECORD, it holds no marker.
        """
        record = next(iter_records(batch), None)
        marker = None if record is None else parse_end_transaction_marker(record)
        if record is None or marker is None:
            return
        state = self.get(batch.producer_id)
        if origin is not AppendOrigin.REPLICATION:
            self._check_not_older(batch.producer_id, state, batch.producer_epoch)
            if marker.coordinator_epoch < state.coordinator_epoch:
                raise KafkaError(
                    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                    f"coordinator epoch {marker.coordinator_epoch} in {self._topic_partition} "
                    f"is older than {state.coordinator_epoch}",
                )
        same_epoch = batch.producer_epoch == state.producer_epoch
        self._staged[batch.producer_id] = ProducerState(
            batch.producer_epoch,
            state.batches if same_epoch else (),
            record.timestamp,
            marker.coordinator_epoch,
        )

    def publish(self) -> None:
        """What was staged has been written."""
        for producer_id, state in self._staged.items():
            self.published[producer_id] = state
            if state.current_txn_first_offset >= 0:
                self.open_transactions[producer_id] = state.current_txn_first_offset
            elif self.open_transactions:
                self.open_transactions.pop(producer_id, None)
        self._staged.clear()

    def drop(self) -> None:
        """What was staged has not been written."""
        self._staged.clear()

    def stage_replicated(self, batch: RecordBatch) -> None:
        """Take in a batch that a leader has checked; whole, if it is a control batch."""
        if not batch.has_producer_id:
            return
        if batch.is_control:
            self.stage_marker(batch, AppendOrigin.REPLICATION)
        else:
            self.stage(
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                batch.last_offset_delta,
                batch.base_offset,
                batch.max_timestamp,
                transactional=batch.is_transactional,
                origin=AppendOrigin.REPLICATION,
            )

    def replace_all(self, states: dict[int, ProducerState]) -> None:
        """Forget everything and begin with these states."""
        self._staged.clear()
        self.published = dict(states)
        self.open_transactions = {
            producer_id: state.current_txn_first_offset
            for producer_id, state in states.items()
            if state.current_txn_first_offset >= 0
        }

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that wrote nothing for so long, unless in a transaction."""
        expired = [
            producer_id
            for producer_id, state in self.published.items()
            if state.current_txn_first_offset < 0 and now_ms - state.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.published[producer_id]

    def _check_new_epoch(
        self,
        producer_id: int,
        state: ProducerState,
        producer_epoch: int,
        base_sequence: int,
        origin: AppendOrigin,
    ) -> None:
        """A newer epoch begins at sequence 0; of an unknown producer any is taken."""
        if origin is not AppendOrigin.REPLICATION:
            self._check_not_older(producer_id, state, producer_epoch)
        if (
            origin is AppendOrigin.CLIENT
            and base_sequence != 0
            and state.producer_epoch != NO_PRODUCER_EPOCH
        ):
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} begins epoch {producer_epoch} in "
                f"{self._topic_partition} with sequence {base_sequence}, not 0",
            )

    def _check_not_older(self, producer_id: int, state: ProducerState, epoch: int) -> None:
        if epoch < state.producer_epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} in {self._topic_partition} has epoch "
                f"{state.producer_epoch}, the batch has {epoch}",
            )

    def _refuse_gap(self, producer_id: int, state: ProducerState, base_sequence: int) -> None:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} in {self._topic_partition} sent sequence {base_sequence} "
            f"after {state.last_sequence}",
        )
