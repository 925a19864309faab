"""Members of a consumer group (KIP-848): each reads what it is assigned, and commits how far."""

from __future__ import annotations

from ....client.errors import ClientError
from ....common.errors import ErrorCode
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....protocol.records import iter_batches
from ..checkers.group_checker import REBALANCE_TIMEOUT_MS, GroupChecker
from .client import Leader, SimulatedCluster
from .readers import Reader

GROUP_KEY = 0
JOINING, LEAVING = 0, -1
BEATS = 40
"""A member stays for so many heartbeats, more or less; then it leaves, or is silent."""
REJECTED = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}
)


class GroupMember(Reader):
    """One member, one stay in the group after another.

    Args:
        cluster: the cluster.
        name: its name.
        group: whose member it is.
        checker: is told what it owns, and what it has committed.
    """

    def __init__(
        self, cluster: SimulatedCluster, name: str, group: str, checker: GroupChecker
    ) -> None:
        super().__init__(cluster, name)
        self._group = group
        self._checker = checker
        self._stays = 0
        self._member_id = ""
        self._epoch = JOINING
        self._coordinator: int | None = None
        self._positions: dict[tuple[bytes, int], int] = {}

    async def act(self) -> None:
        """Stay in the group for a while."""
        self._stays += 1
        self._member_id = f"{self.name}-{self._stays}"
        self._epoch = JOINING
        self._positions = {}
        for _ in range(self.random.randint(BEATS // 2, BEATS)):
            try:
                if not await self._beat():
                    break
                await self._work()
            except ClientError:
                self._coordinator = None
            await self.pause()
        self._checker.gone(self._group, self._member_id)
        if self.random.random() < 0.5:
            self._epoch = LEAVING
            self._positions = {}
            await self._beat()

    async def _find(self) -> int:
        if self._coordinator is None:
            self._coordinator = await self.coordinator_of(GROUP_KEY, self._group)
        return self._coordinator

    async def _beat(self) -> bool:
        """A heartbeat; False where it is no member any more. Raises ClientError."""
        await self.refresh()
        broker_id = await self._find()
        sent_ms = self.cluster.kernel.now_us // 1000
        names = sorted(name for name in self.topic_ids if not name.startswith("__"))
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, partition in self._positions:
            by_topic.setdefault(topic_id, []).append(partition)
        message = messages.ConsumerGroupHeartbeatRequest
        request = message(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=names,
            topic_partitions=[
                message.TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in by_topic.items()
            ],
        )
        answer = await self.request(broker_id, request)
        if answer.error_code in REJECTED:
            return False
        if answer.error_code:
            self._coordinator = None
            return True
        self._epoch = answer.member_epoch
        self._checker.heard_of(self._group, self._member_id, sent_ms)
        if answer.assignment is not None:
            await self._take(
                {
                    (topic.topic_id, partition): None
                    for topic in answer.assignment.topic_partitions
                    for partition in topic.partitions
                }
            )
        return True

    async def _take(self, assigned: dict[tuple[bytes, int], None]) -> None:
        """Own what is assigned, and nothing else."""
        now_ms = self.cluster.kernel.now_us // 1000
        for key in [key for key in self._positions if key not in assigned]:
            del self._positions[key]
        new = [key for key in assigned if key not in self._positions]
        self._checker.owns(self._group, self._member_id, assigned, now_ms)
        for key in new:
            self._positions[key] = await self._committed(key)

    async def _committed(self, key: tuple[bytes, int]) -> int:
        """The offset to begin at. Raises ClientError."""
        message = messages.OffsetFetchRequest
        topic = message.OffsetFetchRequestTopics(topic_id=key[0], partition_indexes=[key[1]])
        group = message.OffsetFetchRequestGroup(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._epoch,
            topics=[topic],
        )
        least = self._checker.least(self._group, key)
        answer = await self.request(await self._find(), message(groups=[group]))
        (found,) = answer.groups
        if found.error_code or found.topics[0].partitions[0].error_code:
            raise ClientError("the offset is not known")
        offset = int(found.topics[0].partitions[0].committed_offset)
        self._checker.fetched(self._group, key, least, offset)
        return max(offset, 0)

    async def _work(self) -> None:
        """Read one of its partitions, and commit how far. Raises ClientError."""
        if not self._positions:
            return
        key = self.random.choice(sorted(self._positions))
        name = next((each for each, topic_id in self.topic_ids.items() if topic_id == key[0]), "")
        partition = TopicPartition(name, key[1])
        leader = self.leaders.get(partition)
        if leader is None or leader.topic_id != key[0]:
            return
        position = self._positions[key]
        data = await self.fetch(partition, leader, position)
        if data is None or data.error_code:
            return
        position = self._next_position(partition, leader, position, data.records)
        if self._positions.get(key) is None or position == self._positions[key]:
            return
        self._positions[key] = position
        await self._commit(key, position)

    def _next_position(
        self, partition: TopicPartition, leader: Leader, position: int, data: object
    ) -> int:
        for batch in iter_batches(data or b""):  # type: ignore[arg-type]  # bytes, decoded
            position = batch.next_offset
        return position

    async def _commit(self, key: tuple[bytes, int], offset: int) -> None:
        message = messages.OffsetCommitRequest
        partition = message.OffsetCommitRequestPartition(
            partition_index=key[1], committed_offset=offset, committed_metadata=""
        )
        topic = message.OffsetCommitRequestTopic(topic_id=key[0], partitions=[partition])
        request = message(
            group_id=self._group,
            generation_id_or_member_epoch=self._epoch,
            member_id=self._member_id,
            topics=[topic],
        )
        answer = await self.request(await self._find(), request)
        if not answer.topics[0].partitions[0].error_code:
            self._checker.committed(self._group, key, offset)
