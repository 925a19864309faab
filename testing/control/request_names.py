"""What a decoded request names: topics, partitions, groups, transactional ids.

It goes by the names of fields in Kafka's schemas, so that every API and version is covered. Topics
that a request names by id are looked up. A Fetch that goes on with a session (KIP-227) is taken to
name what the session holds. What is only in a member's metadata, or left to the broker ("all
topics"), is not named.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.sentinels import ZERO_UUID
from ...config.definition import ConfigResourceType
from ...protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...broker.request.requests import Request
    from ...protocol.codec.types import Struct, StructType

GROUP_FIELDS = frozenset({"group_id", "group_ids", "groups_names", "groups"})
TRANSACTION_FIELDS = frozenset(
    {"transactional_id", "transactional_ids", "v3_and_below_transactional_id"}
)
TOPIC_FIELDS = frozenset({"topic", "topic_name", "topic_names", "subscribed_topic_names"})
PARTITION_NAMING_FIELDS = frozenset(
    {"partition", "partition_index", "index", "partitions", "partition_indexes"}
)
TOPIC_ARRAYS = frozenset({"topics", "topic_data", "topic_states", "v3_and_below_topics"})
"""Arrays whose elements are topics, so that their field `name` is a topic's."""
NOT_ASKED_FOR = frozenset({"forgotten_topics_data"})

KEY_GROUP = 0
KEY_TRANSACTION = 1


class RequestNames(NamedTuple):
    """What a request names."""

    topics: set[str]
    partitions: set[tuple[str, int]]
    groups: set[str]
    transactional_ids: set[str]


def names_in(request: Request[Any], broker: Broker) -> RequestNames:
    """What a request names.

    Args:
        request: decoded.
        broker: knows topics' ids, and fetch sessions.
    """
    reader = _NameCollector(broker)
    body = request.body
    if body is not None:
        reader.read(body, "", None)
        if request.api_key == ApiKey.FETCH and body.session_id:
            reader.read_session(body.session_id)
        elif request.api_key == ApiKey.FIND_COORDINATOR:
            reader.read_coordinator_keys(body)
    return reader.names


@cache
def nameable(api_key: int) -> frozenset[str]:
    """What requests of an API can name: of "topic", "partition", "group", "transactional_id"."""
    from ...protocol.messages import request_message

    found: set[str] = set()
    _note_nameable(request_message(ApiKey(api_key)), "", found)
    if api_key == ApiKey.FIND_COORDINATOR:
        found |= {"group", "transactional_id"}
    return frozenset(found)


def _note_nameable(struct: StructType, array: str, found: set[str]) -> None:
    from ...protocol.codec.types import Array, StructType

    for field in struct.fields:
        name = field.name
        if name in NOT_ASKED_FOR:
            continue
        if name in GROUP_FIELDS:
            found.add("group")
        elif name in TRANSACTION_FIELDS:
            found.add("transactional_id")
        elif name == "resource_name":
            found |= {"topic", "group"}
        elif (
            name in TOPIC_FIELDS or name == "topic_id" or (name == "name" and array in TOPIC_ARRAYS)
        ):
            found.add("topic")
        elif name in PARTITION_NAMING_FIELDS:
            found.add("partition")
        if isinstance(field.type, Array) and isinstance(field.type.element, StructType):
            _note_nameable(field.type.element, name, found)


class _NameCollector:
    """Collects names from the structs of one request."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.names = RequestNames(set(), set(), set(), set())

    def read(self, value: Struct, array: str, topic: str | None) -> None:
        """Read a struct's fields, and those of the structs in its arrays.

        Args:
            array: the field whose element it is.
            topic: that it is a part of.
        """
        from ...protocol.codec.types import Array, StructType

        topic = self._topic_of(value, array) or topic
        if topic:
            self.names.topics.add(topic)
        for field in type(value).fields:
            name = field.name
            if name in NOT_ASKED_FOR or not isinstance(field.type, Array):
                self._read_plain(name, getattr(value, field.slot), value, topic)
            elif isinstance(field.type.element, StructType):
                for element in getattr(value, name) or ():
                    self.read(element, name, topic)
            else:
                for element in getattr(value, name) or ():
                    self._read_plain(name, element, value, topic)

    def _topic_of(self, value: Struct, array: str) -> str | None:
        for field in type(value).fields:
            name = field.name
            if name in ("topic", "topic_name") or (name == "name" and array in TOPIC_ARRAYS):
                found = getattr(value, name)
                if isinstance(found, str) and found:
                    return found
        topic_id = getattr(value, "topic_id", None)
        if isinstance(topic_id, bytes) and topic_id != ZERO_UUID:
            return self._broker.metadata_cache.topic_name(topic_id)
        return None

    def _read_plain(self, field: str, value: Any, around: Any, topic: str | None) -> None:
        names = self.names
        if value is None or value == "":
            return
        if field in PARTITION_NAMING_FIELDS:
            if topic is not None and isinstance(value, int):
                names.partitions.add((topic, value))
        elif not isinstance(value, str):
            return
        elif field in GROUP_FIELDS:
            names.groups.add(value)
        elif field in TRANSACTION_FIELDS:
            names.transactional_ids.add(value)
        elif field in TOPIC_FIELDS:
            names.topics.add(value)
        elif field == "resource_name":
            if around.resource_type == ConfigResourceType.TOPIC:
                names.topics.add(value)
            elif around.resource_type == ConfigResourceType.GROUP:
                names.groups.add(value)

    def read_session(self, session_id: int) -> None:
        """Read the partitions of a fetch session."""
        for session in self._broker.fetch_sessions:
            if session.id == session_id:
                self._read_keys(session.partitions)

    def _read_keys(self, keys: Iterable[tuple[str | bytes, int]]) -> None:
        for key, partition in keys:
            topic = self._broker.metadata_cache.topic_name(key) if isinstance(key, bytes) else key
            if topic is not None:
                self.names.topics.add(topic)
                self.names.partitions.add((topic, partition))

    def read_coordinator_keys(self, body: Any) -> None:
        """Read whose coordinator is looked for."""
        keys = {key for key in (body.key, *body.coordinator_keys) if key}
        if body.key_type == KEY_GROUP:
            self.names.groups.update(keys)
        elif body.key_type == KEY_TRANSACTION:
            self.names.transactional_ids.update(keys)
