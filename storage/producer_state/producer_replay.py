"""Producer states from the batches of segments (Kafka's LogLoader.recoverSegment)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress

from ...common.errors import KafkaError
from ...common.topic_partition import TopicPartition
from ...protocol.records.batch import RecordBatch
from ..io.files import Files
from ..segment.log_segment import LogSegment
from ..segment.segment_reader import iter_headers, read_batch
from .producer_snapshot import list_snapshots, load_latest_snapshot, take_snapshot
from .producer_state_manager import ProducerStateManager

logger = logging.getLogger(__name__)


def replay_segment(segment: LogSegment, producers: ProducerStateManager, offset: int) -> None:
    """Take in a segment's batches from `offset` on; only markers are read whole.

    Batches behind one that is damaged cannot be found: what their producers wrote there
    stays unknown, and the log is usable otherwise.
    """
    file = segment.file
    try:
        start = segment.position_of(offset) if offset > segment.base_offset else 0
        for position, header in iter_headers(file, start, segment.size):
            if header.has_producer_id:
                batch = header
                if header.is_control:
                    batch = read_batch(file, position, header.size_in_bytes)
                producers.stage_replicated(batch)
                producers.publish()
    except KafkaError as error:
        producers.drop()
        logger.warning("producer states of %s are incomplete: %s", segment.log_path, error)


class ProducerReplay:
    """The producers' states while unflushed segments are read through one after another.

    A transaction may have begun segments before the marker that aborts it, so the transaction
    index of a segment can only be made with the states at its start (Kafka's
    LogLoader.recoverSegment).

    Args:
        directory: the partition's folder.
        segments: all of the log, in order.
        log_start_offset: the first offset that may be read.
    """

    def __init__(
        self,
        files: Files,
        directory: str,
        topic_partition: TopicPartition,
        segments: Sequence[LogSegment],
        log_start_offset: int,
    ) -> None:
        self._files = files
        self._directory = directory
        self._segments = segments
        self._log_start_offset = log_start_offset
        self._producers = ProducerStateManager(topic_partition)
        self._previous: LogSegment | None = None
        self._next_offset = -1

    def begin(self, segment: LogSegment) -> None:
        """Bring the states to where a segment begins."""
        index = self._segments.index(segment)
        if index and self._segments[index - 1] is self._previous:
            return
        snapshots = list_snapshots(self._files, self._directory)
        offset, states = load_latest_snapshot(
            self._files, self._directory, snapshots, self._log_start_offset, segment.base_offset
        )
        self._producers.replace_all(states, offset)
        for earlier in _from_offset(self._segments[:index], offset):
            replay_segment(earlier, self._producers, offset)

    def take(self, segment: LogSegment, batch: RecordBatch) -> None:
        """Take in a whole batch of it, and note the transaction that it aborts."""
        if not batch.has_producer_id:
            return
        try:
            self._producers.stage_replicated(batch)
        except KafkaError as error:
            logger.warning("%r in %s: %s", batch, segment.log_path, error)
            return
        for aborted in self._producers.publish():
            segment.transaction_index.append(aborted)

    def end(self, segment: LogSegment, next_offset: int) -> None:
        """The segment is through and ends before `next_offset`."""
        self._previous = segment
        self._next_offset = next_offset
        with suppress(OSError):
            take_snapshot(self._files, self._directory, self._producers, next_offset)

    def producers_at(self, log_end_offset: int) -> ProducerStateManager | None:
        """The states at the log's end, if that is how far the segments were read through.

        They know more than a snapshot, which has only the last batch of each producer.
        """
        return self._producers if self._next_offset == log_end_offset else None


def _from_offset(segments: Sequence[LogSegment], offset: int) -> Iterable[LogSegment]:
    """Those that hold `offset` or begin after it."""
    for index, segment in enumerate(segments):
        if index + 1 == len(segments) or segments[index + 1].base_offset > offset:
            yield segment
