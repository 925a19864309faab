"""Administration of a cluster, as far as brokers and tests need it.

Each call raises on the first thing that was refused; what was not is done all the same. For
answers one by one, send the request yourself: `KafkaClient.send_to_controller`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from ..client import KafkaClient
from ..error_kinds import error_name, error_of
from ..errors import ConnectError, DisconnectedError, MetadataTimeoutError, UnknownNodeError
from ..metadata.cluster import Node, TopicInfo
from ..metadata.snapshot_update import partition_info

if TYPE_CHECKING:
    from ...protocol.codec.message import Message
    from ..network.attempts import Attempts

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4

CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32

RESOURCE_NOUNS = {
    TOPIC_RESOURCE: "topic",
    BROKER_RESOURCE: "broker",
    CLIENT_METRICS_RESOURCE: "client metrics",
    GROUP_RESOURCE: "group",
}

DEFAULT_BROKER_SOURCE = 3
"""A setting of all brokers that have none of their own, set while they run."""
OWN_SOURCES = {
    TOPIC_RESOURCE: frozenset({1}),
    BROKER_RESOURCE: frozenset({2}),
    CLIENT_METRICS_RESOURCE: frozenset({7}),
    GROUP_RESOURCE: frozenset({8}),
}
"""Where a setting was set if it was for this resource itself (ConfigSource): DYNAMIC_TOPIC_CONFIG
and so on. All else is a default of some kind."""

DEFAULT = -1
"""For a number of partitions or replicas: the broker's own setting."""

OP_SET = 0
OP_DELETE = 1

PREFERRED_ELECTION = 0
UNCLEAN_ELECTION = 1

TopicPartition = tuple[str, int]


class NewTopic(NamedTuple):
    """A topic to create.

    Attributes:
        name: its name.
        partitions: how many.
        replication_factor: how many replicas each has.
        assignments: instead of both, the brokers of each partition, by its index.
        configs: its settings by Kafka's names.
    """

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str | None] = {}


class ConfigSynonym(NamedTuple):
    """One of the places where a setting may be set: its name there, its value, its source."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """A setting of a resource.

    Attributes:
        name: by Kafka's name.
        value: None where it has none, or is secret.
        source: where it was set, as Kafka's ConfigSource has it.
        is_read_only: whether only a restart changes it.
        is_sensitive: whether its value is secret.
        documentation: what it is for; None where the broker does not say.
        synonyms: where it is set, its default last: the first of them counts; empty unless they
            were asked for.
    """

    name: str
    value: str | None
    source: int
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None
    synonyms: tuple[ConfigSynonym, ...] = ()


class ClusterDescription(NamedTuple):
    """The answer of DescribeCluster."""

    cluster_id: str
    controller_id: int
    nodes: tuple[Node, ...]


EXACT_MATCH = 0
DEFAULT_MATCH = 1
ANY_MATCH = 2
"""How DescribeClientQuotas compares an entity's name (KIP-546)."""


CLIENT_QUOTAS = {
    "producer_byte_rate": "bytes a second",
    "consumer_byte_rate": "bytes a second",
    "request_percentage": "percent of a thread's time",
    "controller_mutation_rate": "partitions a second",
    "connection_creation_rate": "connections a second",
}
"""The quotas of clients by Kafka's names, and what they are measured in."""


class EntityQuotas(NamedTuple):
    """The quotas of one entity.

    Attributes:
        entity: names by entity type (`user`, `client-id`, `ip`); None: the default of the type.
        quotas: by Kafka's names, such as `producer_byte_rate`.
    """

    entity: Mapping[str, str | None]
    quotas: Mapping[str, float]


class Outcome(NamedTuple):
    """The outcome for one requested item."""

    what: str
    error_code: int
    message: str | None = None


class Admin:
    """Administers a cluster through a client.

    Args:
        client: is open, and stays so.
        timeout_ms: for each call, and the timeout that brokers are given.
    """

    def __init__(self, client: KafkaClient, timeout_ms: int = 30_000) -> None:
        self._client = client
        self._timeout_ms = timeout_ms

    async def create_topics(self, topics: Iterable[NewTopic]) -> None:
        """Create topics.

        Raises:
            KafkaError: TOPIC_ALREADY_EXISTS, INVALID_REPLICATION_FACTOR and so on.
            ClientError: the controller could not be reached.
        """
        request = messages.CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics], timeout_ms=self._timeout_ms
        )
        await self._ask_controller(
            request,
            lambda response: [
                Outcome(f"topic {topic.name}", topic.error_code, topic.error_message)
                for topic in response.topics
            ],
        )

    async def delete_topics(self, names: Iterable[str]) -> None:
        """Delete topics by their names.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION and so on.
            ClientError: the controller could not be reached.
        """
        make = messages.DeleteTopicsRequest.DeleteTopicState
        request = messages.DeleteTopicsRequest(
            topics=[make(name=name) for name in names], timeout_ms=self._timeout_ms
        )
        await self._ask_controller(
            request,
            lambda response: [
                Outcome(f"topic {topic.name}", topic.error_code, topic.error_message)
                for topic in response.responses
            ],
        )

    async def create_partitions(
        self, topic: str, total: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Give a topic more partitions.

        Args:
            topic: its name.
            total: how many it has then.
            assignments: the brokers of each new one.

        Raises:
            KafkaError: INVALID_PARTITIONS and so on.
            ClientError: the controller could not be reached.
        """
        make = messages.CreatePartitionsRequest.CreatePartitionsAssignment
        placed = None if assignments is None else [make(broker_ids=list(a)) for a in assignments]
        grown = messages.CreatePartitionsRequest.CreatePartitionsTopic(
            name=topic, count=total, assignments=placed
        )
        request = messages.CreatePartitionsRequest(topics=[grown], timeout_ms=self._timeout_ms)
        await self._ask_controller(
            request,
            lambda response: [
                Outcome(f"topic {topic.name}", topic.error_code, topic.error_message)
                for topic in response.results
            ],
        )

    async def describe_cluster(self) -> ClusterDescription:
        """The brokers, and which of them is the controller.

        Raises:
            KafkaError: the broker refused.
            ClientError: no broker could be reached.
        """
        response: messages.DescribeClusterResponse = await self._client.send_to_any(
            messages.DescribeClusterRequest()
        )
        require_success([Outcome("the cluster", response.error_code, response.error_message)])
        nodes = (Node(b.broker_id, b.host, b.port, b.rack) for b in response.brokers)
        return ClusterDescription(response.cluster_id, response.controller_id, tuple(nodes))

    async def list_topics(self) -> list[str]:
        """The names of all topics that this client may see.

        Raises:
            ClientError: no broker could be reached.
        """
        request = messages.MetadataRequest(topics=None, allow_auto_topic_creation=True)
        response: messages.MetadataResponse = await self._client.send_to_any(request)
        return sorted(topic.name for topic in response.topics if topic.name is not None)

    async def describe_topics(self, names: Iterable[str] | None = None) -> dict[str, TopicInfo]:
        """Topics with their partitions, as one broker knows them; no topic is created for it.

        Args:
            names: which; None: all that this client may see.

        Returns:
            By name, in the order of the names. Of a topic that cannot be described only its
            `error_code` is known, such as UNKNOWN_TOPIC_OR_PARTITION.

        Raises:
            ClientError: no broker could be reached.
        """
        topics = None
        if names is not None:
            make = messages.MetadataRequest.MetadataRequestTopic
            topics = [make(name=name) for name in sorted(set(names))]
            if not topics:
                return {}  # In the request, no topics may mean all.
        response: messages.MetadataResponse = await self._client.send_to_any(
            messages.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        )
        return {
            name: TopicInfo(
                name,
                topic.topic_id,
                topic.is_internal,
                MappingProxyType(
                    {each.partition_index: partition_info(name, each) for each in topic.partitions}
                ),
                topic.error_code,
            )
            for topic in sorted(response.topics, key=lambda topic: topic.name or "")
            if (name := topic.name) is not None
        }

    async def wait_for_topics(
        self, names: Iterable[str], timeout_ms: int | None = None, *, partitions_min: int = 1
    ) -> None:
        """Wait until every broker knows topics that were just created or given more partitions,
        and who leads those: the controller answers before it has told them all.

        A broker that cannot be connected to is not waited for.

        Args:
            names: of the topics.
            timeout_ms: how long at most; None: as long as any call.
            partitions_min: how many partitions each of them has at least.

        Raises:
            MetadataTimeoutError: a topic or a leader was not there in time.
            KafkaError, ClientError: as `KafkaClient.wait_for_topic` and `KafkaClient.send`.
        """
        attempts = self._client.attempts(self._timeout_ms if timeout_ms is None else timeout_ms)
        requested = list(names)
        for name in requested:
            self._client.add_topic(name)
        for name in requested:
            topic = await self._client.wait_for_topic(name, timeout_ms=attempts.remaining_ms)
            for partition in topic.partitions:
                await self._client.wait_for_leader(name, partition, attempts.remaining_ms)
        nodes = list(self._client.cluster.nodes)
        if requested and (len(nodes) > 1 or partitions_min > 1):
            for node_id in nodes:
                await self._wait_for_topics_at(node_id, requested, attempts, partitions_min)

    async def _wait_for_topics_at(
        self, node_id: int, names: Sequence[str], attempts: Attempts, partitions_min: int
    ) -> None:
        make = messages.MetadataRequest.MetadataRequestTopic
        request = messages.MetadataRequest(
            topics=[make(name=name) for name in names], allow_auto_topic_creation=False
        )
        while True:
            try:
                response: messages.MetadataResponse = await self._client.send(
                    node_id, request, timeout_ms=max(attempts.remaining_ms, 1)
                )
            except (ConnectError, UnknownNodeError):
                return
            except DisconnectedError:
                response = messages.MetadataResponse()
            known = {
                topic.name
                for topic in response.topics
                if len(topic.partitions) >= partitions_min
                and all(each.leader_id >= 0 for each in topic.partitions)
            }
            missing = [name for name in names if name not in known]
            if not missing:
                return
            await attempts.pause(
                MetadataTimeoutError(f"broker {node_id} does not know topic {missing[0]!r} yet")
            )

    async def describe_configs(
        self, resource: str, resource_type: int = TOPIC_RESOURCE, *, own_only: bool = False
    ) -> dict[str, str | None]:
        """The settings of a topic or broker, by Kafka's names.

        Args:
            resource: a topic's name, or a broker's id.
            resource_type: `TOPIC_RESOURCE` or `BROKER_RESOURCE`.
            own_only: only those that were set for this topic or broker itself, no defaults.

        Raises:
            KafkaError: there is no such resource.
            ClientError: the broker could not be reached.
        """
        return {
            entry.name: entry.value
            for entry in await self.config_entries(resource, resource_type)
            if not own_only or entry.source in OWN_SOURCES[resource_type]
        }

    async def config_entries(
        self, resource: str, resource_type: int = TOPIC_RESOURCE, *, with_synonyms: bool = False
    ) -> list[ConfigEntry]:
        """The settings of a resource, with all that is known of each.

        Args:
            resource: a topic's or group's name, or a broker's id; empty: the defaults of all
                brokers that were set while they run.
            resource_type: `TOPIC_RESOURCE`, `BROKER_RESOURCE` and so on.
            with_synonyms: whether to say of each where else it is set.

        Raises:
            KafkaError: there is no such resource.
            ClientError: the broker could not be reached.
        """
        resource_config = messages.DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=resource_type, resource_name=resource, configuration_keys=None
        )
        request = messages.DescribeConfigsRequest(
            resources=[resource_config],
            include_documentation=True,
            include_synonyms=with_synonyms,
        )
        response: messages.DescribeConfigsResponse = await self._send_for(
            resource, resource_type, request
        )
        require_success(
            [
                Outcome(_resource(resource, resource_type), r.error_code, r.error_message)
                for r in response.results
            ]
        )
        return [
            ConfigEntry(
                config.name,
                config.value,
                config.config_source,
                config.read_only,
                config.is_sensitive,
                config.documentation,
                tuple(
                    ConfigSynonym(each.name, each.value, each.source) for each in config.synonyms
                ),
            )
            for result in response.results
            for config in result.configs
        ]

    async def alter_configs(
        self,
        resource: str,
        changes: Mapping[str, str | None],
        resource_type: int = TOPIC_RESOURCE,
        *,
        validate_only: bool = False,
    ) -> None:
        """Change some settings of a topic or broker, and leave the others (KIP-339).

        Args:
            resource: a topic's name, or a broker's id.
            changes: by Kafka's names; None: the default again.
            resource_type: `TOPIC_RESOURCE`, `BROKER_RESOURCE` and so on.
            validate_only: only find out whether it may be done.

        Raises:
            KafkaError: INVALID_CONFIG and so on.
            ClientError: the broker could not be reached.
        """
        make = messages.IncrementalAlterConfigsRequest.AlterableConfig
        resource_config = messages.IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=resource_type,
            resource_name=resource,
            configs=[
                make(
                    name=name,
                    config_operation=OP_DELETE if value is None else OP_SET,
                    value=value,
                )
                for name, value in changes.items()
            ],
        )
        request = messages.IncrementalAlterConfigsRequest(
            resources=[resource_config], validate_only=validate_only
        )
        response: messages.IncrementalAlterConfigsResponse = await self._send_for(
            resource, resource_type, request
        )
        require_success(
            [
                Outcome(_resource(resource, resource_type), r.error_code, r.error_message)
                for r in response.responses
            ]
        )

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None,
        election_type: int = PREFERRED_ELECTION,
    ) -> None:
        """Let the controller elect leaders (KIP-183, KIP-460).

        Args:
            partitions: which; None: all of the cluster.
            election_type: `PREFERRED_ELECTION` or `UNCLEAN_ELECTION`.

        Raises:
            KafkaError: a replica that should lead cannot; that there was nothing to do
                (ELECTION_NOT_NEEDED) is no error.
            ClientError: the controller could not be reached.
        """
        topics = None
        if partitions is not None:
            make = messages.ElectLeadersRequest.TopicPartitions
            topics = [
                make(topic=name, partitions=indexes)
                for name, indexes in _by_topic(partitions).items()
            ]
        request = messages.ElectLeadersRequest(
            election_type=election_type, topic_partitions=topics, timeout_ms=self._timeout_ms
        )
        await self._ask_controller(
            request,
            lambda response: [
                Outcome("the election", response.error_code),
                *(
                    Outcome(
                        f"partition {p.partition_id} of topic {topic.topic}",
                        p.error_code,
                        p.error_message,
                    )
                    for topic in response.replica_election_results
                    for p in topic.partition_result
                    if p.error_code != ErrorCode.ELECTION_NOT_NEEDED
                ),
            ],
        )

    async def reassign_partitions(
        self, assignments: Mapping[TopicPartition, Sequence[int] | None]
    ) -> None:
        """Begin to move partitions to other brokers, or stop doing so (KIP-455).

        Args:
            assignments: the brokers that shall have each; None: it stays where it was.

        Raises:
            KafkaError: INVALID_REPLICA_ASSIGNMENT, NO_REASSIGNMENT_IN_PROGRESS and so on.
            ClientError: the controller could not be reached.
        """
        make = messages.AlterPartitionReassignmentsRequest.ReassignablePartition
        topics = [
            messages.AlterPartitionReassignmentsRequest.ReassignableTopic(
                name=name,
                partitions=[
                    make(
                        partition_index=index,
                        replicas=None if (to := assignments[name, index]) is None else list(to),
                    )
                    for index in indexes
                ],
            )
            for name, indexes in _by_topic(assignments).items()
        ]
        request = messages.AlterPartitionReassignmentsRequest(
            topics=topics, timeout_ms=self._timeout_ms
        )
        await self._ask_controller(
            request,
            lambda response: [
                Outcome("the reassignment", response.error_code, response.error_message),
                *(
                    Outcome(
                        f"partition {p.partition_index} of topic {topic.name}",
                        p.error_code,
                        p.error_message,
                    )
                    for topic in response.responses
                    for p in topic.partitions
                ),
            ],
        )

    async def describe_client_quotas(
        self,
        entity: Mapping[str, str | None] | None = None,
        any_named: Iterable[str] = (),
        *,
        strict: bool = False,
    ) -> list[EntityQuotas]:
        """The quotas of the entities that match (KIP-546); all if nothing is said of them.

        Args:
            entity: names by entity type (`user`, `client-id`, `ip`); None as a name: the default.
            any_named: further types that the entities have, whatever the name.
            strict: leave out entities that have other types, too.

        Raises:
            KafkaError: INVALID_REQUEST, CLUSTER_AUTHORIZATION_FAILED and so on.
            ClientError: no broker could be reached.
        """
        component = messages.DescribeClientQuotasRequest.ComponentData
        components = [
            component(
                entity_type=kind,
                match_type=DEFAULT_MATCH if name is None else EXACT_MATCH,
                match=name,
            )
            for kind, name in (entity or {}).items()
        ]
        components += [
            component(entity_type=kind, match_type=ANY_MATCH, match=None) for kind in any_named
        ]
        response: messages.DescribeClientQuotasResponse = await self._client.send_to_any(
            messages.DescribeClientQuotasRequest(components=components, strict=strict),
            timeout_ms=self._timeout_ms,
        )
        require_success([Outcome("the quotas", response.error_code, response.error_message)])
        return [
            EntityQuotas(
                {each.entity_type: each.entity_name for each in entry.entity},
                {each.key: each.value for each in entry.values},
            )
            for entry in response.entries or ()
        ]

    async def alter_client_quotas(
        self,
        entity: Mapping[str, str | None],
        quotas: Mapping[str, float | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set or remove some quotas of an entity, and leave its others (KIP-546).

        Args:
            entity: names by entity type (`user`, `client-id`, `ip`); None as a name: the default.
            quotas: by Kafka's names, such as `producer_byte_rate`; None: remove it.
            validate_only: only find out whether it may be done.

        Raises:
            KafkaError: INVALID_REQUEST, CLUSTER_AUTHORIZATION_FAILED and so on.
            ClientError: no broker could be reached.
        """
        make = messages.AlterClientQuotasRequest
        entry = make.EntryData(
            entity=[make.EntityData(entity_type=kind, entity_name=n) for kind, n in entity.items()],
            ops=[
                make.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                for key, value in quotas.items()
            ],
        )
        response: messages.AlterClientQuotasResponse = await self._client.send_to_any(
            make(entries=[entry], validate_only=validate_only), timeout_ms=self._timeout_ms
        )
        require_success(
            [Outcome("the quotas", r.error_code, r.error_message) for r in response.entries]
        )

    # --- Inside ------------------------------------------------------------------------------

    async def _ask_controller(
        self, request: Message, outcomes: Callable[[Any], list[Outcome]]
    ) -> None:
        """Ask the controller, and the next one if it is not the controller any more."""
        attempts = self._client.attempts(self._timeout_ms)
        while True:
            try:
                response = await self._client.send_to_controller(
                    request, timeout_ms=max(attempts.remaining_ms, 1)
                )
                require_success(outcomes(response))
            except ConnectError as failure:  # Nothing was sent: it is safe to ask again.
                await attempts.pause(failure)
            except KafkaError as failure:
                if failure.code != ErrorCode.NOT_CONTROLLER:
                    raise
                version = self._client.request_update()
                await attempts.pause(failure)
                await self._client.wait_for_metadata(version, attempts.remaining_ms)
            else:
                return

    async def _send_for(self, resource: str, resource_type: int, request: Message) -> Any:
        """Settings of a broker are its own to tell and change; those of topics anyone's."""
        if resource_type == BROKER_RESOURCE and resource:
            if self._client.cluster.is_bootstrap:
                await self._client.refresh_metadata()
            return await self._client.send(int(resource), request, timeout_ms=self._timeout_ms)
        return await self._client.send_to_any(request, timeout_ms=self._timeout_ms)


def _creatable(topic: NewTopic) -> messages.CreateTopicsRequest.CreatableTopic:
    assignment = messages.CreateTopicsRequest.CreatableReplicaAssignment
    config = messages.CreateTopicsRequest.CreatableTopicConfig
    return messages.CreateTopicsRequest.CreatableTopic(
        name=topic.name,
        num_partitions=DEFAULT if topic.assignments else topic.partitions,
        replication_factor=DEFAULT if topic.assignments else topic.replication_factor,
        assignments=[
            assignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.assignments.items()
        ],
        configs=[config(name=name, value=value) for name, value in topic.configs.items()],
    )


def _resource(name: str, resource_type: int) -> str:
    """What errors call it."""
    return f"{RESOURCE_NOUNS[resource_type]} {name}" if name else "the brokers' defaults"


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped


def require_success(outcomes: Iterable[Outcome]) -> None:
    """Raises KafkaError for the first of what was requested that was refused."""
    for outcome in outcomes:
        if outcome.error_code:
            detail = outcome.message or error_name(outcome.error_code)
            raise KafkaError(error_of(outcome.error_code), f"{outcome.what}: {detail}")
