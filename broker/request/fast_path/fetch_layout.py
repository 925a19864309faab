"""Where things stand in a Fetch request and its answer, in one version.

A partition takes the same number of bytes in every request of a version, if it carries no tagged
fields; and in every answer without records, aborted transactions or errors.
"""

from __future__ import annotations

import functools
import struct
from typing import Any, NamedTuple

from ....common.errors import ErrorCode
from ....common.sentinels import NO_EPOCH
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....protocol.api_keys import ApiKey
from ....protocol.codec.types import fixed_fields
from ....protocol.errors import ProtocolError
from ....protocol.messages import request_message, response_message
from ....protocol.varints import encode_unsigned_varint, read_unsigned_varint
from ....replication.read.fetch import FetchPartition, FetchPartitionData
from ..fetch_rules import FIRST_VERSION_WITH_TOPIC_IDS, partition_data
from .marks import SHORT_MARK, encode_short_mark, find_marks

FIRST_VERSION = 7
"""The first in which a whole Fetch may be refused, which is what remains when all else fails."""
FIRST_FLEXIBLE_VERSION = 12
ELEMENTS_MAX = 10_000
"""Requests for more topics, or more partitions of one, are not of the common kind."""
NO_TAGS = 0
UUID_BYTES = 16
UNCOMMON = (ValueError, IndexError, struct.error, ProtocolError)
"""What reading a request of another kind may raise."""

_unpack_int16 = struct.Struct(">h").unpack_from
_unpack_int32 = struct.Struct(">i").unpack_from
_pack_int32 = struct.Struct(">i").pack
_pack_offsets = struct.Struct(">ihqqq").pack
OFFSETS_BYTES = struct.calcsize(">ihqqq")


class TopicPart(NamedTuple):
    """A topic's part of a request.

    Attributes:
        head: its id or name and the number of partitions, which begin its part of the answer too.
        topic: the id or name.
        entries: the request for each partition.
    """

    head: bytes
    topic: bytes | str
    entries: tuple[bytes, ...]


@functools.cache
def layout_of(version: int) -> FetchLayout:
    """The layout of a version, made once."""
    return FetchLayout(version)


class FetchLayout:
    """One version of Fetch.

    Args:
        version: 7 or later.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        self._is_flexible = version >= FIRST_FLEXIBLE_VERSION
        self._by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        self._names, formats = fixed_fields(messages.FetchRequest.FetchPartition, version)
        self._entry = struct.Struct(f">{formats}B" if self._is_flexible else f">{formats}")
        marked = messages.FetchRequest(session_epoch=SHORT_MARK)
        encoded = b"".join(request_message(ApiKey.FETCH).encoder(version)(marked))
        self.topics_after = find_marks(encoded, [encode_short_mark(SHORT_MARK)])[0] + 4
        """How many bytes of the body come before the topics."""
        self.answer_head = bytes(10)
        """What an answer without a session or an error begins with: throttle time, error, id."""
        self.topic_end = b"\0" if self._is_flexible else b""
        self.answer_end = b"\0" if self._is_flexible else b""
        self._no_records_bytes = 2 if self._is_flexible else 4
        self._encode = response_message(ApiKey.FETCH).encoder(version)
        self._after_offsets = {is_null: self._encode_none(is_null) for is_null in (True, False)}
        self._splitter = struct.Struct("")
        self._split_into = -1

    def _encode_none(self, is_null: bool) -> bytes:
        """What an answer's partition has between its offsets and its records."""
        none = FetchPartitionData(ErrorCode.NONE, aborted_transactions=None if is_null else ())
        (entry,) = self._encode_by_codec(0, none)
        return bytes(entry[OFFSETS_BYTES : len(entry) - self._no_records_bytes])

    def _encode_by_codec(self, index: int, data: FetchPartitionData) -> list[Any]:
        """A partition's part of an answer, cut out of an answer that holds nothing else."""
        response = messages.FetchResponse
        topic = response.FetchableTopicResponse(partitions=[])
        ends = len(self.topic_end) + len(self.answer_end)
        without = sum(len(part) for part in self._encode(response(responses=[topic])))
        topic.partitions.append(partition_data(index, data))
        buffers = self._encode(response(responses=[topic]))
        buffers[0] = buffers[0][without - ends :]
        if ends:
            buffers[-1] = buffers[-1][:-ends]
        return buffers

    # -- the request ------------------------------------------------------------------

    def read_topics(self, data: bytes, at: int) -> tuple[list[TopicPart], int]:
        """The topics of a request, and where they end.

        Args:
            data: the frame.
            at: where the number of topics stands.

        Raises:
            ValueError, IndexError, struct.error, ProtocolError: they are not of the common kind.
        """
        count, at = self._read_count(data, at)
        topics: list[TopicPart] = []
        for _ in range(count):
            begin = at
            topic: bytes | str
            if self._by_id:
                at += UUID_BYTES
                topic = data[begin:at]
            else:
                size, at = self._read_name_size(data, at)
                topic = data[at : at + size].decode()
                at += size
            partitions, at = self._read_count(data, at)
            end = at + partitions * self._entry.size
            if end > len(data):
                raise ValueError("a request that is too short")
            topics.append(TopicPart(data[begin:at], topic, self._split(data, at, partitions)))
            at = end
            if self._is_flexible:
                if data[at] != NO_TAGS:
                    raise ValueError("a topic with tagged fields")
                at += 1
        return topics, at

    def _split(self, data: bytes, at: int, count: int) -> tuple[bytes, ...]:
        if count != self._split_into:
            self._splitter = struct.Struct(f"{self._entry.size}s" * count)
            self._split_into = count
        return self._splitter.unpack_from(data, at)

    def _read_count(self, data: bytes, at: int) -> tuple[int, int]:
        if not self._is_flexible:
            count: int = _unpack_int32(data, at)[0]
            at += 4
        else:
            count, at = read_unsigned_varint(data, at)
            count -= 1
        if not 0 <= count <= ELEMENTS_MAX:
            raise ValueError("more elements than are commonly requested")
        return count, at

    def _read_name_size(self, data: bytes, at: int) -> tuple[int, int]:
        if not self._is_flexible:
            size: int = _unpack_int16(data, at)[0]
            at += 2
        else:
            size, at = read_unsigned_varint(data, at)
            size -= 1
        if not 0 <= size <= len(data) - at:
            raise ValueError("a name that cannot be")
        return size, at

    def partition_of(self, entry: bytes) -> int:
        """The number of the partition that an entry asks for."""
        index: int = _unpack_int32(entry)[0]
        return index

    def read_entry(self, entry: bytes, topic: str, topic_id: bytes) -> FetchPartition:
        """The request for a partition.

        Raises:
            ValueError: it has tagged fields.
        """
        values = self._entry.unpack(entry)
        if self._is_flexible and values[-1] != NO_TAGS:
            raise ValueError("a partition with tagged fields")
        said = dict(zip(self._names, values, strict=False))
        return FetchPartition(
            TopicPartition(topic, said["partition"]),
            topic_id,
            said["fetch_offset"],
            said["partition_max_bytes"],
            said.get("current_leader_epoch", NO_EPOCH),
            said.get("last_fetched_epoch", NO_EPOCH),
            said["log_start_offset"],
        )

    # -- the answer -------------------------------------------------------------------

    def encode_count(self, count: int) -> bytes:
        """The number of an array's elements."""
        return encode_unsigned_varint(count + 1) if self._is_flexible else _pack_int32(count)

    def encode_partition(self, index: int, data: FetchPartitionData) -> tuple[bytes, bytes]:
        """What stands before a partition's records, and behind them.

        Args:
            index: the partition's number.
            data: without an error, a divergence or another replica to ask.
        """
        aborted = data.aborted_transactions
        size = len(data.records)
        if aborted:
            before, *_, behind = self._encode_by_codec(index, data)
            return bytes(before), bytes(behind) if self._is_flexible else b""
        before = (
            _pack_offsets(
                index, 0, data.high_watermark, data.last_stable_offset, data.log_start_offset
            )
            + self._after_offsets[aborted is None]
        )
        if self._is_flexible:
            return before + encode_unsigned_varint(size + 1), b"\0"
        return before + _pack_int32(size), b""
