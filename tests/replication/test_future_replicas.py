"""Replicas that move from one log directory to another while they are written and read."""

from __future__ import annotations

import errno
from collections.abc import Mapping

import pytest
import trio

from odradek.common.errors import ErrorCode
from odradek.common.partition_state import PartitionState, StoppedReplica
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.records import build_batch, iter_batches, iter_records
from odradek.replication.alter_log_dirs.future_replica import FutureReplica
from odradek.replication.alter_log_dirs.future_replica_tasks import FutureReplicaTasks
from odradek.replication.alter_log_dirs.future_replicas import MoveQuota
from odradek.replication.alter_log_dirs.local_leader import read
from odradek.replication.append import PartitionResponse
from odradek.replication.fetcher.plans import EpochsPlan, FetchPlan, WaitPlan
from odradek.replication.fetcher.settings import FetcherSettings
from odradek.replication.partition.partition import FetchIsolation, Partition
from odradek.replication.read.fetch import FetchParams, FetchPartition, FetchResults
from odradek.replication.replica_manager import ReplicaManager, ReplicaSettings
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers
from odradek.storage.log.append_origin import AppendOrigin
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log_manager.log_manager import LogManager
from odradek.tools.simulation.disks.memory_files import MemoryFiles

BROKER_ID, OTHER = 1, 2
NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
ORDERS = TopicPartition("orders", 0)
FIRST, SECOND, THIRD = "/first", "/second", "/third"
CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=200)
STEP_BYTES = 300


class Bench:
    """One broker's replicas on three disks."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.clock = ManualClock(NOW_MS)
        self.timers = Timers()
        self.epoch = -1
        self.start()

    def start(self) -> None:
        self.log_manager = LogManager(
            [FIRST, SECOND, THIRD], clock=self.clock, default_config=CONFIG, files=self.files
        )
        self.log_manager.load_logs()
        settings = ReplicaSettings(BROKER_ID, self.log_config, lambda overrides: 1)
        self.manager = ReplicaManager(settings, self.log_manager, self.clock, self.timers)
        self.futures = self.manager.future_replicas
        self.futures.settings = FetcherSettings(BROKER_ID, fetch_max_bytes=STEP_BYTES)
        self.started: list[FutureReplica] = []
        self.tasks = FutureReplicaTasks(
            self.futures, 1, lambda run, move: self.started.append(move), self.clock, self.timers
        )
        self.futures.on_work = self.tasks.wake

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        return CONFIG._replace(retention_bytes=int(overrides.get("retention.bytes", -1)))

    def host(self, *, leader: int = BROKER_ID, is_new: bool = False) -> Partition:
        """The replica, led here or elsewhere, in the first directory if it is made now."""
        if self.log_manager.get_log(ORDERS) is None:
            assert self.futures.alter({ORDERS: FIRST}, lambda _: True) == {
                ORDERS: ErrorCode.REPLICA_NOT_AVAILABLE
            }
        self.epoch += 1
        state = PartitionState(
            *(ORDERS.topic, TOPIC_ID, ORDERS.partition, 1, leader, self.epoch, (leader,)),
            *(self.epoch, (BROKER_ID, OTHER), is_new),
        )
        errors = self.manager.become_leader_or_follower(1, 1, [state])
        assert errors == {ORDERS: ErrorCode.NONE}
        partition = self.manager.get_partition(ORDERS)
        assert partition is not None
        return partition

    def stage(self, *values: str) -> list[dict[TopicPartition, PartitionResponse]]:
        """Append a batch; the list gets the answer after the next flush."""
        answers: list[dict[TopicPartition, PartitionResponse]] = []
        self.manager.append_records(
            timeout_ms=1000,
            required_acks=1,
            internal_topics_allowed=False,
            origin=AppendOrigin.CLIENT,
            entries={ORDERS: batch(*values)},
            on_complete=answers.append,
        )
        return answers

    def produce(self, *values: str) -> None:
        for value in values:
            answers = self.stage(value)
            self.manager.flush()
            assert answers[0][ORDERS].error is ErrorCode.NONE

    def fetch(self, offset: int, max_wait_ms: int = 0) -> list[FetchResults]:
        answers: list[FetchResults] = []
        self.manager.fetch_messages(
            FetchParams(max_wait_ms, 1, 1 << 20, FetchIsolation.LOG_END),
            [FetchPartition(ORDERS, TOPIC_ID, offset, 1 << 20)],
            answers.append,
        )
        return answers

    def alter(self, path: str) -> ErrorCode:
        return self.futures.alter({ORDERS: path})[ORDERS]

    def move(self) -> FutureReplica:
        move = self.futures.get(ORDERS)
        assert move is not None
        return move

    async def finish(self) -> None:
        """Copy to the end."""
        await self.tasks.copy(self.move())
        assert self.futures.get(ORDERS) is None, "it has more to do"

    def directory(self) -> str:
        found = self.log_manager.directory_of(ORDERS)
        assert found is not None
        return found.path

    def folders(self, path: str) -> list[str]:
        names = self.files.list_directory(path)
        return [each for each in names if each.startswith("orders") and "-delete" not in each]

    def fail(self, path: str) -> None:
        self.log_manager.disk_failed(path, OSError(errno.EIO, "broken"))
        self.manager.flush()


def batch(*values: str) -> memoryview:
    records = [(None, value.encode(), NOW_MS, ()) for value in values]
    return memoryview(bytearray(build_batch(records)))


def step(move: FutureReplica, clock: ManualClock) -> None:
    """One request of the copy's fetcher and its answer."""
    now_ms = clock.monotonic_ms()
    plan = move.next_request(now_ms)
    assert not isinstance(plan, WaitPlan)
    if isinstance(plan, FetchPlan):
        answer = move.leader.answer(read(move.leader.find(plan)))
        move.fetcher.fetch_answered(plan, answer, now_ms)
    elif isinstance(plan, EpochsPlan):
        move.fetcher.epochs_answered(plan, move.leader.epochs(plan), now_ms)
    else:
        move.fetcher.offsets_answered(plan, move.leader.offsets(plan), now_ms)


def values_of(partition: Partition) -> list[str]:
    log = partition.log
    values: list[str] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        records = log.read(offset, 1 << 20).records
        assert not isinstance(records, bytes)
        for each in iter_batches(records.read()):
            values += [record.value.decode() for record in iter_records(each) if record.value]
            offset = each.next_offset
    return values


def numbered(count: int, first: int = 0) -> list[str]:
    return [f"value-{number:04}" for number in range(first, first + count)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- moving ----------------------------------------------------------------------------


async def test_a_replica_moves_with_all_its_records(bench: Bench) -> None:
    partition = bench.host()
    bench.produce(*numbered(100))
    assert len(partition.log.segments) > 2
    assert bench.alter(SECOND) is ErrorCode.NONE
    assert bench.directory() == FIRST, "the answer waits for nothing"
    await bench.finish()
    assert bench.directory() == SECOND
    assert (bench.folders(FIRST), bench.folders(SECOND)) == ([], ["orders-0"])
    bench.produce(*numbered(20, 100))
    assert values_of(partition) == numbered(120)
    assert partition.high_watermark == 120


@pytest.mark.parametrize("count", [0, 1])
async def test_a_replica_with_next_to_nothing_moves(bench: Bench, count: int) -> None:
    partition = bench.host()
    bench.produce(*numbered(count))
    bench.alter(SECOND)
    await bench.finish()
    bench.produce("next")
    assert values_of(partition) == [*numbered(count), "next"]
    assert bench.directory() == SECOND


async def test_what_is_appended_between_the_steps_comes_too(bench: Bench) -> None:
    partition = bench.host()
    bench.produce(*numbered(50))
    bench.alter(SECOND)
    move, written = bench.move(), 50
    while move.lag or not move.is_caught_up:
        if written < 80:
            bench.produce(*numbered(1, written))
            written += 1
        step(move, bench.clock)
    assert written > 60, "the copy has not been at work for long enough"
    await bench.finish()
    assert values_of(partition) == numbered(written)


async def test_an_append_that_is_staged_is_not_left_behind(bench: Bench) -> None:
    partition = bench.host()
    bench.produce(*numbered(5))
    bench.alter(SECOND)
    answers = bench.stage("staged")
    await bench.tasks.copy(bench.move())
    assert bench.directory() == FIRST
    bench.manager.flush()
    assert answers[0][ORDERS].base_offset == 5
    await bench.finish()
    assert values_of(partition) == [*numbered(5), "staged"]


async def test_who_waits_for_records_gets_those_of_the_new_log(bench: Bench) -> None:
    bench.host()
    bench.produce(*numbered(3))
    answers = bench.fetch(3, max_wait_ms=10_000)
    old = bench.fetch(0)[0][0][1].records
    bench.alter(SECOND)
    await bench.finish()
    assert not answers
    bench.produce("news")
    ((_, data),) = answers[0]
    assert not isinstance(data.records, bytes)
    assert b"news" in data.records.read()
    assert not isinstance(old, bytes)
    assert b"value-0002" in old.read(), "a slice of the old log can be read still"


async def test_records_deleted_before_are_not_copied(bench: Bench) -> None:
    partition = bench.host()
    bench.produce(*numbered(60))
    partition.log.advance_log_start_offset(45)
    partition.log.delete_old_segments(NOW_MS, 60)
    bench.alter(SECOND)
    await bench.finish()
    assert bench.directory() == SECOND
    assert partition.log_start_offset == 45
    assert 45 - 15 < partition.log.segments.first.base_offset <= 45
    assert values_of(partition)[-15:] == numbered(15, 45)


async def test_a_log_that_starts_within_a_batch_moves(bench: Bench) -> None:
    partition = bench.host()
    bench.stage(*numbered(10))
    bench.manager.flush()
    partition.log.advance_log_start_offset(4)
    bench.alter(SECOND)
    await bench.finish()
    assert (partition.log_start_offset, partition.log_end_offset) == (4, 10)
    assert values_of(partition)[-6:] == numbered(6, 4)


async def test_changed_settings_hold_for_the_copy(bench: Bench) -> None:
    bench.host()
    bench.produce(*numbered(3))
    bench.alter(SECOND)
    bench.manager.update_topic_config(ORDERS.topic, {"retention.bytes": "77"})
    assert bench.move().copy.log.config.retention_bytes == 77


# --- a follower's log is cut ------------------------------------------------------------


async def test_a_copy_is_cut_with_its_log(bench: Bench) -> None:
    partition = bench.host(leader=OTHER)
    partition.append_records_to_follower(follower_batches(0, numbered(30)), 0, 0)
    bench.alter(SECOND)
    move = bench.move()
    while move.copy.log_end_offset < 25:
        step(move, bench.clock)
    assert values_of(move.copy)[12:25] == numbered(13, 12)
    partition.truncate_to(12)
    bench.host(leader=OTHER)
    others = [f"other-{number}" for number in range(20)]
    partition.append_records_to_follower(follower_batches(12, others, epoch=1), 12, 1)
    await bench.finish()
    assert values_of(partition) == [*numbered(12), *others]
    assert partition.end_offset_for_epoch(0) == (0, 12)


async def test_a_cut_just_before_the_swap_is_not_missed(bench: Bench) -> None:
    partition = bench.host(leader=OTHER)
    partition.append_records_to_follower(follower_batches(0, numbered(10)), 0, 0)
    bench.alter(SECOND)
    move = bench.move()
    while not move.is_caught_up:
        step(move, bench.clock)
    partition.truncate_to(4)
    others = [f"other-{number}" for number in range(6)]
    bench.host(leader=OTHER)
    partition.append_records_to_follower(follower_batches(4, others, epoch=1), 4, 1)
    assert move.copy.log_end_offset == partition.log_end_offset
    await bench.finish()
    assert values_of(partition) == [*numbered(4), *others]


def follower_batches(first_offset: int, values: list[str], epoch: int = 0) -> memoryview:
    """Batches of a record each, as their leader sends them."""
    data = bytearray()
    for offset, value in enumerate(values, first_offset):
        data += build_batch(
            [(None, value.encode(), NOW_MS, ())], base_offset=offset, partition_leader_epoch=epoch
        )
    return memoryview(data)


# --- wishes ----------------------------------------------------------------------------


async def test_a_move_is_taken_back(bench: Bench) -> None:
    partition = bench.host()
    bench.produce(*numbered(30))
    bench.alter(SECOND)
    move = bench.move()
    step(move, bench.clock)
    assert bench.alter(FIRST) is ErrorCode.NONE
    assert bench.futures.get(ORDERS) is None
    assert bench.folders(SECOND) == []
    await bench.tasks.copy(move)
    assert bench.directory() == FIRST
    assert values_of(partition) == numbered(30)


async def test_another_target_begins_anew(bench: Bench) -> None:
    bench.host()
    bench.produce(*numbered(30))
    bench.alter(SECOND)
    first = bench.move()
    step(first, bench.clock)
    assert bench.alter(THIRD) is ErrorCode.NONE
    assert bench.move() is not first
    assert (bench.folders(SECOND), len(bench.folders(THIRD))) == ([], 1)
    await bench.finish()
    assert bench.directory() == THIRD


def test_the_same_target_changes_nothing(bench: Bench) -> None:
    bench.host()
    bench.alter(SECOND)
    move = bench.move()
    assert bench.alter(SECOND) is ErrorCode.NONE
    assert bench.move() is move


def test_where_it_is_there_is_nothing_to_do(bench: Bench) -> None:
    bench.host()
    assert bench.alter(FIRST) is ErrorCode.NONE
    assert len(bench.futures) == 0


@pytest.mark.parametrize("path", ["/nowhere", "second", "/second/", ""])
def test_a_directory_that_is_none_is_not_found(bench: Bench, path: str) -> None:
    bench.host()
    assert bench.alter(path) is ErrorCode.LOG_DIR_NOT_FOUND


def test_nothing_moves_to_a_directory_that_is_offline_nor_while_one_is(bench: Bench) -> None:
    bench.host()
    bench.fail(SECOND)
    assert bench.alter(SECOND) is ErrorCode.KAFKA_STORAGE_ERROR
    assert bench.alter(THIRD) is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_replica_that_is_offline_cannot_move(bench: Bench) -> None:
    bench.host()
    bench.fail(FIRST)
    assert bench.alter(SECOND) is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_replica_that_is_not_here_is_made_where_it_was_requested(bench: Bench) -> None:
    target = {ORDERS: THIRD}
    unknown = bench.futures.alter(target)
    assert unknown == {ORDERS: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    known = bench.futures.alter(target, lambda _: True)
    assert known == {ORDERS: ErrorCode.REPLICA_NOT_AVAILABLE}
    state = PartitionState(ORDERS.topic, TOPIC_ID, 0, 1, BROKER_ID, 0, (1,), 0, (1,), True)
    bench.manager.become_leader_or_follower(1, 1, [state])
    assert bench.directory() == THIRD


def test_a_name_at_the_limit_moves_and_one_past_it_does_not(bench: Bench) -> None:
    """255 characters, of which `-0.`, 32 of the unique part and `-future` are not the topic's."""
    names = [TopicPartition("n" * length, 0) for length in (213, 214)]
    answers = bench.futures.alter(dict.fromkeys(names, SECOND))
    assert list(answers.values()) == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]


# --- what ends a move ------------------------------------------------------------------


@pytest.mark.parametrize("delete", [False, True])
async def test_a_replica_that_is_stopped_moves_no_more(bench: Bench, delete: bool) -> None:
    bench.host()
    bench.produce(*numbered(20))
    bench.alter(SECOND)
    move = bench.move()
    step(move, bench.clock)
    bench.manager.stop_replicas(1, [StoppedReplica(ORDERS, -2, delete)])
    assert bench.futures.get(ORDERS) is None
    await bench.tasks.copy(move)
    assert (bench.folders(FIRST) == []) is delete
    assert (bench.folders(SECOND) == []) is delete


async def test_the_target_fails_and_the_replica_stays(bench: Bench) -> None:
    partition = bench.host()
    bench.produce(*numbered(20))
    bench.alter(SECOND)
    move = bench.move()
    step(move, bench.clock)
    bench.fail(SECOND)
    await bench.tasks.copy(move)
    assert len(bench.futures) == 0
    bench.produce("one more")
    assert values_of(partition) == [*numbered(20), "one more"]


async def test_the_source_fails_and_the_replica_is_offline(bench: Bench) -> None:
    bench.host()
    bench.produce(*numbered(20))
    bench.alter(SECOND)
    move = bench.move()
    step(move, bench.clock)
    bench.fail(FIRST)
    await bench.tasks.copy(move)
    assert bench.manager.get_partition(ORDERS) is None
    assert len(bench.futures) == 0


async def test_a_full_disk_is_waited_for(bench: Bench) -> None:
    partition = bench.host()
    bench.produce(*numbered(40))
    bench.alter(SECOND)
    bench.files.room_bytes = 700
    move = bench.move()
    await bench.tasks.copy(move)
    assert bench.futures.is_current(move)
    assert move.ready_at_ms > bench.clock.monotonic_ms()
    assert values_of(partition) == numbered(40)
    bench.files.room_bytes = None
    bench.clock.advance(5000)
    await bench.finish()
    assert values_of(partition) == numbered(40)
    assert bench.directory() == SECOND


async def test_a_restart_goes_on_with_a_move(bench: Bench) -> None:
    bench.host()
    bench.produce(*numbered(60))
    bench.alter(SECOND)
    move = bench.move()
    while move.copy.log_end_offset < 30:
        step(move, bench.clock)
    copied = move.copy.log_end_offset
    bench.log_manager.close()
    bench.start()
    assert len(bench.futures) == 0, "its replica is not here yet"
    partition = bench.host()
    assert bench.started == [bench.move()]
    assert bench.move().copy.log_end_offset == copied
    await bench.finish()
    assert bench.directory() == SECOND
    assert values_of(partition) == numbered(60)


def test_a_copy_of_another_topic_of_the_name_goes(bench: Bench) -> None:
    bench.host()
    bench.alter(SECOND)
    (copied,) = bench.folders(SECOND)
    bench.log_manager.close()
    text = bench.files.read_bytes(f"{SECOND}/{copied}/partition.metadata")
    (line,) = [each for each in text.splitlines() if each.startswith(b"topic_id")]
    other = text.replace(line, b"topic_id: AAAAAAAAAAAAAAAAAAAAAA")
    bench.files.write_atomically(f"{SECOND}/{copied}/partition.metadata", other)
    bench.start()
    bench.host()
    assert len(bench.futures) == 0
    assert bench.folders(SECOND) == []


# --- tasks -----------------------------------------------------------------------------


async def test_the_bytes_of_moves_are_bounded(bench: Bench) -> None:
    partition = bench.host()
    bench.produce(*numbered(100))
    quota = MoveQuota(bench.clock.monotonic_ms)
    quota.bytes_per_second_max = 1000
    bench.futures.quota = quota
    bench.alter(SECOND)
    size, began_ms = partition.log.size, bench.clock.monotonic_ms()
    rounds = 0
    while bench.futures.get(ORDERS) is not None:
        move = bench.move()
        await bench.tasks.copy(move)
        rounds += 1
        if bench.futures.get(ORDERS) is not None:
            assert move.ready_at_ms > bench.clock.monotonic_ms()
            bench.clock.advance(move.ready_at_ms - bench.clock.monotonic_ms())
    seconds = (bench.clock.monotonic_ms() - began_ms) / 1000
    assert rounds > 3
    assert (size - 2 * STEP_BYTES) / 1000 <= seconds + 1 <= 2 * size / 1000 + 2
    assert values_of(partition) == numbered(100)


async def test_only_so_many_moves_are_at_work_at_once(bench: Bench, nursery: trio.Nursery) -> None:
    partitions = [TopicPartition("many", number) for number in range(6)]
    bench.futures.alter(dict.fromkeys(partitions, FIRST), lambda _: True)
    states = [
        PartitionState(*each[:1], TOPIC_ID, each[1], 1, BROKER_ID, 0, (1,), 0, (1,), True)
        for each in partitions
    ]
    bench.manager.become_leader_or_follower(1, 1, states)
    running, most, done = 0, 0, trio.Event()

    async def run(work, move) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await work(move)
        running -= 1
        if not len(bench.futures):
            done.set()

    tasks = FutureReplicaTasks(
        bench.futures,
        2,
        lambda work, move: nursery.start_soon(run, work, move),
        bench.clock,
        bench.timers,
    )
    bench.futures.on_work = tasks.wake
    errors = bench.futures.alter(dict.fromkeys(partitions, SECOND))
    assert not any(errors.values())
    with trio.fail_after(60):
        await done.wait()
    assert {bench.log_manager.directory_of(each).path for each in partitions} == {SECOND}
    assert 1 <= most <= 2 + 1  # one that ends begins the next before it is gone
