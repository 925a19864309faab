"""Where in the metadata store Kafka keeps what, and the JSON in it, exactly as Kafka's.

So a store can be read by Kafka's own tools, and one that Kafka 3.9 wrote by odradek. Names
after Kafka's ZkData.scala. Decoders raise `CorruptNode` on what no Kafka writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote, unquote

from ..common.live_broker import EndPoint, FeatureRange, LiveBroker
from ..common.named_tuple import NamedTuple
from ..common.partition_state import LeaderAndIsr, shared_replicas
from ..common.topic_partition import TopicPartition
from ..runtime.rng import uuid_from_text, uuid_to_text
from ..runtime.steps import Steps, map_in_steps

if TYPE_CHECKING:
    from ..common.delegation_token import DelegationToken

BROKER_IDS = "/brokers/ids"
INTER_BROKER_SECRET = "/odradek/inter_broker_secret"
"""By which odradek's brokers know each other; Kafka has no such node."""
KNOWN_BROKER_EPOCHS = "/odradek/known_broker_epochs"
"""Which registrations of brokers a controller has dealt with; Kafka has no such node."""
TOPICS = "/brokers/topics"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
BROKER_CONFIGS = "/config/brokers"
TOPIC_CONFIGS = "/config/topics"
DELETE_TOPICS = "/admin/delete_topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
STORE_INCARNATION = "/cluster/incarnation"
"""odradek's own: a text that is another one in every store that knows of other topics."""
FEATURE = "/feature"
ISR_CHANGES = "/isr_change_notification"
ISR_CHANGE_PREFIX = f"{ISR_CHANGES}/isr_change_"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = f"{LOG_DIR_EVENTS}/log_dir_event_"
ACLS = "/kafka-acl"
PREFIXED_ACLS = "/kafka-acl-extended/prefixed"
ACL_CHANGES = "/kafka-acl-changes"
EXTENDED_ACL_CHANGES = "/kafka-acl-extended-changes"
ACL_CHANGE_PREFIX = "acl_changes_"
DELEGATION_TOKENS = "/delegation_token/tokens"
DELEGATION_TOKEN_CHANGES = "/delegation_token/token_changes"
TOKEN_CHANGE_PREFIX = "token_change_"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"

PROVES_ITSELF = "odradek_proves_itself"
"""A field of a broker's registration that Kafka's brokers do not have, and do not read."""

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

FEATURE_VERSION = 2
"""Version 1 also has a smallest level for each feature."""
FEATURES_DISABLED, FEATURES_ENABLED = 0, 1
"""The `status` of `/feature`: under brokers older than Kafka 2.7 features meant nothing."""
FEATURE_LEVEL_MAX = 2**15 - 1

ParametersT = ParamSpec("ParametersT")
NodeT = TypeVar("NodeT")


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


_COMMA = re.compile(r"\s*,\s*")
_END_OF_LIST = re.compile(r"\s*\]\s*\}\s*")


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _decoder(
    what: str,
) -> Callable[
    [Callable[Concatenate[Any, ParametersT], NodeT]],
    Callable[Concatenate[bytes, ParametersT], NodeT],
]:
    """A decoder of a node's bytes, from a reader of the JSON in it."""

    def decorate(
        read: Callable[Concatenate[Any, ParametersT], NodeT],
    ) -> Callable[Concatenate[bytes, ParametersT], NodeT]:
        @wraps(read)
        def decode(
            data: bytes, /, *arguments: ParametersT.args, **named: ParametersT.kwargs
        ) -> NodeT:
            try:
                return read(json.loads(data), *arguments, **named)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise CorruptNode(f"no {what}: {data[:80]!r}") from error

        return decode

    return decorate


def _dump_replicas(replicas: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(partition): list(ids) for partition, ids in sorted(replicas.items())}


def _load_replicas(value: Mapping[str, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    return {int(partition): shared_replicas(map(int, ids)) for partition, ids in value.items()}


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


@_decoder("topic")
def decode_topic(value: Any) -> TopicNode:
    """`/brokers/topics/T`. Raises CorruptNode."""
    return TopicNode(
        uuid_from_text(value["topic_id"]),
        dict(sorted(_load_replicas(value["partitions"]).items())),
        _load_replicas(value.get("adding_replicas", {})),
        _load_replicas(value.get("removing_replicas", {})),
    )


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


@_decoder("partition state")
def decode_partition_state(value: Any, partition_epoch: int = 0) -> LeaderAndIsr:
    """`/brokers/topics/T/partitions/N/state`, with the node's version. Raises CorruptNode."""
    return LeaderAndIsr(
        int(value["controller_epoch"]),
        int(value["leader"]),
        int(value["leader_epoch"]),
        shared_replicas(map(int, value["isr"])),
        partition_epoch,
    )


def encode_config(overrides: Mapping[str, str]) -> bytes:
    """`/config/topics/T`, `/config/brokers/N` and all others of the kind."""
    return _dump({"version": 1, "config": dict(overrides)})


def encode_known_broker_epochs(epochs: Mapping[int, int]) -> bytes:
    """`/odradek/known_broker_epochs`."""
    return _dump({"version": 1, "epochs": dict(epochs)})


@_decoder("known broker epochs")
def decode_known_broker_epochs(value: Any) -> dict[int, int]:
    """`/odradek/known_broker_epochs`. Raises CorruptNode."""
    return {int(broker_id): int(epoch) for broker_id, epoch in value["epochs"].items()}


@_decoder("configuration")
def decode_config(value: Any) -> dict[str, str]:
    """`/config/topics/T`, `/config/brokers/N` and all others of the kind. Raises CorruptNode."""
    return {str(name): str(text) for name, text in value["config"].items()}


def encode_config_change(entity_path: str) -> bytes:
    """`/config/changes/config_change_N`: whose settings changed, such as `topics/orders`."""
    return _dump({"version": 2, "entity_path": entity_path})


@_decoder("change of a configuration")
def decode_config_change(value: Any) -> str:
    """The entity path of `/config/changes/config_change_N`. Raises CorruptNode."""
    if value["version"] == 1:  # what brokers before Kafka 0.10 wrote
        return f"{value['entity_type']}/{value['entity_name']}"
    return str(value["entity_path"])


class AclNode(NamedTuple):
    """One entry of an ACL node, in the words of Kafka's nodes: "Allow", "DescribeConfigs"."""

    principal: str
    permission: str
    operation: str
    host: str


def encode_acls(entries: Iterable[AclNode]) -> Steps[bytes]:
    """`/kafka-acl/Topic/T`, `/kafka-acl-extended/prefixed/Topic/T` (Kafka's AclEntry).

    A node may hold thousands, so it is work that yields after each.
    """
    texts = []
    for entry in entries:
        texts.append(
            _dump(
                {
                    "principal": entry.principal,
                    "permissionType": entry.permission,
                    "operation": entry.operation,
                    "host": entry.host,
                }
            )
        )
        yield
    return b'{"version":1,"acls":[' + b",".join(texts) + b"]}"


def decode_acls(data: bytes) -> Steps[list[AclNode]]:
    """The same back, in steps as well. Raises CorruptNode."""
    found = []
    try:
        for each in _each_in_list("acls", data.decode()):
            found.append(
                AclNode(
                    str(each["principal"]),
                    str(each["permissionType"]),
                    str(each["operation"]),
                    str(each["host"]),
                )
            )
            yield
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptNode(f"no ACLs of a resource: {data[:80]!r}") from error
    return found


def _each_in_list(key: str, text: str) -> Iterator[Any]:
    """The elements of a list in a JSON object, each read when it is its turn.

    That takes an object as Kafka writes them: a version and the list. Others are read in one go.

    Raises:
        KeyError, TypeError, ValueError: there is no such list.
    """
    head = re.match(rf'\s*{{\s*"version"\s*:\s*\d+\s*,\s*"{key}"\s*:\s*\[\s*(?=\{{)', text)
    if head is None:
        yield from json.loads(text)[key]
        return
    position = head.end()
    read = json.JSONDecoder().raw_decode
    while True:
        element, position = read(text, position)
        yield element
        comma = _COMMA.match(text, position)
        if comma is None:
            break
        position = comma.end()
    if _END_OF_LIST.fullmatch(text, position) is None:
        raise ValueError(f"no end of the list at {position}")


def encode_acl_change(resource_type: str, name: str) -> bytes:
    """`/kafka-acl-changes/acl_changes_N`: "Topic:T", which is no JSON."""
    return f"{resource_type}:{name}".encode()


def decode_acl_change(data: bytes) -> tuple[str, str]:
    """Type and name in `/kafka-acl-changes/acl_changes_N`. Raises CorruptNode."""
    try:
        resource_type, colon, name = data.decode().partition(":")
    except UnicodeDecodeError as error:
        raise CorruptNode(f"a change of ACLs is not UTF-8: {error}") from error
    if not (colon and name):
        raise CorruptNode("a change of ACLs names no resource")
    return resource_type, name


def encode_extended_acl_change(resource_type: str, name: str) -> bytes:
    """`/kafka-acl-extended-changes/acl_changes_N`, of a prefix."""
    return _dump(
        {"version": 1, "resourceType": resource_type, "name": name, "patternType": "PREFIXED"}
    )


@_decoder("change of extended ACLs")
def decode_extended_acl_change(value: Any) -> tuple[str, str]:
    """Type and name in `/kafka-acl-extended-changes/acl_changes_N`. Raises CorruptNode."""
    return str(value["resourceType"]), str(value["name"])


def delegation_token_path(token_id: str) -> str:
    """A delegation token (KIP-48)."""
    return f"{DELEGATION_TOKENS}/{token_id}"


def encode_delegation_token(token: DelegationToken) -> Steps[bytes]:
    """`/delegation_token/tokens/ID`; principals are encoded as by Kafka's Sanitizer.

    A token may have thousands of renewers, so it is work that yields after each.
    """

    def sanitized(principal: str) -> str:
        return quote(principal, safe="").replace("~", "%7E")

    return _dump(
        {
            "version": 3,
            "owner": sanitized(token.owner),
            "tokenRequester": sanitized(token.requester),
            "renewers": (yield from map_in_steps(sanitized, token.renewers)),
            "issueTimestamp": token.issue_ms,
            "maxTimestamp": token.max_ms,
            "expiryTimestamp": token.expiry_ms,
            "tokenId": token.token_id,
        }
    )


def decode_delegation_token(data: bytes) -> Steps[DelegationToken]:
    """The same back, in steps as well. Raises CorruptNode."""
    from ..common.delegation_token import DelegationToken  # few clusters have any

    try:
        value = json.loads(data)
        owner = unquote(value["owner"])
        return DelegationToken(
            str(value["tokenId"]),
            owner,
            unquote(value["tokenRequester"]) if int(value["version"]) >= 3 else owner,
            tuple((yield from map_in_steps(unquote, value["renewers"]))),
            int(value["issueTimestamp"]),
            int(value["maxTimestamp"]),
            int(value["expiryTimestamp"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptNode(f"no delegation token: {data[:80]!r}") from error


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
    if broker.proves_itself:
        value[PROVES_ITSELF] = True
    # Readers older than the endpoints field find the plaintext listener here.
    value["jmx_port"] = -1
    value["port"] = plaintext.port if plaintext else -1
    value["host"] = plaintext.host if plaintext else None
    value["version"] = BROKER_VERSION
    value["timestamp"] = str(now_ms)
    return _dump(value)


@_decoder("broker")
def decode_broker(value: Any, broker_id: int, epoch: int) -> LiveBroker:
    """`/brokers/ids/N`. Raises CorruptNode."""
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
    proves_itself = value.get(PROVES_ITSELF) is True
    return LiveBroker(
        broker_id, tuple(endpoints), value.get("rack"), epoch, features, proves_itself
    )


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


@_decoder("controller")
def decode_controller(value: Any) -> int:
    """The id of the broker that `/controller` names. Raises CorruptNode."""
    return int(value["brokerid"])


def encode_log_dir_event(broker_id: int) -> bytes:
    """`/log_dir_event_notification/log_dir_event_N`: a log directory of a broker has failed."""
    return _dump({"version": 1, "broker": broker_id, "event": LOG_DIR_FAILED})


def encode_cluster_id(cluster_id: str) -> bytes:
    """`/cluster/id`."""
    return _dump({"version": "1", "id": cluster_id})


@_decoder("cluster id")
def decode_cluster_id(value: Any) -> str:
    """`/cluster/id`. Raises CorruptNode."""
    return str(value["id"])


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


@_decoder("block of producer ids")
def decode_producer_id_block(value: Any) -> ProducerIdBlock:
    """`/latest_producer_id_block`. Raises CorruptNode."""
    return ProducerIdBlock(int(value["broker"]), int(value["block_start"]), int(value["block_end"]))


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


@_decoder("ISR change")
def decode_isr_change(value: Any) -> list[TopicPartition]:
    """`/isr_change_notification/isr_change_N`. Raises CorruptNode."""
    return [
        TopicPartition(str(each["topic"]), int(each["partition"])) for each in value["partitions"]
    ]


@_decoder("event of a log directory")
def decode_log_dir_event(value: Any) -> int:
    """The broker that lost a log directory. Raises CorruptNode."""
    return int(value["broker"])


class FeatureNode(NamedTuple):
    """Which features a cluster has finalized (KIP-584; FeatureZNode in Kafka's ZkData.scala).

    Attributes:
        levels: finalized level by feature; a feature that is not there has level 0.
        is_enabled: whether `levels` count; brokers older than Kafka 2.7 left the node disabled.
        version: of the node's JSON.
    """

    levels: Mapping[str, int]
    is_enabled: bool = True
    version: int = FEATURE_VERSION


def encode_feature(node: FeatureNode) -> bytes:
    """`/feature`, in the newest version of its JSON."""
    return _dump(
        {
            "features": {
                name: {"max_version_level": level} for name, level in sorted(node.levels.items())
            },
            "version": FEATURE_VERSION,
            "status": FEATURES_ENABLED if node.is_enabled else FEATURES_DISABLED,
        }
    )


@_decoder("features")
def decode_feature(value: Any) -> FeatureNode:
    """`/feature`. Raises CorruptNode."""
    version, status = int(value["version"]), int(value["status"])
    levels = {
        str(name): int(range_["max_version_level"])
        for name, range_ in value.get("features", {}).items()
    }
    if version not in (1, FEATURE_VERSION) or status not in (FEATURES_DISABLED, FEATURES_ENABLED):
        raise ValueError("unknown version or status")
    if not all(0 <= level <= FEATURE_LEVEL_MAX for level in levels.values()):
        raise ValueError("a level out of range")
    finalized = {name: level for name, level in levels.items() if level > 0}
    return FeatureNode(finalized, status == FEATURES_ENABLED, version)
