"""Connections to many nodes: made when needed, kept, made again after a backoff."""

from __future__ import annotations

import itertools

import pytest
import trio
from support.client_parts import NoChance
from support.scripted_cluster import SILENCE, ScriptedCluster

from odradek.client import (
    AuthenticationError,
    ClientClosedError,
    ClientSettings,
    ConnectError,
    DisconnectedError,
    NetworkClient,
    Node,
    RequestTimeoutError,
)
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import MetadataRequest, MetadataResponse

NODE_1 = Node(1, "broker-1", 9092)
NODE_2 = Node(2, "broker-2", 9092)


class Events:
    """What a listener was told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def connection_ready(self, node: Node) -> None:
        self.seen.append(("ready", node.id))

    def connection_failed(self, node: Node, failure: Exception) -> None:
        self.seen.append(("failed", node.id))

    def connection_lost(self, node: Node, failure: Exception) -> None:
        self.seen.append(("lost", node.id))

    def request_timed_out(self, node: Node, failure: Exception) -> None:
        self.seen.append(("timed out", node.id))


@pytest.fixture
def cluster(nursery) -> ScriptedCluster:
    return ScriptedCluster(nursery, 1, 2)


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def make_network(cluster, events):
    def make(settings: ClientSettings | None = None, **options) -> NetworkClient:
        return NetworkClient(
            settings, connect=cluster.connect, random=NoChance(), listener=events, **options
        )

    return make


def ask() -> MetadataRequest:
    return MetadataRequest(topics=None)


async def test_one_connection_serves_all_requests_to_a_node(make_network, cluster):
    async with make_network() as network:
        for _ in range(3):
            await network.send(NODE_1, ask())
        await network.send(NODE_2, ask())
    assert cluster.attempts == [1, 2]


async def test_many_who_send_at_once_wait_for_one_connection(make_network, cluster):
    async with make_network() as network, trio.open_nursery() as sending:
        for _ in range(10):
            sending.start_soon(network.send, NODE_1, ask())
    assert cluster.attempts == [1]
    assert len(cluster.brokers[1].requests_of(ApiKey.METADATA)) == 10


async def test_a_node_that_cannot_be_reached_is_an_error_for_all_who_wait(
    make_network, cluster, events
):
    cluster.refusing.add(1)
    failures = []

    async def send(network):
        try:
            await network.send(NODE_1, ask())
        except ConnectError as error:
            failures.append(str(error))

    async with make_network() as network, trio.open_nursery() as sending:
        sending.start_soon(send, network)
        sending.start_soon(send, network)
    assert len(failures) == 2
    assert "broker-1:9092 cannot be connected to" in failures[0]
    assert cluster.attempts == [1]
    assert events.seen == [("failed", 1)]


async def test_a_node_is_connected_to_again_after_a_backoff_that_grows(
    make_network, cluster, autojump_clock
):
    cluster.refusing.add(1)
    moments = []
    async with make_network(ClientSettings(reconnect_backoff_ms=100)) as network:
        for _ in range(4):
            with pytest.raises(ConnectError):
                await network.send(NODE_1, ask())
            moments.append(round(trio.current_time(), 3))
        cluster.refusing.clear()
        await network.send(NODE_1, ask())
    pauses = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4], abs=0.01)


async def test_a_lost_connection_is_reported_and_made_again(
    make_network, cluster, events, autojump_clock
):
    async with make_network() as network:
        await network.send(NODE_1, ask())
        await cluster.brokers[1].disconnect()
        await trio.testing.wait_all_tasks_blocked()
        assert events.seen == [("ready", 1), ("lost", 1)]
        await network.send(NODE_1, ask())
    assert cluster.attempts == [1, 1]


async def test_a_timed_out_request_is_reported_as_such(
    make_network, cluster, events, autojump_clock
):
    cluster.brokers[1].answers[ApiKey.METADATA] = lambda received: SILENCE
    async with make_network() as network:
        with pytest.raises(RequestTimeoutError):
            await network.send(NODE_1, ask(), timeout_ms=500)
        await trio.testing.wait_all_tasks_blocked()
        assert events.seen == [("ready", 1), ("timed out", 1)]


async def test_a_socket_that_does_not_open_in_time_is_a_failure(
    make_network, cluster, events, autojump_clock
):
    cluster.hanging.add(1)
    async with make_network(ClientSettings(socket_connection_setup_timeout_ms=2_000)) as network:
        with pytest.raises(ConnectError, match="within 2000 ms"):
            await network.send(NODE_1, ask())
        # Twice as long the next time, after the backoff of 50 ms.
        with pytest.raises(ConnectError, match="within 4000 ms"):
            await network.send(NODE_1, ask())
    assert trio.current_time() == pytest.approx(6.05, abs=0.02)
    assert events.seen == [("failed", 1)] * 2


async def test_a_throttled_client_waits_before_it_sends_again(
    make_network, cluster, autojump_clock
):
    cluster.brokers[1].answers[ApiKey.METADATA] = lambda received: MetadataResponse(
        throttle_time_ms=3_000
    )
    async with make_network() as network:
        await network.send(NODE_1, ask())
        start = trio.current_time()
        await network.send(NODE_1, ask())
        assert trio.current_time() - start == pytest.approx(3.0, abs=0.01)


async def test_a_broker_that_has_waited_itself_is_not_waited_for(
    make_network, cluster, autojump_clock
):
    cluster.brokers[1].answers[ApiKey.METADATA] = lambda received: MetadataResponse(
        throttle_time_ms=3_000
    )
    async with make_network() as network:
        for _ in range(2):
            await network.send(NODE_1, ask(), version=5)
    assert trio.current_time() < 1


async def test_a_node_disconnected_from_is_not_reported_as_lost(make_network, cluster, events):
    cluster.brokers[1].answers[ApiKey.METADATA] = lambda received: SILENCE

    async def send(network):
        with pytest.raises(DisconnectedError):
            await network.send(NODE_1, ask())

    async with make_network() as network, trio.open_nursery() as sending:
        sending.start_soon(send, network)
        await cluster.brokers[1].wait_for_request(ApiKey.METADATA)
        network.disconnect(1)
        network.disconnect(1)
    assert events.seen == [("ready", 1)]


async def test_a_node_may_be_disconnected_from_while_it_is_being_connected_to(
    make_network, cluster, events, autojump_clock
):
    cluster.hanging.add(1)
    async with make_network() as network:
        network.connect_soon(NODE_1)
        await trio.testing.wait_all_tasks_blocked()
        network.disconnect(1)
        cluster.hanging.clear()
        await network.send(NODE_1, ask())
    assert cluster.attempts == [1, 1]


async def test_a_forgotten_node_is_connected_to_at_its_new_address(
    make_network, cluster, autojump_clock
):
    cluster.refusing.add(1)
    moved = Node(1, "broker-2", 9092)
    async with make_network() as network:
        with pytest.raises(ConnectError):
            await network.send(NODE_1, ask())
        network.forget(1)
        start = trio.current_time()
        await network.send(moved, ask())
        assert trio.current_time() == start


async def test_refused_credentials_are_an_error_for_who_sends(make_network, events):
    async def refuse(connection):
        raise AuthenticationError("planted")

    async with make_network(authenticate=refuse) as network:
        with pytest.raises(AuthenticationError, match="planted"):
            await network.send(NODE_1, ask())
    assert events.seen == [("failed", 1)]


async def test_a_fault_of_a_login_ends_nothing_but_the_connection(
    make_network, events, autojump_clock
):
    faults = [KeyError("planted")]

    async def fail_once(connection):
        if faults:
            raise faults.pop()

    async with make_network(authenticate=fail_once) as network:
        with pytest.raises(DisconnectedError, match="KeyError"):
            await network.send(NODE_1, ask())
        await network.send(NODE_1, ask())
    assert events.seen == [("failed", 1), ("ready", 1)]


async def test_a_client_that_is_not_open_refuses_to_send(make_network):
    network = make_network()
    with pytest.raises(ClientClosedError):
        await network.send(NODE_1, ask())
    async with network:
        pass
    with pytest.raises(ClientClosedError):
        await network.send(NODE_1, ask())


async def test_a_client_is_used_once(make_network):
    network = make_network()
    async with network:
        pass
    with pytest.raises(RuntimeError, match="make another"):
        async with network:
            raise AssertionError("it is used up")


async def test_leaving_fails_what_others_wait_for(make_network, cluster, nursery):
    cluster.brokers[1].answers[ApiKey.METADATA] = lambda received: SILENCE
    failed = trio.Event()

    async def send(network):
        with pytest.raises((DisconnectedError, ClientClosedError)):
            await network.send(NODE_1, ask())
        failed.set()

    async with make_network() as network:
        nursery.start_soon(send, network)
        await cluster.brokers[1].wait_for_request(ApiKey.METADATA)
    with trio.fail_after(60):
        await failed.wait()


async def test_what_the_body_raises_comes_out_as_it_is(make_network):
    async def use() -> None:
        async with make_network() as network:
            await network.send(NODE_1, ask())
            raise LookupError("planted")

    with pytest.raises(LookupError, match="planted"):
        await use()


async def test_a_cancelled_body_closes_the_connections(make_network, cluster):
    with trio.CancelScope() as scope:
        async with make_network() as network:
            await network.send(NODE_1, ask())
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    await trio.testing.wait_all_tasks_blocked()
    assert network.in_flight_count(1) == 0
    with pytest.raises(ClientClosedError):
        await network.send(NODE_1, ask())
