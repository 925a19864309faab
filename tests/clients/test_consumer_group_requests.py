"""Consumer groups request by request: epochs, states and error codes over TCP.

All of it was seen of Apache Kafka 4.3.1, and is seen again where `ODRADEK_TEST_BOOTSTRAP` names
one. Groups here compute a target at once, by a config of their own.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from support.consumer_group_peer import Peer

from odradek.common.errors import ErrorCode as E

pytestmark = pytest.mark.clients

group_numbers = itertools.count()


class Bench(NamedTuple):
    """A peer of a group of its own, and two topics: four partitions, and two."""

    peer: Peer
    orders: str
    orders_id: bytes
    payments: str
    payments_id: bytes


def peer_of(broker: Any) -> Peer:
    peer = Peer(broker.port, f"group-{os.getpid()}-{next(group_numbers)}")
    peer.find_coordinator()
    return peer


@pytest.fixture(scope="module")
def topics(broker: Any) -> tuple[str, bytes, str, bytes]:
    peer = peer_of(broker)
    orders, payments = f"orders-{peer.group_id}", f"payments-{peer.group_id}"
    ids = peer.create_topic(orders, 4), peer.create_topic(payments, 2)
    peer.close()
    return orders, ids[0], payments, ids[1]


@pytest.fixture
def bench(broker: Any, topics: tuple[str, bytes, str, bytes]) -> Iterator[Bench]:
    peer = peer_of(broker)
    peer.configure(assignment_interval_ms="0")
    yield Bench(peer, *topics)
    peer.close()


def share(bench: Bench) -> None:
    """m1 owns partitions 0 and 1, m2 2 and 3, in epoch 3."""
    peer, topic_id = bench.peer, bench.orders_id
    assert peer.join("m1", bench.orders).epoch == 2
    assert peer.join("m2", bench.orders).epoch == 3
    assert peer.heartbeat("m1", 2).assignment == {topic_id: {0, 1}}
    assert peer.heartbeat("m1", 2, owned={topic_id: [0, 1]}).epoch == 3
    assert peer.heartbeat("m2", 3).assignment == {topic_id: {2, 3}}


# -- members come, go on, and go -------------------------------------------------------------


def test_states_and_epochs_from_the_first_member_to_the_last(bench: Bench) -> None:
    peer, topic_id = bench.peer, bench.orders_id
    first = peer.join("m1", bench.orders)
    assert (first.error, first.member_id, first.epoch) == (E.NONE, "m1", 2)
    assert first.assignment == {topic_id: {0, 1, 2, 3}}
    assert peer.state == "Stable"
    second = peer.join("m2", bench.orders)
    assert (second.epoch, second.assignment) == (3, {})
    assert peer.state == "Reconciling"
    assert peer.heartbeat("m2", 3).assignment is None
    reported = peer.heartbeat("m1", 2)
    assert (reported.epoch, reported.assignment) == (2, {topic_id: {0, 1}})
    assert peer.heartbeat("m1", 2).assignment is None  # it was told once
    done = peer.heartbeat("m1", 2, owned={topic_id: [0, 1]})
    assert (done.epoch, done.assignment) == (3, None)
    assert peer.state == "Reconciling"
    assert peer.heartbeat("m2", 3).assignment == {topic_id: {2, 3}}
    assert peer.state == "Stable"
    left = peer.leave("m2")
    assert (left.error, left.epoch, left.interval_ms) == (E.NONE, -1, 0)
    assert peer.state == "Assigning"
    assert peer.heartbeat("m1", 3).assignment == {topic_id: {0, 1, 2, 3}}
    assert peer.leave("m1").error == E.NONE
    assert peer.state == "Empty"


def test_what_a_description_tells(bench: Bench) -> None:
    peer = bench.peer
    peer.join("m1", bench.orders, rack="r1", assignor="range")
    group = peer.describe()
    assert (group.group_epoch, group.assignment_epoch) == (2, 2)
    assert (group.group_state, group.assignor_name) == ("Stable", "range")
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.member_type) == ("m1", 2, 1)
    assert (member.rack_id, member.instance_id) == ("r1", None)
    assert (member.client_id, member.client_host) == ("consumer-group-peer", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == ([bench.orders], "")
    for assignment in (member.assignment, member.target_assignment):
        (entry,) = assignment.topic_partitions
        assert (entry.topic_name, bytes(entry.topic_id)) == (bench.orders, bench.orders_id)
        assert sorted(entry.partitions) == [0, 1, 2, 3]
    assert group.authorized_operations == -(2**31)


def test_a_member_that_changes_its_subscription_gives_the_old_topic_up(bench: Bench) -> None:
    peer = bench.peer
    peer.join("m1", bench.orders)
    reported = peer.heartbeat("m1", 2, topics=[bench.payments])
    assert (reported.epoch, reported.assignment) == (2, {})
    done = peer.heartbeat("m1", 2, owned={})
    assert (done.epoch, done.assignment) == (3, {bench.payments_id: {0, 1}})


def test_a_member_may_subscribe_to_nothing(bench: Bench) -> None:
    answer = bench.peer.join("m1")
    assert (answer.error, answer.epoch, answer.assignment) == (E.NONE, 1, {})


def test_the_broker_makes_the_id_of_a_member_of_version_0(bench: Bench) -> None:
    answer = bench.peer.join("", bench.orders, version=0)
    assert answer.error == E.NONE
    assert len(answer.member_id or "") == 22  # a UUID in base64


def test_a_member_may_join_again_in_any_epoch(bench: Bench) -> None:
    bench.peer.join("m1", bench.orders)
    again = bench.peer.join("m1", bench.orders)
    assert (again.error, again.epoch) == (E.NONE, 2)
    assert again.assignment == {bench.orders_id: {0, 1, 2, 3}}


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member_id", "epoch", "changes"),
    [
        ("", 0, {}),
        ("", 5, {"version": 0}),
        ("", -1, {"version": 0}),
        (" ", 0, {}),
        ("m", 0, {"group_id": ""}),
        ("m", 0, {"group_id": "  "}),
        ("m", 0, {"instance": ""}),
        ("m", 0, {"rack": ""}),
        ("m", 0, {"rebalance_timeout_ms": -1}),
        ("m", 0, {"owned": None}),
        ("m", 0, {"owned": {bytes(16): [0]}}),
        ("m", 0, {"topics": None}),
        ("m", -2, {}),
        ("m", -3, {}),
    ],
)
def test_invalid_request(bench: Bench, member_id: str, epoch: int, changes: dict[str, Any]) -> None:
    reported = {"topics": [bench.orders], "owned": {}, "rebalance_timeout_ms": 30_000, **changes}
    answer = bench.peer.heartbeat(member_id, epoch, **reported)
    assert answer.error == E.INVALID_REQUEST
    assert answer.message
    assert (answer.member_id, answer.epoch) == (None, 0)


def test_unsupported_assignor(bench: Bench) -> None:
    assert bench.peer.join("m1", assignor="sticky").error == E.UNSUPPORTED_ASSIGNOR


def test_group_id_not_found(bench: Bench) -> None:
    peer = bench.peer
    assert peer.heartbeat("m1", 1).error == E.GROUP_ID_NOT_FOUND
    assert peer.leave("m1").error == E.GROUP_ID_NOT_FOUND
    described = peer.describe()
    assert described.error_code == E.GROUP_ID_NOT_FOUND
    assert described.error_message


def test_unknown_member_id(bench: Bench) -> None:
    peer = bench.peer
    peer.join("m1", bench.orders, instance="i1")
    assert peer.heartbeat("m9", 2).error == E.UNKNOWN_MEMBER_ID
    assert peer.leave("m9").error == E.UNKNOWN_MEMBER_ID
    assert peer.heartbeat("m1", 2, instance="i9").error == E.UNKNOWN_MEMBER_ID


def test_fenced_member_epoch(bench: Bench) -> None:
    share(bench)
    peer, topic_id = bench.peer, bench.orders_id
    assert peer.heartbeat("m1", 4).error == E.FENCED_MEMBER_EPOCH
    assert peer.heartbeat("m1", 1).error == E.FENCED_MEMBER_EPOCH
    # One whose answer was lost is told again, if it owns no more than it may.
    assert peer.heartbeat("m1", 2).error == E.FENCED_MEMBER_EPOCH
    assert peer.heartbeat("m1", 2, owned={topic_id: [0, 2]}).error == E.FENCED_MEMBER_EPOCH
    assert peer.heartbeat("m1", 2, owned={topic_id: [0]}).epoch == 3


def test_static_members(bench: Bench) -> None:
    peer, topic_id = bench.peer, bench.orders_id
    assert peer.join("s1", bench.orders, instance="i1").epoch == 2
    assert peer.join("s2", bench.orders, instance="i1").error == E.UNRELEASED_INSTANCE_ID
    assert peer.heartbeat("s2", 2, instance="i1").error == E.FENCED_INSTANCE_ID
    assert peer.heartbeat("s2", -2, instance="i1").error == E.FENCED_INSTANCE_ID
    away = peer.heartbeat("s1", -2, instance="i1")
    assert (away.error, away.epoch) == (E.NONE, -2)
    assert peer.state == "Reconciling"
    assert peer.heartbeat("s1", 2, instance="i1").error == E.FENCED_MEMBER_EPOCH
    back = peer.join("s2", bench.orders, instance="i1")
    assert (back.epoch, back.assignment) == (2, {topic_id: {0, 1, 2, 3}})
    group = peer.describe()
    assert (group.group_epoch, group.assignment_epoch) == (2, 2)  # nobody was assigned anew
    assert [(m.member_id, m.instance_id) for m in group.members] == [("s2", "i1")]
    assert peer.heartbeat("s1", 2, instance="i1").error == E.FENCED_INSTANCE_ID
    assert peer.leave("s2", instance="i1").error == E.NONE
    assert peer.state == "Empty"


def test_group_max_size_reached(start_broker: Callable[..., Any]) -> None:
    broker = start_broker(settings={"group.consumer.max.size": "1"})
    peer = peer_of(broker)
    assert peer.join("m1").error == E.NONE
    assert peer.join("m2").error == E.GROUP_MAX_SIZE_REACHED
    assert peer.join("m1").error == E.NONE
    peer.close()


def test_groups_are_unsupported_where_the_protocol_is_switched_off(
    start_broker: Callable[..., Any],
) -> None:
    broker = start_broker(settings={"group.coordinator.rebalance.protocols": "classic"})
    peer = peer_of(broker)
    assert peer.join("m1").error == E.UNSUPPORTED_VERSION
    assert peer.describe().error_code == E.UNSUPPORTED_VERSION
    peer.close()


def test_a_silent_member_is_given_up_after_its_session(start_broker: Callable[..., Any]) -> None:
    settings = {
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": "1000",
    }
    peer = peer_of(start_broker(settings=settings))
    peer.join("m1")
    peer.wait_for_state("Empty")
    assert peer.heartbeat("m1", 1).error == E.UNKNOWN_MEMBER_ID
    peer.close()


def test_a_broker_that_starts_again_knows_its_groups(
    start_broker: Callable[..., Any], tmp_path: Any
) -> None:
    broker = start_broker(data_dir=tmp_path / "data")
    peer = peer_of(broker)
    topic_id = peer.create_topic("orders", 4)
    peer.configure(assignment_interval_ms="0")
    group_id = peer.group_id
    share(Bench(peer, "orders", topic_id, "", b""))
    peer.join("s3", "orders", instance="i3")
    before = peer.describe()
    peer.close()
    broker.stop()
    broker = start_broker(data_dir=tmp_path / "data")
    peer = Peer(broker.port, group_id)
    assert peer.heartbeat("m2", 3).error == E.NONE
    after = peer.describe()
    assert after.group_epoch == before.group_epoch
    members = {m.member_id: m.member_epoch for m in before.members}
    assert {m.member_id: m.member_epoch for m in after.members} == members
    peer.close()


# -- offsets ---------------------------------------------------------------------------------


def test_who_may_commit_in_which_epoch(bench: Bench) -> None:
    share(bench)
    peer, topic = bench.peer, bench.orders
    assert peer.commit(topic, 0, 5, member_id="m1", epoch=3) == E.NONE
    # m1 had partition 0 in epoch 2 already, and lost partition 3 since; m2 has had it since 3.
    assert peer.commit(topic, 0, 6, member_id="m1", epoch=2) == E.NONE
    assert peer.commit(topic, 3, 6, member_id="m1", epoch=2) == E.STALE_MEMBER_EPOCH
    assert peer.commit(topic, 3, 6, member_id="m2", epoch=2) == E.STALE_MEMBER_EPOCH
    assert peer.commit(topic, 3, 6, member_id="m2", epoch=4) == E.STALE_MEMBER_EPOCH
    assert peer.commit(topic, 3, 6, member_id="m9", epoch=3) == E.UNKNOWN_MEMBER_ID
    assert peer.commit(topic, 3, 6, member_id="m2", epoch=3, version=8) == E.UNSUPPORTED_VERSION
    assert peer.commit(topic, 3, 6) == E.UNKNOWN_MEMBER_ID
    assert peer.fetch(topic, 0) == (E.NONE, 6)


def test_who_has_to_give_a_partition_up_may_commit_for_it_until_then(bench: Bench) -> None:
    peer, topic = bench.peer, bench.orders
    peer.join("m1", topic)
    peer.join("m2", topic)
    assert peer.heartbeat("m1", 2).assignment == {bench.orders_id: {0, 1}}
    assert peer.commit(topic, 3, 5, member_id="m1", epoch=2) == E.NONE


def test_who_gets_committed_offsets_in_which_epoch(bench: Bench) -> None:
    share(bench)
    peer, topic = bench.peer, bench.orders
    peer.commit(topic, 3, 5, member_id="m2", epoch=3)
    assert peer.fetch(topic, 3) == (E.NONE, 5)
    assert peer.fetch(topic, 3, member_id="m2", epoch=3) == (E.NONE, 5)
    assert peer.fetch(topic, 3, member_id="m2", epoch=2)[0] == E.STALE_MEMBER_EPOCH
    assert peer.fetch(topic, 3, member_id="m2")[0] == E.STALE_MEMBER_EPOCH
    assert peer.fetch(topic, 3, member_id="m9", epoch=3)[0] == E.UNKNOWN_MEMBER_ID


def test_offsets_of_a_group_without_members_are_anybodys(bench: Bench) -> None:
    peer, topic = bench.peer, bench.orders
    peer.join("m1", topic)
    peer.leave("m1")
    assert peer.commit(topic, 0, 7) == E.NONE
    assert peer.commit(topic, 0, 7, version=8) == E.NONE
    assert peer.commit(topic, 0, 7, member_id="m1", epoch=2) == E.UNKNOWN_MEMBER_ID


def test_offsets_are_deleted_but_of_topics_that_are_read(bench: Bench) -> None:
    peer = bench.peer
    peer.join("m1", bench.orders)
    peer.commit(bench.orders, 0, 7, member_id="m1", epoch=2)
    peer.commit(bench.payments, 0, 7, member_id="m1", epoch=2)
    assert peer.delete_offset(bench.orders, 0) == E.GROUP_SUBSCRIBED_TO_TOPIC
    assert peer.delete_offset(bench.payments, 0) == E.NONE
    assert peer.fetch(bench.payments, 0) == (E.NONE, -1)
    assert peer.fetch(bench.orders, 0) == (E.NONE, 7)


# -- the requests of classic groups ----------------------------------------------------------


def test_a_consumer_group_is_listed_by_type_and_state(bench: Bench) -> None:
    peer = bench.peer
    peer.join("m1", bench.orders)
    listing = ("consumer", "Stable", "consumer")
    assert peer.listed() == peer.listed(types=["Consumer"]) == listing
    assert peer.listed(states=["stable"], types=["consumer"]) == listing
    assert peer.listed(types=["classic"]) == peer.listed(states=["Empty"]) == ()


def test_a_consumer_group_is_no_classic_group_to_those_who_describe_it(bench: Bench) -> None:
    bench.peer.join("m1", bench.orders)
    assert bench.peer.described_classic(5) == (E.NONE, "Dead")
    assert bench.peer.described_classic(6) == (E.GROUP_ID_NOT_FOUND, "Dead")


def test_a_group_is_deleted_once_it_is_empty(bench: Bench) -> None:
    peer = bench.peer
    peer.join("m1", bench.orders)
    peer.commit(bench.orders, 0, 7, member_id="m1", epoch=2)
    assert peer.delete() == E.NON_EMPTY_GROUP
    peer.leave("m1")
    assert peer.delete() == E.NONE
    assert peer.describe().error_code == E.GROUP_ID_NOT_FOUND
    assert peer.fetch(bench.orders, 0) == (E.NONE, -1)
    assert peer.delete() == E.GROUP_ID_NOT_FOUND


def test_an_administrator_sends_members_away(bench: Bench) -> None:
    peer = bench.peer
    peer.join("m1", bench.orders)
    peer.join("s1", bench.orders, instance="i1")
    assert peer.leave_group(("m9", None), ("m1", None)) == [E.UNKNOWN_MEMBER_ID, E.NONE]
    assert peer.leave_group(("", "i9"), ("s9", "i1")) == [
        E.UNKNOWN_MEMBER_ID,
        E.FENCED_INSTANCE_ID,
    ]
    assert peer.state == "Assigning"
    assert peer.leave_group(("", "i1")) == [E.NONE]
    assert peer.state == "Empty"


def test_a_group_of_offsets_alone_becomes_a_consumer_group_with_them(bench: Bench) -> None:
    peer = bench.peer
    peer.commit(bench.orders, 0, 9)
    assert peer.listed() == ("", "Empty", "classic")
    assert peer.heartbeat("m1", 3).error == E.GROUP_ID_NOT_FOUND
    assert peer.join("m1", bench.orders).error == E.NONE
    assert peer.listed() == ("consumer", "Stable", "consumer")
    assert peer.fetch(bench.orders, 0) == (E.NONE, 9)


def test_an_empty_consumer_group_becomes_a_classic_group_with_its_offsets(bench: Bench) -> None:
    peer = bench.peer
    peer.join("m1", bench.orders)
    peer.leave("m1")
    peer.commit(bench.orders, 0, 9)
    answer = peer.connection.join(peer.group_id, protocol_type="connect", protocols={})
    assert answer.error_code in (E.MEMBER_ID_REQUIRED, E.INCONSISTENT_GROUP_PROTOCOL)
    assert peer.listed()[1:] == ("Empty", "classic")
    assert peer.fetch(bench.orders, 0) == (E.NONE, 9)
