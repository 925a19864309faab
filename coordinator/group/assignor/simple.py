"""The simple assignor of share groups: every member reads something, every partition is read.

Where there are more members than partitions several members share one; else each partition has one
member. Members keep what they had as far as that is fair. Source: KIP-932; Kafka's SimpleAssignor.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Set

from .assignor import GroupSpec, NewAssignment

PartitionKey = tuple[bytes, int]


class SimpleAssignor:
    """Assigns partitions to the members of a share group."""

    name = "simple"

    def assign(
        self, group: GroupSpec, partition_counts: Mapping[bytes, int]
    ) -> dict[str, NewAssignment]:
        """The target assignment; see `Assignor.assign`. A partition may have several members.

        Args:
            group: the members.
            partition_counts: by topic id, of all topics that any member subscribes to.
        """
        return self.assign_partitions(
            group, {topic_id: range(count) for topic_id, count in partition_counts.items()}
        )

    def assign_partitions(
        self, group: GroupSpec, partitions: Mapping[bytes, Iterable[int]]
    ) -> dict[str, NewAssignment]:
        """The same of some partitions of each topic."""
        keys = [(topic_id, number) for topic_id in partitions for number in partitions[topic_id]]
        shares = _Shares(group, keys)
        shares.keep_former()
        shares.give_to_idle_members()
        shares.give_unread_partitions()
        return shares.targets()


class _Shares:
    """Who reads what, as far as it is decided."""

    def __init__(self, group: GroupSpec, keys: list[PartitionKey]) -> None:
        members, partitions = max(len(group.members), 1), max(len(keys), 1)
        self._group = group
        self._members_max = -(-members // partitions)
        self._partitions_max = -(-partitions // members)
        self._readers: dict[PartitionKey, int] = dict.fromkeys(keys, 0)
        self._reads: dict[str, dict[PartitionKey, None]] = {each: {} for each in group.members}

    def keep_former(self) -> None:
        """Members keep what they had, but for more than their share."""
        for member_id, member in self._group.members.items():
            reads = self._reads[member_id]
            for topic_id, numbers in member.assignment.items():
                if topic_id not in member.topic_ids:
                    continue
                for number in sorted(numbers):
                    readers = self._readers.get((topic_id, number))
                    if (
                        readers is not None
                        and readers < self._members_max
                        and len(reads) < self._partitions_max
                    ):
                        self._give(member_id, (topic_id, number))

    def give_to_idle_members(self) -> None:
        """Who has nothing gets the partition that the fewest read."""
        heaps: dict[Set[bytes], list[tuple[int, PartitionKey]]] = {}
        for member_id, member in self._group.members.items():
            if self._reads[member_id]:
                continue
            topics = frozenset(member.topic_ids)
            heap = heaps.get(topics)
            if heap is None:
                heap = heaps[topics] = [
                    (readers, key) for key, readers in self._readers.items() if key[0] in topics
                ]
                heapq.heapify(heap)
            while heap:
                readers, key = heap[0]
                if readers == self._readers[key]:
                    self._give(member_id, key)
                    heapq.heapreplace(heap, (readers + 1, key))
                    break
                heapq.heapreplace(heap, (self._readers[key], key))

    def give_unread_partitions(self) -> None:
        """A partition that nobody reads goes to the subscriber that reads the fewest."""
        heaps: dict[bytes, list[tuple[int, str]]] = {}
        for key, readers in self._readers.items():
            if readers:
                continue
            topic_id = key[0]
            heap = heaps.get(topic_id)
            if heap is None:
                heap = heaps[topic_id] = [
                    (len(self._reads[member_id]), member_id)
                    for member_id, member in self._group.members.items()
                    if topic_id in member.topic_ids
                ]
                heapq.heapify(heap)
            while heap:
                count, member_id = heap[0]
                if count == len(self._reads[member_id]):
                    self._give(member_id, key)
                    heapq.heapreplace(heap, (count + 1, member_id))
                    break
                heapq.heapreplace(heap, (len(self._reads[member_id]), member_id))

    def targets(self) -> dict[str, NewAssignment]:
        """What each member is to read."""
        result: dict[str, NewAssignment] = {}
        for member_id, reads in self._reads.items():
            numbers: dict[bytes, set[int]] = {}
            for topic_id, number in reads:
                numbers.setdefault(topic_id, set()).add(number)
            result[member_id] = {topic: frozenset(found) for topic, found in numbers.items()}
        return result

    def _give(self, member_id: str, key: PartitionKey) -> None:
        self._reads[member_id][key] = None
        self._readers[key] += 1
