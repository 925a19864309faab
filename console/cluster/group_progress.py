"""How far a group has come in each partition, and who reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...client.admin.group_descriptions import SHARE, GroupDescription, ShareOffset
from ...client.consumer.offsets import list_offsets
from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import LATEST_TIMESTAMP
from .gathering import gather_what_answers

if TYPE_CHECKING:
    from ..context import ConsoleContext

TopicPartition = tuple[str, int]


class PartitionProgress(NamedTuple):
    """A partition that a group reads, or has read.

    Attributes:
        committed: where it goes on; of a share group the first record that is not done with.
        end: the partition's end; None where nobody answers.
        members: who reads it: one, but for share groups.
    """

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    members: tuple[str, ...]


class GroupProgress(NamedTuple):
    """A group, and all its partitions in order."""

    group: GroupDescription
    partitions: list[PartitionProgress]

    @property
    def lag(self) -> int | None:
        """Of all partitions together; None where it is known of none."""
        known = [each.lag for each in self.partitions if each.lag is not None]
        return sum(known) if known else None


async def progress_of(context: ConsoleContext, group_id: str) -> GroupProgress:
    """A group as it is now.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND and so on.
        ClientError: its coordinator could not be reached.
    """
    group = (await context.groups.describe([group_id]))[group_id]
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id!r}")
    readers: dict[TopicPartition, list[str]] = {}
    for member in group.members:
        for each in member.assignment:
            readers.setdefault(each, []).append(member.member_id)
    shared: dict[TopicPartition, ShareOffset] = {}
    committed: dict[TopicPartition, int] = {}
    if group.type == SHARE:
        shared = (await context.groups.share_offsets([group_id])).get(group_id, {})
    else:
        committed = (await context.groups.committed([group_id])).get(group_id, {})
    targets = {each for member in group.members for each in member.target}
    partitions = sorted({*readers, *targets, *shared, *committed})
    ends = await _ends_of(context, partitions)
    rows = []
    for each in partitions:
        at, end = committed.get(each), ends.get(each)
        lag = None if at is None or end is None else max(end - at, 0)
        if each in shared:
            at, lag = shared[each]
        rows.append(PartitionProgress(*each, at, end, lag, tuple(readers.get(each, ()))))
    return GroupProgress(group, rows)


async def _ends_of(
    context: ConsoleContext, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """The ends of those partitions whose topics are still there."""
    topics = await context.admin.describe_topics({topic for topic, _ in partitions})
    there = [
        (topic, index)
        for topic, index in partitions
        if topic in topics
        and index in topics[topic].partitions
        and topics[topic].partitions[index].leader_id is not None
    ]
    (ends,) = await gather_what_answers(
        lambda: list_offsets(context.client, dict.fromkeys(there, LATEST_TIMESTAMP))
    )
    return {} if isinstance(ends, Exception) else {key: at.offset for key, at in ends.items()}
