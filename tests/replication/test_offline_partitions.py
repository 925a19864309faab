"""Partitions whose log directory fails: gone until a restart, and the others stay."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.partition_state import PartitionState, StoppedReplica
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.records import build_batch
from odradek.replication.append import PartitionResponse
from odradek.replication.partition.partition import FetchIsolation
from odradek.replication.read.fetch import FetchParams, FetchPartition, FetchPartitionData
from odradek.replication.refused_writes import FULL_MS
from odradek.replication.replica_manager import ReplicaManager, ReplicaSettings
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers
from odradek.storage.log.append_origin import AppendOrigin
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log_manager.log_manager import FailedDirectory, LogManager
from odradek.tools.simulation.disks.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
KEPT = TopicPartition("t", 0)
LOST = TopicPartition("t", 1)
STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


class Disks:
    """One broker's replicas on two disks, a partition on each."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.clock = ManualClock(NOW_MS)
        self.timers = Timers()
        self.reported: list[FailedDirectory] = []
        self.start()

    def start(self) -> None:
        self.logs = LogManager(["/a", "/b"], clock=self.clock, files=self.files)
        self.logs.load_logs()
        settings = ReplicaSettings(1, lambda overrides: LogConfig(), lambda overrides: 1)
        self.manager = ReplicaManager(settings, self.logs, self.clock, self.timers)
        self.manager.on_directories_failed = self.reported.extend
        self.requests_again = 0
        self.manager.on_replicas_missing = self._request_again

    def _request_again(self) -> None:
        self.requests_again += 1

    def pass_time(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.timers.run_due(self.clock.monotonic_ms())

    def lead(self, *partitions: TopicPartition, is_new: bool) -> dict[TopicPartition, ErrorCode]:
        states = [
            PartitionState(topic, TOPIC_ID, number, 1, 1, 0, (1,), 0, (1,), is_new)
            for topic, number in partitions
        ]
        return self.manager.become_leader_or_follower(1, 1, states)

    def produce(
        self, *partitions: TopicPartition, acks: int = 1
    ) -> dict[TopicPartition, ErrorCode]:
        """Append a record to each, in one request, and flush."""
        answers: list[dict[TopicPartition, PartitionResponse]] = []
        self.manager.append_records(
            timeout_ms=1000,
            required_acks=acks,
            internal_topics_allowed=False,
            origin=AppendOrigin.CLIENT,
            entries={each: memoryview(one_record()) for each in partitions},
            on_complete=answers.append,
        )
        self.manager.flush()
        return {each: response.error for each, response in answers[0].items()}

    def fetch(
        self, partition: TopicPartition, offset: int, max_wait_ms: int = 0
    ) -> list[ErrorCode]:
        """The list gets the answer's error once there is one."""
        errors: list[ErrorCode] = []

        def note(results: Sequence[tuple[FetchPartition, FetchPartitionData]]) -> None:
            errors.extend(data.error for _, data in results)

        params = FetchParams(max_wait_ms, 1, 1 << 20, FetchIsolation.HIGH_WATERMARK)
        requested = FetchPartition(partition, TOPIC_ID, offset, 1 << 20)
        self.manager.fetch_messages(params, [requested], note)
        return errors

    def break_second(self) -> None:
        path = self.logs.logs[LOST].directory
        self.files.fail(errno.EIO, path[:2])


def one_record() -> bytearray:
    return build_batch([(None, b"value", NOW_MS, ())])


@pytest.fixture
def disks() -> Disks:
    disks = Disks()
    assert set(disks.lead(KEPT, LOST, is_new=True).values()) == {ErrorCode.NONE}
    paths = {log.directory[:2] for log in disks.logs.logs.values()}
    assert paths == {"/a", "/b"}
    return disks


def test_a_failing_append_is_refused_and_those_beside_it_are_not(disks: Disks) -> None:
    disks.break_second()
    answers = disks.produce(KEPT, LOST)
    assert answers == {KEPT: ErrorCode.NONE, LOST: STORAGE_ERROR}
    assert disks.produce(KEPT, LOST) == {KEPT: ErrorCode.NONE, LOST: STORAGE_ERROR}
    assert [failed.partitions for failed in disks.reported] == [[LOST]]


def test_everything_requested_of_an_offline_partition_is_a_storage_error(disks: Disks) -> None:
    disks.break_second()
    disks.produce(LOST)
    assert disks.fetch(LOST, 0) == [STORAGE_ERROR]
    assert disks.fetch(LOST, 0, max_wait_ms=1000) == [STORAGE_ERROR]
    with pytest.raises(KafkaError) as refused:
        disks.manager.partition_or_error(LOST)
    assert refused.value.code is STORAGE_ERROR
    deleted: list[dict[TopicPartition, tuple[ErrorCode, int]]] = []
    disks.manager.delete_records({LOST: 0}, 0, deleted.append)
    assert deleted == [{LOST: (STORAGE_ERROR, -1)}]
    assert disks.manager.get_partition(LOST) is None
    assert disks.fetch(KEPT, 0) == [ErrorCode.NONE]


def test_a_read_that_fails_takes_the_partition_away(disks: Disks) -> None:
    disks.produce(KEPT, LOST)
    disks.logs.logs[LOST].close_files()
    disks.break_second()
    assert disks.fetch(LOST, 0) == [STORAGE_ERROR]
    disks.manager.flush()
    assert [failed.partitions for failed in disks.reported] == [[LOST]]


def test_a_long_poll_is_answered_when_its_partition_goes(disks: Disks) -> None:
    waiting = disks.fetch(LOST, 0, max_wait_ms=60_000)
    assert waiting == []
    disks.break_second()
    disks.produce(LOST)
    assert waiting == [STORAGE_ERROR]


def test_who_follows_leadership_learns_that_it_is_over(disks: Disks) -> None:
    reported = []
    disks.manager.leadership_listeners.append(lambda *change: reported.append(change))
    disks.break_second()
    disks.produce(LOST)
    assert reported == [(LOST, False, 0)]


def test_the_controller_learns_that_the_partition_cannot_be_hosted(disks: Disks) -> None:
    disks.break_second()
    disks.produce(LOST)
    known = ErrorCode.STALE_CONTROLLER_EPOCH  # in this leader epoch, as Kafka answers it
    assert disks.lead(KEPT, LOST, is_new=False) == {KEPT: known, LOST: STORAGE_ERROR}
    assert disks.manager.stop_replicas(1, [StoppedReplica(LOST, delete=True)]) == {
        LOST: STORAGE_ERROR
    }


def test_new_partitions_go_to_the_disk_that_works(disks: Disks) -> None:
    disks.break_second()
    disks.produce(LOST)
    new = [TopicPartition("new", number) for number in range(3)]
    assert set(disks.lead(*new, is_new=True).values()) == {ErrorCode.NONE}
    assert set(disks.produce(*new).values()) == {ErrorCode.NONE}


def test_after_a_restart_on_the_healed_disk_all_is_back(disks: Disks) -> None:
    disks.produce(KEPT, LOST)
    disks.break_second()
    disks.produce(KEPT, LOST)
    disks.logs.close()
    disks.files.faults.clear()
    disks.start()
    assert disks.lead(KEPT, LOST, is_new=False) == {KEPT: ErrorCode.NONE, LOST: ErrorCode.NONE}
    ends = [disks.logs.logs[each].log_end_offset for each in (KEPT, LOST)]
    assert ends == [2, 1]


def test_a_restart_without_the_disk_has_its_partitions_offline(disks: Disks) -> None:
    disks.break_second()
    disks.logs.abandon()
    disks.start()
    assert disks.lead(KEPT, LOST, is_new=False) == {KEPT: ErrorCode.NONE, LOST: STORAGE_ERROR}
    assert disks.produce(KEPT, LOST) == {KEPT: ErrorCode.NONE, LOST: STORAGE_ERROR}


def test_no_room_refuses_the_append_and_takes_nothing_away(disks: Disks) -> None:
    disks.files.room_bytes = 0
    assert disks.produce(KEPT, LOST) == {KEPT: STORAGE_ERROR, LOST: STORAGE_ERROR}
    assert disks.fetch(LOST, 0) == [ErrorCode.NONE]
    disks.files.room_bytes = None
    assert disks.produce(KEPT, LOST) == {KEPT: ErrorCode.NONE, LOST: ErrorCode.NONE}
    assert disks.reported == []


# -- full disks ----------------------------------------------------------------------------


def test_what_a_full_disk_has_no_room_for_is_requested_again(disks: Disks) -> None:
    """The controller sends it to a broker that cannot host it only when that says so: no disk has
    failed, and nothing else would have the broker host it before a restart."""
    late = [TopicPartition("late", number) for number in range(2)]
    full = disks.files.fail(errno.ENOSPC, times=None)
    assert disks.lead(*late, is_new=True) == dict.fromkeys(late, STORAGE_ERROR)
    disks.pass_time(FULL_MS - 1)
    assert disks.requests_again == 0
    disks.pass_time(1)
    assert disks.requests_again == 1
    assert disks.lead(*late, is_new=False) == dict.fromkeys(late, STORAGE_ERROR)
    disks.pass_time(FULL_MS)
    assert disks.requests_again == 2
    disks.files.faults.remove(full)
    assert disks.lead(*late, is_new=False) == dict.fromkeys(late, ErrorCode.NONE)
    assert disks.produce(*late) == dict.fromkeys(late, ErrorCode.NONE)
    disks.pass_time(10 * FULL_MS)
    assert disks.requests_again == 2
    assert disks.reported == []
