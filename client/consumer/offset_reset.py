"""Where a group shall go on reading: the rules of kafka-consumer-groups, and what they come to.

After Kafka's ConsumerGroupCommand: an offset outside a partition is moved to its nearest end,
and a time after the last record is the end.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...common.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ..admin.group_descriptions import TopicPartition
from ..client import KafkaClient
from .offsets import list_offsets


class ResetKind(enum.Enum):
    """To what offsets are reset."""

    EARLIEST = "the first record that is there"
    LATEST = "the end"
    CURRENT = "what is committed, or the end where nothing is"
    OFFSETS = "given offsets"
    SHIFT = "so many records on, or back if negative"
    TIME = "the first record at or after a time"


class ResetRule(NamedTuple):
    """A kind, and what it needs.

    Attributes:
        number: the shift in records, or the time in milliseconds since the epoch.
        offsets: the given offsets.
    """

    kind: ResetKind
    number: int = 0
    offsets: Mapping[TopicPartition, int] = {}


class PlannedOffset(NamedTuple):
    """What becomes of one partition.

    Attributes:
        committed: what the group has committed; None: nothing.
        target: what the rule says.
        offset: the same within the partition.
    """

    committed: int | None
    target: int
    offset: int


class NothingToShift(Exception):
    """A partition without a committed offset cannot be shifted."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition[0]}:{partition[1]} has no committed offset to shift")
        self.partition = partition


async def plan_reset(
    client: KafkaClient,
    partitions: Iterable[TopicPartition],
    committed: Mapping[TopicPartition, int],
    rule: ResetRule,
) -> dict[TopicPartition, PlannedOffset]:
    """The offsets that a rule comes to.

    Args:
        client: is open.
        partitions: which; all of them exist.
        committed: what the group has committed.

    Raises:
        NothingToShift: see there.
        KafkaError: a broker refused.
        ClientError: a leader could not be reached in time.
    """
    chosen = sorted(set(partitions))
    if not chosen:
        return {}
    starts = await list_offsets(client, dict.fromkeys(chosen, EARLIEST_TIMESTAMP))
    ends = await list_offsets(client, dict.fromkeys(chosen, LATEST_TIMESTAMP))
    moments = {}
    if rule.kind is ResetKind.TIME:
        moments = await list_offsets(client, dict.fromkeys(chosen, rule.number))
    planned = {}
    for each in chosen:
        start, end, now = starts[each].offset, ends[each].offset, committed.get(each)
        if rule.kind is ResetKind.EARLIEST:
            target = start
        elif rule.kind is ResetKind.LATEST:
            target = end
        elif rule.kind is ResetKind.CURRENT:
            target = end if now is None else now
            planned[each] = PlannedOffset(now, target, target)
            continue
        elif rule.kind is ResetKind.OFFSETS:
            target = rule.offsets[each]
        elif rule.kind is ResetKind.TIME:
            found = moments[each].offset
            target = found if found >= 0 else end
        elif now is None:
            raise NothingToShift(each)
        else:
            target = now + rule.number
        planned[each] = PlannedOffset(now, target, min(max(target, start), end))
    return planned
