"""Which requests a fault strikes, and the life of a fault."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from support.fault_peer import (
    Connect,
    FaultPeer,
    broker_of_orders,
    fetch,
    fetched_errors,
    peers_of,
    produce,
    produce_error,
)

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.testing import Broker, Cluster, faults
from odradek.testing.control.client import ControlError
from odradek.testing.control.request_names import nameable

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
LONG_MS = 60_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with broker_of_orders() as broker:
        yield broker


@pytest.fixture
def connect(broker: Broker) -> Iterator[Connect]:
    with peers_of(broker) as connect:
        yield connect


# --- What a fault looks at -------------------------------------------------------------------


def test_a_version_is_struck_and_others_are_not(broker: Broker, connect: Connect) -> None:
    peer = connect()
    with broker.faults.during(faults.answer("ApiVersions", UNKNOWN, version="1")):
        errors = [
            peer.ask(messages.ApiVersionsRequest(), version).error_code for version in range(3)
        ]
    assert errors == [0, UNKNOWN, 0]


def test_a_client_is_struck_and_others_are_not(broker: Broker, connect: Connect) -> None:
    with broker.faults.during(faults.answer("ApiVersions", UNKNOWN, client_id="billing")):
        assert connect("billing").ask(messages.ApiVersionsRequest(), 0).error_code == UNKNOWN
        assert connect("shipping").ask(messages.ApiVersionsRequest(), 0).error_code == 0


def test_a_topic_is_struck_and_others_are_not(broker: Broker, connect: Connect) -> None:
    peer = connect()
    with broker.faults.during(faults.answer("Produce", "MESSAGE_TOO_LARGE", topic="orders")):
        assert produce_error(peer, produce("orders", b"x")) == ErrorCode.MESSAGE_TOO_LARGE
        assert produce_error(peer, produce("others", b"x")) == 0


def test_a_partition_is_struck_and_others_are_not(broker: Broker, connect: Connect) -> None:
    peer = connect()
    fault = faults.answer("Produce", "MESSAGE_TOO_LARGE", topic="orders", partition=1)
    with broker.faults.during(fault):
        assert produce_error(peer, produce("orders", b"x", partition=0)) == 0
        struck = produce_error(peer, produce("orders", b"x", partition=1))
    assert struck == ErrorCode.MESSAGE_TOO_LARGE


def test_a_group_is_struck_and_others_are_not(broker: Broker, connect: Connect) -> None:
    peer = connect()
    peer.wait_for_coordinator("g")

    def find_and_beat(group: str) -> list[int]:
        heartbeat = messages.HeartbeatRequest(group_id=group, generation_id=1, member_id="m")
        return [peer.find(group).coordinators[0].error_code, peer.ask(heartbeat, 4).error_code]

    usual = find_and_beat("h")
    with (
        broker.faults.during(faults.answer("FindCoordinator", UNKNOWN, group="g")),
        broker.faults.during(faults.answer("Heartbeat", "REBALANCE_IN_PROGRESS", group="g")),
    ):
        assert find_and_beat("g") == [UNKNOWN, ErrorCode.REBALANCE_IN_PROGRESS]
        assert find_and_beat("h") == usual


def test_a_transactional_id_is_struck_and_others_are_not(broker: Broker, connect: Connect) -> None:
    peer = connect()

    def init(transactional_id: str) -> int:
        request = messages.InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=1000
        )
        error: int = peer.ask(request, 4).error_code
        return error

    fault = faults.answer("InitProducerId", "PRODUCER_FENCED", transactional_id="one")
    with broker.faults.during(fault):
        assert init("one") == ErrorCode.PRODUCER_FENCED
        assert init("two") != ErrorCode.PRODUCER_FENCED


def test_a_topic_that_is_named_by_its_id_is_struck(broker: Broker, connect: Connect) -> None:
    peer = connect()
    by_name = {
        topic.name: topic.topic_id
        for topic in peer.ask(messages.MetadataRequest(topics=None), 12).topics
    }
    fault = faults.answer("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=1)
    with broker.faults.during(fault):
        struck = peer.ask(fetch("", by_name["orders"], 0, 1), 13)
        spared = peer.ask(fetch("", by_name["others"], 0), 13)
    assert fetched_errors(struck) == {0: 0, 1: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert struck.error_code == 0
    assert fetched_errors(spared) == {0: 0}


def test_a_fetch_that_goes_on_with_a_session_names_what_the_session_holds(
    broker: Broker, connect: Connect
) -> None:
    peer = connect()
    opened = peer.ask(fetch("others", bytes(16), 0, session_epoch=0), 12)
    session = opened.session_id
    assert session != 0
    fault = faults.answer("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="others").once()
    began = time.monotonic()
    with broker.faults.during(fault):
        struck = peer.ask(fetch(session_id=session, session_epoch=1, max_wait_ms=LONG_MS), 12)
    assert time.monotonic() - began < LONG_MS / 1000
    assert fetched_errors(struck) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    after = peer.ask(fetch(session_id=session, session_epoch=2), 12)
    assert after.error_code == 0
    assert set(fetched_errors(after).values()) <= {0}


def test_metadata_of_a_topic_tells_the_error_and_the_brokers(
    broker: Broker, connect: Connect
) -> None:
    peer = connect()
    requested = [
        messages.MetadataRequest.MetadataRequestTopic(name=name) for name in ("orders", "others")
    ]
    fault = faults.answer("Metadata", "LEADER_NOT_AVAILABLE", topic="orders")
    with broker.faults.during(fault) as added:
        reported = peer.ask(messages.MetadataRequest(topics=requested), 9)
        assert added.strikes == 1
        everything = peer.ask(messages.MetadataRequest(topics=None), 9)
        assert added.strikes == 1, "a request for all topics names none"
    errors = {topic.name: topic.error_code for topic in reported.topics}
    assert errors == {"orders": ErrorCode.LEADER_NOT_AVAILABLE, "others": 0}
    assert [each.port for each in reported.brokers] == [broker.port]
    assert {topic.error_code for topic in everything.topics} == {0}


@pytest.mark.parametrize(
    ("api", "kinds"),
    [
        ("Produce", {"topic", "partition", "transactional_id"}),
        ("Fetch", {"topic", "partition"}),
        ("Metadata", {"topic"}),
        ("OffsetCommit", {"group", "topic", "partition"}),
        ("OffsetFetch", {"group", "topic", "partition"}),
        ("FindCoordinator", {"group", "transactional_id"}),
        ("JoinGroup", {"group"}),
        ("ConsumerGroupHeartbeat", {"group", "topic", "partition"}),
        ("TxnOffsetCommit", {"group", "transactional_id", "topic", "partition"}),
        ("AddPartitionsToTxn", {"transactional_id", "topic", "partition"}),
        ("AddOffsetsToTxn", {"transactional_id", "group"}),
        ("DescribeGroups", {"group"}),
        ("DeleteGroups", {"group"}),
        ("DeleteTopics", {"topic"}),
        ("CreateTopics", {"topic", "partition"}),
        ("DescribeConfigs", {"topic", "group"}),
        ("ApiVersions", set()),
        ("SaslHandshake", set()),
    ],
)
def test_what_requests_of_an_api_name(api: str, kinds: set[str]) -> None:
    key = ApiKey[faults.drop(api).match.api_key.name]  # type: ignore[union-attr]  # it has one
    assert nameable(key) == kinds


# --- What never happens is refused -----------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (faults.drop("Produce", version=2), "served in the versions 3 to 13, so no request"),
        (faults.drop("Produce", version="9-99"), "served in the versions 3 to 13"),
        (faults.drop("Vote"), "Vote is not served by this broker"),
        (faults.drop("Fetch", group="g"), "names no group: a fault may look at its partition or"),
        (faults.drop("ApiVersions", topic="t"), "names no topic: it names nothing"),
    ],
    ids=str,
)
def test_a_fault_that_could_never_strike_is_refused(
    broker: Broker, fault: faults.Fault, sentence: str
) -> None:
    with pytest.raises(ControlError, match=sentence):
        broker.faults.add(fault)


def test_what_is_no_fault_is_refused(broker: Broker) -> None:
    with pytest.raises(TypeError, match=r"'drop' is no fault: .*faults\.lose_answer"):
        broker.faults.add("drop")  # type: ignore[arg-type]  # the mistake


def test_on_a_shared_broker_a_fault_must_name_whom_it_strikes(broker: Broker) -> None:
    narrow = faults.BrokerFaults(broker.control, owner="me", must_be_narrow=True)
    with pytest.raises(ValueError, match="other tests use this broker"):
        narrow.add(faults.drop("Produce", partition=0))
    with narrow.add(faults.drop("Produce", topic="orders")) as added:
        assert added.owner == "me"


# --- Their life ------------------------------------------------------------------------------


def test_the_log_tells_when_a_fault_is_added_strikes_and_is_lifted(
    broker: Broker, connect: Connect
) -> None:
    fault = faults.answer("ApiVersions", UNKNOWN, client_id="logged").times(2)
    with broker.faults.during(fault) as added:
        for _ in range(3):
            connect("logged").ask(messages.ApiVersionsRequest(), 0)
    lines = [line for line in broker.log.splitlines() if f"fault {added.id} " in line]
    assert len(lines) == 4
    assert lines[0].endswith(f"fault {added.id} is added: {fault}")
    assert "strikes for the 1st time" in lines[1]
    assert "API_VERSIONS v0 from 'logged'" in lines[1]
    assert "strikes for the 2nd time" in lines[2]
    assert lines[3].endswith(f"fault {added.id} is lifted, it struck 2 times: {fault}")


def test_an_owner_lifts_his_own_faults(broker: Broker) -> None:
    mine, theirs = faults.drop("Fetch", topic="mine"), faults.drop("Fetch", topic="theirs")
    broker.faults.add(mine, owner="me")
    kept = broker.faults.add(theirs, owner="they")
    assert broker.faults.lift_all(owner="me") == 1
    assert [each.fault for each in broker.faults.list()] == [theirs]
    assert [each.fault for each in broker.faults.list(owner="me")] == []
    broker.faults.lift(kept)
    assert broker.faults.list() == []
    assert kept.is_lifted


def test_faults_end_with_the_brokers_process() -> None:
    with Broker() as broker:
        with broker.faults.during(faults.drop("Fetch")) as fault:
            broker.restart()
            assert broker.faults.list() == []
        with pytest.raises(ControlError):
            fault.wait_until_struck(timeout=0.1)
        with broker.faults.during(faults.drop("Fetch")):
            broker.kill()


def test_a_cluster_tells_of_a_fault_on_any_of_its_brokers() -> None:
    with Cluster(2) as cluster:
        fault = cluster.faults.add(faults.answer("ApiVersions", UNKNOWN, client_id="peer"))
        for broker in cluster.brokers:
            peer = FaultPeer(broker.port, "peer")
            assert peer.ask(messages.ApiVersionsRequest(), 0).error_code == UNKNOWN
            peer.close()
        fault.wait_until_struck(times=2)
        with pytest.raises(TimeoutError, match="struck 2 of 3 times, on all 2 brokers"):
            fault.wait_until_struck(times=3, timeout=0.1)
        cluster.brokers[1].kill()
        assert fault.strikes == 1
        assert cluster.faults.lift_all() == 1
        fault.lift()


def test_what_brokers_ask_of_each_other_is_let_alone() -> None:
    with Cluster(2) as cluster:
        with cluster.faults.during(faults.drop()) as fault:
            cluster.create_topic("replicated", replication_factor=2)
        peer = FaultPeer(cluster.leader_of("replicated", 0).port, "peer")
        try:
            with cluster.faults.during(faults.drop("Fetch")) as fault:
                error = produce_error(peer, produce("replicated", b"x", acks=-1))
                peer.send(fetch("replicated", bytes(16), 0), 12)
                fault.wait_until_struck()
        finally:
            peer.close()
        assert error == 0
        assert fault.strikes == 1
