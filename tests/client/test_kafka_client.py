"""A client that keeps its metadata, in memory and with time that jumps (article 002)."""

from __future__ import annotations

import itertools

import pytest
import trio
from support.client_parts import NoChance, partition, topic
from support.scripted_cluster import SILENCE, ScriptedCluster, api_versions

from odradek.client import (
    AuthenticationError,
    ClientClosedError,
    ClientSettings,
    DisconnectedError,
    KafkaClient,
    MetadataTimeoutError,
    Node,
    NoLeaderError,
    RequestTimeoutError,
    UnknownNodeError,
    UnsupportedByBrokerError,
)
from odradek.client.metadata.metadata import LeaderAndEpoch
from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import ListOffsetsRequest, MetadataResponse

MAX_AGE_SECONDS = 300


@pytest.fixture
def cluster(nursery) -> ScriptedCluster:
    cluster = ScriptedCluster(nursery, 1, 2)
    cluster.topics["t"] = topic("t", partition(0, leader=1), partition(1, leader=2))
    return cluster


@pytest.fixture
def make_client(cluster):
    def make(settings: ClientSettings | None = None, **options) -> KafkaClient:
        return KafkaClient(
            cluster.bootstrap, settings, connect=cluster.connect, random=NoChance(), **options
        )

    return make


def offsets_of(name: str) -> ListOffsetsRequest:
    wanted = ListOffsetsRequest.ListOffsetsTopic(name=name)
    return ListOffsetsRequest(replica_id=-1, topics=[wanted])


async def test_a_client_learns_of_a_topic_and_the_nodes_that_lead_it(make_client, autojump_clock):
    async with make_client() as client:
        info = await client.wait_for_topic("t")
        assert {p.partition: p.leader_id for p in info.partitions.values()} == {0: 1, 1: 2}
        assert client.cluster.leader_of("t", 1) == Node(2, "broker-2", 9092)
        assert client.cluster.cluster_id == "cluster-1"


async def test_metadata_is_refreshed_after_max_age_and_not_before(
    make_client, cluster, autojump_clock
):
    async with make_client() as client:
        await client.wait_for_topic("t")
        before = cluster.metadata_requests()
        await trio.sleep(MAX_AGE_SECONDS - 1)
        assert cluster.metadata_requests() == before
        await trio.sleep(2)
        assert cluster.metadata_requests() == before + 1


# --- The five triggers ----------------------------------------------------------------------


@pytest.fixture
async def settled(make_client, cluster, autojump_clock):
    """An open client with metadata a minute old, connected to node 1 only."""
    settings = ClientSettings(request_timeout_ms=5_000)
    async with make_client(settings) as client:
        await client.wait_for_topic("t")
        await client.network.send(client.cluster.nodes[1], offsets_request(cluster))
        await trio.sleep(60)
        yield client


def offsets_request(cluster: ScriptedCluster) -> ListOffsetsRequest:
    from odradek.protocol.messages import ListOffsetsResponse

    cluster.answer_all(ApiKey.LIST_OFFSETS, lambda received: ListOffsetsResponse())
    return offsets_of("t")


async def expect_refresh(client: KafkaClient, version: int) -> None:
    """Newer metadata comes within seconds, long before max.age."""
    await client.wait_for_metadata(version, timeout_ms=3_000)


async def test_a_failed_connection_forces_a_refresh(settled, cluster, autojump_clock):
    cluster.refusing.add(2)
    version = settled.metadata.update_version
    with pytest.raises(DisconnectedError):
        await settled.send(2, offsets_of("t"))
    await expect_refresh(settled, version)


async def test_a_lost_connection_forces_a_refresh(settled, cluster, autojump_clock):
    version = settled.metadata.update_version
    await cluster.brokers[1].disconnect()
    await expect_refresh(settled, version)


async def test_a_timed_out_request_forces_a_refresh(settled, cluster, autojump_clock):
    cluster.brokers[1].answers[ApiKey.LIST_OFFSETS] = lambda received: SILENCE
    version = settled.metadata.update_version
    with pytest.raises(RequestTimeoutError):
        await settled.send(1, offsets_of("t"))
    await expect_refresh(settled, version)


async def test_a_partition_without_a_leader_forces_refreshes_until_it_has_one(
    settled, cluster, autojump_clock
):
    cluster.topics["t"] = topic("t", partition(0, leader=-1, epoch=1))
    await settled.refresh_metadata()
    start = trio.current_time()
    with pytest.raises(NoLeaderError, match="had no leader for 2000 ms"):
        await settled.wait_for_leader("t", 0, 2_000)
    assert trio.current_time() - start == pytest.approx(2.0, abs=0.01)
    cluster.topics["t"] = topic("t", partition(0, leader=2, epoch=2))
    assert (await settled.wait_for_leader("t", 0, 2_000)).id == 2


async def test_an_error_of_stale_metadata_forces_a_refresh(settled, autojump_clock):
    version = settled.metadata.update_version
    settled.partition_error("t", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    await expect_refresh(settled, version)


async def test_another_error_forces_none(settled, autojump_clock):
    version = settled.metadata.update_version
    settled.partition_error("t", 0, ErrorCode.OFFSET_OUT_OF_RANGE)
    with pytest.raises(MetadataTimeoutError, match="no newer metadata came within 3000 ms"):
        await expect_refresh(settled, version)


async def test_a_leader_named_in_an_answer_is_used_at_once(settled, autojump_clock):
    endpoint = Node(2, "broker-2", 9092)
    leader = LeaderAndEpoch(2, 5)
    settled.partition_error("t", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER, leader, [endpoint])
    assert settled.metadata.current_leader("t", 0) == endpoint


# --- Asking ---------------------------------------------------------------------------------


async def test_only_one_metadata_request_is_on_its_way(make_client, cluster, autojump_clock):
    answers = []

    async def slowly(received):
        answers.append(trio.current_time())
        await trio.sleep(1)
        return cluster.metadata(received)

    cluster.answer_all(ApiKey.METADATA, slowly)
    async with make_client() as client:
        for _ in range(5):
            client.request_update()
        await client.refresh_metadata()
    assert len(answers) == 1


async def test_a_failed_update_is_tried_again_with_a_growing_backoff(
    make_client, cluster, autojump_clock
):
    moments = []

    def without_brokers(received):
        moments.append(trio.current_time())
        return MetadataResponse()

    cluster.answer_all(ApiKey.METADATA, without_brokers)
    async with make_client() as client:
        with pytest.raises(MetadataTimeoutError):
            await client.refresh_metadata(timeout_ms=1_400)
    pauses = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert pauses[:3] == pytest.approx([0.1, 0.2, 0.4], abs=0.02)


async def test_metadata_comes_from_another_node_when_one_hangs(
    make_client, cluster, autojump_clock
):
    cluster.brokers[1].answers[ApiKey.METADATA] = lambda received: SILENCE
    async with make_client(ClientSettings(request_timeout_ms=2_000)) as client:
        await client.wait_for_topic("t", timeout_ms=10_000)
        assert len(cluster.brokers[1].requests_of(ApiKey.METADATA)) == 1
        assert len(cluster.brokers[2].requests_of(ApiKey.METADATA)) >= 1


async def test_metadata_comes_from_another_node_when_one_cannot_be_connected_to(
    make_client, cluster, autojump_clock
):
    cluster.hanging.add(1)
    async with make_client() as client:
        await client.wait_for_topic("t", timeout_ms=20_000)


async def test_a_client_finds_a_cluster_that_has_moved_by_its_bootstrap_addresses(
    make_client, cluster, autojump_clock
):
    """All known brokers are gone, and others answer at the addresses of the start."""
    cluster.brokers[3] = type(cluster.brokers[1])(3)
    cluster.brokers[3].answers[ApiKey.METADATA] = cluster.metadata
    cluster.alive = [3]
    async with make_client(ClientSettings(reconnect_backoff_ms=1_000)) as client:
        await client.refresh_metadata()
        assert set(client.cluster.nodes) == {3}
        await client.refresh_metadata()  # from node 3 itself
        cluster.alive = [1, 2]
        cluster.refusing = {3}
        version = client.metadata.update_version
        await cluster.brokers[3].disconnect()
        while set(client.cluster.nodes) != {1, 2}:
            version = (await client.wait_for_metadata(version, timeout_ms=30_000)).version


async def test_old_brokers_are_queried_in_their_own_way(make_client, cluster):
    served = {ApiKey.METADATA: (0, 0), ApiKey.API_VERSIONS: (0, 0)}
    cluster.answer_all(ApiKey.API_VERSIONS, lambda received: api_versions(served))
    async with make_client(all_topics=True) as client:
        await client.wait_for_topic("t")
    assert cluster.brokers[1].requests_of(ApiKey.METADATA)[0].topics == []


@pytest.mark.parametrize("allowed", [True, False])
async def test_whether_asking_may_create_a_topic_is_the_settings_word(
    make_client, cluster, allowed
):
    async with make_client(ClientSettings(allow_auto_create_topics=allowed)) as client:
        await client.wait_for_topic("t")
    asked = [r for broker in cluster.brokers.values() for r in broker.requests_of(ApiKey.METADATA)]
    assert {request.allow_auto_topic_creation for request in asked} == {allowed}


# --- Waiting --------------------------------------------------------------------------------


async def test_all_who_wait_for_newer_metadata_are_notified(make_client, autojump_clock):
    seen = []

    async def wait(client, version):
        seen.append((await client.wait_for_metadata(version)).version > version)

    async with make_client() as client:
        version = client.request_update()
        async with trio.open_nursery() as waiting:
            for _ in range(3):
                waiting.start_soon(wait, client, version)
    assert seen == [True] * 3


async def test_waiting_for_metadata_ends_after_max_block(make_client, cluster, autojump_clock):
    cluster.refusing = {1, 2}
    async with make_client(ClientSettings(max_block_ms=4_000)) as client:
        start = trio.current_time()
        with pytest.raises(MetadataTimeoutError, match="within 4000 ms"):
            await client.refresh_metadata()
        assert trio.current_time() - start == pytest.approx(4.0, abs=0.01)


async def test_a_topic_that_does_not_exist_is_waited_for_up_to_a_limit(
    make_client, cluster, autojump_clock
):
    cluster.topics["no"] = topic("no", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    async with make_client() as client:
        with pytest.raises(
            MetadataTimeoutError,
            match="'no' is not in the metadata after 5000 ms: UNKNOWN_TOPIC_OR_PARTITION",
        ):
            await client.wait_for_topic("no", timeout_ms=5_000)
    # With the backoff of answers that say nothing new, not in a loop without a pause.
    assert 3 < cluster.metadata_requests() < 15


async def test_a_partition_that_a_topic_gets_later_is_waited_for(
    make_client, cluster, autojump_clock, nursery
):
    async def add_a_partition():
        await trio.sleep(2)
        more = [partition(index, leader=1) for index in range(3)]
        cluster.topics["t"] = topic("t", *more)

    async with make_client() as client:
        nursery.start_soon(add_a_partition)
        info = await client.wait_for_topic("t", partition=2, timeout_ms=10_000)
        assert 2 in info.partitions
        with pytest.raises(MetadataTimeoutError, match="partition 7 of topic 't'"):
            await client.wait_for_topic("t", partition=7, timeout_ms=1_000)


@pytest.mark.parametrize(
    "code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION]
)
async def test_an_error_of_a_topic_that_will_not_pass_is_raised_at_once(
    make_client, cluster, code, autojump_clock
):
    cluster.topics["bad"] = topic("bad", error=code)
    async with make_client() as client:
        with pytest.raises(KafkaError) as raised:
            await client.wait_for_topic("bad")
        assert raised.value.code == code
        assert trio.current_time() < 1
        await client.wait_for_topic("t")


async def test_refused_credentials_end_the_waiting(make_client, autojump_clock):
    async def refuse(connection):
        raise AuthenticationError("planted")

    async with make_client(authenticate=refuse) as client:
        with pytest.raises(AuthenticationError, match="planted"):
            await client.refresh_metadata()
        assert trio.current_time() < 1


async def test_brokers_without_metadata_end_the_waiting(make_client, cluster, autojump_clock):
    served = {ApiKey.API_VERSIONS: (0, 4)}
    cluster.answer_all(ApiKey.API_VERSIONS, lambda received: api_versions(served))
    async with make_client() as client:
        with pytest.raises(UnsupportedByBrokerError, match="METADATA"):
            await client.refresh_metadata()


async def test_a_closed_client_ends_the_waiting(make_client, cluster, nursery):
    cluster.refusing = {1, 2}
    ended = trio.Event()

    async def wait(client):
        with pytest.raises(ClientClosedError):
            await client.wait_for_metadata(client.metadata.update_version)
        ended.set()

    async with make_client() as client:
        nursery.start_soon(wait, client)
        await trio.testing.wait_all_tasks_blocked()
    with trio.fail_after(60):
        await ended.wait()


async def test_a_node_that_is_not_in_the_metadata_is_an_error_and_refreshes_it(
    settled, autojump_clock
):
    version = settled.metadata.update_version
    with pytest.raises(UnknownNodeError, match="no node 9"):
        await settled.send(9, offsets_of("t"))
    await expect_refresh(settled, version)


async def test_the_controller_is_waited_for(settled, cluster, nursery, autojump_clock):
    cluster.controller = -1
    await settled.refresh_metadata()

    async def elect():
        await trio.sleep(1)
        cluster.controller = 2

    nursery.start_soon(elect)
    await settled.send_to_controller(offsets_of("t"))
    assert len(cluster.brokers[2].requests_of(ApiKey.LIST_OFFSETS)) == 1


async def test_an_idle_client_does_nothing_but_its_periodic_refresh(
    make_client, cluster, autojump_clock
):
    settings = ClientSettings(connections_max_idle_ms=-1)
    async with make_client(settings) as client:
        await client.wait_for_topic("t")
        steps = 0
        next_step = client.updater.next_step

        def count(now_ms):
            nonlocal steps
            steps += 1
            return next_step(now_ms)

        client.updater.next_step = count
        await trio.sleep(10 * MAX_AGE_SECONDS)
        assert steps < 10 * 6
