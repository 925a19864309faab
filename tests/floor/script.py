"""The requests that the floor holds, each with the check that it was really answered."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from broker_inside import Client

from odradek.broker.broker import Broker
from odradek.common.acl import (
    CLUSTER_NAME,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.protocol.records import build_batch

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, HEARTBEAT = 0, 1, 2, 3, 8, 12
CREATE_TOPICS, JOIN_GROUP, SYNC_GROUP, FIND_COORDINATOR = 19, 11, 14, 10
CONSUMER_GROUP_HEARTBEAT = 68
VERSIONS = {
    PRODUCE: 13,
    FETCH: 17,
    LIST_OFFSETS: 10,
    METADATA: 13,
    OFFSET_COMMIT: 9,
    HEARTBEAT: 4,
    CREATE_TOPICS: 7,
    JOIN_GROUP: 9,
    SYNC_GROUP: 5,
    FIND_COORDINATOR: 6,
    CONSUMER_GROUP_HEARTBEAT: 1,
}
"""Of each API: what Kafka 4's own clients speak."""

PARTITIONS_OF_A_SESSION = 1000
PARTITIONS_ACTIVE = 12
BULK_RECORDS, BULK_VALUE_BYTES = 148, 100
BULK_BYTES_MIN = 16_000
WAIT_MS_MAX = 30_000


class Step(NamedTuple):
    """One request of an exchange: the pass that handles it is what is counted."""

    client: Client
    frame: bytes


class Exchange(NamedTuple):
    """What is counted together, and how to tell afterwards that it was answered.

    Attributes:
        steps: the requests; all but the last may be left waiting.
        check: takes the answers and fails unless they are what they must be.
    """

    steps: Sequence[Step]
    check: Callable[[], None]


class Case(NamedTuple):
    """One row of the floor.

    Attributes:
        name: in the table.
        says: what the request is.
        exchange: makes the next one.
        check_logs: fails unless the logs hold what was answered; gets how many exchanges were.
        is_long: whether it is many thousand steps, so that a few of them must do.
    """

    name: str
    says: str
    exchange: Callable[[], Exchange]
    check_logs: Callable[[int], None]
    is_long: bool = False


class Stage:
    """What the cases are prepared with: a broker, a connection for each use, topics."""

    def __init__(self, broker: Broker, now_ms: int) -> None:
        self.broker = broker
        self.now_ms = now_ms
        self.clients: list[Client] = []
        self.topic_ids: dict[str, bytes] = {}

    def client(self) -> Client:
        """Another connection."""
        client = Client(self.broker)
        self.clients.append(client)
        return client

    async def ask(self, client: Client, request: Any) -> Any:
        """Have a request of the preparations answered."""
        return await client.ask(request, VERSIONS[type(request).api_key])

    async def make_topics(self, **partitions: int) -> None:
        """Create topics by their numbers of partitions."""
        request = messages.CreateTopicsRequest
        answer = await self.ask(
            self.client(),
            request(
                topics=[
                    request.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
                    for name, count in partitions.items()
                ]
            ),
        )
        for topic in answer.topics:
            expect_none(topic.error_code)
            self.topic_ids[topic.name] = topic.topic_id

    def records(self, topic: str, partition: int = 0) -> int:
        """How many records a partition's log holds that clients may read."""
        hosted = self.broker.replica_manager.get_partition(TopicPartition(topic, partition))
        assert hosted is not None, f"there is no partition {partition} of {topic}"
        return hosted.high_watermark

    def batch(self, records: int = 1) -> bytes:
        """Records of 100 bytes each, as producers send them."""
        value = b"v" * BULK_VALUE_BYTES
        return bytes(build_batch([(None, value, self.now_ms, [])] * records))

    def produce(self, topic: str, partitions: Sequence[int], batch: bytes, acks: int) -> Any:
        """A Produce request of one topic."""
        request = messages.ProduceRequest
        return request(
            transactional_id=None,
            acks=acks,
            timeout_ms=30_000,
            topic_data=[
                request.TopicProduceData(
                    topic_id=self.topic_ids[topic],
                    partition_data=[
                        request.PartitionProduceData(index=index, records=memoryview(batch))
                        for index in partitions
                    ],
                )
            ],
        )

    def fetch(
        self,
        topic: str,
        offsets: dict[int, int],
        *,
        session: tuple[int, int] = (0, -1),
        max_wait_ms: int = 0,
        partition_max_bytes: int = 1 << 20,
    ) -> Any:
        """A Fetch request of one topic's partitions, by offset; of none for all of a session."""
        request = messages.FetchRequest
        partitions = [
            request.FetchPartition(
                partition=index,
                current_leader_epoch=-1,
                fetch_offset=offset,
                partition_max_bytes=partition_max_bytes,
            )
            for index, offset in offsets.items()
        ]
        topics = [request.FetchTopic(topic_id=self.topic_ids[topic], partitions=partitions)]
        return request(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=50 << 20,
            isolation_level=0,
            session_id=session[0],
            session_epoch=session[1],
            topics=topics if partitions else [],
            forgotten_topics_data=[],
            rack_id="",
        )


Prepare = Callable[[Stage], Awaitable[Case]]
Fetches = Callable[..., Any]
"""Gives the next request of a row."""


def expect_none(error_code: int) -> None:
    """Fail for any error."""
    assert not error_code, f"the broker answered {ErrorCode(error_code).name}"


def no_logs_to_check(exchanges: int) -> None:
    """What does not write leaves nothing in the logs."""


def single(client: Client, request: Any, check: Callable[[Any], None]) -> Callable[[], Exchange]:
    """Exchanges of the same request each time."""
    api_key = type(request).api_key
    version = VERSIONS[api_key]
    steps = [Step(client, client.frame(request, version))]
    exchange = Exchange(steps, lambda: check(client.answer(api_key, version)))
    return lambda: exchange


# -- Produce ---------------------------------------------------------------------------------


def produce_case(
    name: str, says: str, *, acks: int = 1, records: int = 1, partitions: Sequence[int] = (0,)
) -> Prepare:
    """A Produce of one batch to each partition of a topic of its own."""
    topic = name

    async def prepare(stage: Stage) -> Case:
        await stage.make_topics(**{topic: len(partitions)})
        batch = stage.batch(records)
        assert records == 1 or len(batch) >= BULK_BYTES_MIN

        def check(answer: Any) -> None:
            (answered,) = answer.responses
            assert [part.index for part in answered.partition_responses] == list(partitions)
            for part in answered.partition_responses:
                expect_none(part.error_code)
                assert part.base_offset >= 0

        def check_logs(exchanges: int) -> None:
            for partition in partitions:
                assert stage.records(topic, partition) == exchanges * records

        request = stage.produce(topic, partitions, batch, acks)
        return Case(name, says, single(stage.client(), request, check), check_logs)

    return prepare


async def produce_in_turn(stage: Stage) -> Case:
    """A Produce to another partition than the last one, as of a producer of several."""
    topic = "produce_in_turn"
    await stage.make_topics(**{topic: PARTITIONS_ACTIVE})
    client, batch = stage.client(), stage.batch()
    turns = itertools.cycle(
        [
            Step(client, client.frame(stage.produce(topic, [each], batch, 1), VERSIONS[PRODUCE]))
            for each in range(PARTITIONS_ACTIVE)
        ]
    )

    def check() -> None:
        (answered,) = client.answer(PRODUCE, VERSIONS[PRODUCE]).responses
        expect_none(answered.partition_responses[0].error_code)

    def check_logs(exchanges: int) -> None:
        assert sum(stage.records(topic, each) for each in range(PARTITIONS_ACTIVE)) == exchanges

    return Case(
        topic,
        "Produce of one record to each of twelve partitions in turn",
        lambda: Exchange([next(turns)], check),
        check_logs,
    )


# -- Fetch -----------------------------------------------------------------------------------


async def fetch_data(stage: Stage) -> Case:
    """A Fetch of what is there."""
    await stage.make_topics(fetch_data=1)
    client, batch = stage.client(), stage.batch(BULK_RECORDS)
    answer = await stage.ask(client, stage.produce("fetch_data", [0], batch, 1))
    expect_none(answer.responses[0].partition_responses[0].error_code)

    def check(answer: Any) -> None:
        expect_none(answer.error_code)
        (part,) = answer.responses[0].partitions
        expect_none(part.error_code)
        assert len(part.records) == len(batch)

    return Case(
        "fetch_data",
        "Fetch of one partition that has a batch of 16 KB to give",
        single(client, stage.fetch("fetch_data", {0: 0}), check),
        no_logs_to_check,
    )


def woken(
    stage: Stage,
    topic: str,
    fetch_frame: Callable[[], bytes],
    reader: Client,
    answered: Callable[[Any], None],
) -> Callable[[], Exchange]:
    """Exchanges of a Fetch that waits, and the Produce of another connection that ends that."""
    writer = stage.client()
    request = stage.produce(topic, [0], stage.batch(), 1)
    produce = Step(writer, writer.frame(request, VERSIONS[PRODUCE]))

    def check() -> None:
        for response in writer.answer(PRODUCE, VERSIONS[PRODUCE]).responses:
            expect_none(response.partition_responses[0].error_code)
        answer = reader.answer(FETCH, VERSIONS[FETCH])
        expect_none(answer.error_code)
        (fetched,) = answer.responses
        (part,) = (each for each in fetched.partitions if each.records)
        expect_none(part.error_code)
        assert len(part.records) == len(stage.batch())
        answered(answer)

    return lambda: Exchange([Step(reader, fetch_frame()), produce], check)


async def fetch_woken(stage: Stage) -> Case:
    """A long poll of one partition."""
    await stage.make_topics(fetch_woken=1)
    reader = stage.client()

    def frame() -> bytes:
        end = stage.records("fetch_woken")
        return reader.frame(
            stage.fetch("fetch_woken", {0: end}, max_wait_ms=WAIT_MS_MAX), VERSIONS[FETCH]
        )

    def check_logs(exchanges: int) -> None:
        assert stage.records("fetch_woken") == exchanges

    return Case(
        "fetch_woken",
        "Fetch that waits, and the small Produce that wakes it",
        woken(stage, "fetch_woken", frame, reader, lambda answer: None),
        check_logs,
    )


async def open_session(stage: Stage, topic: str, client: Client) -> int:
    """Open a session over all partitions of a new topic; returns its id."""
    await stage.make_topics(**{topic: PARTITIONS_OF_A_SESSION})
    offsets = dict.fromkeys(range(PARTITIONS_OF_A_SESSION), 0)
    answer = await stage.ask(client, stage.fetch(topic, offsets, session=(0, 0)))
    expect_none(answer.error_code)
    assert sum(len(fetched.partitions) for fetched in answer.responses) == len(offsets)
    assert answer.session_id, "no session was opened"
    return int(answer.session_id)


async def fetch_session(stage: Stage) -> Case:
    """A Fetch in a session in which nothing has happened."""
    client, epoch = stage.client(), 0
    session_id = await open_session(stage, "fetch_session", client)
    version = VERSIONS[FETCH]

    def check() -> None:
        answer = client.answer(FETCH, version)
        expect_none(answer.error_code)
        assert answer.session_id == session_id
        assert not answer.responses

    def exchange() -> Exchange:
        nonlocal epoch
        epoch += 1
        request = stage.fetch("fetch_session", {}, session=(session_id, epoch))
        return Exchange([Step(client, client.frame(request, version))], check)

    return Case(
        "fetch_session",
        "incremental Fetch in a session of 1,000 partitions, none of which has anything new",
        exchange,
        no_logs_to_check,
        is_long=True,
    )


async def fetch_session_woken(stage: Stage) -> Case:
    """A long poll of a session of many partitions."""
    topic = "fetch_session_woken"
    reader, epoch = stage.client(), 0
    session_id = await open_session(stage, topic, reader)

    def frame() -> bytes:
        nonlocal epoch
        epoch += 1
        end = stage.records(topic)
        request = stage.fetch(topic, {0: end}, session=(session_id, epoch), max_wait_ms=WAIT_MS_MAX)
        return reader.frame(request, VERSIONS[FETCH])

    def answered(answer: Any) -> None:
        assert answer.session_id == session_id

    def check_logs(exchanges: int) -> None:
        assert stage.records(topic) == exchanges

    return Case(
        topic,
        "Fetch in a session of 1,000 partitions that waits, and the small Produce that wakes it",
        woken(stage, topic, frame, reader, answered),
        check_logs,
        is_long=True,
    )


async def fetch_session_active(stage: Stage) -> Case:
    """A Fetch in a session all of whose partitions have something."""
    topic = "fetch_session_active"
    await stage.make_topics(**{topic: PARTITIONS_ACTIVE})
    partitions = range(PARTITIONS_ACTIVE)
    writer, reader, epoch = stage.client(), stage.client(), 0
    await stage.ask(writer, stage.produce(topic, partitions, stage.batch(), 1))
    opened = await stage.ask(
        reader, stage.fetch(topic, dict.fromkeys(partitions, 0), session=(0, 0))
    )

    def exchange() -> Exchange:
        nonlocal epoch
        epoch += 1
        session = (opened.session_id, epoch)
        request = stage.fetch(topic, dict.fromkeys(partitions, 0), session=session)
        return Exchange([Step(reader, reader.frame(request, VERSIONS[FETCH]))], check)

    def check() -> None:
        (answered,) = reader.answer(FETCH, VERSIONS[FETCH]).responses
        assert sorted(part.partition_index for part in answered.partitions) == list(partitions)
        for part in answered.partitions:
            expect_none(part.error_code)
            assert len(part.records) == len(stage.batch())

    return Case(
        topic,
        "incremental Fetch in a session of twelve partitions, each of which has a batch to give",
        exchange,
        no_logs_to_check,
    )


async def whole_fetches(stage: Stage, topic: str, client: Client, max_wait_ms: int) -> Fetches:
    """Fetches without a session of all partitions of a new topic, from another one on each time.

    The first of them are answered already: these are long, and decoded in steps.
    """
    await stage.make_topics(**{topic: PARTITIONS_OF_A_SESSION})
    turns = itertools.cycle(range(0, PARTITIONS_OF_A_SESSION, 7))

    def next_fetch(max_wait_ms: int = max_wait_ms) -> Any:
        first = next(turns)
        offsets = dict.fromkeys([*range(first, PARTITIONS_OF_A_SESSION), *range(first)], 0)
        offsets[0] = stage.records(topic)
        return stage.fetch(topic, offsets, max_wait_ms=max_wait_ms)

    for _ in range(3):
        await stage.ask(client, next_fetch(0))
    return next_fetch


async def fetch_whole(stage: Stage) -> Case:
    """A Fetch without a session of many partitions."""
    client, version = stage.client(), VERSIONS[FETCH]
    next_fetch = await whole_fetches(stage, "fetch_whole", client, 0)

    def exchange() -> Exchange:
        request = next_fetch()

        def check() -> None:
            (answered,) = client.answer(FETCH, version).responses
            (named,) = request.topics
            for part, requested in zip(answered.partitions, named.partitions, strict=True):
                assert part.partition_index == requested.partition
                expect_none(part.error_code)
                assert not part.records

        return Exchange([Step(client, client.frame(request, version))], check)

    return Case(
        "fetch_whole",
        "Fetch without a session of 1,000 partitions, in another order each time, without news",
        exchange,
        no_logs_to_check,
    )


async def fetch_whole_woken(stage: Stage) -> Case:
    """The same as a long poll: an offset moves on with each."""
    topic, reader = "fetch_whole_woken", stage.client()
    next_fetch = await whole_fetches(stage, topic, reader, WAIT_MS_MAX)

    def check_logs(exchanges: int) -> None:
        assert stage.records(topic) == exchanges

    return Case(
        topic,
        "the same that waits, and the small Produce that wakes it",
        woken(
            stage,
            topic,
            lambda: reader.frame(next_fetch(), VERSIONS[FETCH]),
            reader,
            lambda answer: None,
        ),
        check_logs,
    )


# -- what consumers ask besides ----------------------------------------------------------------


async def list_offsets(stage: Stage) -> Case:
    """ListOffsets of a partition's end."""
    await stage.make_topics(list_offsets=1)
    client, batch = stage.client(), stage.batch(3)
    await stage.ask(client, stage.produce("list_offsets", [0], batch, 1))
    request = messages.ListOffsetsRequest

    def check(answer: Any) -> None:
        (part,) = answer.topics[0].partitions
        expect_none(part.error_code)
        assert part.offset == 3

    asked = request(
        replica_id=-1,
        isolation_level=0,
        topics=[
            request.ListOffsetsTopic(
                name="list_offsets",
                partitions=[
                    request.ListOffsetsPartition(
                        partition_index=0, current_leader_epoch=-1, timestamp=-1
                    )
                ],
            )
        ],
        timeout_ms=30_000,
    )
    return Case(
        "list_offsets",
        "ListOffsets of one partition's end",
        single(client, asked, check),
        no_logs_to_check,
    )


async def metadata(stage: Stage) -> Case:
    """Metadata of one topic."""
    await stage.make_topics(metadata=3)
    request = messages.MetadataRequest

    def check(answer: Any) -> None:
        (topic,) = answer.topics
        expect_none(topic.error_code)
        assert len(topic.partitions) == 3

    asked = request(
        topics=[request.MetadataRequestTopic(topic_id=bytes(16), name="metadata")],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    return Case(
        "metadata",
        "Metadata of one topic of three partitions",
        single(stage.client(), asked, check),
        no_logs_to_check,
    )


async def find_coordinator(stage: Stage, client: Client, group: str) -> None:
    """Have the topic of the groups' offsets made and loaded."""
    request = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    while True:
        (found,) = (await stage.ask(client, request)).coordinators
        if found.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
            expect_none(found.error_code)
            return


async def classic_member(stage: Stage, client: Client, group: str) -> tuple[str, int]:
    """Join a classic group, alone; returns member id and generation."""
    await find_coordinator(stage, client, group)
    join, sync = messages.JoinGroupRequest, messages.SyncGroupRequest
    member_id = ""
    while True:
        joined = await stage.ask(
            client,
            join(
                group_id=group,
                session_timeout_ms=45_000,
                rebalance_timeout_ms=45_000,
                member_id=member_id,
                group_instance_id=None,
                protocol_type="consumer",
                protocols=[join.JoinGroupRequestProtocol(name="range", metadata=b"")],
                reason=None,
            ),
        )
        member_id = joined.member_id or member_id
        if joined.error_code not in (
            ErrorCode.MEMBER_ID_REQUIRED,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.NOT_COORDINATOR,
        ):
            break
    expect_none(joined.error_code)
    synced = await stage.ask(
        client,
        sync(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[sync.SyncGroupRequestAssignment(member_id=member_id, assignment=b"")],
        ),
    )
    expect_none(synced.error_code)
    return member_id, joined.generation_id


async def heartbeat(stage: Stage) -> Case:
    """A heartbeat of a classic group's member."""
    client = stage.client()
    member_id, generation = await classic_member(stage, client, "heartbeats")
    asked = messages.HeartbeatRequest(
        group_id="heartbeats",
        generation_id=generation,
        member_id=member_id,
        group_instance_id=None,
    )
    return Case(
        "heartbeat",
        "Heartbeat of a classic group's member",
        single(client, asked, lambda answer: expect_none(answer.error_code)),
        no_logs_to_check,
    )


async def offset_commit(stage: Stage) -> Case:
    """A commit of one partition's offset."""
    await stage.make_topics(offset_commit=1)
    client = stage.client()
    member_id, generation = await classic_member(stage, client, "commits")
    request = messages.OffsetCommitRequest
    asked = request(
        group_id="commits",
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=None,
        topics=[
            request.OffsetCommitRequestTopic(
                name="offset_commit",
                partitions=[
                    request.OffsetCommitRequestPartition(
                        partition_index=0,
                        committed_offset=17,
                        committed_leader_epoch=-1,
                        committed_metadata="",
                    )
                ],
            )
        ],
    )
    before = stage.records("__consumer_offsets")

    def check(answer: Any) -> None:
        (part,) = answer.topics[0].partitions
        expect_none(part.error_code)

    def check_logs(exchanges: int) -> None:
        assert stage.records("__consumer_offsets") >= before + exchanges

    return Case(
        "offset_commit",
        "OffsetCommit of one partition by a classic group's member",
        single(client, asked, check),
        check_logs,
    )


async def consumer_group_heartbeat(stage: Stage) -> Case:
    """A heartbeat of KIP-848, in which nothing has changed."""
    await stage.make_topics(consumer_group_heartbeat=3)
    client, member_id = stage.client(), "AAAAAAAAAAAAAAAAAAAAAA"
    await find_coordinator(stage, client, "polls")
    request = messages.ConsumerGroupHeartbeatRequest
    owned: list[Any] = []
    epoch = 0
    while not owned:
        answer = await stage.ask(
            client,
            request(
                group_id="polls",
                member_id=member_id,
                member_epoch=epoch,
                instance_id=None,
                rack_id=None,
                rebalance_timeout_ms=45_000,
                subscribed_topic_names=["consumer_group_heartbeat"],
                subscribed_topic_regex=None,
                server_assignor=None,
                topic_partitions=[],
            ),
        )
        if answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            continue
        expect_none(answer.error_code)
        epoch = answer.member_epoch
        if answer.assignment is not None:
            owned = answer.assignment.topic_partitions
    assert len(owned[0].partitions) == 3
    asked = request(
        group_id="polls",
        member_id=member_id,
        member_epoch=epoch,
        instance_id=None,
        rack_id=None,
        rebalance_timeout_ms=-1,
        subscribed_topic_names=None,
        subscribed_topic_regex=None,
        server_assignor=None,
        topic_partitions=None,
    )

    def check(answer: Any) -> None:
        expect_none(answer.error_code)
        assert answer.member_epoch == epoch

    return Case(
        "consumer_group_heartbeat",
        "ConsumerGroupHeartbeat in which nothing has changed",
        single(client, asked, check),
        no_logs_to_check,
    )


CASES: dict[str, Prepare] = {
    "produce_small": produce_case("produce_small", "Produce of one record like the last, acks=1"),
    "produce_small_all": produce_case("produce_small_all", "the same with acks=all", acks=-1),
    "produce_general": produce_case(
        "produce_general", "Produce of one record to each of two partitions", partitions=(0, 1)
    ),
    "produce_bulk": produce_case(
        "produce_bulk", "Produce of one batch of 16 KB, 148 records", records=BULK_RECORDS
    ),
    "produce_many": produce_case(
        "produce_many",
        "Produce of one record to each of twelve partitions at once",
        partitions=range(PARTITIONS_ACTIVE),
    ),
    "produce_in_turn": produce_in_turn,
    "fetch_data": fetch_data,
    "fetch_woken": fetch_woken,
    "fetch_session": fetch_session,
    "fetch_session_woken": fetch_session_woken,
    "fetch_session_active": fetch_session_active,
    "fetch_whole": fetch_whole,
    "fetch_whole_woken": fetch_whole_woken,
    "list_offsets": list_offsets,
    "heartbeat": heartbeat,
    "consumer_group_heartbeat": consumer_group_heartbeat,
    "offset_commit": offset_commit,
    "metadata": metadata,
}
"""Every row of the floor but for those of `GUARDED`, in the table's order."""


# -- with ACLs and quotas -------------------------------------------------------------------

GUARDED_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:nobody",
}
QUOTAS = {
    "producer_byte_rate": "1e12",
    "consumer_byte_rate": "1e12",
    "request_percentage": "1e12",
    "controller_mutation_rate": "1e12",
}
"""Of all kinds; so high that nothing is throttled."""


async def guard(broker: Broker) -> None:
    """Allow the clients what they do, and no more, and give them quotas."""
    acls = broker.context.acls
    assert acls is not None
    entry = AclEntry("User:ANONYMOUS", "*", Operation.ALL, Permission.ALLOW)
    for kind, name in ((ResourceType.CLUSTER, CLUSTER_NAME), (ResourceType.TOPIC, "*")):
        await acls.add(ResourcePattern(kind, PatternType.LITERAL, name), [entry])
    await broker.config_manager.alter_quotas("clients/<default>", lambda present: QUOTAS)


def guarded(prepare: Prepare) -> Prepare:
    """A case that fails unless each of its requests was accounted for."""

    async def prepare_guarded(stage: Stage) -> Case:
        case = await prepare(stage)
        quotas = stage.broker.context.quotas.stage
        assert quotas is not None

        def check_logs(exchanges: int) -> None:
            case.check_logs(exchanges)
            for manager in (quotas.managers.produce, quotas.managers.request):
                (sensor,) = manager.sensors.values()
                assert sensor.rate(stage.broker.clock.monotonic_ms()) > 0

        return case._replace(check_logs=check_logs)

    return prepare_guarded


GUARDED: dict[str, Prepare] = {
    "produce_small_guarded": guarded(
        produce_case("produce_small_guarded", "the first with ACLs and every kind of quota")
    ),
}
"""The rows of a broker with ACLs and quotas."""
