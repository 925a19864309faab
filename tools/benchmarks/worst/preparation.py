"""Makes the scene on a broker: topics, groups of each kind, transactions, credentials."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final, TypeAlias

from ....bench.cluster import LoadTopic
from ....bench.errors import BenchError
from ....bench.loads.wire import Wire, check, frame_of
from ....common.errors import ErrorCode
from ....protocol import messages
from ....protocol.api_keys import ApiKey
from ....protocol.records import build_batch
from .answers import error_codes
from .requests import ADD_PARTITIONS_VERSION, add_all_partitions
from .scene import OF_MANY_TOPICS, GroupKind, MadeGroup, Scene

PARTITIONS_EACH = 20
GROUPS = 200
"""As many have committed offsets, and as many transactional ids there are."""
MEMBERS, SHARE_MEMBERS, STREAMS_MEMBERS = 200, 100, 50
GROUPS_OF_MEMBERS = 2
"""Of each kind."""
OPEN_TRANSACTIONS = 3
ACLS = 2_000
USERS = 200
TOKENS = 50
RECORDS = 20_000
"""Of the partition that share groups read."""
MORE_TOPICS = 1_000
QUOTAS = 2_000
"""Users that have one."""
QUOTAS_PER_REQUEST = 200
GOOD_TOPIC = "good"
TOPICS_PER_REQUEST = 50
PATIENCE_SECONDS = 120.0
RETRY_SECONDS = 0.05
LONG_MS: Final = 3_600_000
"""Longer than a run: nobody leaves by a time-out."""

SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.max.timeout.ms": str(LONG_MS),
    "group.max.session.timeout.ms": str(LONG_MS),
    "group.share.delivery.count.limit": "10",
    **{
        f"group.{kind}.{name}session.timeout.ms": str(LONG_MS)
        for kind in ("consumer", "share", "streams")
        for name in ("", "max.")
    },
}
"""Of the broker."""

USER, PASSWORD = "admin", "admin-secret"
PLAIN_LOGIN: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
)
SECURITY_SETTINGS: Final = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_LOGIN,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{USER}",
    "delegation.token.secret.key": "of the benchmark",
}
"""Of the broker, beside the others, for APIs that are for those who have logged in."""

SCRAM_SHA_256, ITERATIONS = 1, 4_096
TOPIC_TYPE, READ, ALLOW, LITERAL = 2, 3, 3, 3
SUBTOPOLOGY = "0"
PROTOCOLS: Final = ("x", "x0")
"""Of classic members: requests are made with these names, too."""
Connect: TypeAlias = Callable[[], Wire]
JOIN_VERSION = 3
"""Of JoinGroup: the last that takes a member without an id."""


def logged_in(host: str, port: int) -> Wire:
    """A connection of the user that may do everything."""
    wire = Wire(host, port)
    check(
        wire.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code, "login", wire.peer
    )
    login = f"\0{USER}\0{PASSWORD}".encode()
    answer = wire.ask(messages.SaslAuthenticateRequest(auth_bytes=login))
    check(answer.error_code, "login", wire.peer)
    return wire


def prepare(connect: Connect, api: ApiKey, partitions: int) -> tuple[Scene, LoadTopic]:
    """Make what requests may name, and the good client's topic.

    Args:
        connect: opens a connection to the broker.
        api: what it is made for.
        partitions: about as many the broker has.
    """
    names = [f"t{number}" for number in range(max(1, partitions // PARTITIONS_EACH))]
    with connect() as wire:
        topic_ids = _make_topics(
            wire, [(GOOD_TOPIC, 1), *((name, PARTITIONS_EACH) for name in names)]
        )
        described = wire.ask(messages.DescribeLogDirsRequest(topics=[]))
        metadata = wire.ask(messages.MetadataRequest(topics=[]))
        _produce(wire, names[0], topic_ids[names[0]])
        scene = Scene(
            metadata.brokers[0].node_id,
            names,
            PARTITIONS_EACH,
            topic_ids,
            [f"g{number}" for number in range(GROUPS)],
            [f"x{number}" for number in range(GROUPS)],
            [each.log_dir for each in described.results],
        )
        for group in scene.groups:
            _commit_offsets(wire, group, scene)
        scene = replace(scene, producers=_make_producers(wire, scene))
        for name in scene.transactions[:OPEN_TRANSACTIONS]:
            _ask(wire, add_all_partitions(scene, name), ADD_PARTITIONS_VERSION)
        groups = {kind: make(connect, wire, scene) for kind, make in MAKES.items()}
        scene = replace(
            scene,
            made_groups={kind: made[:GROUPS_OF_MEMBERS] for kind, made in groups.items()},
            empty_groups={GroupKind.SHARE: [_left(wire, groups[GroupKind.SHARE][-1])]},
        )
        if api in OF_MANY_TOPICS:
            more = [f"m{number}" for number in range(MORE_TOPICS)]
            ids = _make_topics(wire, [(name, 1) for name in more])
            scene = replace(scene, more_topics=more, topic_ids={**topic_ids, **ids})
        if api is ApiKey.DESCRIBE_CLIENT_QUOTAS:
            _make_quotas(wire)
        host, port = wire.host, wire.port
    return scene, LoadTopic(GOOD_TOPIC, topic_ids[GOOD_TOPIC], (0,), host, port)


def _ask(wire: Wire, request: Any, version: int | None = None) -> Any:
    """Ask until the answer has no error: coordinators, and those who watch them, need a moment."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = wire.ask(request, version)
        found = error_codes(answer)
        if set(found) <= {ErrorCode.NONE}:
            return answer
        if time.monotonic() > ends:
            raise BenchError(f"the scene cannot be made: {type(request).__name__}: {answer}")
        for kind in (0, 1):
            wire.ask(messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]))
        time.sleep(RETRY_SECONDS)  # another process has no event to wait for


# -- what is read and written ---------------------------------------------------------------


def _make_topics(wire: Wire, requested: Sequence[tuple[str, int]]) -> dict[str, bytes]:
    """Make topics of so many partitions; returns their ids."""
    create = messages.CreateTopicsRequest
    topic_ids = {}
    for start in range(0, len(requested), TOPICS_PER_REQUEST):
        topics = [
            create.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in requested[start : start + TOPICS_PER_REQUEST]
        ]
        for made in wire.ask(create(topics=topics, timeout_ms=60_000)).topics:
            check(made.error_code, f"CreateTopics of {made.name}", wire.peer)
            topic_ids[made.name] = made.topic_id
    return topic_ids


def _produce(wire: Wire, topic: str, topic_id: bytes) -> None:
    request = messages.ProduceRequest
    batch = build_batch([(None, b"v", 0, [])] * RECORDS)
    partition = request.PartitionProduceData(index=0, records=bytes(batch))
    data = request.TopicProduceData(name=topic, topic_id=topic_id, partition_data=[partition])
    _ask(wire, request(acks=-1, timeout_ms=30_000, topic_data=[data]))


def _make_quotas(wire: Wire) -> None:
    request = messages.AlterClientQuotasRequest
    for start in range(0, QUOTAS, QUOTAS_PER_REQUEST):
        entries = [
            request.EntryData(
                entity=[request.EntityData(entity_type="user", entity_name=f"user{number}")],
                ops=[request.OpData(key="producer_byte_rate", value=1e9, remove=False)],
            )
            for number in range(start, start + QUOTAS_PER_REQUEST)
        ]
        _ask(wire, request(entries=entries))


def _commit_offsets(wire: Wire, group: str, scene: Scene) -> None:
    commit = messages.OffsetCommitRequest
    partitions = [
        commit.OffsetCommitRequestPartition(partition_index=index, committed_offset=1)
        for index in range(scene.partitions_each)
    ]
    topic = commit.OffsetCommitRequestTopic(name=scene.topics[0], partitions=partitions)
    _ask(wire, commit(group_id=group, generation_id_or_member_epoch=-1, topics=[topic]), 9)


# -- transactions ---------------------------------------------------------------------------


def _make_producers(wire: Wire, scene: Scene) -> dict[str, tuple[int, int]]:
    producers = {}
    for name in scene.transactions:
        request = messages.InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=LONG_MS,
            producer_id=-1,
            producer_epoch=-1,
        )
        made = _ask(wire, request, 3)
        producers[name] = made.producer_id, made.producer_epoch
    return producers


# -- groups ---------------------------------------------------------------------------------


def _classic_groups(connect: Connect, wire: Wire, scene: Scene) -> list[MadeGroup]:
    """Groups of many members, that have not been given an assignment; one member leads."""
    return [_classic_group(connect, wire, f"classic{n}") for n in range(GROUPS_OF_MEMBERS)]


def _classic_group(connect: Connect, wire: Wire, group_id: str) -> MadeGroup:
    leader = _ask(wire, join(group_id, ""), JOIN_VERSION).member_id
    with ExitStack() as stack:
        others = [stack.enter_context(connect()) for _ in range(MEMBERS - 1)]
        for each in others:
            each.send(frame_of(join(group_id, ""), JOIN_VERSION))
        describe = messages.DescribeGroupsRequest(groups=[group_id])
        _until(lambda: len(wire.ask(describe).groups[0].members) == MEMBERS)
        joined = _ask(wire, join(group_id, leader), JOIN_VERSION)
        for each in others:
            each.receive()
    member_ids = sorted((each.member_id for each in joined.members), key=lambda it: it != leader)
    return MadeGroup(group_id, member_ids, joined.generation_id)


def join(group_id: str, member_id: str) -> messages.JoinGroupRequest:
    """What a classic member joins with."""
    request = messages.JoinGroupRequest
    return request(
        group_id=group_id,
        member_id=member_id,
        session_timeout_ms=LONG_MS,
        rebalance_timeout_ms=LONG_MS,
        protocol_type="x",
        protocols=[
            request.JoinGroupRequestProtocol(name=each, metadata=b"m" * 100) for each in PROTOCOLS
        ],
    )


def _consumer_groups(connect: Connect, wire: Wire, scene: Scene) -> list[MadeGroup]:
    return [
        _heartbeats(
            wire,
            f"consumer{number}",
            lambda group_id, member_id: messages.ConsumerGroupHeartbeatRequest(
                group_id=group_id,
                member_id=member_id,
                member_epoch=0,
                rebalance_timeout_ms=LONG_MS,
                subscribed_topic_names=scene.topics,
                topic_partitions=[],
            ),
        )
        for number in range(GROUPS_OF_MEMBERS)
    ]


def _share_groups(connect: Connect, wire: Wire, scene: Scene) -> list[MadeGroup]:
    """Groups whose share partitions have begun."""
    made = [
        _heartbeats(
            wire,
            f"share{number}",
            lambda group_id, member_id: messages.ShareGroupHeartbeatRequest(
                group_id=group_id,
                member_id=member_id,
                member_epoch=0,
                subscribed_topic_names=scene.topics,
            ),
            SHARE_MEMBERS if number < GROUPS_OF_MEMBERS else 1,
        )
        for number in range(GROUPS_OF_MEMBERS + 1)
    ]
    describe = messages.DescribeShareGroupOffsetsRequest
    group = describe.DescribeShareGroupOffsetsRequestGroup
    named = describe(groups=[group(group_id=each.group_id, topics=None) for each in made])
    expected = len(scene.topics) * scene.partitions_each

    def have_begun() -> bool:
        return all(
            sum(len(topic.partitions) for topic in each.topics) == expected
            for each in wire.ask(named).groups
        )

    _until(have_begun)
    return made


def _left(wire: Wire, group: MadeGroup) -> MadeGroup:
    """A share group whose members have left it."""
    for member_id in group.member_ids:
        _ask(
            wire,
            messages.ShareGroupHeartbeatRequest(
                group_id=group.group_id, member_id=member_id, member_epoch=-1
            ),
        )
    return MadeGroup(group.group_id)


def _streams_groups(connect: Connect, wire: Wire, scene: Scene) -> list[MadeGroup]:
    request = messages.StreamsGroupHeartbeatRequest
    subtopology = request.Subtopology(subtopology_id=SUBTOPOLOGY, source_topics=scene.topics)
    return [
        _heartbeats(
            wire,
            f"streams{number}",
            lambda group_id, member_id: request(
                group_id=group_id,
                member_id=member_id,
                member_epoch=0,
                rebalance_timeout_ms=LONG_MS,
                topology=request.Topology(epoch=0, subtopologies=[subtopology]),
                active_tasks=[],
                standby_tasks=[],
                warmup_tasks=[],
                process_id=member_id,
                client_tags=[],
            ),
            STREAMS_MEMBERS,
        )
        for number in range(GROUPS_OF_MEMBERS)
    ]


def _heartbeats(
    wire: Wire, group_id: str, heartbeat: Callable[[str, str], Any], count: int = MEMBERS
) -> MadeGroup:
    """Have members join; the epoch is the first one's, once all are there."""
    member_ids = [f"{group_id}-{number:022}" for number in range(count)]
    for member_id in member_ids:
        _ask(wire, heartbeat(group_id, member_id))
    answer = _ask(wire, heartbeat(group_id, member_ids[0]))
    return MadeGroup(group_id, member_ids, answer.member_epoch)


MAKES: Final[Mapping[GroupKind, Callable[[Connect, Wire, Scene], list[MadeGroup]]]] = {
    GroupKind.CLASSIC: _classic_groups,
    GroupKind.CONSUMER: _consumer_groups,
    GroupKind.SHARE: _share_groups,
    GroupKind.STREAMS: _streams_groups,
}


def _until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > ends:
            raise BenchError("the scene cannot be made: its groups do not come together")
        time.sleep(RETRY_SECONDS)  # another process has no event to wait for


# -- credentials ----------------------------------------------------------------------------


def prepare_security(connect: Connect, scene: Scene) -> Scene:
    """Make ACLs, users and tokens on a broker that has them, and say which."""
    users = [f"user{number}" for number in range(USERS)]
    with connect() as wire:
        _make_acls(wire, scene)
        _make_users(wire, users)
        hmac = b""
        renewer = messages.CreateDelegationTokenRequest.CreatableRenewers(
            principal_type="User", principal_name="x"
        )
        for _ in range(TOKENS):
            request = messages.CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1)
            hmac = bytes(_ask(wire, request, 2).hmac)
    return replace(scene, users=users, token_hmac=hmac)


def _make_acls(wire: Wire, scene: Scene) -> None:
    request = messages.CreateAclsRequest
    _ask(
        wire,
        request(
            creations=[
                request.AclCreation(
                    resource_type=TOPIC_TYPE,
                    resource_name=scene.topics[number % len(scene.topics)],
                    resource_pattern_type=LITERAL,
                    principal=f"User:x{number}",
                    host="*",
                    operation=READ,
                    permission_type=ALLOW,
                )
                for number in range(ACLS)
            ]
        ),
    )


def _make_users(wire: Wire, users: Sequence[str]) -> None:
    request = messages.AlterUserScramCredentialsRequest
    _ask(
        wire,
        request(
            upsertions=[
                request.ScramCredentialUpsertion(
                    name=name,
                    mechanism=SCRAM_SHA_256,
                    iterations=ITERATIONS,
                    salt=b"salt",
                    salted_password=b"p" * 32,
                )
                for name in users
            ]
        ),
    )
