"""What the configuration says reaches the coordinator, and a broker's is wired to its logs."""

import random
from pathlib import Path

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.internal_topics import CONSUMER_OFFSETS
from odradek.common.partition_state import PartitionState, StoppedReplica
from odradek.common.topic_partition import TopicPartition
from odradek.config.broker_config import BrokerConfig
from odradek.config.group_configs import GroupConfigs
from odradek.coordinator.group.factory import create_group_coordinator
from odradek.coordinator.group.offset_metadata_manager import CommitRequest, PartitionCommit
from odradek.coordinator.group.settings import GroupSettings
from odradek.metadata.metadata_cache import MetadataCache
from odradek.protocol.compression.codecs import Compression
from odradek.replication.replica_manager import ReplicaManager, ReplicaSettings
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log_manager.log_manager import LogManager


def test_the_defaults_are_those_of_the_configuration() -> None:
    assert GroupSettings.from_config(BrokerConfig.from_sources({}, {})) == GroupSettings()


def test_every_setting_is_read() -> None:
    config = BrokerConfig.from_sources(
        {
            "group.min.session.timeout.ms": "1",
            "group.max.session.timeout.ms": "2",
            "group.initial.rebalance.delay.ms": "3",
            "group.max.size": "4",
            "offset.metadata.max.bytes": "5",
            "offsets.retention.minutes": "6",
            "offsets.retention.check.interval.ms": "7",
            "offsets.commit.timeout.ms": "8",
            "offsets.topic.num.partitions": "9",
            "offsets.topic.compression.codec": "1",
        },
        {},
    )
    expected = (1, 2, 3, 4, 5, 360_000, 7, 8, 9, Compression.GZIP)
    assert tuple(GroupSettings.from_config(config)) == expected


def test_a_brokers_coordinator_follows_which_partitions_it_leads(tmp_path: Path) -> None:
    clock, timers = ManualClock(1_700_000_000_000), Timers()
    log_manager = LogManager([str(tmp_path)], clock=clock)
    log_manager.load_logs({})
    replica_manager = ReplicaManager(
        ReplicaSettings(1, lambda overrides: LogConfig(), lambda overrides: 1),
        log_manager,
        clock,
        timers,
    )
    config = BrokerConfig.from_sources({"offsets.topic.num.partitions": "1"}, {})
    coordinator = create_group_coordinator(
        config,
        replica_manager,
        MetadataCache(1),
        clock,
        timers,
        random.Random(1),
        GroupConfigs(config),
    )
    commit = CommitRequest("g", -1, "", None, [PartitionCommit("orders", 0, 5)])
    with pytest.raises(KafkaError) as refusal:
        coordinator.commit_offsets(commit, print)
    assert refusal.value.code is ErrorCode.NOT_COORDINATOR

    def state(topic: str) -> PartitionState:
        return PartitionState(topic, bytes(range(16)), 0, 1, 1, 0, (1,), 0, (1,), True)

    def leadership_changed(partition: TopicPartition, is_leader: bool, leader_epoch: int) -> None:
        if partition.topic == CONSUMER_OFFSETS:
            coordinator.note_leadership(partition.partition, leader_epoch, is_leader=is_leader)

    replica_manager.leadership_listeners.append(leadership_changed)
    replica_manager.become_leader_or_follower(1, 1, [state("orders"), state(CONSUMER_OFFSETS)])
    errors: list[ErrorCode] = []
    coordinator.commit_offsets(commit, errors.extend)
    replica_manager.flush()
    assert errors == [ErrorCode.NONE]
    replica_manager.stop_replicas(1, [StoppedReplica(TopicPartition(CONSUMER_OFFSETS, 0))])
    with pytest.raises(KafkaError) as refusal:
        coordinator.commit_offsets(commit, print)
    assert refusal.value.code is ErrorCode.NOT_COORDINATOR
    log_manager.close()
