"""A ReplicaManager on real logs in a temporary folder, in time that the test moves."""

import errno
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.partition_state import PartitionState
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.records import build_batch, iter_batches, iter_records
from odradek.replication.append import PartitionResponse
from odradek.replication.partition.partition import FetchIsolation
from odradek.replication.read.fetch import (
    FetchParams,
    FetchPartition,
    FetchPartitionData,
    FetchResults,
)
from odradek.replication.replica_manager import ReplicaManager, ReplicaSettings
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers
from odradek.storage.log.append_origin import AppendOrigin
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log_manager.log_manager import LogManager

BROKER_ID = 1
NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))


class Bench:
    """One broker's replicas."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(NOW_MS)
        self.timers = Timers()
        self.log_manager = LogManager([str(folder)], clock=self.clock)
        self.log_manager.load_logs()
        self.manager = ReplicaManager(
            ReplicaSettings(BROKER_ID, self.log_config, self.min_insync_replicas),
            self.log_manager,
            self.clock,
            self.timers,
        )

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        policies = overrides.get("cleanup.policy", "delete").split(",")
        return LogConfig(cleanup_policy=frozenset(policies))

    def min_insync_replicas(self, overrides: Mapping[str, str]) -> int:
        return int(overrides.get("min.insync.replicas", "1"))

    def state(self, name: str = "t", partition: int = 0, **changes: object) -> PartitionState:
        state = PartitionState(
            topic=name,
            topic_id=TOPIC_ID,
            partition=partition,
            controller_epoch=1,
            leader=BROKER_ID,
            leader_epoch=0,
            isr=(BROKER_ID,),
            partition_epoch=0,
            replicas=(BROKER_ID,),
            is_new=True,
        )
        return state._replace(**changes)

    def lead(self, *states: PartitionState) -> None:
        errors = self.manager.become_leader_or_follower(1, 1, states)
        assert not any(errors.values()), errors

    def append(
        self,
        entries: Mapping[TopicPartition, bytes | bytearray],
        *,
        acks: int = 1,
        timeout_ms: int = 1000,
        internal_topics_allowed: bool = False,
    ) -> list[dict[TopicPartition, PartitionResponse]]:
        """Stage; the list gets the answer once there is one."""
        answers: list[dict[TopicPartition, PartitionResponse]] = []
        self.manager.append_records(
            timeout_ms=timeout_ms,
            required_acks=acks,
            internal_topics_allowed=internal_topics_allowed,
            origin=AppendOrigin.CLIENT,
            entries={tp: memoryview(bytearray(data)) for tp, data in entries.items()},
            on_complete=answers.append,
        )
        return answers

    def produce(self, name: str, *values: bytes, partition: int = 0) -> PartitionResponse:
        """Append one batch with acks=1 and flush."""
        tp = TopicPartition(name, partition)
        answers = self.append({tp: batch(*values)})
        self.manager.flush()
        return answers[0][tp]

    def fetch(
        self,
        *requested: FetchPartition,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
    ) -> list[FetchResults]:
        """Fetch; the list gets the answer once there is one."""
        answers: list[FetchResults] = []
        params = FetchParams(max_wait_ms, min_bytes, max_bytes, isolation)
        self.manager.fetch_messages(params, requested, answers.append)
        return answers

    def delete_records(self, offset: int, tp: TopicPartition) -> tuple[ErrorCode, int]:
        """Error and low watermark of a deletion that need not wait."""
        answers: list[dict[TopicPartition, tuple[ErrorCode, int]]] = []
        self.manager.delete_records({tp: offset}, 0, answers.append)
        return answers[0][tp]

    def advance(self, milliseconds: int) -> None:
        """Let time pass, and what is due happen."""
        self.clock.advance(milliseconds)
        self.timers.run_due(self.clock.monotonic_ms())
        self.manager.flush()


def batch(*values: bytes) -> bytearray:
    """One batch with a record for each value."""
    return build_batch([(None, value, NOW_MS, ()) for value in values])


def ask(name: str, offset: int, *, partition: int = 0, **changes: int) -> FetchPartition:
    """A partition to fetch from."""
    return FetchPartition(TopicPartition(name, partition), TOPIC_ID, offset, 1 << 20)._replace(
        **changes
    )


def values_of(data: FetchPartitionData) -> list[bytes | None]:
    """The values of all records of an answer."""
    raw = data.records if isinstance(data.records, bytes) else data.records.read()
    return [record.value for batch in iter_batches(raw) for record in iter_records(batch)]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.log_manager.close()


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Make every write to a file fail with ENOSPC, or succeed again."""
    import os

    real = os.writev
    state = {"full": False}

    def writev(descriptor: int, buffers: list[bytes]) -> int:
        if state["full"]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, buffers)

    monkeypatch.setattr(os, "writev", writev)

    def set_full(full: bool) -> None:
        state["full"] = full

    return set_full
