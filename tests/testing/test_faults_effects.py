"""What exactly comes of requests that faults strike, byte by byte."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from support.fault_peer import (
    Connect,
    broker_of_orders,
    fetch,
    peers_of,
    produce,
    produce_error,
)

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.testing import Broker, faults

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
HOUR_SECONDS = 3600


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with broker_of_orders() as broker:
        yield broker


@pytest.fixture
def connect(broker: Broker) -> Iterator[Connect]:
    with peers_of(broker) as connect:
        yield connect


# --- What exactly comes of it ----------------------------------------------------------------


def test_an_answer_is_cut_after_so_many_bytes(broker: Broker, connect: Connect) -> None:
    peer = connect()
    with broker.faults.during(faults.truncate_answer("ApiVersions", size=7)):
        peer.send(messages.ApiVersionsRequest(), 0)
        received = peer.receive_rest()
    assert len(received) == 7


def test_nothing_comes_behind_an_answer_that_is_cut(broker: Broker, connect: Connect) -> None:
    peer = connect()
    with broker.faults.during(faults.truncate_answer("Produce", size=7, topic="orders").on(2)):
        peer.send_together([produce("orders", b"%d" % number) for number in range(5)], 9)
        peer.receive_whole()
        rest = peer.receive_rest()
    assert len(rest) == 7


def test_one_bit_is_turned_over(broker: Broker, connect: Connect) -> None:
    def answer_to(*fault: faults.Fault) -> bytes:
        peer = connect()
        added = [broker.faults.add(each) for each in fault]
        peer.send(messages.ApiVersionsRequest(), 0)
        data = peer.receive_whole()
        for each in added:
            each.lift()
        return data

    sound = answer_to()
    for fault in (
        faults.corrupt_answer("ApiVersions", seed=4),
        faults.corrupt_answer("ApiVersions", byte=9),
    ):
        broken = answer_to(fault)
        differing = [
            (a ^ b, index) for index, (a, b) in enumerate(zip(sound, broken, strict=True)) if a != b
        ]
        assert len(differing) == 1
        assert differing[0][0].bit_count() == 1
        assert differing[0][1] >= 8
    assert differing[0] == (0x80, 9)
    assert answer_to(faults.corrupt_answer("ApiVersions", seed=4)) == answer_to(
        faults.corrupt_answer("ApiVersions", seed=4)
    )


def test_answers_without_records_do_not_count_for_corrupt_records(
    broker: Broker, connect: Connect
) -> None:
    broker.create_topic("poisoned")
    peer = connect()
    with broker.faults.during(faults.corrupt_records(topic="poisoned").once()) as fault:
        assert peer.ask(fetch("poisoned", bytes(16), 0), 12).error_code == 0
        assert fault.strikes == 0
        assert produce_error(peer, produce("poisoned", b"x" * 100)) == 0
        struck = peer.ask(fetch("poisoned", bytes(16), 0), 12)
        assert fault.strikes == 1
    sound = peer.ask(fetch("poisoned", bytes(16), 0), 12)
    one, other = (bytes(each.responses[0].partitions[0].records) for each in (struck, sound))
    assert len(one) == len(other)
    assert [a == b for a, b in zip(one, other, strict=True)].count(False) == 1
    assert one[:21] == other[:21], "what is before the part that the checksum covers is whole"


def test_a_request_that_is_held_keeps_its_records_while_others_come(
    broker: Broker, connect: Connect
) -> None:
    broker.create_topic("held")
    first, second = connect("held"), connect()
    with broker.faults.during(faults.delay("Produce", HOUR_SECONDS, client_id="held")) as fault:
        first.send(produce("held", b"first" * 1000), 9)
        fault.wait_until_struck()
        for _ in range(20):
            assert produce_error(second, produce("held", b"second" * 1000)) == 0
        broker.advance_time(HOUR_SECONDS)
        assert first.receive_answer().responses[0].partition_responses[0].error_code == 0
    values = [record.value for record in broker.read("held")]
    assert values == [b"second" * 1000] * 20 + [b"first" * 1000]


def test_answers_keep_their_order_when_one_is_held(broker: Broker, connect: Connect) -> None:
    peer = connect()
    with broker.faults.during(faults.delay_answer("ApiVersions", 0.2).on(1)):
        peer.send(messages.ApiVersionsRequest(), 0)
        for _ in range(2):
            peer.send(messages.ApiVersionsRequest(), 0)
        ids = []
        for _ in range(3):
            ids.append(int.from_bytes(peer.receive_whole()[4:8]))
    assert ids == sorted(ids)


def test_a_slow_line_carries_its_rate(broker: Broker, connect: Connect) -> None:
    broker.create_topic("slow")
    peer = connect()
    value = bytes(range(256)) * 100
    assert produce_error(peer, produce("slow", value)) == 0
    with broker.faults.during(faults.throttle("Fetch", bytes_per_second=50_000, topic="slow")):
        began = time.monotonic()
        answer = peer.ask(fetch("slow", bytes(16), 0), 12)
        seconds = time.monotonic() - began
    assert value in bytes(answer.responses[0].partitions[0].records)
    assert seconds >= 0.4, "25 KB at 50 KB a second"


def test_only_the_partitions_that_are_struck_get_the_error_and_the_others_are_written(
    broker: Broker, connect: Connect
) -> None:
    broker.create_topic("some", partitions=3)
    broker.create_topic("rest")
    peer = connect()
    both = produce("some", b"0", partition=0)
    both.topic_data[0].partition_data += [
        produce("some", b"%d" % index, partition=index).topic_data[0].partition_data[0]
        for index in (1, 2)
    ]
    both.topic_data += produce("rest", b"rest").topic_data
    fault = faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", topic="some", partition=1)
    with broker.faults.during(fault):
        answer = peer.ask(both, 9)
    errors = {
        (topic.name, partition.index): partition.error_code
        for topic in answer.responses
        for partition in topic.partition_responses
    }
    assert len(answer.responses) == 2, "a topic is answered once"
    assert errors == {
        ("some", 0): 0,
        ("some", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ("some", 2): 0,
        ("rest", 0): 0,
    }
    assert sorted(record.value for record in broker.read("some")) == [b"0", b"2"]
    assert [record.value for record in broker.read("rest")] == [b"rest"]


def test_two_faults_may_each_take_their_part_of_a_request(broker: Broker, connect: Connect) -> None:
    peer = connect()
    request = messages.DescribeGroupsRequest(groups=["a", "b", "c"])
    with (
        broker.faults.during(faults.answer("DescribeGroups", UNKNOWN, group="a")),
        broker.faults.during(faults.answer("DescribeGroups", "NOT_COORDINATOR", group="b")),
    ):
        struck = {group.group_id: group.error_code for group in peer.ask(request, 5).groups}
    assert struck["a"] == UNKNOWN
    assert struck["b"] == ErrorCode.NOT_COORDINATOR
    assert struck["c"] not in (UNKNOWN, None)
    assert len(struck) == 3


def test_only_the_groups_that_are_struck_get_the_error(broker: Broker, connect: Connect) -> None:
    peer = connect()
    peer.wait_for_coordinator("one")
    peer.wait_for_coordinator("other")
    request = messages.DescribeGroupsRequest(groups=["other", "one"])
    usual = {group.group_id: group.error_code for group in peer.ask(request, 5).groups}
    fault = faults.answer("DescribeGroups", "GROUP_AUTHORIZATION_FAILED", group="one")
    with broker.faults.during(fault):
        struck = {group.group_id: group.error_code for group in peer.ask(request, 5).groups}
    assert struck == usual | {"one": ErrorCode.GROUP_AUTHORIZATION_FAILED}


def test_only_the_topics_that_are_struck_are_not_created(broker: Broker, connect: Connect) -> None:
    peer = connect()
    make = messages.CreateTopicsRequest
    topics = [
        make.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in ("made", "refused")
    ]
    with broker.faults.during(faults.answer("CreateTopics", "POLICY_VIOLATION", topic="refused")):
        answer = peer.ask(make(topics=topics, timeout_ms=30_000), 5)
    errors = {topic.name: topic.error_code for topic in answer.topics}
    assert errors == {"made": 0, "refused": ErrorCode.POLICY_VIOLATION}
    assert "made" in broker.topics()
    assert "refused" not in broker.topics()


def test_an_error_on_acks_0_closes_the_connection(broker: Broker, connect: Connect) -> None:
    peer = connect()
    with broker.faults.during(faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders")):
        peer.send(produce("orders", b"x", acks=0), 9)
        assert peer.receive_rest() == b""


def test_a_half_open_connection_gives_nothing_and_is_closed_when_the_fault_is_lifted(
    broker: Broker, connect: Connect
) -> None:
    peer, other = connect("dead"), connect("alive")
    peer.send(fetch("others", bytes(16), 0, max_wait_ms=200, min_bytes=1 << 20), 12)
    with broker.faults.during(faults.half_open("ApiVersions", client_id="dead")) as fault:
        assert peer.receive_answer().error_code == 0
        peer.send(messages.ApiVersionsRequest(), 0)
        fault.wait_until_struck()
        assert other.ask(messages.ApiVersionsRequest(), 0).error_code == 0
        assert peer.is_silent_for(0.3)
    assert peer.receive_rest() == b""


def test_a_request_that_two_faults_would_hold_is_handled_once(
    broker: Broker, connect: Connect
) -> None:
    broker.create_topic("twice")
    peer = connect()
    with (
        broker.faults.during(faults.delay("Produce", 0.1, topic="twice")) as first,
        broker.faults.during(faults.throttle("Produce", 10_000, topic="twice")) as second,
        broker.faults.during(faults.delay("Produce", 0.1, topic="twice")) as third,
    ):
        assert produce_error(peer, produce("twice", b"x")) == 0
        assert (first.strikes, second.strikes, third.strikes) == (1, 1, 0)
    assert [record.value for record in broker.read("twice")] == [b"x"]
    assert broker.log.count("Traceback") == 0


def test_a_dropped_request_is_dropped_whatever_else_would_befall_it(
    broker: Broker, connect: Connect
) -> None:
    broker.create_topic("dropped")
    peer = connect()
    with (
        broker.faults.during(faults.drop("Produce", topic="dropped")) as drop,
        broker.faults.during(faults.throttle("Produce", 1_000_000, topic="dropped")) as throttle,
    ):
        peer.send(produce("dropped", b"x"), 9)
        drop.wait_until_struck()
        assert peer.is_silent_for(0.2)
        assert throttle.strikes == 0
    assert broker.read("dropped") == []


def test_faults_of_the_answer_go_together(broker: Broker, connect: Connect) -> None:
    peer = connect()
    with (
        broker.faults.during(faults.truncate_answer("ApiVersions", size=8)),
        broker.faults.during(faults.corrupt_answer("ApiVersions", byte=7)),
    ):
        peer.send(messages.ApiVersionsRequest(), 0)
        received = peer.receive_rest()
    assert len(received) == 8
    assert received[7] & 0x80


def test_where_nobody_waits_for_an_answer_dropping_it_stops_nothing(
    broker: Broker, connect: Connect
) -> None:
    peer = connect()
    with broker.faults.during(faults.drop_answer("Produce", topic="orders")) as fault:
        peer.send(produce("orders", b"x", acks=0), 9)
        peer.ask(messages.ApiVersionsRequest(), 0)
        assert fault.strikes == 1
