"""Two ends of replication on real logs: a leader that answers fetchers, and a follower.

The leader keeps Kafka's rules in a few lines of its own, so that what a fetcher does is not
judged by code that it shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from odradek.common.errors import ErrorCode
from odradek.common.sentinels import LATEST_TIMESTAMP
from odradek.protocol.records import build_batch, iter_batches, iter_records
from odradek.replication.fetcher.fetch_state import InitialFetchState, initial_fetch_offset
from odradek.replication.fetcher.fetcher import ReplicaFetcher
from odradek.replication.fetcher.plans import (
    EpochEnd,
    EpochsPlan,
    FetchAnswer,
    FetchedPartition,
    FetchPlan,
    ListedOffset,
    PlannedPartition,
    RequestedEpoch,
    RequestPlan,
    WaitPlan,
)
from odradek.replication.fetcher.settings import FetcherSettings
from odradek.replication.partition.partition import Partition
from odradek.storage import Log, LogConfig, TopicPartition, load_log

NOW_MS = 1_700_000_000_000
LEADER, FOLLOWER = 1, 2
TOPIC_ID = bytes(range(16))
SESSION_ID = 77
ROUNDS_MAX = 50


def tp(partition: int = 0, topic: str = "t") -> TopicPartition:
    """A partition of the topic t."""
    return TopicPartition(topic, partition)


def batch(*values: bytes) -> memoryview:
    """One batch with a record for each value."""
    return memoryview(build_batch([(None, value, NOW_MS, ()) for value in values]))


class Replica:
    """One log that anybody may lead or follow."""

    def __init__(self, folder: Path, topic_partition: TopicPartition, **config: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = str(folder / topic_partition.folder_name)
        self.log: Log = load_log(path, topic_partition, LogConfig(**config), now_ms=NOW_MS)
        self.partition = Partition(topic_partition, TOPIC_ID, FOLLOWER, self.log)
        self.high_watermark = 0
        """As its leader knows it."""

    def lead(self, epoch: int, *values: bytes) -> None:
        """Begin an epoch, and append each value as a batch of its own."""
        self.log.assign_epoch_start(epoch, self.log.log_end_offset)
        for value in values:
            self.log.append_as_leader(batch(value), leader_epoch=epoch, now_ms=NOW_MS)
            self.log.flush_appends()

    def replicate_to(self, *others: Replica, upto: int | None = None) -> None:
        """Have others be what this log is up to an offset, epochs and all."""
        for other in others:
            records = self.log.read(0, 1 << 30, upper_offset=upto).records
            raw = records if isinstance(records, bytes) else records.read()
            other.log.append_as_follower(raw)
            other.log.flush_appends()

    def commit(self, offset: int) -> None:
        """Set the high watermark."""
        self.high_watermark = self.partition.high_watermark = offset

    @property
    def values(self) -> list[bytes | None]:
        """The values of all records."""
        return [
            record.value
            for each in iter_batches(self.raw)
            for record in iter_records(each)
            if record.offset >= self.log.log_start_offset
        ]

    @property
    def raw(self) -> bytes:
        """The bytes of all batches."""
        parts, offset = [], self.log.log_start_offset
        while offset < self.log.log_end_offset:
            records = self.log.read(offset, 1 << 30).records
            data = records if isinstance(records, bytes) else records.read()
            parts.append(data)
            offset = list(iter_batches(data))[-1].next_offset
        return b"".join(parts)


class ScriptedLeader:
    """Answers what fetchers plan, from real logs."""

    def __init__(self, replicas: Mapping[TopicPartition, Replica], epoch: int) -> None:
        self.replicas = dict(replicas)
        self.epoch = epoch
        self.errors: dict[TopicPartition, ErrorCode] = {}
        """What it answers for some partitions instead."""
        self.session_error = ErrorCode.NONE

    def refusal(self, topic_partition: TopicPartition, epoch: int) -> ErrorCode:
        """What any request about a partition gets first."""
        if topic_partition in self.errors:
            return self.errors[topic_partition]
        if topic_partition not in self.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > self.epoch else ErrorCode.NONE

    def fetch(self, plan: FetchPlan) -> FetchAnswer:
        """Every partition of the session, news or not."""
        if self.session_error:
            return FetchAnswer(self.session_error, 0, {})
        partitions = {
            each: self._fetch(each, requested) for each, requested in plan.requested.items()
        }
        return FetchAnswer(ErrorCode.NONE, SESSION_ID, partitions)

    def _fetch(
        self, topic_partition: TopicPartition, requested: PlannedPartition
    ) -> FetchedPartition:
        error = self.refusal(topic_partition, requested.current_leader_epoch)
        if error:
            return FetchedPartition(error)
        replica = self.replicas[topic_partition]
        log, offset = replica.log, requested.fetch_offset
        start = log.log_start_offset
        if requested.last_fetched_epoch >= 0:
            epoch, end = log.end_offset_for_epoch(requested.last_fetched_epoch)
            if end == -1:
                return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
            if epoch < requested.last_fetched_epoch or end < offset:
                return FetchedPartition(
                    ErrorCode.NONE, replica.high_watermark, start, b"", (epoch, end)
                )
        if not start <= offset <= log.log_end_offset:
            return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
        records = log.read(offset, requested.max_bytes).records
        raw = records if isinstance(records, bytes) else records.read()
        return FetchedPartition(ErrorCode.NONE, replica.high_watermark, start, memoryview(raw))

    def epoch_end(self, topic_partition: TopicPartition, requested: RequestedEpoch) -> EpochEnd:
        """Where an epoch ends."""
        error = self.refusal(topic_partition, requested.current_leader_epoch)
        if error:
            return EpochEnd(error)
        log = self.replicas[topic_partition].log
        return EpochEnd(ErrorCode.NONE, *log.end_offset_for_epoch(requested.leader_epoch))

    def listed(self, topic_partition: TopicPartition, epoch: int, timestamp: int) -> ListedOffset:
        """One end of a log."""
        error = self.refusal(topic_partition, epoch)
        if error:
            return ListedOffset(error)
        log = self.replicas[topic_partition].log
        is_end = timestamp == LATEST_TIMESTAMP
        return ListedOffset(error, log.log_end_offset if is_end else log.log_start_offset)

    def answer(self, fetcher: ReplicaFetcher, plan: RequestPlan, now_ms: int = 0) -> None:
        """Hand a fetcher the response to its request."""
        if isinstance(plan, FetchPlan):
            fetcher.fetch_answered(plan, self.fetch(plan), now_ms)
        elif isinstance(plan, EpochsPlan):
            ends = {each: self.epoch_end(each, epoch) for each, epoch in plan.partitions.items()}
            fetcher.epochs_answered(plan, ends, now_ms)
        else:
            listed = {
                each: self.listed(each, epoch, plan.timestamp)
                for each, epoch in plan.partitions.items()
            }
            fetcher.offsets_answered(plan, listed, now_ms)


class Followers:
    """The replicas of the following broker, and one fetcher for them.

    Args:
        replicas: its logs.
        settings: of the fetcher.
        fetcher: what else it takes.
    """

    def __init__(
        self,
        replicas: Mapping[TopicPartition, Replica],
        settings: FetcherSettings | None = None,
        **fetcher: Any,
    ) -> None:
        self.replicas = dict(replicas)
        self.settings = settings or FetcherSettings(FOLLOWER)
        self.appended: list[list[TopicPartition]] = []
        self.fetcher = ReplicaFetcher(
            LEADER,
            0,
            self.settings,
            self.partition_of,
            on_appended=lambda changed: self.appended.append(list(changed)),
            **fetcher,
        )

    def partition_of(self, topic_partition: TopicPartition) -> Partition | None:
        """The hosted one."""
        replica = self.replicas.get(topic_partition)
        return None if replica is None else replica.partition

    def follow(self, epoch: int, *topic_partitions: TopicPartition) -> None:
        """Add partitions as a broker does that becomes a follower."""
        self.fetcher.add_partitions(
            {each: self.initial(epoch, each) for each in topic_partitions or self.replicas}
        )

    def initial(self, epoch: int, topic_partition: TopicPartition) -> InitialFetchState:
        """Where a partition begins."""
        partition = self.replicas[topic_partition].partition
        offset = initial_fetch_offset(partition, self.settings.truncation)
        return InitialFetchState(TOPIC_ID, LEADER, epoch, offset)

    def catch_up(
        self,
        leader: ScriptedLeader,
        now_ms: int = 0,
        watch: Callable[[RequestPlan], None] = lambda plan: None,
    ) -> list[RequestPlan]:
        """Send and answer until a fetch finds the logs equal, or nothing is planned."""
        plans: list[RequestPlan] = []
        for _ in range(ROUNDS_MAX):
            before = self._progress()
            plan = self.fetcher.next_request(now_ms)
            if isinstance(plan, WaitPlan):
                return plans
            plans.append(plan)
            watch(plan)
            leader.answer(self.fetcher, plan, now_ms)
            if isinstance(plan, FetchPlan) and self._progress() == before:
                return plans
        raise AssertionError(f"it does not come to an end: {plans[-2:]}")

    def _progress(self) -> list[object]:
        return [(each, self.fetcher.fetch_state(each)) for each in self.replicas]

    def plan(self, now_ms: int = 0) -> RequestPlan:
        """The next request; there is one."""
        plan = self.fetcher.next_request(now_ms)
        assert not isinstance(plan, WaitPlan), plan
        return plan
