"""The checker of logs itself: what it takes for lost, and what not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from odradek.common.partition_state import LeaderAndIsr, PartitionState, StoppedReplica
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.records import build_batch
from odradek.replication.replica_manager import ReplicaManager, ReplicaSettings
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.runtime.timers import Timers
from odradek.storage.log.append_origin import AppendOrigin
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log_manager.log_manager import LogManager
from odradek.tools.simulation.checkers.invariants import InvariantBroken
from odradek.tools.simulation.checkers.log_checker import LogChecker
from odradek.tools.simulation.checkers.store_checker import Held
from odradek.tools.simulation.disks.memory_files import MemoryFiles
from odradek.tools.simulation.node import Node

TOPIC_ID = bytes(range(16))
KEY = (TOPIC_ID, 0)
PARTITION = TopicPartition("t", 0)
HELD = Held(PARTITION, TOPIC_ID, (1,), (), LeaderAndIsr(1, 1, 0, (1,), 0))


RETENTION_MS = 60_000


class Broker:
    """One that leads a partition of one record, committed, and is looked at."""

    def __init__(self) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.logs = LogManager(["/data"], clock=self.clock, files=MemoryFiles())
        settings = ReplicaSettings(
            1, lambda overrides: LogConfig(retention_ms=RETENTION_MS), lambda overrides: 1
        )
        self.manager = ReplicaManager(settings, self.logs, self.clock, Timers())
        state = PartitionState("t", TOPIC_ID, 0, 1, 1, 0, (1,), 0, (1,))
        self.manager.become_leader_or_follower(1, 1, [state])
        self.manager.append_records(
            timeout_ms=0,
            required_acks=1,
            internal_topics_allowed=False,
            origin=AppendOrigin.CLIENT,
            entries={
                PARTITION: memoryview(build_batch([(None, b"value", self.clock.now_ms(), ())]))
            },
            on_complete=lambda answers: None,
        )
        self.manager.flush()
        self.broker_id = self.life = 1
        self.broker = SimpleNamespace(replica_manager=self.manager, log_manager=self.logs)

    @property
    def node(self) -> Node:
        return cast("Node", self)

    def apply_retention(self) -> int:
        return run_at_once(self.manager.delete_old_segments())


def checker(retention_ms: int = RETENTION_MS) -> LogChecker:
    return LogChecker(lambda led, broker_id: None, allows_unclean=False, retention_ms=retention_ms)


def test_a_replica_that_was_stopped_has_its_records_until_they_are_deleted() -> None:
    """A leader may have taken it into the ISR just before: it is in sync all the same."""
    broker, checked = Broker(), checker()
    checked.state_written(HELD, is_unclean=False)
    checked.check_node(broker.node)
    assert checked.committed(HELD)

    broker.manager.stop_replicas(1, [StoppedReplica(PARTITION, delete=False)])
    checked.check_node(broker.node)
    checked.state_written(HELD, is_unclean=False)

    broker.manager.stop_replicas(1, [StoppedReplica(PARTITION, delete=True)])
    checked.check_node(broker.node)
    with pytest.raises(InvariantBroken, match="is in sync with t-0 and ends at None"):
        checked.state_written(HELD, is_unclean=False)


def test_records_that_are_old_enough_may_be_deleted_and_are_remembered() -> None:
    broker, checked = Broker(), checker()
    checked.check_node(broker.node)
    broker.clock.advance(RETENTION_MS + 1)
    assert broker.apply_retention() == 1
    checked.check_node(broker.node)
    assert checked.expired == 1
    assert checked.gone(KEY) == {b"value"}
    (committed,) = checked.committed(HELD) or ()
    assert committed.value == b"value"
    checked.note_consumed(TOPIC_ID, PARTITION, 0, b"value")  # read before it was deleted
    with pytest.raises(InvariantBroken, match="promised b'another' at 0"):
        checked.note_consumed(TOPIC_ID, PARTITION, 0, b"another")


def test_younger_records_may_not() -> None:
    broker, checked = Broker(), checker(2 * RETENTION_MS)
    checked.check_node(broker.node)
    broker.clock.advance(RETENTION_MS + 1)
    assert broker.apply_retention() == 1
    with pytest.raises(InvariantBroken, match=r"has deleted .* at 0, 60001 ms old by its clock"):
        checked.check_node(broker.node)


def test_what_somebody_wants_to_be_deleted_may_be_young() -> None:
    broker, checked = Broker(), checker()
    checked.check_node(broker.node)
    checked.note_deletion(TOPIC_ID, PARTITION, 1)
    partition = broker.manager.partitions[PARTITION]
    assert partition.delete_records_before(1) == 1
    checked.check_node(broker.node)
    assert checked.expired == 0
