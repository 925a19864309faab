"""The states of partitions and replicas as the controller sees them, as two tables.

After Kafka's PartitionStateMachine and ReplicaStateMachine; drawn in docs/controller_states.md.
"""

from __future__ import annotations

from enum import Enum
from operator import attrgetter

from ...common.state_table import StateTable


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
    DELETION_STARTED = "its broker was sent the StopReplica"
    DELETION_SUCCESSFUL = "its broker has deleted it"
    DELETION_INELIGIBLE = "it cannot be deleted now; tried again when its broker returns"


_P = PartitionStatus
_R = ReplicaStatus

PARTITION_TRANSITIONS = StateTable(
    "a partition",
    {
        _P.NON_EXISTENT: (("", _P.NEW, "the topic is made, or grows"),),
        _P.NEW: (
            ("", _P.ONLINE, "the first live replica leads"),
            ("", _P.OFFLINE, "its topic is being deleted"),
        ),
        _P.ONLINE: (
            ("", _P.ONLINE, "another leader: preferred, reassigned, or the former one shuts down"),
            ("", _P.OFFLINE, "the leader's broker or disk fails"),
        ),
        _P.OFFLINE: (
            ("", _P.ONLINE, "a replica in sync is alive again"),
            ("", _P.OFFLINE, "its topic is being deleted as well"),
            ("", _P.NON_EXISTENT, "all its replicas are deleted"),
        ),
    },
    label=attrgetter("name"),
)

REPLICA_TRANSITIONS = StateTable(
    "a replica",
    {
        _R.NON_EXISTENT: (("", _R.NEW, "the partition is made, or gets a replica"),),
        _R.NEW: (
            ("", _R.ONLINE, "the partition has a leader, or it caught up"),
            ("", _R.OFFLINE, "its broker fails before it is in use"),
        ),
        _R.ONLINE: (
            ("", _R.ONLINE, "its broker gets another LeaderAndIsr"),
            ("", _R.OFFLINE, "its broker fails, or it is to be stopped"),
        ),
        _R.OFFLINE: (
            ("", _R.ONLINE, "its broker is back"),
            ("", _R.OFFLINE, "its broker fails as well"),
            ("", _R.DELETION_STARTED, "its broker is sent the StopReplica"),
            ("", _R.DELETION_INELIGIBLE, "its broker is not alive"),
        ),
        _R.DELETION_INELIGIBLE: (
            ("", _R.ONLINE, "its broker is back"),
            ("", _R.OFFLINE, "its deletion is tried again"),
        ),
        _R.DELETION_STARTED: (
            ("", _R.DELETION_SUCCESSFUL, "its broker did"),
            ("", _R.DELETION_INELIGIBLE, "its broker failed"),
        ),
        _R.DELETION_SUCCESSFUL: (("", _R.NON_EXISTENT, "it is forgotten"),),
    },
    label=attrgetter("name"),
)
