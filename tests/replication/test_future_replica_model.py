"""A follower's replica that moves, is cut, is written and is killed, all at random moments.

Whatever happens, it holds what a plain list says it does. A failure names its seed.
"""

from __future__ import annotations

import random

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.partition_state import PartitionState
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.records import build_batch, iter_batches, iter_records
from odradek.replication.alter_log_dirs.future_replica import FutureReplica
from odradek.replication.alter_log_dirs.local_leader import read
from odradek.replication.fetcher.plans import EpochsPlan, FetchPlan, WaitPlan
from odradek.replication.fetcher.settings import FetcherSettings
from odradek.replication.partition.partition import Partition
from odradek.replication.replica_manager import ReplicaManager, ReplicaSettings
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log_manager.deferred_deletion import delete_due
from odradek.storage.log_manager.log_manager import LogManager
from odradek.tools.simulation.disks.memory_files import MemoryFiles, PowerCut

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
ORDERS = TopicPartition("orders", 0)
PATHS = ["/a", "/b", "/c"]
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100, file_delete_delay_ms=100)
STEPS = {"append": 6, "copy": 12, "cut": 1, "alter": 2, "lead": 1, "delete": 1, "upkeep": 1}
SEEDS = 150
STEPS_PER_LIFE = 120
OPERATIONS_PER_START = 60
OPERATIONS_PER_LIFE = 500
KILLED_AT_START = 0.3
NEVER = 10**9


class Life:
    """One life.

    Args:
        seed: decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.files = MemoryFiles()
        self.clock = ManualClock(NOW_MS)
        self.values: list[str] = []
        """What the replica holds, one record an offset."""
        self.before: list[str] = []
        """The same before the step that is under way."""
        self.log_start_offset = 0
        self.epoch = 0
        self.written = 0
        self.swaps = 0
        self.start()

    def run(self) -> None:
        for _ in range(STEPS_PER_LIFE):
            self.before = list(self.values)
            (name,) = self.random.choices(list(STEPS), list(STEPS.values()))
            try:
                getattr(self, name)()
            except PowerCut:
                self.recover()
            self.clock.advance(self.random.randint(0, 400))
        self.before = list(self.values)
        self.files.cut_power_after(NEVER)
        self.check()

    # --- what happens ------------------------------------------------------------------

    def append(self) -> None:
        data = bytearray()
        values = [f"{self.written + number}" for number in range(self.random.randint(1, 4))]
        for offset, value in enumerate(values, len(self.values)):
            data += build_batch(
                [(None, value.encode(), NOW_MS, ())],
                base_offset=offset,
                partition_leader_epoch=self.epoch,
            )
        self.written += len(values)
        end_offset = len(self.values)
        self.values += values
        self.partition.append_records_to_follower(memoryview(data), end_offset, self.epoch)
        self.partition.update_follower_high_watermark(end_offset)

    def cut(self) -> None:
        offset = self.random.randint(self.log_start_offset, len(self.values))
        del self.values[offset:]
        self.epoch += 1  # two leaders of one epoch never disagree
        self.partition.truncate_to(offset)
        self.host()

    def lead(self) -> None:
        """Another leader, of another epoch."""
        self.epoch += 1
        self.host()

    def delete(self) -> None:
        self.partition.advance_follower_log_start(
            self.random.randint(self.log_start_offset, len(self.values))
        )
        self.log_start_offset = self.partition.log_start_offset
        self.partition.log.delete_old_segments(NOW_MS, self.partition.high_watermark)

    def alter(self) -> None:
        errors = self.futures.alter({ORDERS: self.random.choice(PATHS)})
        assert errors == {ORDERS: ErrorCode.NONE}

    def upkeep(self) -> None:
        self.log_manager.checkpoint_offsets()
        log = self.partition.log
        if self.random.random() < 0.5:
            log.flush_to_disk()
        assert not delete_due(self.log_manager.deletions.take_due(self.clock.monotonic_ms()))

    def copy(self) -> None:
        """A few steps of those that a task would do."""
        move = self.futures.get(ORDERS)
        for _ in range(self.random.randint(1, 4)):
            if move is None or not self.futures.is_current(move):
                return
            assert not move.has_failed
            if move.may_replace:
                self.futures.replace_current(move)
                self.swaps += 1
            elif move.is_caught_up:
                flush = move.copy.log.start_flush()
                if flush is not None:
                    flush.run()
                    move.copy.log.finish_flush(flush)
                move.is_flushed = True
            else:
                self.step(move)

    def step(self, move: FutureReplica) -> None:
        now_ms = self.clock.monotonic_ms()
        plan = move.next_request(now_ms)
        if isinstance(plan, FetchPlan):
            answer = move.leader.answer(read(move.leader.find(plan)))
            move.fetcher.fetch_answered(plan, answer, now_ms)
        elif isinstance(plan, EpochsPlan):
            move.fetcher.epochs_answered(plan, move.leader.epochs(plan), now_ms)
        elif not isinstance(plan, WaitPlan):
            move.fetcher.offsets_answered(plan, move.leader.offsets(plan), now_ms)

    # --- starting and looking ----------------------------------------------------------

    def start(self) -> None:
        """A start that is killed itself now and then; later the process will be, too."""
        while True:
            if self.random.random() < KILLED_AT_START:
                self.files.cut_power_after(self.random.randint(1, OPERATIONS_PER_START))
            try:
                self.open()
                break
            except PowerCut:
                self.files = self.files.after_kill()
        self.files.cut_power_after(NEVER)
        self.check()
        self.files.cut_power_after(self.random.randint(1, OPERATIONS_PER_LIFE))

    def open(self) -> None:
        self.log_manager = LogManager(
            PATHS, clock=self.clock, default_config=CONFIG, files=self.files, recovery_threads=1
        )
        self.log_manager.load_logs()
        settings = ReplicaSettings(1, lambda overrides: CONFIG, lambda overrides: 1)
        self.manager = ReplicaManager(settings, self.log_manager, self.clock, Timers())
        self.futures = self.manager.future_replicas
        self.futures.settings = FetcherSettings(1, fetch_max_bytes=200)
        self.host()

    def host(self) -> None:
        state = PartitionState(
            *(ORDERS.topic, TOPIC_ID, 0, 1, 2, self.epoch, (2,), self.epoch, (1, 2), False)
        )
        assert not any(self.manager.become_leader_or_follower(2, 1, [state]).values())
        partition = self.manager.get_partition(ORDERS)
        assert partition is not None
        self.partition: Partition = partition

    def recover(self) -> None:
        """The process was killed in the middle of a step: it is done, undone or done in part."""
        self.files = self.files.after_kill()
        self.start()
        assert not self.log_manager.directories.has_trouble
        self.log_start_offset = self.partition.log_start_offset

    def check(self) -> None:
        """The log holds what it did before the step under way, or after it, or part of that."""
        log = self.partition.log
        shorter, longer = sorted((self.before, self.values), key=len)
        assert len(shorter) <= log.log_end_offset <= len(longer)
        values = self.values = longer[: log.log_end_offset]
        self.before = list(values)
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            records = log.read(offset, 1 << 20).records
            assert not isinstance(records, bytes)
            for batch in iter_batches(records.read()):
                for record in iter_records(batch):
                    assert record.value == values[record.offset].encode()
                assert batch.base_offset == offset
                offset = batch.next_offset


def live(seed: int) -> int:
    life = Life(seed)
    try:
        life.run()
    except Exception as error:
        pytest.fail(f"seed {seed}: {error!r}")
    return life.swaps


def test_a_replica_that_moves_holds_what_it_was_given() -> None:
    swaps = sum(live(seed) for seed in range(SEEDS))
    assert swaps > SEEDS, "hardly a move came to its end"


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_replicas_that_move_hold_what_they_were_given() -> None:
    for seed in range(SEEDS, SEEDS * 100):
        live(seed)
