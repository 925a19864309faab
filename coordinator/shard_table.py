"""Which partitions of a coordinators' topic this broker leads, and how far each is loaded.

A shard is loading, slice by slice, then loaded, until another broker leads its partition. What a
shard holds is for each coordinator to say.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from ..common.errors import ErrorCode, KafkaError
from .partitioning import partition_for

logger = logging.getLogger(__name__)


class SliceLoader(Protocol):
    """Replays the log of one partition."""

    def load_slice(self) -> bool:
        """Replay the next slice; returns whether that was the last. Raises KafkaError."""


class ShardSurroundings(Protocol):
    """What loading needs of a coordinator's context."""

    def schedule(self, delay_ms: int, callback: Callable[[], None]) -> Any:
        """Call `callback` in `delay_ms`, and flush what it appends."""

    def run_flushed(self, callback: Callable[[], None]) -> None:
        """Call `callback` outside of a request's pass, and flush what it appends."""


LoaderT = TypeVar("LoaderT", bound=SliceLoader)


class LedShard(Generic[LoaderT]):
    """One partition that this broker leads.

    Attributes:
        leader_epoch: since which this broker leads it.
        loader: replays the log; None once everything is loaded.
    """

    __slots__ = ("leader_epoch", "loader", "partition")

    def __init__(self, partition: int, leader_epoch: int, loader: LoaderT) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.loader: LoaderT | None = loader

    @property
    def is_loaded(self) -> bool:
        """Whether what it keeps may be asked for."""
        return self.loader is None


ShardT = TypeVar("ShardT", bound=LedShard[Any])


class ShardTable(ABC, Generic[ShardT]):
    """All shards of this broker.

    Args:
        surroundings: time and the log.
        topic_partitions: how many partitions the topic has, or will have.
        kept: what the topic keeps, for the log's sentences.
    """

    def __init__(
        self, surroundings: ShardSurroundings, topic_partitions: Callable[[], int], kept: str
    ) -> None:
        self._shards: dict[int, ShardT] = {}
        self._surroundings = surroundings
        self._topic_partitions = topic_partitions
        self._kept = kept

    def partition_for(self, name: str) -> int:
        """The partition of the topic that keeps a name."""
        return partition_for(name, self._topic_partitions())

    @property
    def is_loading(self) -> bool:
        """Whether there may be something here that is not known yet."""
        return any(not shard.is_loaded for shard in self._shards.values())

    def partitions(self) -> list[int]:
        """The partitions that are led here."""
        return sorted(self._shards)

    def load(self, partition: int, leader_epoch: int) -> None:
        """This broker leads a partition now: learn what it keeps, a first slice at once."""
        shard = self._shards.get(partition)
        if shard is not None:
            shard.leader_epoch = max(shard.leader_epoch, leader_epoch)
            return
        try:
            shard = self._make_shard(partition, leader_epoch)
        except KafkaError as failure:
            logger.error("cannot load the %s of partition %d: %s", self._kept, partition, failure)
            return
        self._shards[partition] = shard
        self._surroundings.run_flushed(partial(self._load_slice, shard))

    def _loaded_shard(self, name: str) -> ShardT:
        shard = self._shards.get(self.partition_for(name))
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if not shard.is_loaded:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _load_slice(self, shard: ShardT) -> None:
        loader = shard.loader
        if loader is None or self._shards.get(shard.partition) is not shard:
            return
        try:
            done = loader.load_slice()
        except KafkaError as failure:
            logger.error(
                "cannot load the %s of partition %d: %s", self._kept, shard.partition, failure
            )
            del self._shards[shard.partition]
            return
        if not done:
            self._surroundings.schedule(0, partial(self._load_slice, shard))
            return
        shard.loader = None
        self._take_up(shard, loader)

    @abstractmethod
    def _make_shard(self, partition: int, leader_epoch: int) -> ShardT:
        """A shard that is to be loaded. Raises KafkaError: this broker does not lead it."""

    @abstractmethod
    def _take_up(self, shard: ShardT, loader: Any) -> None:
        """Everything is loaded: let it be asked for."""
