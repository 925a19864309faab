"""Producer states of one log, against which epochs and sequence numbers are checked.

Kafka's ProducerStateManager and ProducerAppendInfo. Batches are *staged* first: they
count in the checks of those after them, and are either published, in the order of their
offsets, or dropped together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import INT64_MAX, NO_PRODUCER_EPOCH, NO_SEQUENCE
from ...common.topic_partition import TopicPartition
from ...protocol.records.batch import SEQUENCE_MASK, RecordBatch
from ...protocol.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    parse_end_transaction_marker,
)
from ...protocol.records.records import iter_records
from ...runtime.steps import Steps
from ..index.transaction_index import AbortedTxn
from ..log.append_origin import AppendOrigin
from .producer_state import BATCHES_RETAINED, UNKNOWN_PRODUCER, BatchMetadata, ProducerState
from .verification_guard import NOT_REQUIRED, VerificationGuard, Verifications

StagedState = tuple[int, int, ProducerState, ControlRecordType | None]
"""Base offset of a batch, its producer's id and state after it, and how it ends the
producer's transaction: a plain tuple, since one is made for every batch."""

TRANSACTION_VERSION_2 = 2
"""From it on each transaction has an epoch of its own, which its marker raises (KIP-890)."""

PRODUCER_EPOCH_MAX = 2**15 - 1

NONE_BY_ID: Final[Any] = MappingProxyType({})
NONE_IN_ORDER: Final[Any] = ()
"""What a log has to which no producer with an id has written: a broker may hold 100,000 such logs.
Who writes makes one of its own first; these refuse it."""


class ProducerStateManager:
    """Producer states by producer id, staged over published.

    Args:
        topic_partition: named in error messages.

    Attributes:
        published: the states after the batches that have been written.
        open_transactions: of written batches: producer id to the first offset of its
            transaction, which rise.
        unreplicated: transactions that have ended, as offsets of marker and first record;
            the marker is not below the high watermark yet, as far as is known.
        first_unstable_offset: where the first transaction begins that is open or
            unreplicated, or None.
        snapshot_offset: the latest snapshot on the disk knows everything before it.
    """

    __slots__ = (
        "_staged",
        "_staged_in_order",
        "_topic_partition",
        "_verifications",
        "first_unstable_offset",
        "open_transactions",
        "published",
        "snapshot_offset",
        "unreplicated",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        self.published: dict[int, ProducerState] = NONE_BY_ID
        self._staged: dict[int, ProducerState] = NONE_BY_ID
        self._staged_in_order: list[StagedState] = NONE_IN_ORDER
        self.open_transactions: dict[int, int] = NONE_BY_ID
        self.unreplicated: list[tuple[int, int]] = NONE_IN_ORDER
        self.first_unstable_offset: int | None = None
        self.snapshot_offset = 0
        self._verifications: Verifications | None = None

    @property
    def verifications(self) -> Verifications:
        """Of the producers whose transactions are being verified (KIP-890); made at first use."""
        if self._verifications is None:
            self._verifications = Verifications()
        return self._verifications

    def get(self, producer_id: int) -> ProducerState:
        """The latest state of a producer, with what is staged."""
        state = self._staged.get(producer_id)
        if state is None:
            state = self.published.get(producer_id, UNKNOWN_PRODUCER)
        return state

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a producer's transaction of this epoch has records here."""
        state = self.get(producer_id)
        return state.current_txn_first_offset >= 0 and state.producer_epoch == producer_epoch

    # --- staging -----------------------------------------------------------------------

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
        guard: VerificationGuard | None = NOT_REQUIRED,
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
            guard: of a batch that begins a transaction here: what it was verified with.

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
        if (
            transactional
            and (state.current_txn_first_offset < 0 or producer_epoch != state.producer_epoch)
            and origin is not AppendOrigin.REPLICATION
        ):
            if producer_epoch == state.producer_epoch and origin is AppendOrigin.CLIENT:
                duplicate = state.find_batch(base_sequence, last_sequence)
                if duplicate is not None:
                    return duplicate
            self._check_verified(producer_id, state, producer_epoch, base_sequence, origin, guard)
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
        state = ProducerState(
            producer_epoch,
            (*batches[1 - BATCHES_RETAINED :], batch),
            timestamp,
            state.coordinator_epoch,
            txn_first_offset,
        )
        self._stage(base_offset, producer_id, state)
        if transactional and self._verifications is not None:
            self._verifications.end(producer_id)
        return None

    def stage_marker(
        self,
        batch: RecordBatch,
        base_offset: int,
        origin: AppendOrigin,
        transaction_version: int = 0,
    ) -> None:
        """Take in a control batch: a marker ends its producer's transaction.

        Args:
            batch: whole; one that compaction has emptied changes nothing.
            base_offset: the offset it gets.
            origin: who appends; the leader's are taken as they are.
            transaction_version: of the coordinator's feature, which decides how the
                epoch is checked.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED, unless it
                comes from the leader: an epoch is older than the partition's, or newer and an
                administrator's; CORRUPT_MESSAGE or INVALID_RECORD, it holds no marker.
        """
        record = next(iter_records(batch), None)
        marker = None if record is None else parse_end_transaction_marker(record)
        if record is None or marker is None:
            return
        producer_id = batch.producer_id
        state = self.get(producer_id)
        if origin is not AppendOrigin.REPLICATION:
            self._check_marker_epoch(producer_id, state, batch.producer_epoch, transaction_version)
            if marker.coordinator_epoch < state.coordinator_epoch:
                raise KafkaError(
                    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                    f"coordinator epoch {marker.coordinator_epoch} in {self._topic_partition} "
                    f"is older than {state.coordinator_epoch}",
                )
        if origin is AppendOrigin.ADMINISTRATOR:
            self._check_not_newer(state, batch, marker)
        same_epoch = batch.producer_epoch == state.producer_epoch
        state = ProducerState(
            batch.producer_epoch,
            state.batches if same_epoch else (),
            record.timestamp,
            marker.coordinator_epoch,
        )
        self._stage(base_offset, producer_id, state, marker.type)
        if self._verifications is not None:
            self._verifications.end(producer_id)

    def start_verification(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        *,
        supports_epoch_bump: bool,
        now_ms: int,
    ) -> VerificationGuard | None:
        """The guard that a producer's next transactional batch needs, once it is verified.

        None if it has a transaction open here: that one's first batch was verified.

        Args:
            producer_id: who writes.
            producer_epoch: in which epoch.
            base_sequence: the batch's first.
            supports_epoch_bump: whether each of its transactions has an epoch of its own.
            now_ms: the wall time.
        """
        if self.has_open_transaction(producer_id, producer_epoch):
            return None
        return self.verifications.start(
            producer_id,
            producer_epoch,
            base_sequence,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=now_ms,
        )

    def stage_replicated(self, batch: RecordBatch) -> None:
        """Take in a batch that a leader has checked; whole, if it is a control batch."""
        if not batch.has_producer_id:
            return
        if batch.is_control:
            self.stage_marker(batch, batch.base_offset, AppendOrigin.REPLICATION)
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

    def _stage(
        self,
        base_offset: int,
        producer_id: int,
        state: ProducerState,
        ended: ControlRecordType | None = None,
    ) -> None:
        if self._staged is NONE_BY_ID:
            self._staged, self._staged_in_order = {}, []
        self._staged[producer_id] = state
        self._staged_in_order.append((base_offset, producer_id, state, ended))

    # --- what has been staged was written, or was not ----------------------------------

    def publish(self, end_offset: int = INT64_MAX) -> Sequence[AbortedTxn]:
        """What was staged before `end_offset` has been written.

        Returns:
            The transactions that were aborted by it, for the transaction index.
        """
        staged = self._staged_in_order
        if not staged:
            return ()
        aborted: list[AbortedTxn] = []
        count = 0
        if self.published is NONE_BY_ID:
            self.published = {}
        for offset, producer_id, state, ended in staged:
            if offset >= end_offset:
                break
            count += 1
            self.published[producer_id] = state
            if ended is not None:
                if producer_id not in self.open_transactions:
                    continue  # nothing was written in it: no reader has to know
                first_offset = self.open_transactions.pop(producer_id)
                if self.unreplicated is NONE_IN_ORDER:
                    self.unreplicated = []
                self.unreplicated.append((offset, first_offset))
                if ended is ControlRecordType.ABORT:
                    last_stable = next(iter(self.open_transactions.values()), offset + 1)
                    aborted.append(AbortedTxn(producer_id, first_offset, offset, last_stable))
            elif state.current_txn_first_offset >= 0:
                self._note_open(producer_id, state.current_txn_first_offset)
        if count == len(staged):
            self._staged.clear()
            staged.clear()
        else:
            del staged[:count]
        return aborted

    def _note_open(self, producer_id: int, first_offset: int) -> None:
        if self.open_transactions is NONE_BY_ID:
            self.open_transactions = {}
        self.open_transactions.setdefault(producer_id, first_offset)
        if self.first_unstable_offset is None:
            self.first_unstable_offset = first_offset

    def drop(self) -> None:
        """What was staged has not been written."""
        self._staged, self._staged_in_order = NONE_BY_ID, NONE_IN_ORDER

    # --- what is stable ----------------------------------------------------------------

    def forget_unreplicated(self, offset: int) -> None:
        """Transactions whose markers lie before `offset` are stable: replicated, or gone.

        Args:
            offset: the high watermark, or where the log starts.
        """
        unreplicated = self.unreplicated
        if not unreplicated or unreplicated[0][0] >= offset:
            return
        del unreplicated[: bisect_left(unreplicated, (offset,))]
        self._find_first_unstable()

    def restore_unreplicated(self, ended: Iterable[tuple[int, int]]) -> None:
        """Transactions that had ended before a cut, and still have, are as unstable as before.

        Kafka takes for granted that a log is cut at the high watermark or before it.
        """
        self.unreplicated = sorted({*self.unreplicated, *ended})
        self._find_first_unstable()

    def log_start_moved(self, offset: int) -> None:
        """Nothing before `offset` can be read any more.

        Producers whose batches lie there are kept all the same, until they expire or the
        log is loaded again.
        """
        self.forget_unreplicated(offset)
        self.snapshot_offset = max(self.snapshot_offset, offset)

    def _find_first_unstable(self) -> None:
        first_offsets = [first for _, first in self.unreplicated]
        first_offsets += self.open_transactions.values()
        self.first_unstable_offset = min(first_offsets, default=None)

    # --- loading and expiry ------------------------------------------------------------

    def replace_all(self, states: Mapping[int, ProducerState], snapshot_offset: int = 0) -> None:
        """Forget everything and begin with these states.

        Args:
            states: by producer id.
            snapshot_offset: of the snapshot they come from.
        """
        self.drop()
        self.published = dict(states) or NONE_BY_ID
        opened = sorted(
            (state.current_txn_first_offset, producer_id)
            for producer_id, state in states.items()
            if state.current_txn_first_offset >= 0
        )
        self.open_transactions = {producer_id: first for first, producer_id in opened} or NONE_BY_ID
        self.unreplicated = NONE_IN_ORDER
        self._find_first_unstable()
        self.snapshot_offset = snapshot_offset

    def remove_expired(self, now_ms: int, expiration_ms: int) -> Steps[None]:
        """Forget producers that wrote nothing for so long, unless in a transaction."""
        for producer_id, state in list(self.published.items()):
            yield
            is_same = self.published.get(producer_id) is state
            if is_same and state.is_expired(now_ms, expiration_ms):
                del self.published[producer_id]
        if self._verifications is not None:
            self._verifications.remove_expired(now_ms, expiration_ms)

    # --- checks ------------------------------------------------------------------------

    def _check_verified(
        self,
        producer_id: int,
        state: ProducerState,
        producer_epoch: int,
        base_sequence: int,
        origin: AppendOrigin,
        guard: VerificationGuard | None,
    ) -> None:
        """A transaction begins here only with the guard it was verified with, and in order."""
        verification = self.verifications.check(producer_id, guard)
        if verification is None or origin is not AppendOrigin.CLIENT:
            return
        if producer_epoch < state.producer_epoch:
            self._refuse_epoch(producer_id, state, producer_epoch)
        lowest = verification.lowest_sequence
        if verification.supports_epoch_bump and not state.batches:
            lowest = 0
        if base_sequence > lowest:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} begins a transaction in {self._topic_partition} with "
                f"sequence {base_sequence}, and {lowest} is to come first",
            )

    def _check_new_epoch(
        self,
        producer_id: int,
        state: ProducerState,
        producer_epoch: int,
        base_sequence: int,
        origin: AppendOrigin,
    ) -> None:
        """A newer epoch begins at sequence 0; of an unknown producer any is taken."""
        if origin is not AppendOrigin.REPLICATION and producer_epoch < state.producer_epoch:
            self._refuse_epoch(producer_id, state, producer_epoch)
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

    def _check_marker_epoch(
        self, producer_id: int, state: ProducerState, epoch: int, transaction_version: int
    ) -> None:
        """From version 2 on a marker's epoch is newer, unless the marker is sent again."""
        if transaction_version < TRANSACTION_VERSION_2:
            is_older = epoch < state.producer_epoch
        else:
            may_repeat = state.current_txn_first_offset < 0 or epoch == PRODUCER_EPOCH_MAX
            is_older = epoch < state.producer_epoch or (
                epoch == state.producer_epoch and not may_repeat
            )
        if is_older:
            self._refuse_epoch(producer_id, state, epoch)

    def _check_not_newer(
        self, state: ProducerState, batch: RecordBatch, marker: EndTransactionMarker
    ) -> None:
        """What the partition knows no epoch of may be at 0, where every epoch begins."""
        if batch.producer_epoch > max(state.producer_epoch, 0):
            self._refuse_epoch(batch.producer_id, state, batch.producer_epoch)
        if marker.coordinator_epoch > max(state.coordinator_epoch, 0):
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} in {self._topic_partition} is newer "
                f"than {state.coordinator_epoch}, and does not come from a coordinator",
            )

    def _refuse_epoch(self, producer_id: int, state: ProducerState, epoch: int) -> None:
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
