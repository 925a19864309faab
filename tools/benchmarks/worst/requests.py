"""Candidates for the worst request of an API, made from its schema.

An array of the request is chosen and filled until the request has the size that it shall have; the
arrays around it have one element. What names a topic, group and so on is once always the same one
that exists, once all that exist in turn, and once one that does not. An API that refuses what is
named twice has a request that names all that exist, each once, even if it is shorter. Arrays that
may be null are null once: that means everything. What can be included in an answer is included.
What only members of a group, or producers in a transaction, may send is sent in the name of one
that is there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ....bench.loads.wire import frame_of
from ....broker.handlers.registry import REGISTRATIONS
from ....common.sentinels import EARLIEST_TIMESTAMP, ZERO_UUID
from ....protocol import messages
from ....protocol.api_keys import ApiKey
from ....protocol.codec.types import Array, Field, FixedWidth, StructType, Type
from ....protocol.messages import request_message
from ....protocol.records import build_batch
from .scene import KINDS, OF_MANY_TOPICS, Scene

if TYPE_CHECKING:
    from ....protocol.codec.message import MessageType

SAME, EACH, ONCE, UNKNOWN = "the same", "each", "each once", "unknown"
NAMINGS: Final = (SAME, EACH, UNKNOWN)
CALIBRATION = (8, 72)
"""Two counts of elements, of which the bytes of one are learnt."""
TEXT_MAX = 32_767
TOPIC_TYPE, BROKER_TYPE, LOGGER_TYPE, GROUP_TYPE = 2, 4, 8, 32

ANY_MATCH = 2
TOPIC_CONFIG: Final = {"resource_type": TOPIC_TYPE, "name": "retention.ms", "value": "1000000"}

STALE_EPOCH: Final = {"controller_epoch": -1, "broker_id": 4_711, "broker_epoch": -1}
"""What only brokers send is refused as coming from a controller of old: it does no harm."""

READ, ALLOW, LITERAL = 3, 3, 3
FILTER: Final = {
    "resource_type_filter": TOPIC_TYPE,
    "pattern_type_filter": LITERAL,
    "operation": READ,
    "permission_type": ALLOW,
}

_group_numbers = itertools.count()


def new_group() -> str:
    """A group that no request has named before."""
    return f"new{next(_group_numbers)}"


JOIN_EPOCH, LEAVE_EPOCH = 0, -1
LONG_MS: Final = 3_600_000
NO_TASK_OFFSETS: Final = {"task_offsets": None, "task_end_offsets": None}
STREAMS_JOIN: Final[Mapping[str, Any]] = {
    "member_epoch": JOIN_EPOCH,
    "rebalance_timeout_ms": LONG_MS,
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
    "source_topic_regex": [],
    **NO_TASK_OFFSETS,
}
NOT_A_MEMBER: Final = {"member_id": ""}
NEW_PRODUCER: Final = {"producer_id": -1, "producer_epoch": -1}
SCRAM: Final = {"mechanism": 1, "iterations": 4_096}
LAST_OF_A_SESSION: Final = {
    "share_session_epoch": LEAVE_EPOCH,
    "max_records": 0,
    "acknowledge_types": [1],
}
FIRST_OF_A_SESSION: Final = {
    "share_session_epoch": JOIN_EPOCH,
    "max_records": 2_000,
    "batch_size": 1,
    "acknowledgement_batches": [],
}

VARIANTS: Final[Mapping[ApiKey, list[dict[str, Any]]]] = {
    ApiKey.PRODUCE: [{"transactional_id": None}],
    ApiKey.OFFSET_COMMIT: [NOT_A_MEMBER],
    ApiKey.OFFSET_FETCH: [{"member_id": None}],
    ApiKey.JOIN_GROUP: [{"group_id": new_group, **NOT_A_MEMBER}],
    ApiKey.SYNC_GROUP: [{"generation_id": "epoch", "protocol_name": "x"}],
    ApiKey.HEARTBEAT: [{"generation_id": "epoch"}],
    ApiKey.INIT_PRODUCER_ID: [NEW_PRODUCER, {**NEW_PRODUCER, "transactional_id": None}],
    ApiKey.WRITE_TXN_MARKERS: [{"producer_id": 1 << 40}],
    ApiKey.TXN_OFFSET_COMMIT: [NOT_A_MEMBER],
    ApiKey.CONSUMER_GROUP_HEARTBEAT: [
        {"member_epoch": "epoch", "subscribed_topic_names": None},
        {"member_epoch": JOIN_EPOCH, "topic_partitions": [], "rebalance_timeout_ms": LONG_MS},
        {"member_epoch": JOIN_EPOCH, "topic_partitions": [], "group_id": new_group},
    ],
    ApiKey.SHARE_GROUP_HEARTBEAT: [
        {"member_epoch": JOIN_EPOCH},
        {"member_epoch": JOIN_EPOCH, "group_id": new_group},
    ],
    ApiKey.STREAMS_GROUP_HEARTBEAT: [
        {
            "member_epoch": "epoch",
            "topology": None,
            "subtopology_id": "0",
            "standby_tasks": [],
            "warmup_tasks": [],
            "client_tags": None,
            **NO_TASK_OFFSETS,
        },
        {**STREAMS_JOIN, "topology": None},
        {**STREAMS_JOIN, "group_id": new_group},
    ],
    ApiKey.SHARE_FETCH: [FIRST_OF_A_SESSION, LAST_OF_A_SESSION],
    ApiKey.SHARE_ACKNOWLEDGE: [LAST_OF_A_SESSION],
    ApiKey.CREATE_DELEGATION_TOKEN: [
        {
            "owner_principal_type": None,
            "owner_principal_name": None,
            "principal_type": "User",
            "max_lifetime_ms": -1,
        }
    ],
    ApiKey.RENEW_DELEGATION_TOKEN: [{"hmac": "token", "renew_period_ms": LONG_MS}],
    ApiKey.EXPIRE_DELEGATION_TOKEN: [{"hmac": "token", "expiry_time_period_ms": LONG_MS}],
    ApiKey.DESCRIBE_DELEGATION_TOKEN: [{"principal_type": "User"}],
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: [SCRAM],
    ApiKey.DESCRIBE_CONFIGS: [
        {"resource_type": TOPIC_TYPE},
        {"resource_type": BROKER_TYPE, "resource_name": "broker"},
        {"resource_type": LOGGER_TYPE, "resource_name": "broker"},
        {"resource_type": GROUP_TYPE, "resource_name": "group"},
    ],
    ApiKey.ALTER_CONFIGS: [
        TOPIC_CONFIG,
        {**TOPIC_CONFIG, "validate_only": False},
        {"resource_type": TOPIC_TYPE},
        {"resource_type": GROUP_TYPE},
    ],
    ApiKey.INCREMENTAL_ALTER_CONFIGS: [
        TOPIC_CONFIG,
        {**TOPIC_CONFIG, "validate_only": False},
        {"resource_type": TOPIC_TYPE},
        {"resource_type": GROUP_TYPE},
    ],
    ApiKey.LIST_CONFIG_RESOURCES: [
        {},
        {"resource_types": [TOPIC_TYPE, BROKER_TYPE, LOGGER_TYPE, GROUP_TYPE]},
    ],
    ApiKey.DESCRIBE_CLIENT_QUOTAS: [
        {},
        {"components": []},
        {"entity_type": "user", "match_type": ANY_MATCH, "match": None},
    ],
    ApiKey.ALTER_CLIENT_QUOTAS: [
        {},
        {"entity_type": "user", "key": "producer_byte_rate", "value": 1e9, "remove": False},
    ],
    ApiKey.UPDATE_FEATURES: [{}, {"feature": "share.version", "upgrade_type": 1}],
    ApiKey.CREATE_PARTITIONS: [
        {},
        {"count": 2, "assignments": None, "validate_only": False},
    ],
    ApiKey.DELETE_TOPICS: [{"topic_id": ZERO_UUID}, {"name": None}],
    ApiKey.CREATE_TOPICS: [
        {"validate_only": True},
        {"validate_only": False, "assignments": [], "configs": []},
    ],
    ApiKey.FIND_COORDINATOR: [{"key_type": 0}, {"key_type": 1}],
    ApiKey.ELECT_LEADERS: [{"election_type": 0}, {"election_type": 1}],
    ApiKey.CREATE_ACLS: [
        {
            "resource_type": TOPIC_TYPE,
            "operation": READ,
            "permission_type": ALLOW,
            "host": "*",
        }
    ],
    ApiKey.DELETE_ACLS: [FILTER],
    ApiKey.DESCRIBE_ACLS: [FILTER],
    ApiKey.LEADER_AND_ISR: [STALE_EPOCH],
    ApiKey.STOP_REPLICA: [STALE_EPOCH],
    ApiKey.UPDATE_METADATA: [STALE_EPOCH],
    ApiKey.CONTROLLED_SHUTDOWN: [STALE_EPOCH],
    ApiKey.ALLOCATE_PRODUCER_IDS: [STALE_EPOCH],
}
"""By API: other values of fields, each of which makes candidates of its own.

Words in them stand for something of the scene's (`_Builder._word`), functions for what they return.
"""

NEWEST: Final[Mapping[ApiKey, int]] = {
    ApiKey.METADATA: 9,
    ApiKey.FETCH: 12,
    ApiKey.PRODUCE: 12,
    ApiKey.JOIN_GROUP: 3,
    ApiKey.END_TXN: 4,
}
"""Versions in which topics have names, which is where what does not exist costs most.

Also those in which members need no id to join, and producers keep their epochs.
"""

ADD_PARTITIONS_VERSION = 3
"""Of AddPartitionsToTxn: the last that producers send."""


def add_all_partitions(scene: Scene, name: str) -> messages.AddPartitionsToTxnRequest:
    """Have a transaction begin that writes to everything."""
    request = messages.AddPartitionsToTxnRequest
    producer_id, epoch = scene.producers[name]
    partitions = list(range(scene.partitions_each))
    return request(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[
            request.AddPartitionsToTxnTopic(name=topic, partitions=partitions)
            for topic in scene.topics
        ],
    )


def _transaction(scene: Scene) -> bytes:
    name = scene.transactions[0]
    return frame_of(add_all_partitions(scene, name), ADD_PARTITIONS_VERSION)


def _share_session(scene: Scene) -> bytes:
    assert scene.member is not None
    request = messages.ShareFetchRequest
    partition = request.FetchPartition(partition_index=0)
    topic = request.FetchTopic(topic_id=scene.topic_ids[scene.topics[0]], partitions=[partition])
    fetch = request(
        group_id=scene.member.group_id,
        member_id=scene.member.member_ids[0],
        share_session_epoch=JOIN_EPOCH,
        max_bytes=1 << 20,
        max_records=2_000,
        batch_size=1,
        topics=[topic],
    )
    return frame_of(fetch, REGISTRATIONS[ApiKey.SHARE_FETCH].versions[-1])


OPENINGS: Final[Mapping[ApiKey, Callable[[Scene], bytes]]] = {
    ApiKey.END_TXN: _transaction,
    ApiKey.TXN_OFFSET_COMMIT: _transaction,
    ApiKey.SHARE_FETCH: _share_session,
    ApiKey.SHARE_ACKNOWLEDGE: _share_session,
}
"""What is sent before each request of an API: without it there is nothing to end or acknowledge."""

TOPIC_NAMES: Final = frozenset({"topic", "topic_name"})
PARTITION_NUMBERS: Final = frozenset({"partition", "partition_index", "index"})
BROKER_LISTS: Final = frozenset({"broker_ids", "replicas", "isr", "adding_replicas"})
PARTITION_LISTS: Final = frozenset({"partitions", "partition_indexes"})
GROUPS: Final = frozenset({"group_id", "groups", "group_ids", "groups_names"})
TRANSACTIONS: Final = frozenset({"transactional_id", "transactional_ids"})
PRODUCERS: Final = frozenset({"producer_id", "producer_epoch"})
PRINCIPALS: Final = frozenset({"principal", "principal_filter"})
KEPT_FALSE: Final = frozenset(
    {
        "is_kraft_controller",
        "verify_only",
        "delete_partition",
        "is_renew_ack",
        "shutdown_application",
    }
)
FIXED_VALUES: Final[Mapping[str, Any]] = {
    "acks": 1,
    "timeout_ms": 30_000,
    "max_bytes": 1 << 20,
    "partition_max_bytes": 1 << 20,
    "isolation_level": 0,
    "session_id": 0,
    "session_epoch": -1,
    "replica_id": -1,
    "current_leader_epoch": -1,
    "leader_epoch": 0,
    "timestamp": EARLIEST_TIMESTAMP,
    "validate_only": True,
    "allow_auto_topic_creation": False,
    "response_partition_limit": 1 << 30,
    "num_partitions": 1,
    "replication_factor": 1,
    "count": 1_000,
    "committed_offset": 1,
    "session_timeout_ms": 6_000,
    "rebalance_timeout_ms": 1_000,
    "endpoint_type": 1,
    "duration_filter": -1,
    "coordinator_epoch": 0,
    "state_epoch": -1,
    "transaction_version": 1,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "member_epoch": -1,
    "max_wait_ms": 0,
    "forgotten_topics_data": [],
    "cluster_id": None,
    "cursor": None,
    "transactional_id_pattern": None,
    "subscribed_topic_regex": None,
    "server_assignor": None,
    "group_instance_id": None,
    "instance_id": None,
    "retention_time_ms": -1,
    "transaction_timeout_ms": 60_000,
    "max_version_level": 1,
}


@dataclass(frozen=True)
class Candidate:
    """A request that may be the worst of its API.

    Attributes:
        shape: in words.
        elements: how many the array that is filled has.
        build: makes the request, with its length, of so many elements.
        array: which of its arrays is filled, if one is.
        opening: a request that is sent before it, if there is one.
    """

    api: ApiKey
    shape: str
    elements: int
    build: Callable[[int], bytes]
    array: str = ""
    opening: bytes | None = None

    @property
    def frame(self) -> bytes:
        """The request's bytes, with their length."""
        return self.build(self.elements)

    def smaller(self) -> Candidate | None:
        """The same with fewer elements, if it can have fewer."""
        fewer = self.elements * 2 // 3
        return replace(self, elements=fewer) if fewer else None


def candidates(api: ApiKey, scene: Scene, size: int) -> Iterator[Candidate]:
    """The requests of one API that are tried.

    Args:
        api: which one.
        scene: what they name.
        size: about so many bytes each.
    """
    scene = scene.seen_by(api)
    message = request_message(api)
    opens = OPENINGS.get(api)
    can_open = opens is not None and (scene.member or (scene.producers and api not in KINDS))
    make = partial(Candidate, opening=opens(scene) if opens is not None and can_open else None)
    version = NEWEST.get(api, REGISTRATIONS[api].versions[-1])
    axes = list(_arrays(message, version))
    for variant in VARIANTS.get(api, [{}]):
        builder = partial(_Builder, scene, message, version)
        words = _in_words(variant)
        free = [axis for axis in axes if not set(axis) & variant.keys()]
        namings = (*NAMINGS, ONCE) if api in OF_MANY_TOPICS else NAMINGS
        for axis, naming in itertools.product(free, namings):
            build = builder(axis, naming, variant).frame
            shape = ", ".join([f"{'.'.join(axis)}: {naming}", *words])
            elements = _elements_for(build, size)
            if naming == ONCE:
                elements = min(elements, len(scene.topics))
            yield make(api, shape, elements, build, ".".join(axis))
        for axis in axes:
            if len(axis) == 1 and _may_be_null(message, axis[0], version):
                build = builder(axis, SAME, {**variant, axis[0]: None}).frame
                yield make(api, f"{axis[0]}: all", 1, build)
        if not free:
            build = builder((), SAME, variant, text=min(size, TEXT_MAX) - 64).frame
            yield make(api, ", ".join(["long strings", *words]), 1, build)


def _in_words(variant: Mapping[str, Any]) -> list[str]:
    if variant is STALE_EPOCH:
        return []
    return [
        f"{name}={value}" for name, value in variant.items() if isinstance(value, int | str | None)
    ]


def _arrays(
    struct: StructType, version: int, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    for each in struct.fields:
        here = (*path, each.name)
        if version not in each.versions:
            continue
        if isinstance(each.type, StructType):
            yield from _arrays(each.type, version, here)
        if not isinstance(each.type, Array):
            continue
        if each.name in FIXED_VALUES or each.name in BROKER_LISTS:
            continue
        yield here
        if isinstance(each.type.element, StructType):
            yield from _arrays(each.type.element, version, here)


def _may_be_null(message: StructType, name: str, version: int) -> bool:
    found = next(each for each in message.fields if each.name == name)
    return version in found.nullable


def _elements_for(build: Callable[[int], bytes], size: int) -> int:
    few, more = CALIBRATION
    small = len(build(few))
    each = max((len(build(more)) - small) / (more - few), 0.5)
    return max(1, int((size - small) / each) + few)


class _Builder:
    """Fills a request in one way."""

    def __init__(
        self,
        scene: Scene,
        message: MessageType,
        version: int,
        axis: tuple[str, ...],
        naming: str,
        variant: Mapping[str, Any],
        text: int = 0,
    ) -> None:
        self._scene = scene
        self._message = message
        self._version = version
        self._axis = axis
        self._naming = naming
        self._variant = variant
        self._text = text
        self._batch = bytes(build_batch([(None, b"v", 0, [])]))

    def frame(self, count: int) -> bytes:
        """A request whose chosen array has so many elements, with its length."""
        message = self._message
        return frame_of(message(**self._fields(message, (), 0, count)), self._version)

    def _fields(
        self, struct: StructType, path: tuple[str, ...], number: int, count: int
    ) -> dict[str, Any]:
        return {
            each.name: self._value(each, (*path, each.name), number, count)
            for each in struct.fields
            if self._version in each.versions
        }

    def _value(self, of: Field, path: tuple[str, ...], number: int, count: int) -> Any:
        name = of.name
        if name in self._variant:
            return self._word(self._variant[name], number)
        if name in PRODUCERS and self._scene.producers:
            producer = self._scene.producers.get(self._transaction(number), (1, 0))
            return producer[name == "producer_epoch"]
        if name in FIXED_VALUES:
            return FIXED_VALUES[name]
        if isinstance(of.type, Array):
            return self._elements(of, of.type, path, number, count)
        if isinstance(of.type, StructType):
            return of.type(**self._fields(of.type, path, number, count))
        return self._plain(of.type, name, of.default, path, number)

    def _word(self, value: Any, number: int) -> Any:
        """What a variant's value stands for."""
        member = self._scene.member
        if callable(value):
            return value()
        if value == "broker":
            return str(self._scene.broker_id)
        if value == "group":
            return self._group(number)
        if value == "epoch":
            return member.epoch if member else -1
        return self._scene.token_hmac if value == "token" else value

    def _elements(
        self, of: Field, array: Array, path: tuple[str, ...], number: int, count: int
    ) -> list[Any] | None:
        if of.name in BROKER_LISTS:
            return [self._scene.broker_id]
        numbers: Iterable[int] = [number]
        if path == self._axis:
            numbers = range(count)
        elif self._axis[: len(path)] != path:
            # Beside the array that is filled, or below it: all, where there is a word for that.
            if self._version in of.nullable:
                return None
            if path[: len(self._axis)] != self._axis:
                return []
        element = array.element
        if isinstance(element, StructType):
            return [element(**self._fields(element, path, each, count)) for each in numbers]
        return [self._plain(element, of.name, element.default, path, each) for each in numbers]

    def _plain(
        self, of: Type[Any], name: str, default: Any, path: tuple[str, ...], number: int
    ) -> Any:
        if name in PARTITION_NUMBERS or name in PARTITION_LISTS:
            return self._partition(number)
        if name == "topic_id":
            return self._scene.topic_ids.get(self._topic(number), ZERO_UUID)
        if name == "records":
            return self._batch
        if name in ("first_offset", "last_offset"):
            return 0 if self._naming == SAME else number
        if isinstance(of, FixedWidth):
            if isinstance(of.default, bool):
                return name not in KEPT_FALSE
            return default
        if isinstance(of.default, bytes):
            return b"x" * max(self._text, 16)
        return self._name(name, path, number)

    def _group_or_transaction(self, name: str, path: tuple[str, ...], number: int) -> str | None:
        member = self._scene.member
        if member and len(path) == 1 and name == "group_id":
            return member.group_id
        if member and member.member_ids and name == "member_id":
            if len(path) == 1:
                return member.member_ids[0]
            return self._one_of(member.member_ids, number)
        if name in GROUPS:
            return self._group(number)
        return self._transaction(number) if name in TRANSACTIONS else None

    def _name(self, name: str, path: tuple[str, ...], number: int) -> str:
        named = self._group_or_transaction(name, path, number)
        if named is not None:
            return named
        if name in PRINCIPALS:
            return f"User:x{number}"
        if name == "path":
            return self._one_of(self._scene.paths, number)
        if name in ("protocols", "configs", "feature_updates", "feature"):
            return f"x{number}"
        is_topic = name in TOPIC_NAMES or (name in ("name", "resource_name") and len(path) > 1)
        if is_topic and path[-2:-1] not in (("protocols",), ("configs",)):
            return self._topic(number)
        if name in ("topic_names", "subscribed_topic_names"):
            return self._topic(number)
        if self._text:
            return "x" * self._text
        return f"x{number}" if self._naming != SAME else "x"

    def _topic(self, number: int) -> str:
        return self._one_of(self._scene.topics, number)

    def _group(self, number: int) -> str:
        return self._one_of(self._scene.groups, number)

    def _transaction(self, number: int) -> str:
        return self._one_of(self._scene.transactions, number)

    def _one_of(self, names: Sequence[str], number: int) -> str:
        if self._naming == UNKNOWN or not names:
            return f"u{number}"
        return names[0 if self._naming == SAME else number % len(names)]

    def _partition(self, number: int) -> int:
        if self._naming == SAME:
            return 0
        is_known = self._naming in (EACH, ONCE)
        return number % self._scene.partitions_each if is_known else number
