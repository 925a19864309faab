"""The states of partitions and replicas as the controller sees them, as two tables.

A cell that is not in a table is no transition: asking for it raises. After Kafka's
PartitionStateMachine and ReplicaStateMachine; drawn in docs/controller_states.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeVar


class PartitionStatus(Enum):
    """How a partition stands."""

    NON_EXISTENT = "never made, or deleted"
    NEW = "assigned to brokers, without a leader yet"
    ONLINE = "has a leader that is alive"
    OFFLINE = "its leader is gone, or its topic is being deleted"


class ReplicaStatus(Enum):
    """How a replica stands."""

    NON_EXISTENT = "never made, or deleted"
    NEW = "being made: it may follow, not lead"
    ONLINE = "leads or follows"
    OFFLINE = "its broker or log directory is gone, or it is to be stopped"
    DELETION_STARTED = "its broker was told to delete it"
    DELETION_SUCCESSFUL = "its broker has deleted it"
    DELETION_INELIGIBLE = "it cannot be deleted now; tried again when its broker returns"


class IllegalTransition(Exception):
    """A state was to follow one that it cannot follow: the controller has a bug."""


PARTITION_TRANSITIONS: Final[Mapping[tuple[PartitionStatus, PartitionStatus], str]] = {
    (PartitionStatus.NON_EXISTENT, PartitionStatus.NEW): "the topic is made, or grows",
    (PartitionStatus.NEW, PartitionStatus.ONLINE): "the first live replica leads",
    (PartitionStatus.ONLINE, PartitionStatus.ONLINE): (
        "another leader: preferred, reassigned, or the former one shuts down"
    ),
    (PartitionStatus.OFFLINE, PartitionStatus.ONLINE): "a replica in sync is alive again",
    (PartitionStatus.NEW, PartitionStatus.OFFLINE): "its topic is being deleted",
    (PartitionStatus.ONLINE, PartitionStatus.OFFLINE): "the leader's broker or disk fails",
    (PartitionStatus.OFFLINE, PartitionStatus.OFFLINE): "its topic is being deleted as well",
    (PartitionStatus.OFFLINE, PartitionStatus.NON_EXISTENT): "all its replicas are deleted",
}
"""From and to, with the reason there is for it."""

REPLICA_TRANSITIONS: Final[Mapping[tuple[ReplicaStatus, ReplicaStatus], str]] = {
    (ReplicaStatus.NON_EXISTENT, ReplicaStatus.NEW): "the partition is made, or gets a replica",
    (ReplicaStatus.NEW, ReplicaStatus.ONLINE): "the partition has a leader, or it caught up",
    (ReplicaStatus.ONLINE, ReplicaStatus.ONLINE): "it is told again what to do",
    (ReplicaStatus.OFFLINE, ReplicaStatus.ONLINE): "its broker is back",
    (ReplicaStatus.DELETION_INELIGIBLE, ReplicaStatus.ONLINE): "its broker is back",
    (ReplicaStatus.NEW, ReplicaStatus.OFFLINE): "its broker fails before it is in use",
    (ReplicaStatus.ONLINE, ReplicaStatus.OFFLINE): "its broker fails, or it is to be stopped",
    (ReplicaStatus.OFFLINE, ReplicaStatus.OFFLINE): "its broker fails as well",
    (ReplicaStatus.DELETION_INELIGIBLE, ReplicaStatus.OFFLINE): "its deletion is tried again",
    (ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_STARTED): "its broker is told to delete it",
    (ReplicaStatus.DELETION_STARTED, ReplicaStatus.DELETION_SUCCESSFUL): "its broker did",
    (ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_INELIGIBLE): "its broker is not alive",
    (ReplicaStatus.DELETION_STARTED, ReplicaStatus.DELETION_INELIGIBLE): "its broker failed",
    (ReplicaStatus.DELETION_SUCCESSFUL, ReplicaStatus.NON_EXISTENT): "it is forgotten",
}

StatusT = TypeVar("StatusT", PartitionStatus, ReplicaStatus)


def require_transition(
    table: Mapping[tuple[StatusT, StatusT], str], former: StatusT, target: StatusT, what: object
) -> None:
    """Raise IllegalTransition unless `table` knows the way from `former` to `target`."""
    if (former, target) not in table:
        raise IllegalTransition(f"{what} cannot go from {former.name} to {target.name}")
