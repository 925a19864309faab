"""Partitions whose logs are not recovered yet: what the controller decides waits for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.partition_state import StoppedReplica
from odradek.common.topic_partition import TopicPartition
from odradek.replication.replica_manager import ReplicaManager, ReplicaSettings
from odradek.storage.file_names import CLEAN_SHUTDOWN_FILE
from odradek.storage.log_manager.log_manager import LogManager

from .conftest import BROKER_ID, Bench

NAMES = ("a", "b", "c")


def partition(name: str) -> TopicPartition:
    return TopicPartition(name, 0)


@pytest.fixture
def restarted(tmp_path: Path) -> Bench:
    """A broker that begins again after a crash, with nothing recovered."""
    before = Bench(tmp_path)
    before.lead(*(before.state(name) for name in NAMES))
    for name in NAMES:
        assert not before.produce(name, b"one", b"two").error
    before.log_manager.close()
    (tmp_path / CLEAN_SHUTDOWN_FILE).unlink()
    bench = Bench.__new__(Bench)
    bench.clock, bench.timers = before.clock, before.timers
    bench.log_manager = LogManager([str(tmp_path)], clock=bench.clock)
    bench.log_manager.load_logs(recovery_ms=0)
    bench.manager = ReplicaManager(
        ReplicaSettings(BROKER_ID, bench.log_config, bench.min_insync_replicas),
        bench.log_manager,
        bench.clock,
        bench.timers,
    )
    assert len(bench.log_manager.unrecovered) == len(NAMES)
    return bench


def recover(bench: Bench) -> None:
    work = bench.log_manager.prepare_recovery(bench.manager.awaited_logs)
    assert work is not None
    recovered = work()
    bench.log_manager.take_up_recovered(recovered)
    bench.manager.logs_recovered(recovered)


def end_of(bench: Bench, name: str) -> int:
    return bench.manager.partition_or_error(partition(name)).log.log_end_offset


def test_what_the_controller_decides_is_done_when_the_log_is_there(restarted: Bench) -> None:
    restarted.lead(restarted.state("a", leader_epoch=1, is_new=False))
    with pytest.raises(KafkaError):
        restarted.manager.partition_or_error(partition("a"))
    recover(restarted)
    assert end_of(restarted, "a") == 2
    assert restarted.manager.get_partition(partition("b")) is None
    assert not restarted.produce("a", b"three").error
    assert end_of(restarted, "a") == 3


def test_the_newest_decision_counts(restarted: Bench) -> None:
    other = BROKER_ID + 1
    follows = restarted.state(
        "a", leader_epoch=2, leader=other, isr=(other,), replicas=(BROKER_ID, other)
    )
    for state in (restarted.state("a", leader_epoch=1), follows):
        restarted.lead(state)
    errors = restarted.manager.become_leader_or_follower(1, 1, [restarted.state("a")])
    assert errors == {partition("a"): ErrorCode.STALE_CONTROLLER_EPOCH}
    recover(restarted)
    found = restarted.manager.get_partition(partition("a"))
    assert found is not None
    assert not found.is_leader
    assert (found.leader, found.leader_epoch) == (other, 2)


def test_those_that_are_led_here_are_recovered_first(restarted: Bench) -> None:
    restarted.lead(restarted.state("c"), restarted.state("a", leader=BROKER_ID + 1))
    assert list(restarted.manager.awaited_logs) == [partition("c")]


def test_one_that_is_given_up_meanwhile_is_not_hosted(restarted: Bench) -> None:
    restarted.lead(*(restarted.state(name, leader_epoch=3) for name in NAMES))
    stopped = [
        StoppedReplica(partition("a"), 2),
        StoppedReplica(partition("b"), 3),
        StoppedReplica(partition("c"), 3, delete=True),
    ]
    errors = restarted.manager.stop_replicas(1, stopped)
    assert errors == {
        partition("a"): ErrorCode.FENCED_LEADER_EPOCH,
        partition("b"): ErrorCode.NONE,
        partition("c"): ErrorCode.NONE,
    }
    recover(restarted)
    assert set(restarted.manager.partitions) == {partition("a")}
    assert set(restarted.log_manager.logs) == {partition("a"), partition("b")}


def test_a_topic_that_is_made_anew_meanwhile_begins_empty(restarted: Bench) -> None:
    restarted.lead(restarted.state("a", leader_epoch=3))
    restarted.manager.stop_replicas(1, [StoppedReplica(partition("a"), 3, delete=True)])
    restarted.lead(restarted.state("a", topic_id=bytes(15) + b"\1"))
    recover(restarted)
    assert end_of(restarted, "a") == 0


def test_one_that_the_controller_does_not_name_any_more_is_not_hosted(restarted: Bench) -> None:
    restarted.lead(*(restarted.state(name) for name in NAMES))
    restarted.manager.keep_only(1, {partition("b")})
    recover(restarted)
    assert set(restarted.manager.partitions) == {partition("b")}


def test_settings_that_change_meanwhile_are_in_force(restarted: Bench) -> None:
    restarted.lead(restarted.state("a", config={"min.insync.replicas": "1"}))
    restarted.manager.update_topic_config("a", {"min.insync.replicas": "2"})
    recover(restarted)
    assert restarted.manager.partition_or_error(partition("a")).min_insync_replicas == 2
