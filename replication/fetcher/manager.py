"""All fetchers of a broker: which of them follows which partition.

Kafka's AbstractFetcherManager and ReplicaFetcherManager. Partitions of one leader are spread
over `num.replica.fetchers` fetchers by a hash, so that each stays with one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from ...common.named_tuple import NamedTuple
from ...common.topic_partition import TopicPartition
from ..quota.replication_quota import UNBOUNDED_QUOTA, ReplicationQuota
from .fetch_state import InitialFetchState, PartitionFetchState
from .fetcher import OnAppended, PartitionOf, ReplicaFetcher
from .settings import FetcherSettings

logger = logging.getLogger(__name__)

_INT32_MASK = 0xFFFFFFFF
_INT32_SIGN = 0x80000000


class RunningFetcher(Protocol):
    """A fetcher that somebody drives, such as `FetcherTask`."""

    def wake(self) -> None:
        """Partitions were added: look for the next request."""

    def close(self) -> None:
        """Send no more requests."""


StartFetcher = Callable[[ReplicaFetcher], RunningFetcher]
"""Has a fetcher driven from now on."""


class FetcherKey(NamedTuple):
    """Which fetcher: of which broker, and which of its fetchers."""

    leader_id: int
    fetcher_id: int


class FetcherManager:
    """The fetchers of a broker.

    Args:
        settings: what they obey.
        num_fetchers: for each source broker (`num.replica.fetchers`).
        partition_of: finds local replicas.
        start_fetcher: has a new fetcher driven.
        quota: for throttled partitions.
        on_appended: see `fetcher.OnAppended`.
    """

    def __init__(
        self,
        settings: FetcherSettings,
        num_fetchers: int,
        partition_of: PartitionOf,
        start_fetcher: StartFetcher,
        *,
        quota: ReplicationQuota = UNBOUNDED_QUOTA,
        on_appended: OnAppended = lambda topic_partitions: None,
    ) -> None:
        self._settings = settings
        self._num_fetchers = num_fetchers
        self._partition_of = partition_of
        self._start_fetcher = start_fetcher
        self._quota = quota
        self._on_appended = on_appended
        self._fetchers: dict[FetcherKey, ReplicaFetcher] = {}
        self._running: dict[FetcherKey, RunningFetcher] = {}
        self.failed_partitions: set[TopicPartition] = set()
        """Those that left their fetcher after an error, until they get another leader epoch."""

    # -- partitions -------------------------------------------------------------------------

    def add_fetchers(self, initial: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Follow partitions, each by the fetcher of its leader and hash.

        Whoever else has followed one does so no more.
        """
        by_fetcher: dict[FetcherKey, dict[TopicPartition, InitialFetchState]] = {}
        for tp, begin in initial.items():
            key = FetcherKey(begin.leader_id, self.fetcher_id_of(tp))
            by_fetcher.setdefault(key, {})[tp] = begin
        for key, partitions in by_fetcher.items():
            for other, former in self._fetchers.items():
                if other != key:
                    former.remove_partitions(partitions)
            fetcher = self._fetchers.get(key)
            if fetcher is None:
                fetcher = self._make_fetcher(key)
                fetcher.add_partitions(partitions)
                self._running[key] = self._start_fetcher(fetcher)
            else:
                fetcher.add_partitions(partitions)
                self._running[key].wake()
            logger.info(
                "Fetcher %d from broker %d follows %d more partitions",
                key.fetcher_id,
                key.leader_id,
                len(partitions),
            )

    def _make_fetcher(self, key: FetcherKey) -> ReplicaFetcher:
        fetcher = self._fetchers[key] = ReplicaFetcher(
            key.leader_id,
            key.fetcher_id,
            self._settings,
            self._partition_of,
            failed=self.failed_partitions,
            quota=self._quota,
            on_appended=self._on_appended,
        )
        return fetcher

    def remove_fetchers(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, PartitionFetchState]:
        """Follow partitions no more; returns the states of those that were followed.

        Answers under way are not used for them. They no longer count as failed either.
        """
        requested = list(topic_partitions)
        removed: dict[TopicPartition, PartitionFetchState] = {}
        for fetcher in self._fetchers.values():
            removed.update(fetcher.remove_partitions(requested))
        self.failed_partitions.difference_update(requested)
        return removed

    def resize(self, num_fetchers: int) -> None:
        """Spread the partitions over another number of fetchers for each broker."""
        if num_fetchers == self._num_fetchers:
            return
        logger.info("From each broker %d fetchers fetch from now on", num_fetchers)
        self._num_fetchers = num_fetchers
        moved: dict[TopicPartition, InitialFetchState] = {}
        for key, fetcher in self._fetchers.items():
            for tp, state in fetcher.remove_all_partitions().items():
                moved[tp] = InitialFetchState(
                    state.topic_id,
                    key.leader_id,
                    state.current_leader_epoch,
                    state.fetch_offset,
                )
        self.add_fetchers(moved)
        self.shutdown_idle_fetchers()

    def shutdown_idle_fetchers(self) -> None:
        """End the fetchers that have no partitions left."""
        for key, fetcher in list(self._fetchers.items()):
            if fetcher.partition_count == 0:
                self._close(key)

    def shutdown(self) -> None:
        """End all fetchers."""
        for key in list(self._fetchers):
            self._close(key)

    def _close(self, key: FetcherKey) -> None:
        del self._fetchers[key]
        self._running.pop(key).close()

    def fetcher_id_of(self, topic_partition: TopicPartition) -> int:
        """Which of a broker's fetchers follows a partition; Kafka's choice, the same every time."""
        number = _to_int32(31 * _java_hash(topic_partition.topic) + topic_partition.partition)
        return 0 if number == -_INT32_SIGN else abs(number) % self._num_fetchers

    # -- metrics ----------------------------------------------------------------------------

    def __iter__(self) -> Iterator[ReplicaFetcher]:
        """All fetchers."""
        return iter(self._fetchers.values())

    def max_lag(self) -> int:
        """The most offsets that any partition is behind its leader (MaxLag)."""
        return max((fetcher.max_lag for fetcher in self._fetchers.values()), default=0)

    def lags(self) -> dict[TopicPartition, int]:
        """The offsets that each partition is behind its leader (ConsumerLag)."""
        return {tp: lag for fetcher in self for tp, lag in fetcher.lags().items()}

    @property
    def failed_partitions_count(self) -> int:
        """How many partitions failed (FailedPartitionsCount)."""
        return len(self.failed_partitions)

    @property
    def dead_threads_count(self) -> int:
        """How many fetchers ended in an error (DeadThreadCount): none, each tries again."""
        return 0


def _java_hash(text: str) -> int:
    """Java's String.hashCode, which does not change from process to process."""
    number = 0
    for character in text:
        number = (31 * number + ord(character)) & _INT32_MASK
    return number


def _to_int32(number: int) -> int:
    """As Java's int holds it, overflowing."""
    number &= _INT32_MASK
    return number - (number & _INT32_SIGN) * 2
