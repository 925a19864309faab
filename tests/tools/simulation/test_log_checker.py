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
PARTITION = TopicPartition("t", 0)
HELD = Held(PARTITION, TOPIC_ID, (1,), (), LeaderAndIsr(1, 1, 0, (1,), 0))


def test_a_replica_that_was_stopped_has_its_records_until_they_are_deleted() -> None:
    """A leader may have taken it into the ISR just before: it is in sync all the same."""
    clock = ManualClock(1_700_000_000_000)
    logs = LogManager(["/data"], clock=clock, files=MemoryFiles())
    settings = ReplicaSettings(1, lambda overrides: LogConfig(), lambda overrides: 1)
    manager = ReplicaManager(settings, logs, clock, Timers())
    state = PartitionState("t", TOPIC_ID, 0, 1, 1, 0, (1,), 0, (1,))
    manager.become_leader_or_follower(1, 1, [state])
    manager.append_records(
        timeout_ms=0,
        required_acks=1,
        internal_topics_allowed=False,
        origin=AppendOrigin.CLIENT,
        entries={PARTITION: memoryview(build_batch([(None, b"value", clock.now_ms(), ())]))},
        on_complete=lambda answers: None,
    )
    manager.flush()
    broker = SimpleNamespace(replica_manager=manager, log_manager=logs)
    node = cast("Node", SimpleNamespace(broker_id=1, life=1, broker=broker))
    checker = LogChecker(lambda led, broker_id: None, allows_unclean=False)
    checker.state_written(HELD, is_unclean=False)
    checker.check_node(node)
    assert checker.committed(HELD)

    manager.stop_replicas(1, [StoppedReplica(PARTITION, delete=False)])
    checker.check_node(node)
    checker.state_written(HELD, is_unclean=False)

    manager.stop_replicas(1, [StoppedReplica(PARTITION, delete=True)])
    checker.check_node(node)
    with pytest.raises(InvariantBroken, match="is in sync with t-0 and ends at None"):
        checker.state_written(HELD, is_unclean=False)
