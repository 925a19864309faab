"""The states of partitions and replicas, and what brokers are told on the way between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from support.cluster import Cluster
from support.elected import ElectedController, elected_controller

from odradek.common.state_table import IllegalTransitionError
from odradek.controller.context import PartitionAndReplica
from odradek.controller.partitions.leadership_writer import PartitionOf
from odradek.controller.partitions.states import (
    PARTITION_TRANSITIONS,
    REPLICA_TRANSITIONS,
    PartitionStatus,
    ReplicaStatus,
)

KAFKAS_PARTITIONS: Mapping[PartitionStatus, set[PartitionStatus]] = {
    PartitionStatus.NON_EXISTENT: {PartitionStatus.OFFLINE},
    PartitionStatus.NEW: {PartitionStatus.NON_EXISTENT},
    PartitionStatus.ONLINE: {
        PartitionStatus.NEW,
        PartitionStatus.ONLINE,
        PartitionStatus.OFFLINE,
    },
    PartitionStatus.OFFLINE: {
        PartitionStatus.NEW,
        PartitionStatus.ONLINE,
        PartitionStatus.OFFLINE,
    },
}
"""Kafka 3.9's PartitionState.validPreviousStates."""

KAFKAS_REPLICAS: Mapping[ReplicaStatus, set[ReplicaStatus]] = {
    ReplicaStatus.NON_EXISTENT: {ReplicaStatus.DELETION_SUCCESSFUL},
    ReplicaStatus.NEW: {ReplicaStatus.NON_EXISTENT},
    ReplicaStatus.ONLINE: {
        ReplicaStatus.NEW,
        ReplicaStatus.ONLINE,
        ReplicaStatus.OFFLINE,
        ReplicaStatus.DELETION_INELIGIBLE,
    },
    ReplicaStatus.OFFLINE: {
        ReplicaStatus.NEW,
        ReplicaStatus.ONLINE,
        ReplicaStatus.OFFLINE,
        ReplicaStatus.DELETION_INELIGIBLE,
    },
    ReplicaStatus.DELETION_STARTED: {ReplicaStatus.OFFLINE},
    ReplicaStatus.DELETION_SUCCESSFUL: {ReplicaStatus.DELETION_STARTED},
    ReplicaStatus.DELETION_INELIGIBLE: {ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_STARTED},
}
"""Kafka 3.9's ReplicaState.validPreviousStates."""


@pytest.mark.parametrize("target", PartitionStatus)
@pytest.mark.parametrize("former", PartitionStatus)
def test_partitions_go_the_ways_that_kafkas_go(
    former: PartitionStatus, target: PartitionStatus
) -> None:
    if former in KAFKAS_PARTITIONS[target]:
        PARTITION_TRANSITIONS.require(former, target, "t-0")
        assert PARTITION_TRANSITIONS.by_target[former, target].reason
    else:
        with pytest.raises(IllegalTransitionError, match=f"t-0.*{former.name}.*{target.name}"):
            PARTITION_TRANSITIONS.require(former, target, "t-0")


@pytest.mark.parametrize("target", ReplicaStatus)
@pytest.mark.parametrize("former", ReplicaStatus)
def test_replicas_go_the_ways_that_kafkas_go(former: ReplicaStatus, target: ReplicaStatus) -> None:
    if former in KAFKAS_REPLICAS[target]:
        REPLICA_TRANSITIONS.require(former, target, "t-0 on 1")
        assert REPLICA_TRANSITIONS.by_target[former, target].reason
    else:
        with pytest.raises(IllegalTransitionError, match=f"t-0 on 1.*{former.name}.*{target.name}"):
            REPLICA_TRANSITIONS.require(former, target, "t-0 on 1")


# -- the machines ------------------------------------------------------------


@pytest.fixture
async def controller(tmp_path: Path) -> AsyncIterator[ElectedController]:
    async with elected_controller(Cluster(tmp_path)) as controller:
        await controller.create("t", {0: (1, 2)})
        yield controller


async def test_the_machines_refuse_what_the_tables_do_not_know_and_do_nothing(
    controller: ElectedController,
) -> None:
    item = PartitionOf(controller.topic("t"), 0)
    online, unknown = PartitionAndReplica("t", 0, 1), PartitionAndReplica("t", 0, 3)
    with pytest.raises(IllegalTransitionError):
        await controller.active.partitions.set_status([item], PartitionStatus.NEW)
    with pytest.raises(IllegalTransitionError):
        await controller.active.replicas.change([online], ReplicaStatus.DELETION_STARTED)
    with pytest.raises(IllegalTransitionError):
        await controller.active.replicas.change([online, unknown], ReplicaStatus.OFFLINE)
    item.topic.statuses[0] = PartitionStatus.NON_EXISTENT
    with pytest.raises(IllegalTransitionError):
        await controller.active.partitions.bring_online([item])
    assert controller.active.context.status(online) is ReplicaStatus.ONLINE
    assert await controller.state() == (1, 0, (1, 2))
    controller.active.batch.send()
    assert controller.channel.sent == []


Told = dict[int, tuple[str, ...]]
"""The kinds of requests by broker: L LeaderAndIsr, S StopReplica, D StopReplica that deletes."""


@pytest.mark.parametrize(
    ("former", "target", "reported"),
    [
        (ReplicaStatus.NON_EXISTENT, ReplicaStatus.NEW, {2: ("L",)}),
        (ReplicaStatus.NEW, ReplicaStatus.ONLINE, {}),  # it was told when it was new
        (ReplicaStatus.ONLINE, ReplicaStatus.ONLINE, {2: ("L",)}),
        (ReplicaStatus.OFFLINE, ReplicaStatus.ONLINE, {2: ("L",)}),
        (ReplicaStatus.DELETION_INELIGIBLE, ReplicaStatus.ONLINE, {2: ("L",)}),
        (ReplicaStatus.NEW, ReplicaStatus.OFFLINE, {1: ("L",), 2: ("S",)}),
        (ReplicaStatus.ONLINE, ReplicaStatus.OFFLINE, {1: ("L",), 2: ("S",)}),
        (ReplicaStatus.DELETION_INELIGIBLE, ReplicaStatus.OFFLINE, {1: ("L",), 2: ("S",)}),
        (ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_STARTED, {2: ("D",)}),
        (ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_INELIGIBLE, {}),
        (ReplicaStatus.DELETION_STARTED, ReplicaStatus.DELETION_INELIGIBLE, {}),
        (ReplicaStatus.DELETION_STARTED, ReplicaStatus.DELETION_SUCCESSFUL, {}),
        (ReplicaStatus.DELETION_SUCCESSFUL, ReplicaStatus.NON_EXISTENT, {}),
    ],
)
async def test_a_follower_and_its_leader_are_told_of_its_way(
    controller: ElectedController, former: ReplicaStatus, target: ReplicaStatus, reported: Told
) -> None:
    replica = PartitionAndReplica("t", 0, 2)
    controller.active.context.replica_statuses[replica] = former
    await controller.active.replicas.change([replica], target)
    controller.active.batch.send()
    assert controller.active.context.status(replica) is target
    found: dict[int, tuple[str, ...]] = {}
    for broker_id in (1, 2, 3):
        kinds = ["L" for _ in controller.led(broker_id)]
        kinds += ["D" if deletes else "S" for _, _, deletes in controller.stopped(broker_id)]
        if kinds:
            found[broker_id] = tuple(kinds)
    assert found == reported
    left_the_isr = target is ReplicaStatus.OFFLINE
    assert await controller.state() == ((1, 1, (1,)) if left_the_isr else (1, 0, (1, 2)))


async def test_a_replica_out_of_sync_that_goes_offline_is_still_told_of(
    controller: ElectedController,
) -> None:
    await controller.change_isr((1,))
    controller.channel.sent.clear()
    await controller.active.replicas.change([PartitionAndReplica("t", 0, 2)], ReplicaStatus.OFFLINE)
    controller.active.batch.send()
    assert controller.led(1) == []
    for broker_id in (1, 2, 3):
        assert len(controller.channel.update_metadata(broker_id)) == 1
