"""The promises of `CoordinatorLog`, kept by the log in memory and by the one on real partitions."""

import random
from pathlib import Path

import pytest
from support.compaction import clean, make_manager
from support.consumer_bench import Topics
from support.transactions import marker

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.internal_topics import CONSUMER_OFFSETS
from odradek.common.partition_state import PartitionState
from odradek.common.sentinels import NO_PRODUCER_ID
from odradek.common.topic_partition import TopicPartition
from odradek.coordinator.group.consumer.settings import ConsumerGroupSettings
from odradek.coordinator.group.coordinator import GroupCoordinator
from odradek.coordinator.group.offset_metadata_manager import CommitRequest, PartitionCommit
from odradek.coordinator.group.runtime import GroupRuntime
from odradek.coordinator.group.settings import GroupSettings
from odradek.coordinator.log import AppendInTransaction, CoordinatorLog, CoordinatorRecord
from odradek.coordinator.replicated_log import ReplicatedLog
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records.builder import build_batch
from odradek.replication.replica_manager import ReplicaManager, ReplicaSettings
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers
from odradek.storage.log.append_origin import AppendOrigin
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log_manager.log_manager import LogManager
from odradek.storage.producer_state.verification_guard import NOT_REQUIRED

NOW_MS = 1_700_000_000_000
BROKER_ID = 1
LED_HERE = 0
LED_ELSEWHERE = 1
A = CoordinatorRecord(b"a", b"1")
B = CoordinatorRecord(b"b", None)


class RealPartitions:
    """Two partitions of `__consumer_offsets` in a folder; only the first is led here."""

    def __init__(self, folder: Path, **log_settings: object) -> None:
        self.clock = ManualClock(NOW_MS)
        self.timers = Timers()
        self.log_manager = LogManager([str(folder)], clock=self.clock)
        config = LogConfig(cleanup_policy=frozenset({"compact"}), **log_settings)
        self.log_manager.load_logs({CONSUMER_OFFSETS: config})
        self.replica_manager = ReplicaManager(
            ReplicaSettings(BROKER_ID, lambda overrides: config, lambda overrides: 1),
            self.log_manager,
            self.clock,
            self.timers,
        )
        self.log = ReplicatedLog(
            CONSUMER_OFFSETS, self.replica_manager, self.clock, timeout_ms=5_000
        )

    def lead(self, *brokers: int) -> None:
        """Let `brokers` be the replicas, this one leading partition 0 and the last partition 1."""
        states = [
            PartitionState(
                CONSUMER_OFFSETS,
                bytes(range(16)),
                partition,
                1,
                leader,
                0,
                brokers,
                0,
                brokers,
                True,
            )
            for partition, leader in ((LED_HERE, BROKER_ID), (LED_ELSEWHERE, 2))
        ]
        errors = self.replica_manager.become_leader_or_follower(1, 1, states)
        assert not any(errors.values())
        self.replica_manager.flush()


@pytest.fixture
def partitions(tmp_path: Path) -> RealPartitions:
    real = RealPartitions(tmp_path)
    real.lead(BROKER_ID)
    return real


@pytest.fixture(params=["memory", "replicated"])
def log(request: pytest.FixtureRequest) -> CoordinatorLog:
    if request.param == "memory":
        memory = request.getfixturevalue("memory_log")
        memory.led = {LED_HERE}
        return memory
    return request.getfixturevalue("partitions").log


def append(log: CoordinatorLog, *records: CoordinatorRecord, partition: int = LED_HERE) -> list:
    outcomes: list = []
    log.append(partition, records, lambda error, offset: outcomes.append((error, offset)))
    return outcomes


def read_all(log: CoordinatorLog) -> list[tuple[int, bytes | None, bytes | None]]:
    found, offset = [], log.start_offset(LED_HERE)
    while batches := log.read(LED_HERE, offset, 1):
        for batch in batches:
            found += batch.records
            assert batch.next_offset > offset
            offset = batch.next_offset
    assert offset == log.end_offset(LED_HERE)
    return found


def test_an_append_completes_in_the_flush_and_never_before(log: CoordinatorLog) -> None:
    outcomes = append(log, A)
    assert outcomes == []
    log.flush()
    assert outcomes == [(ErrorCode.NONE, 0)]


def test_appends_complete_in_order_with_the_offset_of_their_first_record(
    log: CoordinatorLog,
) -> None:
    outcomes: list = []
    log.append(LED_HERE, [A, B], lambda error, offset: outcomes.append(offset))
    log.append(LED_HERE, [A], lambda error, offset: outcomes.append(offset))
    log.flush()
    assert outcomes == [0, 2]


def test_an_append_in_a_transaction_is_read_back_as_its_producers(log: CoordinatorLog) -> None:
    outcomes: list = []
    log.append(
        LED_HERE,
        [A],
        lambda error, offset: outcomes.append((error, offset)),
        AppendInTransaction(9, 0, NOT_REQUIRED),
    )
    append(log, B)
    log.flush()
    assert outcomes == [(ErrorCode.NONE, 0)]
    first, second = log.read(LED_HERE, 0, 1 << 20)
    assert (first.producer_id, first.committed, len(list(first.records))) == (9, None, 1)
    assert second.producer_id == NO_PRODUCER_ID


def test_a_transaction_begins_in_partitions_only_with_its_guard(
    partitions: RealPartitions,
) -> None:
    outcomes: list = []
    partitions.log.append(
        LED_HERE,
        [A],
        lambda error, offset: outcomes.append((error, offset)),
        AppendInTransaction(9, 0, None),
    )
    partitions.log.flush()
    assert outcomes == [(ErrorCode.INVALID_TXN_STATE, -1)]


def test_what_was_appended_is_read_back_with_tombstones(log: CoordinatorLog) -> None:
    append(log, A, B)
    append(log, A)
    log.flush()
    assert read_all(log) == [(0, b"a", b"1"), (1, b"b", None), (2, b"a", b"1")]


def test_reading_gives_a_batch_at_least_and_stops_at_the_size_requested(
    log: CoordinatorLog,
) -> None:
    big = CoordinatorRecord(b"key", b"x" * 1_000)
    for _ in range(5):
        append(log, big)
    log.flush()
    assert [batch.next_offset for batch in log.read(LED_HERE, 0, 1)] == [1]
    assert len(log.read(LED_HERE, 0, 1 << 20)) == 5
    assert log.read(LED_HERE, 5, 1 << 20) == []


def test_a_partition_led_elsewhere_takes_nothing_and_cannot_be_read(log: CoordinatorLog) -> None:
    outcomes = append(log, A, partition=LED_ELSEWHERE)
    assert outcomes == []
    log.flush()
    assert len(outcomes) == 1
    assert outcomes[0][0] in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
    with pytest.raises(KafkaError):
        log.read(LED_ELSEWHERE, 0, 1)


def test_a_callback_may_append_again(log: CoordinatorLog) -> None:
    outcomes: list = []
    log.append(LED_HERE, [A], lambda error, offset: outcomes.extend(append(log, B)))
    log.flush()
    log.flush()
    assert log.end_offset(LED_HERE) == 2


# -- the real one alone ---------------------------------------------------------------------


def test_batches_of_transactions_are_distinguished(partitions: RealPartitions) -> None:
    data = build_batch(
        [(b"k", b"v", NOW_MS, ())],
        producer_id=9,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    marker = build_batch(
        [(b"\x00\x00\x00\x01", bytes(6), NOW_MS, ())],
        producer_id=9,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    for batch in (data, marker):
        partitions.replica_manager.append_records(
            timeout_ms=0,
            required_acks=1,
            internal_topics_allowed=True,
            origin=AppendOrigin.COORDINATOR,
            entries={TopicPartition(CONSUMER_OFFSETS, LED_HERE): memoryview(batch)},
            on_complete=lambda results: None,
            guards={TopicPartition(CONSUMER_OFFSETS, LED_HERE): NOT_REQUIRED},
        )
    partitions.replica_manager.flush()
    first, second = partitions.log.read(LED_HERE, 0, 1 << 20)
    assert (first.producer_id, first.committed, len(list(first.records))) == (9, None, 1)
    assert (second.producer_id, second.committed, len(list(second.records))) == (9, True, 0)


def test_an_append_waits_for_all_in_sync_replicas_and_then_times_out(tmp_path: Path) -> None:
    real = RealPartitions(tmp_path)
    real.lead(BROKER_ID, 2)
    outcomes = append(real.log, A)
    real.log.flush()
    assert outcomes == []
    real.clock.advance(5_000)
    real.timers.run_due(real.clock.monotonic_ms())
    real.log.flush()
    assert outcomes == [(ErrorCode.REQUEST_TIMED_OUT, -1)]


def test_a_batch_that_is_too_large_is_refused_whole(tmp_path: Path) -> None:
    real = RealPartitions(tmp_path, max_message_bytes=1_000)
    real.lead(BROKER_ID)
    outcomes = append(real.log, CoordinatorRecord(b"k", b"x" * 2_000))
    real.log.flush()
    assert outcomes == [(ErrorCode.MESSAGE_TOO_LARGE, -1)]
    assert real.log.end_offset(LED_HERE) == 0


def test_batches_are_compressed_if_the_setting_says_so(partitions: RealPartitions) -> None:
    log = ReplicatedLog(
        CONSUMER_OFFSETS, partitions.replica_manager, partitions.clock, 5_000, Compression.GZIP
    )
    append(log, CoordinatorRecord(b"k", b"x" * 10_000))
    log.flush()
    assert read_all(log) == [(0, b"k", b"x" * 10_000)]
    tp = TopicPartition(CONSUMER_OFFSETS, LED_HERE)
    assert partitions.replica_manager.partition_or_error(tp).log.size < 1_000


def test_groups_are_on_disk_and_found_there_by_the_next_broker(tmp_path: Path) -> None:
    def coordinator_on(real: RealPartitions) -> GroupCoordinator:
        context = GroupRuntime(GroupSettings(), real.clock, real.timers, random.Random(1), real.log)
        coordinator = GroupCoordinator(context, lambda: 1, Topics, ConsumerGroupSettings())
        coordinator.note_leadership(LED_HERE, 0, is_leader=True)
        return coordinator

    before = RealPartitions(tmp_path)
    before.lead(BROKER_ID)
    errors: list = []
    coordinator_on(before).commit_offsets(
        CommitRequest("g", -1, "", None, [PartitionCommit("orders", 0, 42, 3, "note")]),
        errors.extend,
    )
    before.log.flush()
    assert errors == [ErrorCode.NONE]
    before.log_manager.close()

    after = RealPartitions(tmp_path)
    after.lead(BROKER_ID)
    found: list = []
    coordinator_on(after).fetch_offsets(
        "g", lambda error, offsets: found.append(offsets.get("orders", 0)), require_stable=True
    )
    (position,) = found
    assert (position.offset, position.leader_epoch, position.metadata) == (42, 3, "note")
    after.log_manager.close()


def test_a_marker_that_compaction_has_emptied_ends_no_transaction(tmp_path: Path) -> None:
    real = RealPartitions(tmp_path, min_cleanable_dirty_ratio=0.0, delete_retention_ms=0)
    real.lead(BROKER_ID)
    kept = real.log_manager.logs[TopicPartition(CONSUMER_OFFSETS, LED_HERE)]
    kept.append_as_leader(
        marker(7, commit=True), leader_epoch=0, origin=AppendOrigin.COORDINATOR, now_ms=NOW_MS
    )
    kept.flush_appends()
    cleaner = make_manager(kept, real.clock)
    for _ in range(2):  # once to mark it, once to empty it
        append(real.log, A)
        real.log.flush()
        kept.roll(NOW_MS)
        assert clean(cleaner, real.clock) is not None

    first, *_, last = real.log.read(LED_HERE, 0, 1 << 20)

    assert (first.next_offset, first.producer_id) == (1, 7)
    assert (first.committed, list(first.records)) == (None, [])
    assert [record.key for record in last.records] == [b"a"]
