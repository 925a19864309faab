"""However much a request names, others have a turn after a bounded number of calls of functions.

The requests are the worst ones of the benchmark `worst_requests`. Work is counted by a profiler,
not timed: a step is as short as it can be.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest
import trio
from support.selection import short, slow_unless
from support.work_per_turn import CALLS_PER_TURN_MAX, Work

from odradek.bench.loads.wire import frame_of
from odradek.broker.handlers.registry import REGISTRATIONS
from odradek.common.errors import ErrorCode
from odradek.coordinator.transaction.states import TransactionState
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import build_batch
from odradek.runtime import long_work
from odradek.runtime.rng import uuid_to_text
from odradek.tools.benchmarks.worst.requests import SAME, UNKNOWN, Candidate, candidates
from odradek.tools.benchmarks.worst.scene import Scene

from .conftest import Bench

TOPIC = "orders"
REQUEST_BYTES = 80_000
PARTITIONS = 600
STATE_BATCHES = 3000
NAMES = 30_000
PAIRS = 10_000
FETCHED = 1500
WORST: list[tuple[ApiKey, str]] = [
    (ApiKey.PRODUCE, "topic_data"),
    (ApiKey.FETCH, "topics.partitions"),
    (ApiKey.LEADER_AND_ISR, "topic_states.partition_states"),
    (ApiKey.LEADER_AND_ISR, "topic_states"),
    (ApiKey.STOP_REPLICA, "topic_states.partition_states"),
    (ApiKey.UPDATE_METADATA, "topic_states.partition_states"),
    (ApiKey.DELETE_RECORDS, "topics.partitions"),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "transactions.topics.partitions"),
    (ApiKey.WRITE_TXN_MARKERS, "markers"),
    (ApiKey.DESCRIBE_CONFIGS, "resources"),
    (ApiKey.ALTER_CONFIGS, "resources"),
    (ApiKey.ALTER_CONFIGS, "resources.configs"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "resources"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "resources.configs"),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, "dirs.topics.partitions"),
    (ApiKey.DESCRIBE_LOG_DIRS, "topics.partitions"),
    (ApiKey.CREATE_PARTITIONS, "topics"),
    (ApiKey.CREATE_TOPICS, "topics"),
    (ApiKey.DELETE_TOPICS, "topics"),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, "topics"),
    (ApiKey.DELETE_GROUPS, "groups_names"),
    (ApiKey.ELECT_LEADERS, "topic_partitions.partitions"),
    (ApiKey.ELECT_LEADERS, "topic_partitions"),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, "topics.partitions"),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, "topics.partition_indexes"),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "users"),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "upsertions"),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "deletions"),
    (ApiKey.ALTER_CLIENT_QUOTAS, "entries"),
    (ApiKey.ALTER_CLIENT_QUOTAS, "entries.entity"),
    (ApiKey.LIST_OFFSETS, "topics.partitions"),
    (ApiKey.METADATA, "topics"),
    (ApiKey.FIND_COORDINATOR, "coordinator_keys"),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, "topics.partitions"),
    (ApiKey.CREATE_ACLS, "creations"),
    (ApiKey.DELETE_ACLS, "filters"),
    (ApiKey.CREATE_DELEGATION_TOKEN, "renewers"),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, "owners"),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "components"),
    (ApiKey.ALTER_PARTITION, "topics.partitions"),
    (ApiKey.UPDATE_FEATURES, "feature_updates"),
    (ApiKey.SHARE_FETCH, "topics.partitions"),
    (ApiKey.SHARE_ACKNOWLEDGE, "topics.partitions"),
    (ApiKey.INITIALIZE_SHARE_GROUP_STATE, "topics.partitions"),
    (ApiKey.READ_SHARE_GROUP_STATE, "topics.partitions"),
    (ApiKey.WRITE_SHARE_GROUP_STATE, "topics.partitions.state_batches"),
    (ApiKey.DELETE_SHARE_GROUP_STATE, "topics.partitions"),
    (ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, "topics.partitions"),
]
"""APIs, and the array that is filled with what is not known."""

OF_COORDINATORS = {
    ApiKey.OFFSET_COMMIT: ("topics.partitions", SAME),
    ApiKey.OFFSET_FETCH: ("groups.topics", SAME),
    ApiKey.OFFSET_DELETE: ("topics.partitions", SAME),
    ApiKey.JOIN_GROUP: ("protocols", UNKNOWN),
    ApiKey.SYNC_GROUP: ("assignments", UNKNOWN),
    ApiKey.LEAVE_GROUP: ("members", UNKNOWN),
    ApiKey.DESCRIBE_GROUPS: ("groups", UNKNOWN),
    ApiKey.LIST_GROUPS: ("states_filter", UNKNOWN),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ("subscribed_topic_names", UNKNOWN),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ("group_ids", UNKNOWN),
    ApiKey.DESCRIBE_TRANSACTIONS: ("transactional_ids", UNKNOWN),
    ApiKey.LIST_TRANSACTIONS: ("state_filters", UNKNOWN),
    ApiKey.DESCRIBE_PRODUCERS: ("topics.partition_indexes", UNKNOWN),
    ApiKey.TXN_OFFSET_COMMIT: ("topics.partitions", SAME),
    ApiKey.SHARE_GROUP_HEARTBEAT: ("subscribed_topic_names", UNKNOWN),
    ApiKey.SHARE_GROUP_DESCRIBE: ("group_ids", UNKNOWN),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: ("groups.topics.partitions", UNKNOWN),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: ("topics.partitions", UNKNOWN),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: ("topics", UNKNOWN),
    ApiKey.STREAMS_GROUP_HEARTBEAT: ("active_tasks", UNKNOWN),
    ApiKey.STREAMS_GROUP_DESCRIBE: ("group_ids", UNKNOWN),
}
"""By API of coordinators, the array that is filled, and whether with what is known."""


FEW = {ApiKey.LIST_CONFIG_RESOURCES}
"""APIs whose arrays may have so few elements that no request is long."""


def test_every_api_with_an_array_is_tried() -> None:
    scene = Scene(1, [TOPIC], 1, {TOPIC: bytes(16)}, ["g"], ["x"], ["/none"])
    tried = {api for api, _ in WORST} | OF_COORDINATORS.keys()
    with_arrays = {
        api
        for api in map(ApiKey, REGISTRATIONS)
        if any(": " in each.shape for each in candidates(api, scene, REQUEST_BYTES))
    }
    assert with_arrays - FEW <= tried


@pytest.fixture
async def work(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Work]:
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    counted = Work()
    nursery.start_soon(counted.run)
    yield counted
    sys.setprofile(None)


@pytest.fixture
def clocked_work(work: Work, monkeypatch: pytest.MonkeyPatch) -> Work:
    """The same, with steps that end by what was counted; to be had before the broker."""
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.003)
    monkeypatch.setattr(long_work, "precise_seconds", work.seconds)
    return work


def worst_request(api: ApiKey, array: str, scene: Scene, naming: str = UNKNOWN) -> Candidate:
    """The longest that is not refused for its length."""
    for candidate in candidates(api, scene, REQUEST_BYTES):
        if candidate.shape.startswith(f"{array}: {naming}"):
            return candidate
    raise AssertionError(f"{api.name} has no such array")


async def answer_to(bench: Bench, frame: bytes) -> bool:
    """Send a request; returns whether it was answered: else it was too long."""
    client = bench.another_client()
    connection = client.connection
    connection.process([memoryview(bytearray(frame[4:]))])
    bench.broker.server.finish_outside_work()
    with trio.fail_after(60):
        while connection.unanswered and not connection.is_closing:
            await client.woken()
    return not connection.is_closing


@pytest.mark.parametrize(
    ("api", "array"),
    [
        pytest.param(*case, marks=slow_unless(number < 4), id=f"{case[0].name}-{case[1]}")
        for number, case in enumerate(WORST)
    ],
)
async def test_others_have_a_turn_after_a_bounded_number_of_calls(
    bench: Bench, work: Work, api: ApiKey, array: str
) -> None:
    topic_id = await bench.create_topic(TOPIC)
    scene = Scene(bench.broker.broker_id, [TOPIC], 1, {TOPIC: topic_id}, ["g"], ["x"], ["/none"])
    await check_turns(bench, work, worst_request(api, array, scene))


async def check_turns(bench: Bench, work: Work, candidate: Candidate, tasks: int = 1) -> None:
    while not await answer_to(bench, candidate.frame):
        smaller = candidate.smaller()
        assert smaller is not None
        candidate = smaller
    # What was imported and compiled at the first request is no part of what others cost.
    await trio.lowlevel.checkpoint()
    frame = candidate.frame
    with work.counted():
        assert await answer_to(bench, frame)
    await work.check(tasks)


async def test_a_produce_in_a_transaction_takes_turns(bench: Bench, work: Work) -> None:
    batch = bytes(
        build_batch([(b"k", b"v", 0, ())], producer_id=7, producer_epoch=0, transactional=True)
    )
    request = messages.ProduceRequest
    partition = request.PartitionProduceData(index=0, records=batch)
    topics = [
        request.TopicProduceData(name=f"unknown-{number}", partition_data=[partition])
        for number in range(PARTITIONS)
    ]
    frame = frame_of(request(transactional_id="x", acks=-1, topic_data=topics), 9)
    assert await answer_to(bench, frame)
    await trio.lowlevel.checkpoint()
    with work.counted():
        assert await answer_to(bench, frame)
    await work.check()


async def find_coordinators(bench: Bench) -> None:
    """Have both coordinators' topics made and loaded."""
    for kind in (0, 1):
        request = messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"])
        answer = await bench.client.call(request, 4)
        assert not answer.coordinators[0].error_code


@pytest.mark.parametrize("api", short(OF_COORDINATORS, 4), ids=lambda api: api.name)
async def test_what_coordinators_do_takes_turns_as_well(
    bench: Bench, work: Work, api: ApiKey
) -> None:
    topic_id = await bench.create_topic(TOPIC)
    await find_coordinators(bench)
    scene = Scene(bench.broker.broker_id, [TOPIC], 1, {TOPIC: topic_id}, ["g"], ["x"], ["/none"])
    array, naming = OF_COORDINATORS[api]
    if naming == SAME:
        await bench.client.call(commit("g", 1), 8)
    # The request has a task, and what its coordinator appends has another.
    await check_turns(bench, work, worst_request(api, array, scene, naming), tasks=2)


async def begin_share_partition(bench: Bench) -> bytes:
    """Have the states of partition 0 kept for group g; returns the topic's id."""
    bench.authorize_by(lambda *what: True)
    topic_id = await bench.create_topic(TOPIC)
    key = f"g:{uuid_to_text(topic_id)}:0"
    find = messages.FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
    answer = await bench.client.call(find, 6)
    assert answer.coordinators[0].error_code == ErrorCode.NONE
    initialize = messages.InitializeShareGroupStateRequest
    topic = initialize.InitializeStateData(
        topic_id=topic_id, partitions=[initialize.PartitionData(partition=0, start_offset=0)]
    )
    answer = await bench.client.call(initialize(group_id="g", topics=[topic]), 0)
    assert answer.results[0].partitions[0].error_code == ErrorCode.NONE
    return topic_id


def state_batches(offsets: Iterable[int]) -> list[messages.WriteShareGroupStateRequest.StateBatch]:
    """Records that are done with, none beside another."""
    make = messages.WriteShareGroupStateRequest.StateBatch
    return [
        make(first_offset=2 * each, last_offset=2 * each, delivery_state=2, delivery_count=1)
        for each in offsets
    ]


async def test_writes_of_states_of_a_share_partition_take_turns(bench: Bench, work: Work) -> None:
    topic_id = await begin_share_partition(bench)
    write = messages.WriteShareGroupStateRequest

    def of_batches(*written: Iterable[int]) -> bytes:
        partitions = [write.PartitionData(state_batches=state_batches(each)) for each in written]
        topic = write.WriteStateData(topic_id=topic_id, partitions=partitions)
        return frame_of(write(group_id="g", topics=[topic]), 1)

    for written in ([reversed(range(STATE_BATCHES))], [[each] for each in range(PARTITIONS)]):
        frame = of_batches(*written)
        assert await answer_to(bench, of_batches([0]))
        await trio.lowlevel.checkpoint()
        with work.counted():
            assert await answer_to(bench, frame)
        await work.check(tasks=2)  # what appends, and what answers

    read = messages.ReadShareGroupStateRequest
    topic = read.ReadStateData(topic_id=topic_id, partitions=[read.PartitionData()])
    request = read(group_id="g", topics=[topic])
    with work.counted():
        assert await answer_to(bench, frame_of(request, 0))
    await work.check()
    answer = await bench.client.call(request, 0)
    (kept,) = answer.results[0].partitions
    assert [each.first_offset for each in kept.state_batches] == [
        2 * each for each in range(STATE_BATCHES)
    ]


def names(word: str, count: int) -> list[str]:
    return [f"{word}{number}" for number in range(count)]


def consumer_heartbeat(epoch: int, topics: list[str] | None, rack: str) -> Any:
    return messages.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        rack_id=rack,
        subscribed_topic_names=topics,
        topic_partitions=[],
    )


def share_heartbeat(epoch: int, topics: list[str] | None, rack: str) -> Any:
    return messages.ShareGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=epoch,
        rack_id=rack,
        subscribed_topic_names=topics,
    )


@pytest.mark.parametrize(
    ("heartbeat", "describe"),
    [
        (consumer_heartbeat, messages.ConsumerGroupDescribeRequest),
        (share_heartbeat, messages.ShareGroupDescribeRequest),
    ],
)
async def test_members_that_read_very_many_topics_are_described_in_turns(
    bench: Bench,
    work: Work,
    heartbeat: Callable[[int, list[str] | None, str], Any],
    describe: Callable[..., Any],
) -> None:
    bench.authorize_by(lambda *what: True)
    await find_coordinators(bench)
    answer = await bench.client.call(heartbeat(0, names("u", NAMES), "a"), 1)
    assert answer.error_code == ErrorCode.NONE
    request = describe(group_ids=["g"])
    (group,) = (await bench.client.call(request, 1)).groups
    assert group.error_code == ErrorCode.NONE
    assert group.members[0].subscribed_topic_names == sorted(names("u", NAMES))
    frame = frame_of(request, 1)
    with work.counted():
        assert await answer_to(bench, frame)
    await work.check()


@pytest.mark.parametrize("heartbeat", [consumer_heartbeat, share_heartbeat])
async def test_heartbeats_of_members_that_read_very_many_topics_take_turns(
    bench: Bench, work: Work, heartbeat: Callable[[int, list[str] | None, str], Any]
) -> None:
    await find_coordinators(bench)
    answer = await bench.client.call(heartbeat(0, names("warm", NAMES), "a"), 1)
    # What the last says is short, and what is stored then is not.
    for topics, rack in ((names("u", NAMES), "a"), (None, "b")):
        assert answer.error_code == ErrorCode.NONE
        request = heartbeat(answer.member_epoch, topics, rack)
        api_key = type(request).api_key
        body = b"".join(type(request).encoder(1)(request))
        with work.counted():
            bench.client.send_encoded(body, 1, api_key)
            answer = await bench.client.receive(api_key, 1)
        await work.check(tasks=2)  # what decodes, and what goes on with it
    assert answer.error_code == ErrorCode.NONE


streams = messages.StreamsGroupHeartbeatRequest


def pairs(count: int) -> list[messages.StreamsGroupHeartbeatRequest.KeyValue]:
    return [streams.KeyValue(key=name, value="v") for name in names("k", count)]


@pytest.mark.parametrize(
    ("tags", "subtopology"),
    [
        (pairs(PAIRS), streams.Subtopology(subtopology_id="0", source_topics=[TOPIC])),
        ([], streams.Subtopology(subtopology_id="0", source_topics=names("u", NAMES))),
        (
            [],
            streams.Subtopology(
                subtopology_id="0",
                source_topics=[TOPIC],
                repartition_sink_topics=names("u", NAMES),
            ),
        ),
        (
            [],
            streams.Subtopology(
                subtopology_id="0",
                source_topics=[TOPIC],
                state_changelog_topics=[streams.TopicInfo(name="log", topic_configs=pairs(PAIRS))],
            ),
        ),
    ],
    ids=["tags", "sources", "sinks", "configs"],
)
async def test_heartbeats_of_members_with_large_topologies_take_turns(
    bench: Bench,
    work: Work,
    tags: list[messages.StreamsGroupHeartbeatRequest.KeyValue],
    subtopology: messages.StreamsGroupHeartbeatRequest.Subtopology,
) -> None:
    await bench.create_topic(TOPIC)
    await find_coordinators(bench)
    for group_id in ("first", "second"):
        request = streams(
            group_id=group_id,
            member_id="m",
            rebalance_timeout_ms=60_000,
            topology=streams.Topology(subtopologies=[subtopology]),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id="p",
            client_tags=tags,
        )
        body = b"".join(streams.encoder(0)(request))
        with work.counted():
            bench.client.send_encoded(body, 0, ApiKey.STREAMS_GROUP_HEARTBEAT)
            answer = await bench.client.receive(ApiKey.STREAMS_GROUP_HEARTBEAT, 0)
        assert answer.error_code == ErrorCode.NONE
    await work.check(tasks=2)  # what decodes, and what goes on with it


def commit(group_id: str, count: int) -> messages.OffsetCommitRequest:
    request = messages.OffsetCommitRequest
    partitions = [request.OffsetCommitRequestPartition(partition_index=n) for n in range(count)]
    topic = request.OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
    return request(group_id=group_id, generation_id_or_member_epoch=-1, topics=[topic])


async def test_a_group_of_many_offsets_is_deleted_in_turns(bench: Bench, work: Work) -> None:
    await bench.create_topic(TOPIC, PARTITIONS)
    await find_coordinators(bench)
    groups = ["first", "second"]
    for group_id in groups:
        answer = await bench.client.call(commit(group_id, PARTITIONS), 8)
        assert {each.error_code for each in answer.topics[0].partitions} == {ErrorCode.NONE}
    delete = messages.DeleteGroupsRequest
    for group_id in groups:
        with work.counted():
            answer = await bench.client.call(delete(groups_names=[group_id]), 2)
        assert answer.results[0].error_code == ErrorCode.NONE
    await work.check(tasks=2)


def fetch(count: int, offset: int = 0, **fields: int) -> messages.FetchRequest:
    request = messages.FetchRequest
    partitions = [
        request.FetchPartition(partition=n, fetch_offset=offset, partition_max_bytes=1 << 20)
        for n in range(count)
    ]
    topics = [request.FetchTopic(topic=TOPIC, partitions=partitions)] if count else []
    return request(topics=topics, **fields)


async def test_fetches_without_a_session_take_turns_first_and_repeated(
    bench: Bench, work: Work
) -> None:
    await bench.create_topic(TOPIC, FETCHED)
    client = bench.client
    await client.call(fetch(2, session_epoch=-1), 11)
    for offset in (0, 0, 1, 0):  # as a new one, in an implicit session, and with other offsets
        with work.counted():
            answer = await client.call(fetch(FETCHED, offset, session_epoch=-1), 11)
            client.connection.note_sent()
        for _ in range(2):  # after one, the onlooker may not have had its turn yet
            await trio.lowlevel.checkpoint()
        assert 0 < work.most <= 2 * CALLS_PER_TURN_MAX  # what decodes, and what goes on with it
        assert sum(len(topic.partitions) for topic in answer.responses) == FETCHED


async def test_fetches_of_a_session_take_turns(bench: Bench, work: Work) -> None:
    await bench.create_topic(TOPIC, FETCHED)
    client = bench.client
    await client.call(fetch(2, session_epoch=0), 11)
    with work.counted():
        answer = await client.call(fetch(FETCHED, session_epoch=0), 11)
    await work.check(tasks=2)
    await bench.create_topic("another")  # which partitions are idle has to be found out again
    with work.counted():
        again = fetch(0, session_id=answer.session_id, session_epoch=1)
        assert not (await client.call(again, 11)).responses
    await work.check(tasks=2)


async def test_a_fetch_that_has_waited_for_many_partitions_takes_turns(
    bench: Bench, work: Work
) -> None:
    await bench.create_topic(TOPIC, FETCHED)
    purgatory = bench.broker.replica_manager.delayed_fetch
    produce = messages.ProduceRequest
    for round_number in range(2):  # what is imported and compiled for the first is not counted
        fields = {"session_epoch": -1, "max_wait_ms": 3_600_000, "min_bytes": 1}
        waiting = fetch(FETCHED, round_number, **fields)
        waiting.topics[0].partitions[1:] = fetch(FETCHED).topics[0].partitions[1:]
        clients = [bench.another_client(f"{round_number}-{number}") for number in range(5)]
        for client in clients:
            client.send(waiting, 11)
        while purgatory.sizes()[0] < len(clients):
            await trio.lowlevel.checkpoint()
        batch = build_batch([(None, b"v", 1_700_000_000_000, ())])
        data = produce.PartitionProduceData(records=batch)
        topic = produce.TopicProduceData(name=TOPIC, partition_data=[data])
        with work.counted():
            await bench.client.call(produce(acks=1, timeout_ms=1000, topic_data=[topic]), 8)
            for client in clients:
                while not client.connection.output:
                    await trio.lowlevel.checkpoint()
        for client in clients:
            woken = await client.receive(ApiKey.FETCH, 11)
            records = [part.records for part in woken.responses[0].partitions if part.records]
            assert len(records) == 1
    await work.check(tasks=len(clients))


async def begin_transaction(bench: Bench) -> tuple[int, int]:
    """A producer whose transaction has all partitions of the topic."""
    initialize = messages.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    producer = await bench.client.call(initialize, 4)
    add = messages.AddPartitionsToTxnRequest
    topics = [add.AddPartitionsToTxnTopic(name=TOPIC, partitions=list(range(PARTITIONS)))]
    answer = await bench.client.call(
        add(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=topics,
        ),
        3,
    )
    (of_topic,) = answer.results_by_topic_v3_and_below
    assert {each.partition_error_code for each in of_topic.results_by_partition} == {ErrorCode.NONE}
    return producer.producer_id, producer.producer_epoch


async def test_the_markers_of_a_transaction_of_many_partitions_are_written_in_turns(
    bench: Bench, work: Work
) -> None:
    await bench.create_topic(TOPIC, PARTITIONS)
    await find_coordinators(bench)
    for _ in range(2):
        producer_id, epoch = await begin_transaction(bench)
        end = messages.EndTxnRequest(
            transactional_id="x", producer_id=producer_id, producer_epoch=epoch, committed=True
        )
        with work.counted():
            assert not (await bench.client.call(end, 3)).error_code
            (known,) = bench.broker.coordinators.transaction.ids
            while known.transaction.state is not TransactionState.COMPLETE_COMMIT:
                await trio.lowlevel.checkpoint()
    await work.check(tasks=2)


async def test_commits_of_a_transaction_take_turns(bench: Bench, work: Work) -> None:
    await bench.create_topic(TOPIC, PARTITIONS)
    await find_coordinators(bench)
    producer_id, epoch = await begin_transaction(bench)
    request = messages.TxnOffsetCommitRequest
    partitions = [
        request.TxnOffsetCommitRequestPartition(partition_index=number, committed_offset=1)
        for number in range(PARTITIONS)
    ]
    commits = request(
        transactional_id="x",
        group_id="g",
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[request.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=partitions)] * 4,
    )
    answer = await bench.client.call(commits, 5)
    errors = {each.error_code for topic in answer.topics for each in topic.partitions}
    assert errors == {ErrorCode.NONE}
    frame = frame_of(commits, 5)
    with work.counted():
        assert await answer_to(bench, frame)
    await work.check(tasks=2)  # what appends, and what is told of it


async def test_a_topic_of_many_partitions_is_made_grown_and_deleted_in_turns(
    clocked_work: Work, bench: Bench
) -> None:
    work = clocked_work
    await find_coordinators(bench)
    create = messages.CreateTopicsRequest
    topic = create.CreatableTopic(name=TOPIC, num_partitions=PARTITIONS // 2, replication_factor=1)
    grow = messages.CreatePartitionsRequest
    growth = grow.CreatePartitionsTopic(name=TOPIC, count=PARTITIONS, assignments=None)
    with work.counted():
        assert await answer_to(bench, frame_of(create(topics=[topic], timeout_ms=60_000), 7))
        assert await answer_to(bench, frame_of(grow(topics=[growth], timeout_ms=60_000), 3))
    await work.check(tasks=2)
    assert bench.broker.metadata_cache.partition_count(TOPIC) == PARTITIONS
    answer = await bench.client.call(commit("g", PARTITIONS), 8)
    assert {each.error_code for each in answer.topics[0].partitions} == {ErrorCode.NONE}
    delete = messages.DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=60_000)
    with work.counted():
        assert await answer_to(bench, frame_of(delete, 3))
    await work.check(tasks=2)
    assert not bench.broker.metadata_cache.contains(TOPIC)
