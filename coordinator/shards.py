"""Which partitions of a coordinator's topic this broker leads, and what their logs say.

A shard is loading, in steps, then loaded, until another broker leads its partition. Each
coordinator replays records into shards of its own. Source: Kafka's CoordinatorRuntime.
"""

from __future__ import annotations

import logging
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from ..common.errors import ErrorCode, KafkaError
from ..protocol.errors import ProtocolError
from ..runtime.steps import Steps
from .log import CoordinatorLog, LoggedBatch, LoggedRecord
from .runtime import CoordinatorRuntime

logger = logging.getLogger(__name__)
LOAD_SLICE_BYTES = 64 * 1024
"""How much of a log is read at a time."""

INT32_MIN = -(2**31)


def java_string_hash(text: str) -> int:
    """Java's `String.hashCode`, over UTF-16 units: a signed 32-bit number."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
        result = (31 * result + unit) & 0xFFFFFFFF
    return result - 2**32 if result >= 2**31 else result


def partition_for(key: str, partitions: int) -> int:
    """The partition that keeps `key`: a group id or a transactional id."""
    number = java_string_hash(key)
    return (0 if number == INT32_MIN else abs(number)) % partitions


class Shard(ABC):
    """One partition that this broker leads, and what its log says.

    Later records overrule earlier ones, and tombstones delete. A record that cannot be read is
    skipped with a warning: one bad record must not take a partition's others away.

    Args:
        log: holds the partition.
        partition: of the coordinator's topic.
        leader_epoch: since which this broker leads it.
        slice_bytes: how much is read at a time.

    Attributes:
        is_loaded: whether all that it holds is known, so that all requests can be answered.
        records_skipped: how many records were unreadable.

    Raises:
        KafkaError: this broker does not lead the partition.
    """

    __slots__ = (
        "_log",
        "_next_offset",
        "_slice_bytes",
        "is_loaded",
        "leader_epoch",
        "partition",
        "records_skipped",
    )

    def __init__(
        self,
        log: CoordinatorLog,
        partition: int,
        leader_epoch: int,
        slice_bytes: int = LOAD_SLICE_BYTES,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.is_loaded = False
        self.records_skipped = 0
        self._log = log
        self._slice_bytes = slice_bytes
        self._next_offset = log.start_offset(partition)

    def replay_all(self) -> Steps[None]:
        """Replay the log to its end, record by record.

        Raises:
            KafkaError: this broker does not lead the partition any more.
        """
        while self._next_offset < self._log.end_offset(self.partition):
            batches = self._log.read(self.partition, self._next_offset, self._slice_bytes)
            if not batches:
                return
            for batch in batches:
                yield from self._replay_batch(batch)
                self._next_offset = batch.next_offset

    def _replay_batch(self, batch: LoggedBatch) -> Steps[None]:
        if batch.committed is not None:
            self.replay_end_transaction(batch.producer_id, committed=batch.committed)
        for record in batch.records:
            yield
            try:
                if record.key is None:
                    raise ProtocolError("it has no key")
                self.replay(record.key, record, batch.producer_id)
            except ProtocolError as error:
                self.records_skipped += 1
                logger.warning(
                    "skipping the record at offset %d of partition %d: %s",
                    record.offset,
                    self.partition,
                    error,
                )

    @abstractmethod
    def replay(self, key: bytes, record: LoggedRecord, producer_id: int) -> None:
        """Apply one record.

        Args:
            producer_id: whose transaction it is part of, -1 if of none.

        Raises:
            ProtocolError: it cannot be read.
        """

    @abstractmethod
    def replay_end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply a marker that ends a producer's transaction."""


ShardT = TypeVar("ShardT", bound=Shard)


class ShardTable(ABC, Generic[ShardT]):
    """All shards of this broker.

    Args:
        runtime: time and the log.
        topic_partitions: how many partitions the topic has, or will have.
        content: what the topic keeps, for log lines.
    """

    def __init__(
        self, runtime: CoordinatorRuntime, topic_partitions: Callable[[], int], content: str
    ) -> None:
        self._shards: dict[int, ShardT] = {}
        self._runtime = runtime
        self._topic_partitions = topic_partitions
        self._content = content

    def partition_for(self, name: str) -> int:
        """The partition of the topic that keeps a name."""
        return partition_for(name, self._topic_partitions())

    @property
    def is_loading(self) -> bool:
        """Whether any shard is loading."""
        return any(not shard.is_loaded for shard in self._shards.values())

    def partitions(self) -> list[int]:
        """The partitions that are led here."""
        return sorted(self._shards)

    def load(self, partition: int, leader_epoch: int) -> None:
        """This broker became leader of a partition: load it, a first step at once."""
        shard = self._shards.get(partition)
        if shard is not None:
            shard.leader_epoch = max(shard.leader_epoch, leader_epoch)
            return
        try:
            shard = self._make_shard(partition, leader_epoch)
        except KafkaError as failure:
            self._log_failure(partition, failure)
            return
        self._shards[partition] = shard
        self._runtime.run_in_steps(self._load(shard))

    def _loaded_shard(self, name: str) -> ShardT:
        shard = self._shards.get(self.partition_for(name))
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if not shard.is_loaded:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _load(self, shard: ShardT) -> Steps[None]:
        """Replay a shard and take up what it holds, unless it is given up meanwhile."""
        try:
            for work in (shard.replay_all(), self._take_up(shard)):
                for _ in work:
                    yield
                    if self._shards.get(shard.partition) is not shard:
                        return
        except KafkaError as failure:
            self._log_failure(shard.partition, failure)
            del self._shards[shard.partition]
            return
        shard.is_loaded = True

    def _log_failure(self, partition: int, failure: KafkaError) -> None:
        logger.error("cannot load the %s of partition %d: %s", self._content, partition, failure)

    @abstractmethod
    def _make_shard(self, partition: int, leader_epoch: int) -> ShardT:
        """A shard that is to be loaded. Raises KafkaError: this broker does not lead it."""

    @abstractmethod
    def _take_up(self, shard: ShardT) -> Steps[None]:
        """All of a log is replayed: answer requests for one thing after the other that it names.

        What nobody knows may still be taken up until the shard is loaded.
        """
