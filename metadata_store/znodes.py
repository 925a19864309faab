"""Where in the metadata store Kafka keeps what, and the JSON in it, exactly as Kafka's.

So a store can be read by Kafka's own tools, and one that Kafka 3.9 wrote by odradek. Names
after Kafka's ZkData.scala. Decoders raise `CorruptNode` on what no Kafka writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..common.live_broker import EndPoint, FeatureRange, LiveBroker
from ..common.partition_state import LeaderAndIsr
from ..common.topic_partition import TopicPartition
from ..runtime.rng import uuid_from_text, uuid_to_text

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
BROKER_CONFIGS = "/config/brokers"
TOPIC_CONFIGS = "/config/topics"
DELETE_TOPICS = "/admin/delete_topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
ISR_CHANGES = "/isr_change_notification"
ISR_CHANGE_PREFIX = f"{ISR_CHANGES}/isr_change_"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = f"{LOG_DIR_EVENTS}/log_dir_event_"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"

PERSISTENT_PATHS = (
    "/consumers",
    BROKER_IDS,
    "/brokers/seqid",
    TOPICS,
    CONFIG_CHANGES,
    BROKER_CONFIGS,
    "/config/clients",
    "/config/ips",
    TOPIC_CONFIGS,
    "/config/users",
    DELETE_TOPICS,
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
)
"""What the first broker of a cluster makes, as Kafka's does."""

TOPIC_VERSION = 3
BROKER_VERSION = 5
LOG_DIR_FAILED = 1
"""The one event that there is."""


class CorruptNode(Exception):
    """A node's data is not what its path calls for."""


def broker_path(broker_id: int) -> str:
    """Where a broker registers."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """A topic's partitions and id."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """The parent of a topic's partition nodes."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    """The parent of a partition's state."""
    return f"{TOPICS}/{topic}/partitions/{partition}"


def partition_state_path(topic: str, partition: int) -> str:
    """A partition's leader and ISR."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    """A topic's overrides."""
    return f"{TOPIC_CONFIGS}/{topic}"


def config_path(entity_path: str) -> str:
    """The settings of an entity, such as `brokers/1`."""
    return f"{CONFIG}/{entity_path}"


def delete_topic_path(topic: str) -> str:
    """The mark of a topic to be deleted."""
    return f"{DELETE_TOPICS}/{topic}"


class TopicNode(NamedTuple):
    """What a topic's node says: the replicas of each partition, and the topic's id."""

    topic_id: bytes
    assignment: Mapping[int, tuple[int, ...]]
    adding_replicas: Mapping[int, tuple[int, ...]] = {}
    removing_replicas: Mapping[int, tuple[int, ...]] = {}


class ProducerIdBlock(NamedTuple):
    """The producer ids that were given to a broker last; both ends belong to it."""

    broker_id: int
    first: int
    last: int


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _load(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise CorruptNode(f"no JSON: {data[:80]!r}") from error


def _dump_replicas(replicas: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(partition): list(ids) for partition, ids in sorted(replicas.items())}


def _load_replicas(value: Mapping[str, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    return {int(partition): tuple(ids) for partition, ids in value.items()}


def encode_topic(topic: TopicNode) -> bytes:
    """`/brokers/topics/T`."""
    return _dump(
        {
            "partitions": _dump_replicas(topic.assignment),
            "topic_id": uuid_to_text(topic.topic_id),
            "adding_replicas": _dump_replicas(topic.adding_replicas),
            "removing_replicas": _dump_replicas(topic.removing_replicas),
            "version": TOPIC_VERSION,
        }
    )


def decode_topic(data: bytes) -> TopicNode:
    """`/brokers/topics/T`. Raises CorruptNode."""
    value = _load(data)
    try:
        return TopicNode(
            uuid_from_text(value["topic_id"]),
            dict(sorted(_load_replicas(value["partitions"]).items())),
            _load_replicas(value.get("adding_replicas", {})),
            _load_replicas(value.get("removing_replicas", {})),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptNode(f"no topic: {data[:80]!r}") from error


def encode_partition_state(state: LeaderAndIsr) -> bytes:
    """`/brokers/topics/T/partitions/N/state`."""
    return _dump(
        {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
        }
    )


def decode_partition_state(data: bytes, partition_epoch: int = 0) -> LeaderAndIsr:
    """`/brokers/topics/T/partitions/N/state`, with the node's version. Raises CorruptNode."""
    value = _load(data)
    try:
        return LeaderAndIsr(
            int(value["controller_epoch"]),
            int(value["leader"]),
            int(value["leader_epoch"]),
            tuple(value["isr"]),
            partition_epoch,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptNode(f"no partition state: {data[:80]!r}") from error


def encode_config(overrides: Mapping[str, str]) -> bytes:
    """`/config/topics/T`, `/config/brokers/N` and all others of the kind."""
    return _dump({"version": 1, "config": dict(overrides)})


def decode_config(data: bytes) -> dict[str, str]:
    """`/config/topics/T`, `/config/brokers/N` and all others of the kind. Raises CorruptNode."""
    value = _load(data)
    try:
        return {str(name): str(text) for name, text in value["config"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptNode(f"no configuration: {data[:80]!r}") from error


def encode_config_change(entity_path: str) -> bytes:
    """`/config/changes/config_change_N`: whose settings changed, such as `topics/orders`."""
    return _dump({"version": 2, "entity_path": entity_path})


def decode_config_change(data: bytes) -> str:
    """The entity path of `/config/changes/config_change_N`. Raises CorruptNode."""
    value = _load(data)
    try:
        if value["version"] == 1:  # what brokers before Kafka 0.10 wrote
            return f"{value['entity_type']}/{value['entity_name']}"
        return str(value["entity_path"])
    except (KeyError, TypeError) as error:
        raise CorruptNode(f"no change of a configuration: {data[:80]!r}") from error


def encode_broker(broker: LiveBroker, now_ms: int) -> bytes:
    """`/brokers/ids/N`, with the time of its registration."""
    plaintext = next((e for e in broker.endpoints if e.security_protocol == "PLAINTEXT"), None)
    value: dict[str, Any] = {
        "features": {
            feature.name: {"min_version": feature.min_version, "max_version": feature.max_version}
            for feature in broker.features
        },
        "listener_security_protocol_map": {
            endpoint.listener_name: endpoint.security_protocol for endpoint in broker.endpoints
        },
        "endpoints": [
            f"{endpoint.listener_name}://{_bracket(endpoint.host)}:{endpoint.port}"
            for endpoint in broker.endpoints
        ],
    }
    if broker.rack is not None:
        value["rack"] = broker.rack
    # Readers older than the endpoints field find the plaintext listener here.
    value["jmx_port"] = -1
    value["port"] = plaintext.port if plaintext else -1
    value["host"] = plaintext.host if plaintext else None
    value["version"] = BROKER_VERSION
    value["timestamp"] = str(now_ms)
    return _dump(value)


def decode_broker(broker_id: int, data: bytes, epoch: int) -> LiveBroker:
    """`/brokers/ids/N`. Raises CorruptNode."""
    value = _load(data)
    try:
        protocols = value["listener_security_protocol_map"]
        endpoints = []
        for text in value["endpoints"]:
            listener_name, _, address = text.partition("://")
            host, _, port = address.rpartition(":")
            protocol = protocols.get(listener_name, listener_name)
            endpoints.append(EndPoint(listener_name, host.strip("[]"), int(port), protocol))
        features = tuple(
            FeatureRange(name, int(said.get("min_version", 0)), int(said["max_version"]))
            for name, said in value.get("features", {}).items()
        )
        return LiveBroker(broker_id, tuple(endpoints), value.get("rack"), epoch, features)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptNode(f"no broker: {data[:80]!r}") from error


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def encode_controller(broker_id: int, now_ms: int) -> bytes:
    """`/controller`."""
    return _dump(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(now_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(data: bytes) -> int:
    """The id of the broker that `/controller` names. Raises CorruptNode."""
    value = _load(data)
    try:
        return int(value["brokerid"])
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptNode(f"no controller: {data[:80]!r}") from error


def encode_log_dir_event(broker_id: int) -> bytes:
    """`/log_dir_event_notification/log_dir_event_N`: a log directory of a broker has failed."""
    return _dump({"version": 1, "broker": broker_id, "event": LOG_DIR_FAILED})


def encode_cluster_id(cluster_id: str) -> bytes:
    """`/cluster/id`."""
    return _dump({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    """`/cluster/id`. Raises CorruptNode."""
    value = _load(data)
    try:
        return str(value["id"])
    except (KeyError, TypeError) as error:
        raise CorruptNode(f"no cluster id: {data[:80]!r}") from error


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    """`/latest_producer_id_block`."""
    return _dump(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first),
            "block_end": str(block.last),
        }
    )


def decode_producer_id_block(data: bytes) -> ProducerIdBlock:
    """`/latest_producer_id_block`. Raises CorruptNode."""
    value = _load(data)
    try:
        return ProducerIdBlock(
            int(value["broker"]), int(value["block_start"]), int(value["block_end"])
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptNode(f"no block of producer ids: {data[:80]!r}") from error


def encode_isr_change(partitions: Iterable[TopicPartition]) -> bytes:
    """`/isr_change_notification/isr_change_N`: the partitions whose ISR a leader changed."""
    return _dump(
        {
            "version": 1,
            "partitions": [
                {"topic": topic, "partition": partition} for topic, partition in partitions
            ],
        }
    )


def decode_isr_change(data: bytes) -> list[TopicPartition]:
    """`/isr_change_notification/isr_change_N`. Raises CorruptNode."""
    value = _load(data)
    try:
        return [
            TopicPartition(str(each["topic"]), int(each["partition"]))
            for each in value["partitions"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptNode(f"no ISR change: {data[:80]!r}") from error


def decode_log_dir_event(data: bytes) -> int:
    """The broker that lost a log directory. Raises CorruptNode."""
    value = _load(data)
    try:
        return int(value["broker"])
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptNode(f"no event of a log directory: {data[:80]!r}") from error
