"""The producers, transactions and leader epochs of a log, as its batches have them.

A broker that reads the whole log has the same; the side files are compared with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import KafkaError
from ...common.topic_partition import TopicPartition
from ...protocol.records.batch import RecordBatch
from ...storage.index.transaction_index import AbortedTxn
from ...storage.producer_state.producer_state import ProducerState
from ...storage.producer_state.producer_state_manager import ProducerStateManager


class ProducerStateReplay:
    """The state of a partition's producers after the batches so far.

    Args:
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
        self._producers.replace_all(states)

    @property
    def states(self) -> dict[int, ProducerState]:
        """The state of each producer."""
        return self._producers.published

    def take_in(self, batch: RecordBatch) -> AbortedTxn | None:
        """Replay one batch; returns the transaction that it aborts, if it does.

        A batch that contradicts what came before it is skipped: another check finds that.

        Args:
            batch: whole, if it is a control batch.
        """
        epoch = batch.partition_leader_epoch
        if epoch >= 0 and (not self.epochs or epoch > self.epochs[-1][0]):
            self.epochs.append((epoch, batch.base_offset))
        self.offset = max(self.offset, batch.next_offset)
        aborted: Sequence[AbortedTxn] = ()
        try:
            self._producers.stage_replicated(batch)
            aborted = self._producers.publish()
            self._producers.forget_unreplicated(batch.next_offset)
        except KafkaError:
            self.lose()
        return aborted[0] if aborted else None

    def lose(self) -> None:
        """Batches are damaged here, so from now on something is missing."""
        self.is_complete = False
        self._producers.replace_all({})

    def skip_to(self, offset: int) -> None:
        """The next whole batch begins here; some may be missing before it."""
        if not self.is_complete:
            self.offset = max(self.offset, offset)

    def begin_again(self, states: dict[int, ProducerState]) -> None:
        """A snapshot has the states at this offset, so nothing is missing any more."""
        self.is_complete = True
        self._producers.replace_all(states)
