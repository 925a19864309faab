"""Members of a consumer group (KIP-848): the coordinator assigns, in answers to heartbeats."""

from __future__ import annotations

from ....common.errors import ErrorCode
from ....protocol import messages
from ..checkers.group_checker import REBALANCE_TIMEOUT_MS
from .client import METADATA_MAX_AGE_US
from .group_members import GroupMember

JOINING, LEAVING = 0, -1
REJECTED = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}
)


class ConsumerMember(GroupMember):
    """One of them; it makes its member id itself."""

    _epoch = JOINING

    @property
    def identity(self) -> tuple[str, int]:
        """Its id, another one for each stay, and the epoch that it was told last."""
        return self.stay, self._epoch

    def join(self) -> None:
        """The first heartbeat joins."""
        self._epoch = JOINING

    async def beat(self) -> bool:
        """A heartbeat, which says what is owned; the answer says what should be."""
        broker_id = await self.coordinator()
        sent_ms = self.cluster.kernel.now_us // 1000
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, partition in self.positions:
            by_topic.setdefault(topic_id, []).append(partition)
        message = messages.ConsumerGroupHeartbeatRequest
        request = message(
            group_id=self.group,
            member_id=self.stay,
            member_epoch=self._epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=self.subscribed_names(),
            topic_partitions=[
                message.TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in by_topic.items()
            ],
        )
        answer = await self.request(broker_id, request)
        if answer.error_code in REJECTED:
            return False
        if answer.error_code:
            self.lost_coordinator()
            return True
        self._epoch = answer.member_epoch
        self.checker.heard_of(self.group, self.stay, sent_ms)
        if answer.assignment is not None:
            await self.take(
                {
                    (topic.topic_id, partition): None
                    for topic in answer.assignment.topic_partitions
                    for partition in topic.partitions
                }
            )
        return True

    async def leave(self) -> None:
        """The last heartbeat leaves."""
        self._epoch = LEAVING
        await self.refresh(METADATA_MAX_AGE_US)
        await self.beat()
