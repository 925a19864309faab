"""What the batches of a log say about its producers, transactions and leader epochs.

It is what a broker would find out that reads the whole log, and what the side files are
held against.
"""

from __future__ import annotations

from ...common.errors import KafkaError
from ...common.topic_partition import TopicPartition
from ...protocol.records.batch import RecordBatch
from ...protocol.records.control import ControlRecordType, parse_end_transaction_marker
from ...protocol.records.records import iter_records
from ...storage.index.transaction_index import AbortedTxn
from ...storage.producer_state.producer_state import ProducerState
from ...storage.producer_state.producer_state_manager import ProducerStateManager


class Replay:
    """The state of a partition's producers after the batches so far.

    Args:
        topic_partition: whose log it is.
        offset: where the log begins.
        states: of the producers before that.
        is_complete: whether nothing is missing before `offset`.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        offset: int,
        states: dict[int, ProducerState],
        *,
        is_complete: bool,
    ) -> None:
        self.is_complete = is_complete
        """Whether every batch there ever was has been seen, or a snapshot knows of it."""
        self.has_gaps = False
        """Whether compaction has taken records out of what was seen."""
        self.offset = offset
        """What comes at this offset or later has not been seen."""
        self.epochs: list[tuple[int, int]] = []
        """The leader epochs of the batches, and the first offset of each."""
        self._producers = ProducerStateManager(topic_partition)
        self._open: dict[int, int] = {}
        """Producer id to the first offset of its transaction."""
        self._set_states(states)

    @property
    def states(self) -> dict[int, ProducerState]:
        """The state of each producer."""
        return self._producers.published

    def take_in(self, batch: RecordBatch) -> AbortedTxn | None:
        """Go on by one batch, and tell the transaction that it aborts, if it does.

        A batch that contradicts what came before it is passed over: that is found elsewhere.

        Args:
            batch: whole, if it is a control batch.
        """
        epoch = batch.partition_leader_epoch
        if epoch >= 0 and (not self.epochs or epoch > self.epochs[-1][0]):
            self.epochs.append((epoch, batch.base_offset))
        self.offset = max(self.offset, batch.next_offset)
        aborted = None
        if batch.has_producer_id:
            try:
                aborted = self._end_or_begin_transaction(batch)
                self._producers.stage_replicated(batch)
                self._producers.publish()
            except KafkaError:
                self._producers.drop()
                self.lose()
        return aborted

    def lose(self) -> None:
        """Batches are damaged here, so from now on something is missing."""
        self.is_complete = False
        self._open.clear()

    def skip_to(self, offset: int) -> None:
        """The next whole batch begins here; if some are missing, so is what they said till here."""
        if not self.is_complete:
            self.offset = max(self.offset, offset)

    def begin_again(self, states: dict[int, ProducerState]) -> None:
        """A snapshot tells the states right here, so nothing is missing any more."""
        self.is_complete = True
        self._set_states(states)

    def _set_states(self, states: dict[int, ProducerState]) -> None:
        self._producers.replace_all(dict(states))
        self._open = {
            producer_id: state.current_txn_first_offset
            for producer_id, state in states.items()
            if state.current_txn_first_offset >= 0
        }

    def _end_or_begin_transaction(self, batch: RecordBatch) -> AbortedTxn | None:
        producer_id = batch.producer_id
        if not batch.is_control:
            if batch.is_transactional:
                self._open.setdefault(producer_id, batch.base_offset)
            return None
        record = next(iter_records(batch), None)
        marker = None if record is None else parse_end_transaction_marker(record)
        if marker is None:
            return None
        first_offset = self._open.pop(producer_id, None)
        if first_offset is None or marker.type is not ControlRecordType.ABORT:
            return None
        last_offset = batch.last_offset
        last_stable_offset = min(self._open.values(), default=last_offset + 1)
        return AbortedTxn(producer_id, first_offset, last_offset, last_stable_offset)
