"""One member of a consumer group, as its records keep it.

A member is never changed: an update is another value, so that an earlier state of a group can
be kept by keeping its members. Assignments are shared between such values and are not to be
changed either. Source: Kafka's ConsumerGroupMember; KIP-1251 (assignment epochs).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ....runtime.timers import Timer
from ..session import Session
from .states import MemberState

LEAVE_EPOCH = -1
"""The epoch of a heartbeat by which a member leaves."""

LEAVE_STATIC_EPOCH = -2
"""The epoch of a heartbeat by which a static member leaves for a while, and of one that did."""

JOIN_EPOCH = 0
"""The epoch of a heartbeat by which a member joins, or joins again."""

NO_TIMEOUT = -1
"""The rebalance timeout of a heartbeat that does not tell it again."""

TargetAssignment = Mapping[bytes, frozenset[int]]
"""What a member is to own: topic id to partitions."""

OwnedPartitions = Mapping[bytes, Mapping[int, int]]
"""What a member owns: topic id to partition to the member epoch that it was assigned in."""

NO_TARGET: TargetAssignment = {}

NO_PARTITIONS: OwnedPartitions = {}


class ClassicProtocol(NamedTuple):
    """One protocol that a member on the classic protocol supports."""

    name: str
    metadata: bytes


class ClassicMemberMetadata(NamedTuple):
    """What a member on the classic protocol said of itself in JoinGroup."""

    session_timeout_ms: int
    supported_protocols: tuple[ClassicProtocol, ...]


class ConsumerGroupMember(NamedTuple):
    """A member of one group.

    Attributes:
        member_epoch: the group epoch that it has come to; -2 for a static one that left for
            a while.
        previous_member_epoch: where it was before; its answer may have been lost, so a
            heartbeat of this epoch is taken too.
        rebalance_timeout_ms: how long it may take to give up partitions.
        subscribed_topic_names: what it reads by name.
        subscribed_topic_regex: what it reads by pattern, empty for none.
        server_assignor_name: the assignor it requests, or None.
        assigned_partitions: what it owns, or may own from now on.
        partitions_pending_revocation: what it has to give up and owns until it says so.
        classic_member_metadata: of a member on the classic protocol, else None.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NO_TIMEOUT
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    server_assignor_name: str | None = None
    assigned_partitions: OwnedPartitions = NO_PARTITIONS
    partitions_pending_revocation: OwnedPartitions = NO_PARTITIONS
    classic_member_metadata: ClassicMemberMetadata | None = None

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether it speaks JoinGroup and SyncGroup to this group."""
        return self.classic_member_metadata is not None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether it owns all that the target of that epoch gives it."""
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch

    def with_epoch(self, member_epoch: int) -> ConsumerGroupMember:
        """The same member in another epoch; the present one becomes the previous."""
        return self._replace(member_epoch=member_epoch, previous_member_epoch=self.member_epoch)

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """The member epoch since which it owns a partition, or None if it does not."""
        for owned in (self.assigned_partitions, self.partitions_pending_revocation):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def partitions_of(owned: OwnedPartitions) -> dict[bytes, frozenset[int]]:
    """The partitions alone, without the epochs in which they were assigned."""
    return {topic_id: frozenset(epochs) for topic_id, epochs in owned.items()}


class MemberTimers:
    """The timers of one member.

    Attributes:
        session: how long the member may be silent.
        rebalance: fires when the time to give partitions up is over.
        join: of a member on the classic protocol, when its time to join again is over.
        sync: likewise, when its time to send SyncGroup is over.
    """

    __slots__ = ("join", "rebalance", "session", "sync")

    def __init__(self) -> None:
        self.session: Session | None = None
        self.rebalance: Timer | None = None
        self.join: Timer | None = None
        self.sync: Timer | None = None

    def cancel(self) -> None:
        """Stop all."""
        if self.session is not None:
            self.session.stop()
            self.session = None
        self.cancel_rebalance()
        self.cancel_classic()

    def cancel_rebalance(self) -> None:
        """The member gave up what it had to, or has nothing to give up any more."""
        if self.rebalance is not None:
            self.rebalance.cancel()
            self.rebalance = None

    def cancel_classic(self) -> None:
        """The member joined, or is on the consumer protocol now."""
        for timer in (self.join, self.sync):
            if timer is not None:
                timer.cancel()
        self.join = self.sync = None


class ResolvedExpression(NamedTuple):
    """The topics that a regular expression was found to match.

    Attributes:
        version: of the cluster's metadata that was looked at.
        timestamp_ms: wall time of it.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int
