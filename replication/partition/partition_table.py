"""The partitions hosted here by name, and those that would be if their disk worked.

Kafka's three kinds of HostedPartition: online, offline, none.
"""

from __future__ import annotations

from collections.abc import Callable

from ...common.errors import ErrorCode
from ...common.topic_partition import TopicPartition
from ..quota.replication_quota import UNBOUNDED_QUOTA, ReplicationQuota
from ..read.fetch import FetchParams
from ..read.replica_selector import SelectReplica, select_leader
from .partition import Partition


class PartitionTable(dict[TopicPartition, Partition]):
    """The online partitions.

    Attributes:
        offline: those whose log lies, or may lie, in a directory that is offline. They stay
            so until a restart, unless their topic is deleted elsewhere.
        select_replica: where the consumers of those led here are sent.
        leader_quota: the bound on what followers out of sync are given.
        is_in_cluster: whether the cluster has a partition, as far as is known here.
    """

    def __init__(self) -> None:
        super().__init__()
        self.offline: set[TopicPartition] = set()
        self.select_replica: SelectReplica = select_leader
        self.leader_quota: ReplicationQuota = UNBOUNDED_QUOTA
        self.is_in_cluster: Callable[[TopicPartition], bool] = lambda _: False

    def must_wait(self, partition: Partition, params: FetchParams) -> bool:
        """Whether a follower gets nothing now, since it is throttled and out of sync."""
        return (
            params.is_from_follower
            and params.replica_id not in partition.isr
            and self.leader_quota.is_throttled(partition.topic_partition)
            and self.leader_quota.is_quota_exceeded()
        )

    def topic_name(self, topic_id: bytes) -> str | None:
        """The topic of this id, if one of its partitions is online.

        Linear in the partitions: for requests that come before the topic is in the metadata.
        """
        return next((tp.topic for tp, each in self.items() if each.topic_id == topic_id), None)

    def error_of_missing(self, topic_partition: TopicPartition) -> ErrorCode:
        """What to answer for a partition that is not online.

        One that other brokers have may have been here when the client looked: it has to
        look again (Kafka's ReplicaManager.getPartitionOrError).
        """
        if topic_partition in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self.is_in_cluster(topic_partition):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
