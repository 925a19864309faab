"""A Fetch's answer, put together from what idle partitions answer."""

from __future__ import annotations

import struct
from itertools import compress, repeat
from operator import is_
from typing import TYPE_CHECKING, Any

from ....replication.read.fetch import FetchPartition, FetchPartitionData, FetchResults
from .fetch_layout import FIRST_FLEXIBLE_VERSION, TopicPart

if TYPE_CHECKING:
    from .idle_fetch import FetchShortcut

_pack_prefix = struct.Struct(">ii").pack
_pack_flexible_prefix = struct.Struct(">iib").pack


class QuickAnswer:
    """An answer put together from those of idle partitions, and encoded for the others.

    Args:
        memory: knows what idle partitions answer.
        correlation_id: of the request.
        results: of the others.

    Attributes:
        partitions: how many it holds.
        idle_topics: topic to how many of its partitions were idle.
        fresh: of others without records: topic, what asked for it, its part of the answer, and
            the result.
    """

    __slots__ = (
        "_buffers",
        "_correlation_id",
        "_layout",
        "_memory",
        "_pending",
        "_results",
        "fresh",
        "idle_topics",
        "partitions",
    )

    def __init__(self, memory: FetchShortcut, correlation_id: int, results: FetchResults) -> None:
        self._memory = memory
        self._layout = memory.layout
        self._correlation_id = correlation_id
        self._results = {
            (asked.topic_id or asked.topic_partition.topic, asked.topic_partition.partition): (
                asked,
                data,
            )
            for asked, data in results
        }
        self._buffers: list[Any] = []
        self._pending: list[bytes] = []
        self.partitions = 0
        self.idle_topics: dict[bytes | str, int] = {}
        self.fresh: list[tuple[bytes | str, bytes, bytes, FetchPartition, FetchPartitionData]] = []

    def add_topic(self, part: TopicPart) -> None:
        """Answer a topic's partitions."""
        pending = self._pending
        topic, entries = part.topic, part.entries
        answers = self._memory.answers_to(part)
        count = len(answers)
        active = list(compress(range(count), map(is_, answers, repeat(None))))
        self.partitions += count
        if len(active) < count:
            self.idle_topics[topic] = self.idle_topics.get(topic, 0) + count - len(active)
        pending.append(part.head)
        begin = 0
        for at in active:
            pending += answers[begin:at]  # type: ignore[arg-type]  # none of them is None
            self._add_active(topic, entries[at])
            pending = self._pending
            begin = at + 1
        pending += answers[begin:] if begin else answers  # type: ignore[arg-type]  # as above
        pending.append(self._layout.topic_end)

    def _add_active(self, topic: bytes | str, entry: bytes) -> None:
        index = self._layout.partition_of(entry)
        asked, data = self._results[topic, index]
        before, behind = self._layout.encode_partition(index, data)
        if not len(data.records):
            self.fresh.append((topic, entry, before + behind, asked, data))
            self._pending.append(before)
        else:
            self._pending.append(before)
            self._buffers += (b"".join(self._pending), data.records)
            self._pending = []
        self._pending.append(behind)

    def buffers(self, topics: int) -> list[Any]:
        """The whole frame, of so many topics."""
        layout = self._layout
        buffers = self._buffers
        end = b"".join((*self._pending, layout.answer_end))
        if end:
            buffers.append(end)
        head = layout.answer_head + layout.encode_count(topics)
        size = len(head)
        for buffer in buffers:
            size += len(buffer)
        if layout.version >= FIRST_FLEXIBLE_VERSION:
            prefix = _pack_flexible_prefix(size + 5, self._correlation_id, 0)
        else:
            prefix = _pack_prefix(size + 4, self._correlation_id)
        return [prefix + head, *buffers]
