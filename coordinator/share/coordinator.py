"""ShareCoordinator: the states of the share partitions that are kept here, and the verbs on them.

One broker keeps a share partition: the leader of the partition of `__share_group_state` that its
key falls into. A change counts in memory at once and is answered when it is on enough replicas; if
that fails the partition is read back. Leaders and states of earlier epochs are fenced. Source:
Kafka's ShareCoordinatorShard and ShareCoordinatorService.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from ...common.error_texts import DEFAULT_TEXTS
from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_EPOCH
from ...runtime.steps import Steps, run_at_once
from ...runtime.timers import Timer
from ..append_errors import group_error
from ..log import CoordinatorRecord, LoggedRecord
from ..runtime import CoordinatorRuntime
from ..shards import Shard, ShardTable
from .operations import (
    NO_COMPLETE_COUNT,
    UNINITIALIZED_OFFSET,
    DeleteState,
    InitializeState,
    Operation,
    ReadState,
    ReadStateSummary,
    SharePartitionKey,
    StateAnswer,
    StateCallback,
    WriteState,
)
from .records import ReplayedState, replay, snapshot_record, tombstones, update_record
from .settings import ShareCoordinatorSettings
from .share_state import ShareState

logger = logging.getLogger(__name__)

SNAPSHOTS_PER_PASS = 100
"""So many cold share partitions are written out anew at a time."""


class ShareShard(Shard):
    """The share partitions of one partition of `__share_group_state` that this broker leads.

    Attributes:
        states: by key.
        pruned_to: what comes before this offset has been removed.
        deferred: the answers that are given when the last append is stored; empty once it is.
    """

    __slots__ = ("deferred", "pruned_to", "states")

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        partition: int,
        leader_epoch: int,
        slice_bytes: int,
    ) -> None:
        super().__init__(runtime.log, partition, leader_epoch, slice_bytes)
        self.states: dict[SharePartitionKey, ReplayedState] = {}
        self.pruned_to = 0
        self.deferred: list[tuple[StateCallback, StateAnswer]] = []

    def answer(self, respond: StateCallback, answer: StateAnswer) -> None:
        """Answer with what is in memory, once it is stored: what is under way may still be lost.

        As the deferred events of Kafka's CoordinatorRuntime, for what writes nothing itself.
        """
        if self.deferred:
            self.deferred.append((respond, answer))
        else:
            respond(answer)

    def replay(self, key: bytes, record: LoggedRecord, producer_id: int) -> None:
        """Apply one record; see `Shard.replay`."""
        replay(self.states, key, record.value, record.offset)

    def replay_end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """No transaction writes to `__share_group_state`."""


class ShareShards(ShardTable[ShareShard]):
    """All shards of this broker."""

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        topic_partitions: Callable[[], int],
        slice_bytes: int,
    ) -> None:
        super().__init__(runtime, topic_partitions, "states of share groups")
        self._slice_bytes = slice_bytes

    def shard_of(self, key: SharePartitionKey) -> ShareShard:
        """The loaded shard that keeps a share partition.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        return self._loaded_shard(key.text)

    def loaded(self) -> list[ShareShard]:
        """Those that are loaded."""
        return [shard for shard in self._shards.values() if shard.is_loaded]

    def is_current(self, shard: ShareShard) -> bool:
        """Whether the shard was not given up meanwhile."""
        return self._shards.get(shard.partition) is shard

    def unload(self, partition: int) -> None:
        """Another broker leads the partition now."""
        self._shards.pop(partition, None)

    def reload(self, shard: ShareShard) -> None:
        """Read a partition back from its log, which this broker goes on to lead."""
        if self.is_current(shard):
            del self._shards[shard.partition]
            self._runtime.schedule(0, partial(self.load, shard.partition, shard.leader_epoch))

    def _make_shard(self, partition: int, leader_epoch: int) -> ShareShard:
        return ShareShard(self._runtime, partition, leader_epoch, self._slice_bytes)

    def _take_up(self, shard: ShareShard) -> Steps[None]:
        """The shard itself is looked at, once it is loaded."""
        yield


class _Planned(NamedTuple):
    """What a share partition is asked for, found to be allowed.

    Attributes:
        state: what it is then.
        answer: once it is done.
        write: what is stored before; None: nothing.
    """

    shard: ShareShard
    known: ReplayedState
    state: ShareState
    answer: StateAnswer
    write: WriteState | None

    def is_of(self, shard: ShareShard, known: ReplayedState, state: ShareState) -> bool:
        """Whether it is about the very same state of the share partition."""
        return self.shard is shard and self.known is known and self.state is state


class ShareCoordinator:
    """All share partitions that are kept here.

    Args:
        runtime: time and the log.
        settings: what the configuration says.
        topic_partitions: how many partitions `__share_group_state` has, or will have.
        partition_count: how many partitions a topic has, by its id; None: there is no such topic.
        prune: removes what comes before an offset from a partition of `__share_group_state`.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        settings: ShareCoordinatorSettings,
        topic_partitions: Callable[[], int],
        partition_count: Callable[[bytes], int | None],
        prune: Callable[[int, int], None],
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._shards = ShareShards(runtime, topic_partitions, settings.load_slice_bytes)
        self._partition_count = partition_count
        self._prune = prune
        self._timer: Timer | None = None

    def partition_for(self, key: str) -> int:
        """The partition of `__share_group_state` that keeps a key (`SharePartitionKey.text`)."""
        return self._shards.partition_for(key)

    def submit(self, operation: Operation, respond: StateCallback) -> None:
        """Do what is requested; `respond` is called once, at once or when it is stored."""
        run_at_once(self.submit_in_steps(operation, respond))

    def submit_in_steps(self, operation: Operation, respond: StateCallback) -> Steps[None]:
        """The same, as work that yields after each batch: there may be thousands in one write.

        What is read between two steps is what was there before.
        """
        try:
            match operation:
                case InitializeState():
                    self._initialize(operation, respond)
                case ReadState():
                    yield from self._put(partial(self._read, operation), respond)
                case WriteState():
                    yield from self._put(partial(self._write, operation), respond)
                case ReadStateSummary():
                    self._summary(operation.key, respond)
                case DeleteState():
                    self._delete(operation, respond)
        except KafkaError as refusal:
            text = refusal.message or DEFAULT_TEXTS.get(refusal.code)
            respond(StateAnswer(refusal.code, text))

    # -- verbs --------------------------------------------------------------------------

    def _initialize(self, operation: InitializeState, respond: StateCallback) -> None:
        key = operation.key
        shard = self._shards.shard_of(key)
        known = shard.states.get(key)
        if known is not None and 0 <= operation.state_epoch < known.state.state_epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
        self._check_topic(key)
        now_ms = self._runtime.clock.now_ms()
        state = ShareState(
            0 if known is None else known.state.snapshot_epoch + 1,
            operation.state_epoch,
            0 if known is None else known.state.leader_epoch,
            operation.start_offset,
            # After an offset that an administrator set nothing is done with, so the lag is known.
            NO_COMPLETE_COUNT if operation.start_offset == UNINITIALIZED_OFFSET else 0,
            create_ms=now_ms,
            write_ms=now_ms,
        )
        record = run_at_once(snapshot_record(key, state))
        self._put_snapshot(shard, key, state, record, StateAnswer(), respond)

    def _read(self, operation: ReadState) -> _Planned:
        shard, known = self._known(operation.key, operation.leader_epoch, "Read")
        state = known.state
        answer = StateAnswer(
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            batches=state.batches,
        )
        write = None
        if operation.leader_epoch > state.leader_epoch:
            # From now on leaders of earlier epochs are refused, so that is stored, too.
            write = WriteState(
                operation.key,
                state.state_epoch,
                operation.leader_epoch,
                state.start_offset,
                state.delivery_complete_count,
                (),
            )
        return _Planned(shard, known, state, answer, write)

    def _write(self, operation: WriteState) -> _Planned:
        shard, known = self._known(operation.key, operation.leader_epoch, "Write")
        if NO_EPOCH != operation.state_epoch < known.state.state_epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
        return _Planned(shard, known, known.state, StateAnswer(), operation)

    def _summary(self, key: SharePartitionKey, respond: StateCallback) -> None:
        shard = self._shards.shard_of(key)
        self._check_topic(key)
        known = shard.states.get(key)
        answer = StateAnswer()
        if known is not None:
            state = known.state
            answer = StateAnswer(
                state_epoch=state.state_epoch,
                leader_epoch=state.leader_epoch,
                start_offset=state.start_offset,
                delivery_complete_count=state.delivery_complete_count,
            )
        shard.answer(respond, answer)

    def _delete(self, operation: DeleteState, respond: StateCallback) -> None:
        shard = self._shards.shard_of(operation.key)
        if shard.states.pop(operation.key, None) is None:
            self._check_topic(operation.key)
            shard.answer(respond, StateAnswer())
            return
        self._append(shard, tombstones(operation.key), StateAnswer(), respond)

    def _known(
        self, key: SharePartitionKey, leader_epoch: int, verb: str
    ) -> tuple[ShareShard, ReplayedState]:
        shard = self._shards.shard_of(key)
        known = shard.states.get(key)
        if known is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{verb} operation on uninitialized share partition not allowed.",
            )
        if leader_epoch != NO_EPOCH and known.state.leader_epoch > leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        self._check_topic(key)
        return shard, known

    def _check_topic(self, key: SharePartitionKey) -> None:
        count = self._partition_count(key.topic_id)
        if count is None or key.partition >= count:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    # -- storing --------------------------------------------------------------------------

    def _put(self, plan: Callable[[], _Planned], respond: StateCallback) -> Steps[None]:
        """Store what is planned.

        Between the steps that make it ready others may write, or the shard may go: then it is
        planned anew, on what is there now.
        """
        while True:
            planned = plan()
            if planned.write is None:
                planned.shard.answer(respond, planned.answer)
                return
            after, record = yield from self._made_ready(planned, planned.write)
            if plan().is_of(planned.shard, planned.known, planned.state):
                break
        shard, known = planned.shard, planned.known
        if after.snapshot_epoch != planned.state.snapshot_epoch:
            key = planned.write.key
            self._put_snapshot(shard, key, after, record, planned.answer, respond)
            return
        known.state = after
        known.updates += 1
        known.is_cold = False
        self._append(shard, [record], planned.answer, respond)

    def _made_ready(
        self, planned: _Planned, write: WriteState
    ) -> Steps[tuple[ShareState, CoordinatorRecord]]:
        """The state after a write, a snapshot if it is time for one, and the record of it."""
        state = planned.state
        after = yield from state.updated(
            write.leader_epoch, write.start_offset, write.delivery_complete_count, write.batches
        )
        if planned.known.updates < self._settings.updates_per_snapshot:
            record = yield from update_record(
                write.key, state.snapshot_epoch, after.leader_epoch, write
            )
            return after, record
        now_ms = self._runtime.clock.now_ms()
        after = after._replace(
            snapshot_epoch=state.snapshot_epoch + 1, create_ms=now_ms, write_ms=now_ms
        )
        return after, (yield from snapshot_record(write.key, after))

    def _put_snapshot(
        self,
        shard: ShareShard,
        key: SharePartitionKey,
        state: ShareState,
        record: CoordinatorRecord,
        answer: StateAnswer,
        respond: StateCallback,
    ) -> None:
        before = shard.states.get(key)
        # Until it is stored nothing that it stands on may be removed.
        offset = self._runtime.log.start_offset(shard.partition)
        if before is not None:
            offset = before.snapshot_offset
        put = shard.states[key] = ReplayedState(state, offset)
        self._append(shard, [record], answer, respond, partial(_note_offset, put))

    def _append(
        self,
        shard: ShareShard,
        records: Sequence[CoordinatorRecord],
        answer: StateAnswer,
        respond: StateCallback,
        on_stored: Callable[[int], None] | None = None,
    ) -> None:
        """Append what has changed, and answer when that is on enough replicas."""
        deferred = shard.deferred = [(respond, answer)]

        def appended(error: ErrorCode, offset: int) -> None:
            if shard.deferred is deferred:
                shard.deferred = []
            if error:
                logger.warning(
                    "could not store a state of share partition %d, reading it back: %s",
                    shard.partition,
                    error.name,
                )
                self._shards.reload(shard)
            elif on_stored is not None:
                on_stored(offset)
            failed = StateAnswer(group_error(error)) if error else None
            for respond_deferred, deferred_answer in deferred:
                respond_deferred(failed or deferred_answer)

        self._runtime.append(shard.partition, records, appended)

    # -- pruning ----------------------------------------------------------------------------

    def prune(self) -> None:
        """Remove what snapshots have replaced; share partitions that rest get newer snapshots."""
        for shard in self._shards.loaded():
            self._prune_shard(shard)
            self._snapshot_cold(shard)

    def _prune_shard(self, shard: ShareShard) -> None:
        if not shard.states:
            return
        offset = min(each.snapshot_offset for each in shard.states.values())
        if offset > shard.pruned_to:
            shard.pruned_to = offset
            self._prune(shard.partition, offset)

    def _snapshot_cold(self, shard: ShareShard) -> None:
        """Give share partitions that rest a newer snapshot: the oldest is where pruning ends.

        Where all have rested since their last one it would help nobody. As Kafka's
        ShareCoordinatorShard.snapshotColdPartitions.
        """
        if all(each.is_cold for each in shard.states.values()):
            return
        now_ms = self._runtime.clock.now_ms()
        due_ms = now_ms - self._settings.cold_interval_ms
        cold = [
            (key, known) for key, known in shard.states.items() if known.state.write_ms <= due_ms
        ]
        for key, known in cold[:SNAPSHOTS_PER_PASS]:
            state = known.state
            after = state._replace(snapshot_epoch=state.snapshot_epoch + 1, write_ms=now_ms)
            record = run_at_once(snapshot_record(key, after))
            self._put_snapshot(shard, key, after, record, StateAnswer(), _ignore)
            shard.states[key].is_cold = True

    # -- leadership and running -------------------------------------------------------------

    def keys(self) -> Iterable[SharePartitionKey]:
        """The share partitions that are kept here and known."""
        return [key for shard in self._shards.loaded() for key in shard.states]

    def state(self, key: SharePartitionKey) -> ShareState:
        """What is kept of a share partition. Raises KeyError: it is not kept here, or unknown."""
        return next(
            shard.states[key].state for shard in self._shards.loaded() if key in shard.states
        )

    def note_leadership(self, partition: int, leader_epoch: int, *, is_leader: bool) -> None:
        """A partition of `__share_group_state` came to be led here, or is not led here any more."""
        if is_leader:
            self._shards.load(partition, leader_epoch)
        else:
            self._shards.unload(partition)

    def start(self) -> None:
        """Begin to prune from time to time."""
        self._timer = self._runtime.schedule(self._settings.prune_interval_ms, self._prune_again)

    def _prune_again(self) -> None:
        self.start()
        self.prune()

    def close(self) -> None:
        """Stop."""
        if self._timer is not None:
            self._timer.cancel()
        for partition in self._shards.partitions():
            self._shards.unload(partition)


def _note_offset(put: ReplayedState, offset: int) -> None:
    put.snapshot_offset = offset


def _ignore(_answer: StateAnswer) -> None:
    """Nobody waits for it."""
