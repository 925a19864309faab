"""Looking into share groups, waiting for them and breaking them, with librdkafka's consumers."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import AcknowledgeType
from support.http_control import ServedBrokers
from support.share_consumers import (
    QUICK_SHARE_GROUPS,
    hold,
    produce,
    set_group,
    share_member,
    take,
)

from odradek.testing import Broker, Cluster
from odradek.testing.conditions import (
    NotReached,
    delivery_count_reached,
    group_empty,
    group_stable,
    records_in_flight,
    share_group_settled,
)
from odradek.testing.control.client import ControlError

WAIT_SECONDS_MAX = 60.0
BROKER_SETTINGS = {**QUICK_SHARE_GROUPS, "auto.create.topics.enable": "false"}
BROKER_TOPICS = {"orders": 1}
LOCK_MS = 60_000
"""Nothing comes back by itself while a test runs."""


@pytest.fixture
def group(broker: Broker, request: pytest.FixtureRequest) -> str:
    """A group that reads from the beginning, of its own for each test."""
    name = request.node.name
    set_group(broker.bootstrap_servers, name, record_lock_duration_ms=LOCK_MS)
    return name


def test_records_in_flight_have_owner_state_and_count(broker: Broker, group: str) -> None:
    produce(broker.bootstrap_servers, "orders", ["a", "b", "c"])
    with share_member(broker.bootstrap_servers, "orders", group, **{"client.id": "one"}) as one:
        taken = hold(one)
        while len(taken) < 3:
            taken += hold(one)
        broker.wait_until(records_in_flight(group, 3, state="Acquired"), timeout=WAIT_SECONDS_MAX)
        described = broker.group(group)
        assert (described.kind, described.state, described.protocol) == (
            "share",
            "Stable",
            "simple",
        )
        (member,) = described.members
        assert (member.client_id, member.partitions) == ("one", (("orders", 0),))
        assert group in broker.groups()

        (found,) = broker.share_partitions(group)
        assert (found.start_offset, found.end, found.lag, found.is_loaded) == (0, 3, 3, True)
        assert {(each.state, each.delivery_count, each.member_id) for each in found.records} == {
            ("Acquired", 1, member.member_id)
        }
        assert [found.delivery_count(offset) for offset in (0, 2, 3)] == [1, 1, 0]
        with pytest.raises(NotReached, match=r"orders-0 from 0 of 3: .*Acquired by"):
            broker.wait_until(share_group_settled(group), timeout=0)

        one.acknowledge(taken[0], AcknowledgeType.ACCEPT)
        one.acknowledge(taken[1], AcknowledgeType.RELEASE)
        one.acknowledge(taken[2], AcknowledgeType.REJECT)
        one.commit_sync()
        (found,) = broker.share_partitions(group)
        assert (found.start_offset, found.lag) == (1, 1)
        assert [(each.first_offset, each.state) for each in found.records][1:] == [(2, "Archived")]
        assert found.delivery_count(0) is None
        take(one)
        broker.wait_until(share_group_settled(group), timeout=WAIT_SECONDS_MAX)
    # Its last member has left: what is stored is shown.
    broker.wait_until(group_empty(group), timeout=WAIT_SECONDS_MAX)
    (found,) = broker.share_partitions(group)
    assert (found.start_offset, found.is_settled, found.is_loaded) == (3, True, False)


def test_an_expired_lock_hands_a_record_to_another(broker: Broker, group: str) -> None:
    set_group(broker.bootstrap_servers, group, delivery_count_limit=2)
    with (
        share_member(broker.bootstrap_servers, "orders", group) as one,
        share_member(broker.bootstrap_servers, "orders", group) as other,
    ):
        produce(broker.bootstrap_servers, "orders", ["a"])
        (first,) = hold(one)
        assert broker.expire_lock(group, "orders", offset=0) == 1
        (again,) = hold(other)
        assert first.value() == again.value() == b"a"
        broker.wait_until(delivery_count_reached(group, "orders", 0, 2), timeout=WAIT_SECONDS_MAX)
        with pytest.raises(ControlError, match="offset 1 of orders-0"):
            broker.expire_lock(group, "orders", offset=1)
        # That was the last time: it is archived, and the late acknowledgement changes nothing.
        assert broker.expire_lock(group, "orders") == 1
        broker.wait_until(share_group_settled(group, "orders"), timeout=WAIT_SECONDS_MAX)
        (found,) = broker.share_partitions(group)
        assert (found.start_offset, found.records) == (1, ())
        with pytest.raises(ControlError, match=r"nothing of orders-7 on this broker"):
            broker.expire_lock(group, "orders", 7)


def test_a_member_whose_session_expires_comes_back(broker: Broker, group: str) -> None:
    with share_member(broker.bootstrap_servers, "orders", group, **{"client.id": "one"}) as one:
        produce(broker.bootstrap_servers, "orders", ["a"])
        take(one)
        (before,) = broker.group(group).members
        epoch = broker.group(group).generation
        assert broker.expire_session(group, "one") == [before.member_id]
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while broker.group(group).generation < epoch + 2 or not broker.group(group).members:
            assert time.monotonic() < deadline
            one.poll(timeout=0.2)
        broker.wait_until(group_stable(group, members=1), timeout=WAIT_SECONDS_MAX)
        with pytest.raises(ControlError, match="is a share group"):
            broker.force_rebalance(group)
        produce(broker.bootstrap_servers, "orders", ["b"])
        assert [each.value() for each in take(one)] == [b"b"]


@pytest.fixture
def served() -> Iterator[ServedBrokers]:
    with ServedBrokers(*(f"-o{key}={value}" for key, value in BROKER_SETTINGS.items())) as served:
        yield served


def test_other_languages_look_wait_and_expire(served: ServedBrokers) -> None:
    served.post("/topics", topic="orders")
    set_group(served.bootstrap_servers, "workers", record_lock_duration_ms=LOCK_MS)
    with share_member(served.bootstrap_servers, "orders", "workers") as member:
        produce(served.bootstrap_servers, "orders", ["a"])
        (taken,) = hold(member)
        served.post(
            "/wait",
            condition="records_in_flight",
            group="workers",
            at_least=1,
            state="Acquired",
            timeout=WAIT_SECONDS_MAX,
        )
        (found,) = served.get("/groups/workers/share-partitions")["share_partitions"]
        (owner,) = served.get("/groups/workers")["members"]
        assert found["lag"] == 1
        assert found["records"][0] == {
            "first_offset": 0,
            "last_offset": 0,
            "state": "Acquired",
            "delivery_count": 1,
            "member_id": owner["member_id"],
        }
        expired = served.post("/groups/workers/expire-lock", topic="orders", offset=0)
        assert expired == {"records": 1}
        member.acknowledge(taken)
        member.commit_sync()  # it is refused
        assert [each.offset() for each in take(member)] == [0]
        served.post(
            "/wait", condition="share_group_settled", group="workers", timeout=WAIT_SECONDS_MAX
        )


@pytest.mark.slow
def test_a_cluster_shows_what_its_leaders_have(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Cluster(3, BROKER_SETTINGS) as cluster:
        cluster.create_topic("orders", 3, 3)
        set_group(cluster.bootstrap_servers, "workers", record_lock_duration_ms=LOCK_MS)
        for number in range(3):
            cluster.move_leader("orders", number, to=number + 1)
            produce(cluster.bootstrap_servers, "orders", ["x"], number)
        with share_member(cluster.bootstrap_servers, "orders", "workers") as member:
            taken = take(member, 2)
            last = hold(member)
            assert len(taken) + len(last) == 3
            cluster.wait_until(
                records_in_flight("workers", 1, state="Acquired"), timeout=WAIT_SECONDS_MAX
            )
            found = cluster.share_partitions("workers")
            assert [(each.topic, each.partition, each.end) for each in found] == [
                ("orders", number, 1) for number in range(3)
            ]
            assert cluster.expire_lock("workers", "orders", last[0].partition()) == 1
            member.acknowledge(last[0])
            member.commit_sync()
            take(member)
            cluster.wait_until(share_group_settled("workers"), timeout=WAIT_SECONDS_MAX)
