"""Members of a classic group: they join, one of them assigns, and all are told by SyncGroup.

What such a member does next is decided by the client's own `ClassicMembership`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....client.consumer.group.classic_membership import ClassicMembership
from ....client.consumer.group.membership import CountPartitions, Send
from ....client.errors import ClientError
from ....protocol import messages
from ..checkers.group_checker import REBALANCE_TIMEOUT_MS, GroupChecker
from .client import REQUEST_TIMEOUT_MS, SimulatedCluster
from .group_members import GroupMember

if TYPE_CHECKING:
    from ....protocol.codec.message import Message

SESSION_TIMEOUT_MS = 15_000
HEARTBEAT_INTERVAL_MS = 500


class ClassicMember(GroupMember):
    """One of them.

    Args:
        cluster, name, group, checker: as of `GroupMember`.
        assignor: by which the group's leader assigns: `range` has all members give up everything
            before they join again, `cooperative-sticky` only what others are to have (KIP-429).
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        name: str,
        group: str,
        checker: GroupChecker,
        assignor: str,
    ) -> None:
        super().__init__(cluster, name, group, checker)
        self._assignor = assignor
        self.join()

    @property
    def identity(self) -> tuple[str, int]:
        """The id that the coordinator gave it, and the generation."""
        metadata = self._membership.metadata
        return metadata.member_id, metadata.generation_id

    def join(self) -> None:
        """Begin as one whom no coordinator knows."""
        self._owned: frozenset[tuple[str, int]] = frozenset()
        self._membership = ClassicMembership(
            self.group,
            (self._assignor,),
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        )

    async def beat(self) -> bool:
        """The next request, if one is due, and what follows from its answer."""
        membership = self._membership
        membership.subscribe(frozenset(self.subscribed_names()))
        membership.partitions_changed(self.partition_counts)
        match membership.next_step(self.now_ms):
            case Send(request, timeout_ms):
                await self._send(request, timeout_ms or REQUEST_TIMEOUT_MS)
            case CountPartitions():
                membership.partition_counts(self.partition_counts)
        rebalance = membership.rebalance
        if rebalance is not None:
            self._owned = self._owned - rebalance.revoked | rebalance.assigned
            membership.rebalance_done(self.now_ms)
        # By ids: a topic that was deleted and made anew has the same name, and other offsets.
        await self.take(
            [
                (self.topic_ids[name], partition)
                for name, partition in sorted(self._owned)
                if name in self.topic_ids
            ]
        )
        return membership.failure is None

    async def _send(self, request: Message, timeout_ms: int) -> None:
        membership = self._membership
        sent_ms = self.cluster.kernel.now_us // 1000
        is_joining = isinstance(request, messages.JoinGroupRequest)
        if not is_joining:  # an assignment that comes late may be another member's by now
            timeout_ms = REQUEST_TIMEOUT_MS
        try:
            broker_id = await self.coordinator()
            answer = await self.request(broker_id, request, timeout_ms=timeout_ms)
        except ClientError:
            membership.unanswered(self.now_ms)
            raise
        if membership.answered(request, answer, self.now_ms) is not None:
            self.lost_coordinator()
        elif not (answer.error_code or is_joining):
            self.checker.heard_of(self.group, self.stay, sent_ms)

    async def leave(self) -> None:
        """Say so, if it is a member."""
        request = self._membership.leave()
        if request is not None:
            await self.request(await self.coordinator(), request)
