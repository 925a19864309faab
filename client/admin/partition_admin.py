"""Where partitions lie: reassignments on their way, and the directories of brokers.

`Admin.reassign_partitions` begins and cancels them (KIP-455), and `Admin.elect_leaders` elects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...protocol import messages
from ..client import KafkaClient
from .admin import Outcome, TopicPartition, require_success


class Reassignment(NamedTuple):
    """A partition that is being moved.

    Attributes:
        replicas: the brokers that have it meanwhile.
        adding: those of them that are to have it, and do not yet.
        removing: those that will not have it any more.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ReplicaOnDisk(NamedTuple):
    """One replica in a directory of a broker.

    Attributes:
        size: of its log, in bytes.
        lag: how many offsets a future replica is behind the current one, or that one behind the
            high watermark.
        is_future: whether it is to take the place of the one in another directory.
    """

    size: int
    lag: int
    is_future: bool


class LogDirectory(NamedTuple):
    """A directory of a broker; `total_bytes` and `usable_bytes` are -1 where it does not say."""

    path: str
    error_code: int
    replicas: Mapping[TopicPartition, ReplicaOnDisk]
    total_bytes: int
    usable_bytes: int


class PartitionAdmin:
    """Looks where partitions are, and moves them between directories, through a client.

    Args:
        client: is open, and stays so.
        timeout_ms: for each call.
    """

    def __init__(self, client: KafkaClient, timeout_ms: int = 30_000) -> None:
        self._client = client
        self._timeout_ms = timeout_ms

    async def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        """The partitions that are being moved to other brokers (KIP-455).

        Raises:
            KafkaError: CLUSTER_AUTHORIZATION_FAILED and so on.
            ClientError: the controller could not be reached.
        """
        request = messages.ListPartitionReassignmentsRequest(timeout_ms=self._timeout_ms)
        response: messages.ListPartitionReassignmentsResponse = (
            await self._client.send_to_controller(request, timeout_ms=self._timeout_ms)
        )
        require_success([Outcome("the reassignments", response.error_code, response.error_message)])
        return {
            (topic.name, each.partition_index): Reassignment(
                tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
            )
            for topic in response.topics
            for each in topic.partitions
        }

    async def describe_log_dirs(
        self, broker_id: int, partitions: Iterable[TopicPartition] | None = None
    ) -> list[LogDirectory]:
        """The directories of a broker, with what lies in them (KIP-113, KIP-827).

        Args:
            broker_id: whose.
            partitions: the replicas that are of interest; all if left out.

        Raises:
            KafkaError: CLUSTER_AUTHORIZATION_FAILED and so on.
            ClientError: the broker could not be reached.
        """
        topics = None
        if partitions is not None:
            make = messages.DescribeLogDirsRequest.DescribableLogDirTopic
            topics = [
                make(topic=name, partitions=indexes)
                for name, indexes in _by_topic(partitions).items()
            ]
        response: messages.DescribeLogDirsResponse = await self._client.send(
            broker_id, messages.DescribeLogDirsRequest(topics=topics), timeout_ms=self._timeout_ms
        )
        require_success([Outcome(f"broker {broker_id}", response.error_code)])
        return [
            LogDirectory(
                result.log_dir,
                result.error_code,
                {
                    (topic.name, each.partition_index): ReplicaOnDisk(
                        each.partition_size, each.offset_lag, each.is_future_key
                    )
                    for topic in result.topics
                    for each in topic.partitions
                },
                result.total_bytes,
                result.usable_bytes,
            )
            for result in response.results
        ]

    async def alter_log_dirs(
        self, broker_id: int, path: str, partitions: Iterable[TopicPartition]
    ) -> None:
        """Let a broker begin to move its replicas to one of its directories (KIP-113).

        Args:
            broker_id: whose replicas.
            path: of the directory, as the broker calls it.
            partitions: which.

        Raises:
            KafkaError: LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR and so on.
            ClientError: the broker could not be reached.
        """
        make = messages.AlterReplicaLogDirsRequest
        directory = make.AlterReplicaLogDir(
            path=path,
            topics=[
                make.AlterReplicaLogDirTopic(name=name, partitions=indexes)
                for name, indexes in _by_topic(partitions).items()
            ],
        )
        response: messages.AlterReplicaLogDirsResponse = await self._client.send(
            broker_id, make(dirs=[directory]), timeout_ms=self._timeout_ms
        )
        require_success(
            Outcome(
                f"partition {each.partition_index} of topic {topic.topic_name}", each.error_code
            )
            for topic in response.results
            for each in topic.partitions
        )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped
