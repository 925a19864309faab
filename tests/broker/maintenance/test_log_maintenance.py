"""The work on logs that is nobody's request: when it is done, and what comes of it."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import trio
from support.work_per_turn import Work
from trio.testing import wait_all_tasks_blocked

from odradek.broker.maintenance.log_maintenance import ROLLED_CHECKPOINT_MS, LogMaintenance
from odradek.common.partition_state import PartitionState, StoppedReplica
from odradek.common.sentinels import NO_PRODUCER_ID
from odradek.config.broker_config import BrokerConfig
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.protocol.records import build_batch
from odradek.replication.replica_manager import ReplicaManager, ReplicaSettings
from odradek.runtime import long_work
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers
from odradek.storage import Log, LogConfig, LogManager, TopicPartition
from odradek.tools.simulation.disks.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
FOLDER = "/data"
ORDERS = TopicPartition("orders", 0)
BATCH_BYTES = len(build_batch([(b"key", b"value", NOW_MS, [])]))
MINUTE_MS = 60_000


class Kept:
    """Logs and what looks after them, in time that the test moves."""

    def __init__(self, nursery: trio.Nursery, settings: Mapping[str, str]) -> None:
        self.files = MemoryFiles()
        self.clock = ManualClock(NOW_MS)
        self.timers = Timers()
        self.logs = LogManager([FOLDER], clock=self.clock, files=self.files)
        self.logs.load_logs()
        replica_settings = ReplicaSettings(1, lambda overrides: LogConfig(), lambda overrides: 1)
        self.replicas = ReplicaManager(replica_settings, self.logs, self.clock, self.timers)
        self._nursery = nursery
        self.running = 0
        """How many tasks have not ended."""
        config = DynamicConfig(BrokerConfig.from_sources(settings))
        self.maintenance = LogMaintenance(
            config, self.replicas, self.clock, self.timers, self.start_task
        )
        self.maintenance.start()

    def start_task(self, function: Callable[..., Awaitable[None]], *arguments: object) -> None:
        self.running += 1
        self._nursery.start_soon(self._run, function, arguments)

    async def _run(self, function: Callable[..., Awaitable[None]], arguments: Any) -> None:
        await function(*arguments)
        self.running -= 1

    def make_log(self, index: int = 0, **fields: object) -> Log:
        """Lead a partition of orders with these settings of its log."""
        config = LogConfig()._replace(**fields)
        log = self.logs.get_or_create_log(TopicPartition("orders", index), bytes(16), config)
        state = PartitionState("orders", bytes(16), index, 1, 1, 0, (1,), 0, (1,))
        self.replicas.become_leader_or_follower(1, 1, [state])
        log.configure(config)
        return log

    async def advance(self, milliseconds: int) -> None:
        """Let time pass, and what is due come to its end, threads included."""
        self.clock.advance(milliseconds)
        self.timers.run_due(self.clock.monotonic_ms())
        await self.settle()

    async def watch(self, milliseconds: int) -> None:
        """Let time pass, in which others have a turn after a bounded number of calls."""
        work = Work(3_000)
        self._nursery.start_soon(work.run)
        self.clock.advance(milliseconds)
        with work.counted():
            self.timers.run_due(self.clock.monotonic_ms())
            while self.running:
                await trio.lowlevel.checkpoint()
            await work.check(tasks=2)

    async def settle(self) -> None:
        """Wait until no task has anything to do any more."""
        while True:
            await wait_all_tasks_blocked()
            if trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0:
                return


@pytest.fixture
async def keep(nursery: trio.Nursery) -> Callable[..., Kept]:
    """Keep logs: `keep(**{"background.threads": "1"})`."""
    return lambda **settings: Kept(nursery, settings)


def append(log: Log, count: int = 1, producer_id: int = NO_PRODUCER_ID) -> None:
    producer = {} if producer_id < 0 else {"producer_epoch": 0, "base_sequence": 0}
    for _ in range(count):
        record = (b"key", b"value", NOW_MS, [])
        batch = build_batch([record], producer_id=producer_id, **producer)
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    log.flush_appends()


async def test_a_closed_segment_is_flushed_and_the_checkpoint_follows(keep) -> None:
    kept = keep()
    log = kept.make_log(segment_bytes=2 * BATCH_BYTES)
    append(log, 5)
    assert log.recovery_point == 0
    await kept.settle()
    assert log.recovery_point == 4
    assert not kept.files.exists(f"{FOLDER}/recovery-point-offset-checkpoint")
    await kept.advance(ROLLED_CHECKPOINT_MS)
    text = kept.files.read_bytes(f"{FOLDER}/recovery-point-offset-checkpoint")
    assert text == b"0\n1\norders 0 4\n"


async def test_many_closed_segments_share_one_writing_of_the_checkpoint(keep) -> None:
    kept = keep()
    log = kept.make_log(segment_bytes=BATCH_BYTES)
    for _ in range(5):
        append(log)
        await kept.settle()
    due_ms = kept.timers.next_deadline_ms()
    assert due_ms == kept.clock.monotonic_ms() + ROLLED_CHECKPOINT_MS
    await kept.advance(ROLLED_CHECKPOINT_MS)
    text = kept.files.read_bytes(f"{FOLDER}/recovery-point-offset-checkpoint")
    assert text == b"0\n1\norders 0 4\n"
    assert kept.timers.next_deadline_ms() > kept.clock.monotonic_ms() + ROLLED_CHECKPOINT_MS


async def test_many_rolls_share_a_few_tasks(keep) -> None:
    kept = keep(**{"background.threads": "1"})
    log = kept.make_log(segment_bytes=BATCH_BYTES)
    for _ in range(20):
        append(log)
    await kept.settle()
    assert log.recovery_point == 19


async def test_a_flush_that_fails_takes_the_directory_offline(keep) -> None:
    kept = keep()
    failed: list[str] = []
    kept.replicas.on_directories_failed = lambda reported: failed.extend(
        each.path for each in reported
    )
    log = kept.make_log(segment_bytes=BATCH_BYTES)
    kept.files.fail(errno.EIO, operations={"sync"})
    append(log, 2)
    await kept.settle()
    assert log.recovery_point == 0
    kept.replicas.flush()
    assert failed == [FOLDER]


async def test_flush_ms_counts_at_the_schedulers_period(keep) -> None:
    kept = keep(**{"log.flush.scheduler.interval.ms": "100", "log.initial.task.delay.ms": "0"})
    log = kept.make_log(flush_ms=250)
    append(log)
    for moment, flushed in ((100, 0), (200, 0), (300, 1)):
        await kept.advance(100)
        assert log.recovery_point == flushed, moment


async def test_nothing_is_flushed_by_time_unless_a_period_is_set(keep) -> None:
    kept = keep()
    log = kept.make_log(flush_ms=1)
    append(log)
    await kept.advance(365 * 24 * 60 * MINUTE_MS)
    assert log.recovery_point == 0


async def test_retention_first_comes_after_the_initial_delay(keep) -> None:
    kept = keep(**{"log.retention.check.interval.ms": str(5 * MINUTE_MS)})
    log = kept.make_log(retention_ms=0, segment_bytes=BATCH_BYTES)
    append(log, 3)
    kept.replicas.get_partition(ORDERS).maybe_increment_high_watermark()
    await kept.advance(29_999)
    assert log.log_start_offset == 0
    await kept.advance(1)
    assert log.log_start_offset == 3
    append(log, 2)
    kept.replicas.get_partition(ORDERS).maybe_increment_high_watermark()
    await kept.advance(5 * MINUTE_MS - 1)
    assert log.log_start_offset == 3
    await kept.advance(1)
    assert log.log_start_offset == 5


async def test_where_logs_start_is_written_every_minute(keep) -> None:
    kept = keep(**{"log.initial.task.delay.ms": "0"})
    log = kept.make_log()
    append(log, 3)
    log.advance_log_start_offset(2)
    path = f"{FOLDER}/log-start-offset-checkpoint"
    await kept.advance(0)
    assert kept.files.read_bytes(path) == b"0\n1\norders 0 2\n"
    log.advance_log_start_offset(3)
    await kept.advance(MINUTE_MS - 1)
    assert kept.files.read_bytes(path) == b"0\n1\norders 0 2\n"
    await kept.advance(1)
    assert kept.files.read_bytes(path) == b"0\n1\norders 0 3\n"


async def test_high_watermarks_are_written_every_five_seconds(keep) -> None:
    kept = keep()
    log = kept.make_log()
    append(log)
    kept.replicas.get_partition(ORDERS).maybe_increment_high_watermark()
    path = f"{FOLDER}/replication-offset-checkpoint"
    await kept.advance(4_999)
    assert not kept.files.exists(path)
    await kept.advance(1)
    assert kept.files.read_bytes(path) == b"0\n1\norders 0 1\n"


@pytest.mark.parametrize(
    "period",
    [
        "log.retention.check.interval.ms",
        "log.flush.scheduler.interval.ms",
        "log.flush.offset.checkpoint.interval.ms",
        "log.flush.start.offset.checkpoint.interval.ms",
        "replica.high.watermark.checkpoint.interval.ms",
        "producer.id.expiration.check.interval.ms",
    ],
)
async def test_looking_at_all_logs_is_done_in_steps(
    keep, monkeypatch: pytest.MonkeyPatch, period: str
) -> None:
    kept = keep(**{"log.initial.task.delay.ms": "0", period: "100"})
    for index in range(3_000):
        kept.make_log(index)
    await kept.advance(0)
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    await kept.watch(100)


async def test_a_thousand_segments_of_one_log_are_deleted_in_steps(
    keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(**{"log.initial.task.delay.ms": "0", "log.retention.check.interval.ms": "100"})
    log = kept.make_log(segment_bytes=BATCH_BYTES, retention_bytes=0)
    append(log, 1_000)
    await kept.advance(0)
    kept.replicas.get_partition(ORDERS).maybe_increment_high_watermark()
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    await kept.watch(100)
    assert log.log_start_offset >= 999


async def test_the_silent_producers_of_one_log_are_forgotten_in_steps(
    keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(**{"producer.id.expiration.check.interval.ms": "100"})
    log = kept.make_log(producer_id_expiration_ms=50)
    for producer_id in range(3_000):
        append(log, producer_id=producer_id)
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    await kept.watch(100)
    assert log.producers.published == {}


async def test_what_is_deleted_goes_after_its_delay(keep) -> None:
    kept = keep()
    kept.make_log(file_delete_delay_ms=700)
    kept.replicas.stop_replicas(1, [StoppedReplica(ORDERS, delete=True)])

    def folders() -> list[str]:
        return [name for name in kept.files.list_directory(FOLDER) if name.startswith("orders")]

    (doomed,) = folders()
    assert doomed.endswith("-delete")
    await kept.advance(699)
    assert folders() == [doomed]
    await kept.advance(1)
    assert folders() == []


async def test_what_cannot_be_deleted_takes_the_directory_offline(keep) -> None:
    kept = keep()
    kept.make_log(file_delete_delay_ms=0)
    kept.replicas.stop_replicas(1, [StoppedReplica(ORDERS, delete=True)])
    kept.files.fail(errno.EIO, operations={"remove", "list"})
    await kept.advance(0)
    assert [failed.path for failed in kept.logs.take_failed_directories()] == [FOLDER]


async def test_nothing_is_started_any_more_after_the_stop(keep) -> None:
    kept = keep()
    log = kept.make_log(segment_bytes=BATCH_BYTES)
    kept.maintenance.stop()
    append(log, 3)
    await kept.settle()
    assert log.recovery_point == 0
    kept.logs.delete_log(ORDERS)
