"""Candidates for the worst request of an API, made from its schema.

An array of the request is chosen and filled until the request has the size that it shall have; the
arrays around it have one element. What names a topic, group and so on is once always the same one
that exists, once all that exist in turn, and once one that does not. Arrays that may be null are
null once: that means everything. What can be included in an answer is included.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ....bench.loads.wire import frame_of
from ....broker.handlers.registry import REGISTRATIONS
from ....common.sentinels import EARLIEST_TIMESTAMP, ZERO_UUID
from ....protocol.api_keys import ApiKey
from ....protocol.codec.types import Array, Field, FixedWidth, StructType, Type
from ....protocol.messages import request_message
from ....protocol.records import build_batch

if TYPE_CHECKING:
    from ....protocol.codec.message import MessageType

SAME, EACH, UNKNOWN = "the same", "each", "unknown"
NAMINGS: Final = (SAME, EACH, UNKNOWN)
CALIBRATION = (8, 72)
"""Two counts of elements, of which the bytes of one are learnt."""
TEXT_MAX = 32_767
TOPIC_TYPE, BROKER_TYPE, LOGGER_TYPE, GROUP_TYPE = 2, 4, 8, 32

STALE_EPOCH: Final = {"controller_epoch": -1, "broker_id": 4_711, "broker_epoch": -1}
"""What only brokers send is refused as coming from a controller of old: it does no harm."""

READ, ALLOW, LITERAL = 3, 3, 3
FILTER: Final = {
    "resource_type_filter": TOPIC_TYPE,
    "pattern_type_filter": LITERAL,
    "operation": READ,
    "permission_type": ALLOW,
}

VARIANTS: Final[Mapping[ApiKey, list[dict[str, Any]]]] = {
    ApiKey.DESCRIBE_CONFIGS: [
        {"resource_type": TOPIC_TYPE},
        {"resource_type": BROKER_TYPE, "resource_name": "broker"},
        {"resource_type": LOGGER_TYPE, "resource_name": "broker"},
        {"resource_type": GROUP_TYPE, "resource_name": "group"},
    ],
    ApiKey.ALTER_CONFIGS: [{"resource_type": TOPIC_TYPE}, {"resource_type": GROUP_TYPE}],
    ApiKey.INCREMENTAL_ALTER_CONFIGS: [
        {"resource_type": TOPIC_TYPE},
        {"resource_type": GROUP_TYPE},
    ],
    ApiKey.CREATE_TOPICS: [
        {"validate_only": True},
        {"validate_only": False, "assignments": [], "configs": []},
    ],
    ApiKey.FIND_COORDINATOR: [{"key_type": 0}, {"key_type": 1}],
    ApiKey.ELECT_LEADERS: [{"election_type": 0}, {"election_type": 1}],
    ApiKey.CREATE_ACLS: [
        {"resource_type": TOPIC_TYPE, "operation": READ, "permission_type": ALLOW}
    ],
    ApiKey.DELETE_ACLS: [FILTER],
    ApiKey.DESCRIBE_ACLS: [FILTER],
    ApiKey.LEADER_AND_ISR: [STALE_EPOCH],
    ApiKey.STOP_REPLICA: [STALE_EPOCH],
    ApiKey.UPDATE_METADATA: [STALE_EPOCH],
    ApiKey.CONTROLLED_SHUTDOWN: [STALE_EPOCH],
    ApiKey.ALLOCATE_PRODUCER_IDS: [STALE_EPOCH],
}
"""By API: other values of fields, each of which makes candidates of its own."""

NEWEST: Final[Mapping[ApiKey, int]] = {ApiKey.METADATA: 9, ApiKey.FETCH: 12, ApiKey.PRODUCE: 12}
"""Versions in which topics have names, which is where what does not exist costs most."""

TOPIC_NAMES: Final = frozenset({"topic", "topic_name"})
PARTITION_NUMBERS: Final = frozenset({"partition", "partition_index", "index"})
BROKER_LISTS: Final = frozenset({"broker_ids", "replicas", "isr", "adding_replicas"})
PARTITION_LISTS: Final = frozenset({"partitions", "partition_indexes"})
GROUPS: Final = frozenset({"group_id", "groups", "group_ids", "groups_names"})
TRANSACTIONS: Final = frozenset({"transactional_id", "transactional_ids"})
KEPT_FALSE: Final = frozenset({"is_kraft_controller", "verify_only", "delete_partition"})
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
    "producer_id": 1,
    "committed_offset": 1,
    "session_timeout_ms": 6_000,
    "rebalance_timeout_ms": 1_000,
    "endpoint_type": 1,
    "duration_filter": -1,
    "coordinator_epoch": 0,
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
    "retention_time_ms": -1,
    "transaction_timeout_ms": 60_000,
    "max_version_level": 1,
}


@dataclass(frozen=True)
class Scene:
    """What there is on the broker that is attacked.

    Attributes:
        topics: its names.
        partitions_each: of each topic.
        topic_ids: by name.
        groups, transactions: their ids.
        paths: its log directories.
    """

    broker_id: int
    topics: list[str]
    partitions_each: int
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    transactions: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Candidate:
    """A request that may be the worst of its API.

    Attributes:
        shape: in words.
        elements: how many the array that is filled has.
        build: makes the request, with its length, of so many elements.
    """

    api: ApiKey
    shape: str
    elements: int
    build: Callable[[int], bytes]

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
    message = request_message(api)
    version = NEWEST.get(api, REGISTRATIONS[api].versions[-1])
    axes = list(_arrays(message, version))
    for variant in VARIANTS.get(api, [{}]):
        builder = partial(_Builder, scene, message, version)
        words = _in_words(variant)
        free = [axis for axis in axes if not set(axis) & variant.keys()]
        for axis, naming in itertools.product(free, NAMINGS):
            build = builder(axis, naming, variant).frame
            shape = ", ".join([f"{'.'.join(axis)}: {naming}", *words])
            yield Candidate(api, shape, _elements_for(build, size), build)
        for axis in axes:
            if len(axis) == 1 and _may_be_null(message, axis[0], version):
                build = builder(axis, SAME, {**variant, axis[0]: None}).frame
                yield Candidate(api, f"{axis[0]}: all", 1, build)
        if not axes:
            build = builder((), SAME, variant, text=min(size, TEXT_MAX) - 64).frame
            yield Candidate(api, "long strings", 1, build)


def _in_words(variant: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in variant.items() if variant is not STALE_EPOCH]


def _arrays(
    struct: StructType, version: int, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    for each in struct.fields:
        if version not in each.versions or not isinstance(each.type, Array):
            continue
        here = (*path, each.name)
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
            value = self._variant[name]
            if value == "broker":
                return str(self._scene.broker_id)
            return self._group(number) if value == "group" else value
        if name in FIXED_VALUES:
            return FIXED_VALUES[name]
        if isinstance(of.type, Array):
            return self._elements(of, of.type, path, number, count)
        if isinstance(of.type, StructType):
            return of.type(**self._fields(of.type, path, number, count))
        return self._plain(of.type, name, of.default, path, number)

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
        if isinstance(of, FixedWidth):
            if isinstance(of.default, bool):
                return name not in KEPT_FALSE
            return default
        if isinstance(of.default, bytes):
            return b"x" * max(self._text, 16)
        return self._name(name, path, number)

    def _name(self, name: str, path: tuple[str, ...], number: int) -> str:
        if name in GROUPS:
            return self._group(number)
        if name in TRANSACTIONS:
            return self._one_of(self._scene.transactions, number)
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

    def _one_of(self, names: list[str], number: int) -> str:
        if self._naming == UNKNOWN or not names:
            return f"u{number}"
        return names[0 if self._naming == SAME else number % len(names)]

    def _partition(self, number: int) -> int:
        if self._naming == SAME:
            return 0
        return number % self._scene.partitions_each if self._naming == EACH else number
