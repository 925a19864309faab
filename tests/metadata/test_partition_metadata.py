"""What a client is told of a partition: the errors and lists of article 000's last query.

Expected codes are those of Kafka's ZkMetadataCache and KRaftMetadataCache.
"""

from __future__ import annotations

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.live_broker import EndPoint, LiveBroker
from odradek.common.partition_state import PartitionState
from odradek.metadata.metadata_cache import MetadataCache, MetadataSnapshot, MetadataUpdate
from odradek.metadata.partition_metadata import offline_replicas, partition_metadata

TOPIC_ID = bytes(range(16))


def state(
    leader: int = 1,
    replicas: tuple[int, ...] = (1, 2),
    isr: tuple[int, ...] | None = None,
    offline: tuple[int, ...] = (),
) -> PartitionState:
    return PartitionState(
        "orders",
        TOPIC_ID,
        0,
        1,
        leader,
        0,
        replicas if isr is None else isr,
        0,
        replicas,
        offline_replicas=offline,
    )


@pytest.fixture
def snapshot() -> MetadataSnapshot:
    """Brokers 1 and 2 are alive; 1 alone has a listener for outsiders."""
    cache = MetadataCache(1)
    brokers = [
        LiveBroker(
            1, (EndPoint("PLAINTEXT", "one", 9092), EndPoint("EXTERNAL", "one.example", 9093))
        ),
        LiveBroker(2, (EndPoint("PLAINTEXT", "two", 9092),)),
    ]
    cache.update_metadata(MetadataUpdate(1, 1, brokers, [state()]))
    return cache.snapshot


def test_a_partition_in_good_order_has_no_error(snapshot: MetadataSnapshot) -> None:
    reported = partition_metadata(snapshot, state(leader=2, isr=(2,)), "PLAINTEXT")
    assert reported == (ErrorCode.NONE, 2, (1, 2), (2,), ())


@pytest.mark.parametrize("leader", [3, -1])
def test_a_leader_that_is_not_alive_is_not_available(
    snapshot: MetadataSnapshot, leader: int
) -> None:
    reported = partition_metadata(snapshot, state(leader=leader), "PLAINTEXT")
    assert (reported.error, reported.leader) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


@pytest.mark.parametrize(
    ("tells", "code"),
    [(True, ErrorCode.LISTENER_NOT_FOUND), (False, ErrorCode.LEADER_NOT_AVAILABLE)],
)
def test_a_leader_without_the_listener_is_distinguished_for_who_can_know(
    snapshot: MetadataSnapshot, tells: bool, code: ErrorCode
) -> None:
    reported = partition_metadata(
        snapshot, state(leader=2), "EXTERNAL", tells_missing_listeners=tells
    )
    assert (reported.error, reported.leader) == (code, -1)


def test_replicas_that_cannot_be_reached_are_left_out_on_request(
    snapshot: MetadataSnapshot,
) -> None:
    partition = state(replicas=(1, 2, 3), isr=(1, 3))
    reported = partition_metadata(snapshot, partition, "PLAINTEXT", leaves_out_unreachable=True)
    assert reported[:4] == (ErrorCode.REPLICA_NOT_AVAILABLE, 1, (1, 2), (1,))
    reported = partition_metadata(snapshot, partition, "PLAINTEXT")
    assert reported[:4] == (ErrorCode.NONE, 1, (1, 2, 3), (1, 3))


def test_a_missing_leader_comes_before_missing_replicas(snapshot: MetadataSnapshot) -> None:
    partition = state(leader=3, replicas=(1, 3))
    reported = partition_metadata(snapshot, partition, "PLAINTEXT", leaves_out_unreachable=True)
    assert reported[:4] == (ErrorCode.LEADER_NOT_AVAILABLE, -1, (1,), (1,))


def test_offline_replicas_are_those_gone_those_out_of_reach_and_those_said_to_be(
    snapshot: MetadataSnapshot,
) -> None:
    partition = state(replicas=(1, 2, 3), offline=(1,))
    assert offline_replicas(snapshot, partition, "PLAINTEXT") == (1, 3)
    assert offline_replicas(snapshot, partition, "EXTERNAL") == (1, 2, 3)
    assert partition_metadata(snapshot, partition, "PLAINTEXT").offline_replicas == (1, 3)
