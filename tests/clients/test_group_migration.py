"""Groups with members of both protocols over TCP: request by request, and of real consumers.

What is sent request by request was seen of Apache Kafka 4.3.1 too: point the tests at one with
`ODRADEK_TEST_BOOTSTRAP`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer
from support.consumer_group_peer import Peer

from odradek.common.errors import ErrorCode as E
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

SETTLE_SECONDS_MAX = 100.0
group_numbers = itertools.count()


class Bench(NamedTuple):
    """A peer of a group of its own, and a topic with four partitions."""

    peer: Peer
    topic: str
    topic_id: bytes


def peer_of(broker: Any) -> Peer:
    peer = Peer(broker.port, f"mixed-{os.getpid()}-{next(group_numbers)}")
    peer.find_coordinator()
    return peer


@pytest.fixture(scope="module")
def orders(broker: Any) -> tuple[str, bytes]:
    peer = peer_of(broker)
    name = f"orders-{peer.group_id}"
    topic_id = peer.create_topic(name, 4)
    peer.close()
    return name, topic_id


@pytest.fixture
def bench(broker: Any, orders: tuple[str, bytes]) -> Iterator[Bench]:
    peer = peer_of(broker)
    peer.configure(assignment_interval_ms="0")
    yield Bench(peer, *orders)
    peer.close()


def kind(peer: Peer) -> str:
    """The type of the group, as ListGroups tells it."""
    return str(peer.listed()[2])


# -- upgrade ---------------------------------------------------------------------------------


def test_an_upgrade_step_by_step(bench: Bench) -> None:
    peer, topic, topic_id = bench
    old = peer.stable_classic(topic, 0, 1, 2, 3)
    assert (old.generation_id, kind(peer)) == (1, "classic")
    new = peer.join("new", topic)
    assert (new.error, new.epoch, new.assignment) == (E.NONE, 2, {})
    assert (kind(peer), peer.state) == ("consumer", "Reconciling")
    assert peer.classic_beat(old.member_id, 1) is E.REBALANCE_IN_PROGRESS
    assert peer.classic_sync(old.member_id, 1)[0] is E.REBALANCE_IN_PROGRESS

    # It owns all four still: two are to be given up, so it stays in its generation.
    again = peer.classic_join(old.member_id, topic, owned={topic: (0, 1, 2, 3)})
    assert (again.error, again.generation_id, again.leader) == (E.NONE, 1, "")
    error, share = peer.classic_sync(old.member_id, 1)
    assert (error, len(share[topic])) == (E.NONE, 2)
    assert peer.classic_beat(old.member_id, 1) is E.REBALANCE_IN_PROGRESS
    assert peer.heartbeat("new", 2).assignment is None

    again = peer.classic_join(old.member_id, topic, owned=share)
    assert (again.error, again.generation_id) == (E.NONE, 2)
    assert peer.classic_sync(old.member_id, 2) == (E.NONE, share)
    assert peer.classic_beat(old.member_id, 2) is E.NONE
    assert peer.heartbeat("new", 2).assignment == {topic_id: {0, 1, 2, 3} - share[topic]}
    assert peer.state == "Stable"


def test_a_member_that_gave_everything_up_joins_in_one_step(bench: Bench) -> None:
    peer, topic, _ = bench
    old = peer.stable_classic(topic, 0, 1, 2, 3)
    peer.join("new", topic)
    again = peer.classic_join(old.member_id, topic)
    assert again.generation_id == 2
    error, share = peer.classic_sync(old.member_id, 2)
    assert (error, len(share[topic])) == (E.NONE, 2)


def test_a_classic_member_joins_a_consumer_group(bench: Bench) -> None:
    peer, topic, topic_id = bench
    assert peer.join("new", topic).epoch == 2
    old = peer.classic_join("", topic)
    assert (old.error, old.generation_id, old.leader) == (E.NONE, 3, "")
    assert peer.classic_sync(old.member_id, 3) == (E.NONE, {})
    assert peer.classic_beat(old.member_id, 3) is E.NONE
    reported = peer.heartbeat("new", 2)
    assert reported.assignment is not None
    kept = reported.assignment[topic_id]
    assert peer.heartbeat("new", 2, owned={topic_id: kept}).epoch == 3
    assert peer.classic_beat(old.member_id, 3) is E.REBALANCE_IN_PROGRESS
    assert peer.classic_join(old.member_id, topic).generation_id == 3
    assert peer.classic_sync(old.member_id, 3) == (E.NONE, {topic: {0, 1, 2, 3} - kept})
    assert peer.classic_beat(old.member_id, 3) is E.NONE


def test_errors_of_classic_requests_in_a_consumer_group(bench: Bench) -> None:
    peer, topic, _ = bench
    peer.join("new", topic)
    old = peer.classic_join("", topic)
    member_id, epoch = old.member_id, old.generation_id
    assert peer.classic_join("", topic, protocol="other").error is E.INCONSISTENT_GROUP_PROTOCOL
    connect = peer.classic_join("", topic, protocol_type="connect")
    assert connect.error is E.INCONSISTENT_GROUP_PROTOCOL
    assert peer.classic_join("", metadata=b"\x00").error is E.UNKNOWN_SERVER_ERROR
    assert peer.classic_sync("who", epoch)[0] is E.UNKNOWN_MEMBER_ID
    assert peer.classic_sync("new", epoch)[0] is E.UNKNOWN_MEMBER_ID
    assert peer.classic_sync(member_id, epoch + 1)[0] is E.ILLEGAL_GENERATION
    assert peer.classic_sync(member_id, epoch, protocol="x")[0] is E.INCONSISTENT_GROUP_PROTOCOL
    other_type = peer.classic_sync(member_id, epoch, protocol_type="connect")
    assert other_type[0] is E.INCONSISTENT_GROUP_PROTOCOL
    assert peer.classic_beat("who", epoch) is E.UNKNOWN_MEMBER_ID
    assert peer.classic_beat("new", epoch) is E.UNKNOWN_MEMBER_ID
    assert peer.classic_beat(member_id, epoch - 1) is E.ILLEGAL_GENERATION
    assert peer.classic_beat(member_id, epoch, "instance") is E.UNKNOWN_MEMBER_ID
    assert peer.commit(topic, 0, 5, member_id=member_id, epoch=epoch, version=8) is E.NONE
    ahead = peer.commit(topic, 0, 5, member_id=member_id, epoch=epoch + 1, version=8)
    assert ahead is E.ILLEGAL_GENERATION


def test_static_members_take_their_places_in_either_protocol(bench: Bench) -> None:
    peer, topic, _ = bench
    peer.join("keeper", topic)
    old = peer.classic_join("", topic, instance="i")
    again = peer.classic_join("", topic, instance="i")
    assert again.error is E.NONE
    assert again.member_id != old.member_id
    fenced = peer.classic_beat(old.member_id, again.generation_id, "i")
    assert fenced is E.FENCED_INSTANCE_ID
    unknown = peer.classic_join(old.member_id, topic, instance="i")
    assert unknown.error is E.FENCED_INSTANCE_ID
    over = peer.join("over", topic, instance="i")
    assert over.error is E.NONE
    assert peer.classic_beat(again.member_id, over.epoch, "i") is E.FENCED_INSTANCE_ID
    assert {member.member_id for member in peer.describe().members} == {"keeper", "over"}


# -- downgrade -------------------------------------------------------------------------------


def test_a_downgrade_step_by_step(bench: Bench) -> None:
    peer, topic, _ = bench
    old = peer.stable_classic(topic, 0, 1, 2, 3)
    peer.join("new", topic)
    generation_id = peer.classic_join(old.member_id, topic).generation_id
    peer.classic_sync(old.member_id, generation_id)
    assert peer.leave("new").error is E.NONE
    assert (kind(peer), peer.listed()[1]) == ("classic", "PreparingRebalance")
    assert peer.classic_beat(old.member_id, generation_id) is E.REBALANCE_IN_PROGRESS
    again = peer.classic_join(old.member_id, topic)
    assert (again.generation_id, again.leader) == (generation_id + 1, old.member_id)
    share = {old.member_id: {topic: (0, 1, 2, 3)}}
    synced = peer.classic_sync(old.member_id, generation_id + 1, share)
    assert synced == (E.NONE, {topic: {0, 1, 2, 3}})
    assert peer.heartbeat("new", 2).error is E.GROUP_ID_NOT_FOUND


def test_a_classic_member_in_the_place_of_the_last_other_one_downgrades_the_group(
    bench: Bench,
) -> None:
    peer, topic, _ = bench
    peer.join("new", topic, instance="i")
    old = peer.classic_join("", topic, instance="i")
    assert (old.error, kind(peer)) == (E.NONE, "classic")
    assert old.member_id != "new"
    error, share = peer.classic_sync(old.member_id, old.generation_id, instance="i")
    assert (error, share) == (E.NONE, {topic: {0, 1, 2, 3}})
    assert peer.listed()[1] == "Stable"


# -- policies --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "upgrades", "lets_in", "downgrades"),
    [
        ("disabled", False, False, False),
        ("upgrade", True, True, False),
        ("downgrade", False, True, True),
    ],
)
def test_what_each_policy_allows(
    start_broker: Callable[..., Any],
    policy: str,
    upgrades: bool,
    lets_in: bool,
    downgrades: bool,
) -> None:
    broker = start_broker(settings={"group.consumer.migration.policy": policy})
    peer = peer_of(broker)
    peer.create_topic("orders", 4)
    peer.stable_classic("orders", 0, 1, 2, 3)
    expected = E.NONE if upgrades else E.GROUP_ID_NOT_FOUND
    assert peer.join("new", "orders").error is expected
    other = peer_of(broker)
    other.join("new", "orders")
    joined = other.classic_join("", "orders")
    assert joined.error is (E.NONE if lets_in else E.INCONSISTENT_GROUP_PROTOCOL)
    other.leave("new")
    assert kind(other) == ("classic" if downgrades else "consumer")
    peer.close()
    other.close()


# -- real consumers --------------------------------------------------------------------------


class ConfluentMember:
    """librdkafka, of either protocol."""

    def __init__(self, bootstrap: str, group_id: str, topic: str, protocol: str) -> None:
        settings: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "group.id": group_id,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 2,
        }
        if protocol == "classic":
            settings["partition.assignment.strategy"] = "range"
            settings["heartbeat.interval.ms"] = 200
            settings["session.timeout.ms"] = 60_000
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic])

    def share(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def poll(self) -> list[str]:
        """What it reads within a moment, and has committed."""
        message = self._consumer.poll(0.02)
        if message is None:
            return []
        assert message.error() is None, message.error()
        self._consumer.commit(message=message, asynchronous=False)
        return [message.value().decode()]

    def close(self) -> None:
        self._consumer.close()


class Fleet:
    """Consumers of both protocols in one group, and what they read."""

    def __init__(self, broker: Any, peer: Peer, topic: str, partitions: int) -> None:
        self._bootstrap = broker.bootstrap
        self._peer = peer
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 2})
        self._sent = 0
        self.members: list[ConfluentMember] = []
        self.read: list[str] = []

    def add(self, kind: str) -> None:
        where = (self._bootstrap, self._peer.group_id, self._topic)
        self.members.append(ConfluentMember(*where, kind))

    def remove(self, member: ConfluentMember) -> None:
        self.members.remove(member)
        member.close()

    def settle(self) -> None:
        """Poll until each member has its even share, and nothing has two owners."""
        least = self._partitions // len(self.members)
        shares: list[set[int]] = []

        def is_even() -> bool:
            self._poll()
            shares[:] = [member.share() for member in self.members]
            everything = sorted(itertools.chain(*shares))
            return everything == list(range(self._partitions)) and min(map(len, shares)) >= least

        wait_until(is_even, otherwise=lambda: str(shares))

    def send_and_read(self, count: int = 20) -> None:
        """Send records to all partitions, and let the members read and commit them."""
        sent = [f"{number}" for number in range(self._sent, self._sent + count)]
        self._sent += count
        for number, value in enumerate(sent):
            self._producer.produce(self._topic, value, partition=number % self._partitions)
        assert self._producer.flush(SETTLE_SECONDS_MAX) == 0

        def is_read() -> bool:
            self._poll()
            return set(sent) <= set(self.read)

        wait_until(is_read, otherwise=lambda: str(set(sent) - set(self.read)))

    def _poll(self) -> None:
        for member in self.members:
            self.read += member.poll()

    def committed(self) -> int:
        """How many records the group committed, of all partitions."""
        positions = [self._peer.fetch(self._topic, number) for number in range(self._partitions)]
        return sum(offset for _, offset in positions)

    def close(self) -> None:
        for member in list(self.members):
            self.remove(member)


@pytest.fixture
def fleet(broker: Any) -> Iterator[Fleet]:
    peer = peer_of(broker)
    topic = f"fleet-{peer.group_id}"
    peer.create_topic(topic, 6)
    peer.configure(assignment_interval_ms="0")
    made = Fleet(broker, peer, topic, 6)
    yield made
    made.close()
    peer.close()


def test_a_fleet_is_rolled_from_the_classic_protocol_to_the_new_one_and_back(fleet: Fleet) -> None:
    fleet.add("classic")
    fleet.add("classic")
    fleet.settle()
    fleet.send_and_read()
    for kind in ("consumer", "classic"):
        for old in list(fleet.members):
            fleet.add(kind)
            fleet.settle()
            fleet.send_and_read()
            fleet.remove(old)
            fleet.settle()
            fleet.send_and_read()
    assert len(fleet.read) == len(set(fleet.read)), "what was committed is not read again"
    fleet.close()
    assert fleet.committed() == len(fleet.read)
