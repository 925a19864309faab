"""Members of groups: each reads what it is assigned, and commits how far.

How a member stays in its group is its protocol's: `heartbeat_members.py`, `classic_members.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

from ....client.errors import ClientError
from ....common.errors import ErrorCode
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....protocol.records import iter_batches
from ..checkers.group_checker import GroupChecker
from ..checkers.log_checker import Key
from .client import METADATA_MAX_AGE_US, Leader, SimulatedCluster
from .readers import Reader

GROUP_KEY = 0
BEATS = 40
"""A member stays for so many heartbeats, more or less; then it leaves, or is silent."""


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
        self.group = group
        self.checker = checker
        self.stay = ""
        """By which the checker knows this member, until it has left."""
        self.positions: dict[Key, int] = {}
        """How far it has read what it owns."""
        self._stays = 0
        self._coordinator: int | None = None

    @property
    @abstractmethod
    def identity(self) -> tuple[str, int]:
        """What the coordinator knows it by: member id, and epoch or generation."""

    @abstractmethod
    def join(self) -> None:
        """A stay begins."""

    @abstractmethod
    async def beat(self) -> bool:
        """Do what a member does to stay; False where it is none any more. Raises ClientError."""

    @abstractmethod
    async def leave(self) -> None:
        """Leave, having given up everything. Raises ClientError."""

    async def act(self) -> None:
        """Stay in the group for a while."""
        self._stays += 1
        self.stay = f"{self.name}-{self._stays}"
        self.positions = {}
        self.join()
        for _ in range(self.random.randint(BEATS // 2, BEATS)):
            try:
                await self.refresh(METADATA_MAX_AGE_US)
                if not await self.beat():
                    break
                await self._work()
            except ClientError:
                self.lost_coordinator()
                self.distrust()
            await self.pause()
        self.checker.gone(self.group, self.stay)
        if self.random.random() < 0.5:
            self.positions = {}
            await self.leave()

    # -- its group -----------------------------------------------------------------------------

    async def coordinator(self) -> int:
        """The broker to ask. Raises ClientError."""
        if self._coordinator is None:
            self._coordinator = await self.coordinator_of(GROUP_KEY, self.group)
        return self._coordinator

    def lost_coordinator(self) -> None:
        """It is another one, or does not answer."""
        self._coordinator = None

    def subscribed_names(self) -> list[str]:
        """All topics that are known."""
        return sorted(name for name in self.topic_ids if not name.startswith("__"))

    async def take(self, assigned: Collection[Key]) -> None:
        """Own what is assigned, and nothing else. Raises ClientError."""
        now_ms = self.cluster.kernel.now_us // 1000
        for key in [key for key in self.positions if key not in assigned]:
            del self.positions[key]
        new = [key for key in assigned if key not in self.positions]
        self.checker.owns(self.group, self.stay, assigned, now_ms)
        for key in new:
            self.positions[key] = await self._committed(key)

    # -- reading -------------------------------------------------------------------------------

    async def _committed(self, key: Key) -> int:
        """The offset to begin at. Raises ClientError."""
        message = messages.OffsetFetchRequest
        topic = message.OffsetFetchRequestTopics(topic_id=key[0], partition_indexes=[key[1]])
        member_id, epoch = self.identity
        group = message.OffsetFetchRequestGroup(
            group_id=self.group, member_id=member_id, member_epoch=epoch, topics=[topic]
        )
        least = self.checker.least(self.group, key)
        answer = await self.request(await self.coordinator(), message(groups=[group]))
        (found,) = answer.groups
        if found.error_code or found.topics[0].partitions[0].error_code:
            raise ClientError("the offset is not known")
        offset = int(found.topics[0].partitions[0].committed_offset)
        self.checker.fetched(self.group, key, least, offset)
        return max(offset, 0)

    async def _work(self) -> None:
        """Read one of its partitions, and commit how far. Raises ClientError."""
        if not self.positions:
            return
        key = self.random.choice(sorted(self.positions))
        name = next((each for each, topic_id in self.topic_ids.items() if topic_id == key[0]), "")
        partition = TopicPartition(name, key[1])
        leader = self.leaders.get(partition)
        if leader is None or leader.topic_id != key[0]:
            return
        position = self.positions[key]
        data = await self.fetch(partition, leader, position)
        if data is not None and data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            position = max(position, await self.log_start(partition))  # what is before is deleted
            if key in self.positions:
                self.positions[key] = position
            return
        if data is None or data.error_code:
            self.distrust()
            return
        position = self._next_position(partition, leader, position, data.records)
        if self.positions.get(key) is None or position == self.positions[key]:
            return
        self.positions[key] = position
        await self._commit(key, position)

    def _next_position(
        self, partition: TopicPartition, leader: Leader, position: int, data: object
    ) -> int:
        for batch in iter_batches(data or b""):  # type: ignore[arg-type]  # bytes, decoded
            position = batch.next_offset
        return position

    async def _commit(self, key: Key, offset: int) -> None:
        message = messages.OffsetCommitRequest
        partition = message.OffsetCommitRequestPartition(
            partition_index=key[1], committed_offset=offset, committed_metadata=""
        )
        topic = message.OffsetCommitRequestTopic(topic_id=key[0], partitions=[partition])
        member_id, epoch = self.identity
        request = message(
            group_id=self.group,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            topics=[topic],
        )
        answer = await self.request(await self.coordinator(), request)
        if not answer.topics[0].partitions[0].error_code:
            self.checker.committed(self.group, key, offset)
