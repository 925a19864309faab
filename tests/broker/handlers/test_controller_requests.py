"""UpdateMetadata, LeaderAndIsr and StopReplica as a broker takes them (article 001).

Requests come as frames of a controller that is newer than the broker's own.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from odradek.broker.request.dispatch import LONG_FRAME_BYTES
from odradek.broker.start import make_broker
from odradek.client.errors import ConnectError
from odradek.common.errors import ErrorCode
from odradek.common.partition_state import LeaderAndIsr
from odradek.common.topic_partition import TopicPartition
from odradek.config.broker_config import BrokerConfig
from odradek.metadata.metadata_cache import MetadataSnapshot, MetadataUpdate
from odradek.metadata.metadata_waiting import wait_for_metadata
from odradek.metadata_store import znodes
from odradek.metadata_store.errors import MetadataStoreError, SessionExpired, StoreUnreachable
from odradek.metadata_store.store import StoredNode, ensure_paths
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import request_header
from odradek.runtime.steps import Steps

from .conftest import Bench

EPOCH = 1000
LEADER_DURING_DELETE = -2
TOPIC_ID = bytes(range(16))

Update = messages.UpdateMetadataRequest
Lead = messages.LeaderAndIsrRequest
Stop = messages.StopReplicaRequest
WANTED = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="t")])


@pytest.fixture
def bench(bench: Bench) -> Bench:
    """One whose client is another broker."""
    bench.client.connection.is_broker = True
    return bench


async def elect(bench: Bench, epoch: int = EPOCH) -> None:
    """Another broker becomes the controller."""
    await bench.broker.metadata_store.set(znodes.CONTROLLER_EPOCH, str(epoch).encode())


def reported(
    name: str, *leaders: int, topic_id: bytes = TOPIC_ID
) -> messages.UpdateMetadataRequest.UpdateMetadataTopicState:
    """A topic whose partitions have these leaders."""
    return Update.UpdateMetadataTopicState(
        topic_name=name,
        topic_id=topic_id,
        partition_states=[
            Update.UpdateMetadataPartitionState(
                partition_index=index, leader=leader, isr=[1], replicas=[1]
            )
            for index, leader in enumerate(leaders)
        ],
    )


async def update(
    bench: Bench, *topics: Any, controller_id: int = 7, controller_epoch: int = EPOCH, **more: Any
) -> int:
    """Send an UpdateMetadata; its error code."""
    await elect(bench)
    answer = await bench.client.call(
        Update(
            controller_id=controller_id,
            controller_epoch=controller_epoch,
            topic_states=list(topics),
            live_brokers=[
                Update.UpdateMetadataBroker(
                    id=7,
                    rack="r7",
                    endpoints=[
                        Update.UpdateMetadataEndpoint(
                            host="seven", port=9092, listener="PLAINTEXT", security_protocol=0
                        )
                    ],
                )
            ],
            **more,
        ),
        8,
    )
    return int(answer.error_code)


async def lead(
    bench: Bench, leader: int, leader_epoch: int, *, partition_epoch: int = 0, **more: Any
) -> Any:
    """Send a LeaderAndIsr for partition 0 of `t`."""
    await elect(bench)
    fields = {"controller_epoch": EPOCH, **more}
    return await bench.client.call(
        Lead(
            controller_id=7,
            topic_states=[
                Lead.LeaderAndIsrTopicState(
                    topic_name="t",
                    topic_id=TOPIC_ID,
                    partition_states=[
                        Lead.LeaderAndIsrPartitionState(
                            partition_index=0,
                            leader=leader,
                            leader_epoch=leader_epoch,
                            partition_epoch=partition_epoch,
                            isr=[leader],
                            replicas=[1, 7],
                            is_new=True,
                        )
                    ],
                )
            ],
            **fields,
        ),
        7,
    )


async def stop(bench: Bench, **more: Any) -> Any:
    """Send a StopReplica that deletes partition 0 of `t`."""
    await elect(bench)
    fields = {"controller_epoch": EPOCH, **more}
    return await bench.client.call(
        Stop(
            controller_id=7,
            topic_states=[
                Stop.StopReplicaTopicState(
                    topic_name="t",
                    partition_states=[
                        Stop.StopReplicaPartitionState(
                            partition_index=0, leader_epoch=-2, delete_partition=True
                        )
                    ],
                )
            ],
            **fields,
        ),
        4,
    )


async def test_what_the_controller_tells_is_what_clients_are_told(bench: Bench) -> None:
    assert await update(bench, reported("t", 7, 3)) == ErrorCode.NONE
    answer = await bench.client.call(messages.MetadataRequest(topics=None), 12)
    assert answer.controller_id == 7
    assert [(node.node_id, node.host, node.rack) for node in answer.brokers] == [(7, "seven", "r7")]
    topic = next(topic for topic in answer.topics if topic.name == "t")
    assert topic.topic_id == TOPIC_ID
    assert [(each.error_code, each.leader_id) for each in topic.partitions] == [
        (ErrorCode.NONE, 7),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1),
    ]


async def test_an_older_controller_is_refused_by_its_epoch(bench: Bench) -> None:
    assert await update(bench, reported("t", 7)) == ErrorCode.NONE
    before = bench.broker.metadata_cache.snapshot
    stale = ErrorCode.STALE_CONTROLLER_EPOCH
    assert await update(bench, reported("t", 3), controller_epoch=EPOCH - 1) == stale
    assert (await lead(bench, 1, 0, controller_epoch=EPOCH - 1)).error_code == stale
    assert (await stop(bench, controller_epoch=EPOCH - 1)).error_code == stale
    assert bench.broker.metadata_cache.snapshot is before
    assert bench.broker.replica_manager.get_partition(TopicPartition("t", 0)) is None


async def test_what_was_meant_for_a_brokers_former_life_is_refused(bench: Bench) -> None:
    former = bench.broker.controller.broker_epoch - 1
    stale = ErrorCode.STALE_BROKER_EPOCH
    assert await update(bench, reported("t", 7), broker_epoch=former) == stale
    assert (await lead(bench, 1, 0, broker_epoch=former)).error_code == stale
    assert (await stop(bench, broker_epoch=former)).error_code == stale
    assert not bench.broker.metadata_cache.contains("t")


async def test_what_comes_before_the_registration_waits_for_it(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller takes a broker that starts for its former life until that one's session ends,
    by which the broker would lead in an epoch whose records it may have lost."""
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "data")}
    broker = await make_broker(BrokerConfig.from_sources({}, settings))
    store, registering, ended, ready = broker.metadata_store, *(trio.Event() for _ in range(3))
    create = store.create

    async def create_when_ended(path: str, *data: bytes, **more: bool) -> None:
        if path.startswith(znodes.BROKER_IDS):
            registering.set()
            await ended.wait()
        await create(path, *data, **more)

    monkeypatch.setattr(store, "create", create_when_ended)
    nursery.start_soon(broker.run, lambda advertised: ready.set())
    await registering.wait()
    await create(znodes.CONTROLLER_EPOCH, b"0")
    answers: list[tuple[str, ErrorCode]] = []

    async def send(name: str, requested: Callable[..., Awaitable[Any]], *what: Any) -> None:
        bench = Bench(broker)
        bench.client.connection.is_broker = True
        answer = await requested(bench, *what, broker_epoch=0)
        answers.append((name, getattr(answer, "error_code", answer)))

    async with trio.open_nursery() as controller:
        controller.start_soon(send, "update", update, reported("t", 7))
        controller.start_soon(send, "lead", lead, 0, 0)
        controller.start_soon(send, "stop", stop)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert answers == []
        ended.set()
    stale = ErrorCode.STALE_BROKER_EPOCH
    assert sorted(answers) == [("lead", stale), ("stop", stale), ("update", stale)]
    assert broker.replica_manager.get_partition(TopicPartition("t", 0)) is None
    await ready.wait()
    nursery.cancel_scope.cancel()


async def test_only_who_may_act_for_the_cluster_is_listened_to(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[tuple[str, str]] = []

    def authorize(request: Any, operation: str, resource_type: str, resource_name: str) -> bool:
        requested.append((operation, resource_type))
        return False

    bench.authorize_by(authorize)
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert await update(bench, reported("t", 7)) == refused
    assert (await lead(bench, 1, 0)).error_code == refused
    assert (await stop(bench)).error_code == refused
    assert set(requested) == {("CLUSTER_ACTION", "CLUSTER")}
    assert not bench.broker.metadata_cache.contains("t")


async def test_offsets_committed_for_a_deleted_partition_are_forgotten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await update(bench, reported("t", 7, 7))
    forgotten: list[TopicPartition] = []
    coordinator = bench.broker.coordinators.group

    def forget(gone: Iterable[TopicPartition]) -> Steps[None]:
        forgotten.extend(gone)
        yield

    monkeypatch.setattr(coordinator, "delete_partition_offsets", forget)
    await update(bench, reported("t", LEADER_DURING_DELETE, 7))
    assert forgotten == [TopicPartition("t", 0)]
    await update(bench, reported("t", 7))
    assert forgotten == [TopicPartition("t", 0)]


async def test_leading_and_following_are_taken_up_and_older_leaders_refused(bench: Bench) -> None:
    assert (await lead(bench, 1, 5)).error_code == ErrorCode.NONE
    partition = bench.broker.replica_manager.get_partition(TopicPartition("t", 0))
    assert partition is not None
    assert (partition.is_leader, partition.leader_epoch) == (True, 5)
    answer = await lead(bench, 7, 4)
    assert answer.topics[0].partition_errors[0].error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert partition.is_leader
    await lead(bench, 7, 6)
    assert (partition.is_leader, partition.leader, partition.leader_epoch) == (False, 7, 6)


LAST_EPOCH = 2**31 - 1


async def write_state(bench: Bench, leader_epoch: int) -> None:
    """Have the store hold a state of partition 0 of `t`."""
    state = LeaderAndIsr(EPOCH, 1, leader_epoch, (1,))
    path = znodes.partition_state_path("t", 0)
    await ensure_paths(bench.broker.metadata_store, [path])
    await bench.broker.metadata_store.set(path, znodes.encode_partition_state(state))


@pytest.mark.parametrize("epochs", [(LAST_EPOCH, 1), (6, LAST_EPOCH)])
@pytest.mark.parametrize("is_hosted", [True, False])
async def test_an_epoch_far_ahead_that_nobody_has_written_makes_no_partition_unusable(
    bench: Bench, epochs: tuple[int, int], is_hosted: bool
) -> None:
    if is_hosted:
        await lead(bench, 1, 5)
    await write_state(bench, 5)
    answer = await lead(bench, 7, epochs[0], partition_epoch=epochs[1])
    assert answer.topics[0].partition_errors[0].error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    answer = await lead(bench, 1, 6, partition_epoch=2)
    assert answer.topics[0].partition_errors[0].error_code == ErrorCode.NONE
    partition = bench.broker.replica_manager.get_partition(TopicPartition("t", 0))
    assert partition is not None
    assert (partition.is_leader, partition.leader_epoch) == (True, 6)


async def test_an_epoch_far_ahead_that_was_written_is_true(bench: Bench) -> None:
    await lead(bench, 1, 5)
    await write_state(bench, 5_000)
    answer = await lead(bench, 1, 5_000)
    assert answer.topics[0].partition_errors[0].error_code == ErrorCode.NONE


async def test_clients_are_not_told_of_a_leader_epoch_that_nobody_has_written(
    bench: Bench,
) -> None:
    await write_state(bench, 5)
    topic = reported("t", 1, 1)
    assert await update(bench, topic) == ErrorCode.NONE
    topic.partition_states[0].leader_epoch = LAST_EPOCH
    topic.partition_states[1].leader_epoch = 3
    assert await update(bench, topic) == ErrorCode.NONE
    known = bench.broker.metadata_cache.snapshot.partition_states["t"]
    assert [known[each].leader_epoch for each in (0, 1)] == [0, 3]


async def test_who_asks_a_follower_is_told_that_it_does_not_lead(bench: Bench) -> None:
    await lead(bench, 1, 0)
    requested = messages.ListOffsetsRequest
    request = requested(
        topics=[
            requested.ListOffsetsTopic(
                name="t",
                partitions=[requested.ListOffsetsPartition(partition_index=0, timestamp=-1)],
            )
        ]
    )
    for code in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        answer = await bench.client.call(request, 7)
        assert answer.topics[0].partitions[0].error_code == code
        await lead(bench, 7, 1)


async def test_a_stopped_replica_is_given_up_and_its_log_deleted(bench: Bench) -> None:
    await lead(bench, 1, 0)
    assert bench.broker.log_manager.get_log(TopicPartition("t", 0)) is not None
    answer = await stop(bench)
    assert [each.error_code for each in answer.partition_errors] == [ErrorCode.NONE]
    assert bench.broker.replica_manager.get_partition(TopicPartition("t", 0)) is None
    assert bench.broker.log_manager.get_log(TopicPartition("t", 0)) is None


async def test_brokers_learn_of_an_isr_that_its_leader_changed(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.create_topic("t")
    store, cache = bench.broker.metadata_store, bench.broker.metadata_cache
    path = znodes.partition_state_path("t", 0)
    node = await store.get(path)
    changed = znodes.decode_partition_state(node.data)._replace(isr=(1, 2))
    version = await store.set(path, znodes.encode_partition_state(changed), node.version)
    assert cache.snapshot.partition_states["t"][0].isr == (1,)
    note = znodes.encode_isr_change([TopicPartition("t", 0)])
    await store.create(znodes.ISR_CHANGE_PREFIX, note, sequential=True)

    def is_shown(snapshot: MetadataSnapshot) -> bool:
        state = snapshot.partition_states["t"][0]
        return (state.isr, state.partition_epoch) == ((1, 2), version)

    assert await wait_for_metadata(cache, is_shown, 5000)
    with trio.fail_after(60):
        while await store.children(znodes.ISR_CHANGES):
            await trio.lowlevel.checkpoint()
    # Where an event fails the controller takes over again, and tells of everything.
    assert "an event of the controller failed" not in caplog.text


async def test_others_are_served_while_a_long_request_is_taken_in(bench: Bench) -> None:
    topics = [
        reported(f"topic-{n}", *[7] * 100, topic_id=n.to_bytes(16, "big")) for n in range(1, 51)
    ]
    message = Update(controller_id=7, controller_epoch=EPOCH, topic_states=topics)
    assert sum(map(len, Update.encoder(8)(message))) > LONG_FRAME_BYTES
    other = bench.another_client()
    await elect(bench)
    bench.client.send(message, 8)
    served = 0
    while not bench.client.connection.output:
        await other.call(messages.ApiVersionsRequest(), 0)
        served += 1
        await trio.lowlevel.checkpoint()
    assert served > 5
    assert (await bench.client.receive(6, 8)).error_code == ErrorCode.NONE
    assert bench.broker.metadata_cache.partition_count("topic-50") == 100


@pytest.mark.parametrize("is_update", [True, False])
async def test_settings_that_change_while_their_topic_is_made_known_are_in_force(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_update: bool
) -> None:
    broker = bench.broker
    store = broker.metadata_store
    path = znodes.topic_config_path("t")
    get_many = store.get_many

    async def change() -> None:
        await broker.config_manager.alter("topics", "t", lambda present: {"retention.ms": "1234"})

    async with trio.open_nursery() as nursery:

        async def read(paths: Sequence[str]) -> Sequence[StoredNode | None]:
            """The settings change when they have been read, and before anything is made of them."""
            found = await get_many(paths)
            if path in paths:
                monkeypatch.setattr(store, "get_many", get_many)
                nursery.start_soon(change)
                while (await get_many([path]))[0] is None:
                    await trio.testing.wait_all_tasks_blocked()
                await trio.testing.wait_all_tasks_blocked(0.01)
            return found

        monkeypatch.setattr(store, "get_many", read)
        if is_update:
            await update(bench, reported("t", 1))
        else:
            await lead(bench, 1, 5)
    if is_update:
        assert broker.metadata_cache.topic_config("t") == {"retention.ms": "1234"}
    else:
        log = broker.log_manager.get_log(TopicPartition("t", 0))
        assert log is not None
        assert log.config.retention_ms == 1234


async def test_requests_after_a_long_one_wait_for_it(bench: Bench) -> None:
    topics = [reported("t", *[7] * 3000)]
    client, connection = bench.client, bench.client.connection
    await elect(bench)
    client.send(Update(controller_id=7, controller_epoch=EPOCH, topic_states=topics), 8)
    header = request_header(3, 12, 2, "test")
    body = b"".join(map(bytes, messages.MetadataRequest.encoder(12)(WANTED)))
    connection.process([memoryview(bytearray(header + body))])
    assert len(connection.backlog) == 1
    assert (await client.receive(6, 8)).error_code == ErrorCode.NONE
    connection.process_backlog()
    client._correlation_id = 2
    (topic,) = (await client.receive(3, 12)).topics
    assert (topic.name, len(topic.partitions)) == ("t", 3000)


async def test_a_long_request_that_is_none_closes_its_connection(bench: Bench) -> None:
    topics = [reported("t", *[7] * 30_000)]
    message = Update(controller_id=7, controller_epoch=EPOCH, topic_states=topics)
    body = b"".join(map(bytes, Update.encoder(8)(message)))
    client = bench.another_client()
    header = b"\0\6\0\x08\0\0\0\1\xff\xff\0"
    client.connection.process([memoryview(bytearray(header + body[:-3]))])
    assert client.connection.is_parked
    with trio.fail_after(60):
        while not client.connection.is_closing:
            await trio.lowlevel.checkpoint()
    assert client.connection.output == []
    assert not bench.broker.metadata_cache.contains("t")


# -- what the controller sends ------------------------------------------------------------------


async def test_a_topic_made_is_led_by_order_of_the_controller(bench: Bench) -> None:
    await bench.create_topic("t", 2)
    manager = bench.broker.replica_manager
    for index in range(2):
        partition = manager.partition_or_error(TopicPartition("t", index))
        assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 0, (1,))


async def test_a_topic_deleted_is_given_up_by_order_of_the_controller(bench: Bench) -> None:
    topic_id = await bench.create_topic("t")
    with trio.fail_after(60):
        outcomes = await bench.broker.controller.delete_topics([topic_id])
    assert outcomes == {topic_id: None}
    assert bench.broker.replica_manager.get_partition(TopicPartition("t", 0)) is None
    assert bench.broker.log_manager.get_log(TopicPartition("t", 0)) is None
    assert not bench.broker.metadata_cache.contains("t")


async def test_a_broker_is_told_of_everything_when_its_controller_takes_over(
    bench: Bench,
) -> None:
    cache = bench.broker.metadata_cache
    assert await wait_for_metadata(cache, lambda snapshot: cache.is_complete, 5000)
    assert cache.has_alive_broker(1)


async def test_brokers_reach_each_other_where_the_metadata_says(bench: Bench) -> None:
    cache = bench.broker.metadata_cache
    assert await wait_for_metadata(cache, lambda snapshot: 1 in snapshot.alive_brokers, 5000)
    async with bench.broker.links.to_broker(1, {ApiKey.API_VERSIONS: 0}) as link:
        answer = await link.request(messages.ApiVersionsRequest(), version=0, timeout_ms=5000)
    assert answer.error_code == ErrorCode.NONE
    with pytest.raises(ConnectError, match="broker 7 is not alive"):
        async with bench.broker.links.to_broker(7, {ApiKey.API_VERSIONS: 0}):
            pass


# -- one request, one snapshot ------------------------------------------------------------------


async def test_a_request_is_answered_from_one_snapshot(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await update(bench, reported("t", 7), reported("u", 7, topic_id=b"u" * 16))
    cache = bench.broker.metadata_cache
    known = cache.snapshot.partition_states
    states = [known["t"][0]._replace(leader=9), known["u"][0]._replace(leader=LEADER_DURING_DELETE)]

    def authorize(request: Any, operation: str, resource_type: str, resource_name: str) -> bool:
        cache.update_metadata(MetadataUpdate(9, EPOCH, [], states))
        return True

    bench.authorize_by(authorize)
    requested = messages.MetadataRequest.MetadataRequestTopic
    request = messages.MetadataRequest(topics=[requested(name="t"), requested(name="u")])
    for controller_id, brokers, leaders in [(7, [7], [7, 7]), (9, [], [-1])]:
        answer = await bench.client.call(request, 12)
        assert answer.controller_id == controller_id
        assert [node.node_id for node in answer.brokers] == brokers
        told_leaders = [each.leader_id for topic in answer.topics for each in topic.partitions]
        assert told_leaders == leaders
        request = messages.MetadataRequest(topics=[requested(name="t")])


ILLEGAL_PARTITIONS = {
    "a way out of the folder": ("../x", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    "a folder": ("..", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    "a separator": ("a/b", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    "NUL": ("a\0b", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    "no name": ("", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    "a long name": ("a" * 250, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    "a negative number": ("t", -1, ErrorCode.INVALID_PARTITIONS),
    "a long folder": ("a" * 249, 2**31 - 1, ErrorCode.INVALID_PARTITIONS),
}


@pytest.mark.parametrize(
    ("topic", "partition", "code"), ILLEGAL_PARTITIONS.values(), ids=ILLEGAL_PARTITIONS
)
async def test_partitions_that_there_cannot_be_are_refused(
    bench: Bench,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    topic: str,
    partition: int,
    code: ErrorCode,
) -> None:
    """Nothing is made or removed outside of the log directory, and no directory goes offline."""
    await elect(bench)
    before = sorted(path.name for path in tmp_path.iterdir())
    led = Lead.LeaderAndIsrPartitionState(
        partition_index=partition, leader=1, isr=[1], replicas=[1], is_new=True
    )
    updated = Update.UpdateMetadataPartitionState(
        partition_index=partition, leader=1, isr=[1], replicas=[1]
    )
    stopped = Stop.StopReplicaPartitionState(
        partition_index=partition, leader_epoch=-2, delete_partition=True
    )
    requests = [
        (
            Lead(
                controller_id=7,
                controller_epoch=EPOCH,
                topic_states=[
                    Lead.LeaderAndIsrTopicState(
                        topic_name=topic, topic_id=TOPIC_ID, partition_states=[led]
                    )
                ],
            ),
            7,
        ),
        (
            Update(
                controller_id=7,
                controller_epoch=EPOCH,
                topic_states=[
                    Update.UpdateMetadataTopicState(
                        topic_name=topic, topic_id=TOPIC_ID, partition_states=[updated]
                    )
                ],
            ),
            8,
        ),
        (
            Stop(
                controller_id=7,
                controller_epoch=EPOCH,
                topic_states=[
                    Stop.StopReplicaTopicState(topic_name=topic, partition_states=[stopped])
                ],
            ),
            4,
        ),
    ]
    for request, version in requests:
        answer = await bench.client.call(request, version)
        assert answer.error_code == code, type(request).__name__
    assert [each for each in caplog.records if each.exc_info] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert not bench.broker.log_manager.directories.has_offline
    assert topic not in bench.broker.metadata_cache.snapshot.topic_configs
    assert (await lead(bench, 1, 0)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("failure", [SessionExpired, StoreUnreachable])
async def test_a_session_that_ends_while_a_request_is_handled_is_an_error(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: type[MetadataStoreError],
) -> None:
    async def get_many(paths: Sequence[str]) -> list[StoredNode | None]:
        raise failure(paths[0])

    await elect(bench)
    monkeypatch.setattr(bench.broker.metadata_store, "get_many", get_many)
    answer = await lead(bench, 1, 0)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    assert [each for each in caplog.records if each.exc_info] == []
    assert any("the metadata store refused" in message for message in caplog.messages)
