"""Reading a topic's records in both directions, as they lie there: with their batches.

Everything is read as it is, aborted records and the brokers' own markers included; only where a
viewer wants what consumers with `read_committed` see is it left out.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ...client.consumer.fetched_records import iter_fetched, whole_batches
from ...client.consumer.fetcher import Fetcher
from ...client.consumer.offsets import list_offsets
from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    READ_COMMITTED,
    READ_UNCOMMITTED,
)
from ...protocol.records import Record, RecordBatch, iter_records
from .schema_values import RecordSchemas, RecordTexts

if TYPE_CHECKING:
    from ...client.client import KafkaClient
    from ...client.consumer.fetched_records import AbortedTransaction
    from .matching import Filter

PARTITION_BYTES: Final = 512 << 10
"""Of one partition in one answer; a larger batch comes whole all the same."""
SCANNED_RECORDS_MAX: Final = 20_000
SCANNED_BYTES_MAX: Final = 48 << 20
SCAN_MS_MAX: Final = 4_000
DECOMPRESSED_BYTES_MAX: Final = 64 << 20
NO_MORE: Final = (1 << 63) - 1
"""Where a partition goes on that had nothing to answer: compaction took what was there last."""
WINDOW_MIN: Final = 10
WINDOW_MAX: Final = 8_000
"""Offsets that a search backwards looks through at once."""


class BatchOf(NamedTuple):
    """What a record's batch says, copied out of the answer that it came in."""

    base_offset: int
    last_offset: int
    records: int
    size: int
    compression: str
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    uses_log_append_time: bool
    crc: int


class FoundRecord(NamedTuple):
    """A record, and where it lies."""

    partition: int
    record: Record
    batch: BatchOf

    @property
    def offset(self) -> int:
        """Of the record."""
        return self.record.offset

    @property
    def key(self) -> bytes | None:
        """The key, if it is a user's: of a broker's marker no schema says anything."""
        return None if self.batch.is_control else self.record.key

    @property
    def value(self) -> bytes | None:
        """The value, likewise."""
        return None if self.batch.is_control else self.record.value


class Bounds(NamedTuple):
    """The offsets of a partition that can be read: from `start`, and below `end`."""

    start: int
    end: int


class Found(NamedTuple):
    """What a look found.

    Attributes:
        records: in the order of the look.
        positions: where each partition is to be read from next, in the same direction.
        scanned: how many records were looked at.
        is_cut: whether a bound ended it before there were enough records, or the end was reached.
        is_at_end: whether there is no more in this direction.
    """

    records: list[FoundRecord]
    positions: dict[int, int]
    scanned: int
    is_cut: bool
    is_at_end: bool


class RecordReader:
    """Reads one topic.

    Args:
        client: is open.
        topic: its name.
        schemas: say what keys and values are that a filter looks into.
        committed_only: leave out what is not committed, and the brokers' markers.
    """

    def __init__(
        self,
        client: KafkaClient,
        topic: str,
        schemas: RecordSchemas,
        *,
        committed_only: bool = False,
    ) -> None:
        self._client = client
        self._schemas = schemas
        self._topic = topic
        self._fetcher = Fetcher(
            client,
            isolation_level=READ_COMMITTED if committed_only else READ_UNCOMMITTED,
            max_wait_ms=0,
            partition_max_bytes=PARTITION_BYTES,
        )
        self._committed_only = committed_only

    async def bounds(self, partitions: Iterable[int]) -> dict[int, Bounds]:
        """What can be read of partitions.

        Raises:
            KafkaError, ClientError: as `list_offsets`.
        """
        keys = [(self._topic, index) for index in partitions]
        level = READ_COMMITTED if self._committed_only else READ_UNCOMMITTED
        starts = await list_offsets(self._client, dict.fromkeys(keys, EARLIEST_TIMESTAMP))
        ends = await list_offsets(
            self._client, dict.fromkeys(keys, LATEST_TIMESTAMP), isolation_level=level
        )
        return {key[1]: Bounds(starts[key].offset, ends[key].offset) for key in keys}

    async def at_time(self, bounds: Mapping[int, Bounds], timestamp_ms: int) -> dict[int, int]:
        """The first offset at or after a time; the end where no record is that young.

        Raises:
            KafkaError, ClientError: as `list_offsets`.
        """
        found = await list_offsets(
            self._client, {(self._topic, index): timestamp_ms for index in bounds}
        )
        return {
            index: answer.offset if answer.offset >= 0 else bounds[index].end
            for (_, index), answer in found.items()
        }

    async def forwards(
        self,
        bounds: Mapping[int, Bounds],
        positions: Mapping[int, int],
        filter_: Filter,
        limit: int,
    ) -> Found:
        """The first records from offsets on that match.

        Raises:
            KafkaError, ClientError: a partition cannot be read.
            RegistryError: as `_matching`.
        """
        scan = _Scan(self._client.clock.monotonic_ms())
        left = _within(bounds, positions)
        found: dict[int, list[FoundRecord]] = {index: [] for index in left}
        while not scan.is_over(self._client.clock.monotonic_ms()):
            open_ = {i: at for i, at in left.items() if at < bounds[i].end}
            if not open_ or all(len(found[index]) >= limit for index in open_):
                break
            if sum(map(len, found.values())) >= limit and not filter_.is_empty:
                break
            requested = {index: at for index, at in open_.items() if len(found[index]) < limit}
            for index, records, next_offset in await self._fetch(requested, scan):
                found[index] += await self._matching(records, filter_)
                left[index] = min(next_offset, bounds[index].end)
        merged = list(heapq.merge(*found.values(), key=_by_time))
        shown = merged[:limit]
        # Of what is not shown the first record of each partition is where the next look begins.
        for each in reversed(merged[limit:]):
            left[each.partition] = each.offset
        is_at_end = all(at >= bounds[index].end for index, at in left.items())
        is_cut = len(shown) < limit and not is_at_end
        return Found(shown, left, scan.records, is_cut, is_at_end)

    async def backwards(
        self,
        bounds: Mapping[int, Bounds],
        positions: Mapping[int, int],
        filter_: Filter,
        limit: int,
    ) -> Found:
        """The last records before offsets that match, the youngest first.

        Raises:
            KafkaError, ClientError: a partition cannot be read.
            RegistryError: as `_matching`.
        """
        scan = _Scan(self._client.clock.monotonic_ms())
        left = _within(bounds, positions)
        found: dict[int, list[FoundRecord]] = {index: [] for index in left}
        window = max(2 * limit // max(len(left), 1), WINDOW_MIN) if filter_.is_empty else 1_000
        while not scan.is_over(self._client.clock.monotonic_ms()):
            short = _exhausted(found, limit) if filter_.is_empty else found.keys()
            windows = {
                index: Bounds(max(bounds[index].start, at - window), at)
                for index, at in left.items()
                if at > bounds[index].start and len(found[index]) < limit and index in short
            }
            if not windows or (not filter_.is_empty and sum(map(len, found.values())) >= limit):
                break
            read = await self._read_windows(windows, scan)
            for index, records in read.items():
                found[index] += reversed(await self._matching(records, filter_))
                left[index] = windows[index].start
            window = min(window * 4, WINDOW_MAX)
        merged = _newest_first(found)
        shown = merged[:limit]
        for each in reversed(merged[limit:]):
            left[each.partition] = each.offset + 1
        is_at_end = all(at <= bounds[index].start for index, at in left.items())
        is_cut = len(shown) < limit and not is_at_end
        return Found(shown, left, scan.records, is_cut, is_at_end)

    async def one(self, partition: int, offset: int) -> FoundRecord | None:
        """The record at an offset, or None where there is none any more.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE and so on.
            ClientError: the leader could not be reached.
        """
        scan = _Scan(self._client.clock.monotonic_ms())
        for _, records, _ in await self._fetch({partition: offset}, scan):
            for each in records:
                if each.offset >= offset:
                    return each if each.offset == offset else None
        return None

    async def _matching(self, records: list[FoundRecord], filter_: Filter) -> list[FoundRecord]:
        """Those of the records that a filter wants. Raises RegistryError where it looks into
        keys or values, and the registry that knows their schemas does not answer."""
        topic, (keys, values) = self._topic, self._schemas
        reads_keys = keys.knows(topic) and bool(filter_.text or filter_.key is not None)
        reads_values = values.knows(topic) and bool(filter_.text or filter_.where)
        # What a schema is needed for is dear, so the rest is looked at first.
        others = filter_
        if reads_keys:
            others = others._replace(text=b"", key=None)
        if reads_values:
            others = others._replace(text=b"", where=None)
        likely = [each for each in records if others.matches(each.record)]
        if not (reads_keys or reads_values):
            return likely
        key_texts = await keys.texts(
            topic, [each.key if reads_keys else None for each in likely], must_answer=True
        )
        value_texts = await values.texts(
            topic, [each.value if reads_values else None for each in likely], must_answer=True
        )
        return [
            each
            for each, *texts in zip(likely, key_texts, value_texts, strict=True)
            if filter_.matches(each.record, RecordTexts(*texts))
        ]

    async def _read_windows(
        self, windows: Mapping[int, Bounds], scan: _Scan
    ) -> dict[int, list[FoundRecord]]:
        """All records of windows of offsets. A bound may be passed by the windows once begun: a
        window of which only the beginning was read would leave records out."""
        read: dict[int, list[FoundRecord]] = {index: [] for index in windows}
        left = {index: window.start for index, window in windows.items()}
        while left:
            for index, records, next_offset in await self._fetch(left, scan):
                end = windows[index].end
                read[index] += [each for each in records if each.offset < end]
                left[index] = next_offset
            left = {index: at for index, at in left.items() if at < windows[index].end}
        return read

    async def _fetch(
        self, positions: Mapping[int, int], scan: _Scan
    ) -> list[tuple[int, list[FoundRecord], int]]:
        """Ask leaders once: the records of each partition, and where it goes on.

        Raises:
            KafkaError, ClientError: one cannot be read.
        """
        attempts = self._client.attempts(SCAN_MS_MAX)
        while True:
            by_leader: dict[int, dict[tuple[str, int], int]] = {}
            for index, offset in positions.items():
                leader = await self._client.wait_for_leader(
                    self._topic, index, attempts.remaining_ms
                )
                by_leader.setdefault(leader.id, {})[self._topic, index] = offset
            answers = []
            failure: KafkaError | None = None
            for node_id, requested in by_leader.items():
                node = self._client.cluster.nodes[node_id]
                answer = await self._fetcher.fetch(node, requested)
                for part in answer.partitions:
                    if part.error:
                        failure = part.failure()
                        continue
                    scan.bytes += len(part.records)
                    answers.append(
                        self._decode(part.partition, part.offset, part.records, part.aborted, scan)
                    )
            if answers:
                return answers
            if failure is not None and failure.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                raise failure
            await attempts.pause(
                failure or KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"topic {self._topic}")
            )

    def _decode(
        self,
        partition: int,
        offset: int,
        data: bytes | memoryview,
        aborted: Sequence[AbortedTransaction],
        scan: _Scan,
    ) -> tuple[int, list[FoundRecord], int]:
        records: list[FoundRecord] = []
        next_offset = offset
        batches = whole_batches(self._topic, partition, offset, data)
        for fetched in iter_fetched(self._topic, partition, offset, batches, aborted):
            next_offset = max(next_offset, fetched.next_offset)
            if fetched.is_hidden and (self._committed_only or not fetched.batch.is_control):
                continue
            about = describe(fetched.batch)
            for record in iter_records(fetched.batch, DECOMPRESSED_BYTES_MAX):
                scan.records += 1
                if record.offset >= offset:
                    records.append(FoundRecord(partition, record, about))
        return partition, records, next_offset if next_offset > offset else NO_MORE


class _Scan:
    """How much a look has cost so far."""

    def __init__(self, now_ms: int) -> None:
        self.records = 0
        self.bytes = 0
        self._until_ms = now_ms + SCAN_MS_MAX

    def is_over(self, now_ms: int) -> bool:
        """Whether a bound has been reached."""
        return (
            self.records >= SCANNED_RECORDS_MAX
            or self.bytes >= SCANNED_BYTES_MAX
            or now_ms >= self._until_ms
        )


def describe(batch: RecordBatch) -> BatchOf:
    """A batch without its records."""
    return BatchOf(
        batch.base_offset,
        batch.last_offset,
        batch.records_count,
        batch.size_in_bytes,
        batch.compression.name.lower(),
        batch.partition_leader_epoch,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.is_transactional,
        batch.is_control,
        batch.uses_log_append_time,
        batch.crc,
    )


def _within(bounds: Mapping[int, Bounds], positions: Mapping[int, int]) -> dict[int, int]:
    """The positions, none of them outside of what its partition has."""
    return {
        index: min(max(offset, bounds[index].start), bounds[index].end)
        for index, offset in positions.items()
    }


def _newest_first(found: Mapping[int, list[FoundRecord]]) -> list[FoundRecord]:
    """Records of partitions, each the newest first, together."""
    return list(heapq.merge(*found.values(), key=_by_time, reverse=True))


def _exhausted(found: Mapping[int, list[FoundRecord]], limit: int) -> set[int]:
    """The partitions of which all that was read is among the first records of all: what comes
    next in them may be, too, and of no other."""
    taken = Counter(each.partition for each in _newest_first(found)[:limit])
    return {index for index, records in found.items() if taken[index] == len(records)}


def _by_time(found: FoundRecord) -> tuple[int, int, int]:
    return found.record.timestamp, found.partition, found.offset


def iter_positions(text: str) -> Iterator[tuple[int, int]]:
    """Partitions and offsets of an address, as `write_positions` writes them; what is none is
    left out."""
    for part in text.split(","):
        index, colon, offset = part.partition(":")
        if colon and index.isdecimal() and offset.isdecimal() and len(part) < 40:
            yield int(index), int(offset)


def write_positions(positions: Mapping[int, int]) -> str:
    """Partitions and offsets in an address."""
    return ",".join(f"{index}:{offset}" for index, offset in sorted(positions.items()))
