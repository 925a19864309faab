"""Brings markers to the leaders of partitions: here at once, to others over the wire.

Whatever fails is tried again with the leaders of then, until each partition has its marker or
exists no longer. Source: Kafka's TransactionMarkerChannelManager and
TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from ...client.network.connection import Connection
from ...common.errors import ErrorCode
from ...common.topic_partition import TopicPartition
from ...config.broker_config import BrokerConfig
from ...coordinator.transaction.marker_sender import MarkersToWrite, MarkersWritten
from ...metadata.features import SECOND_GENERATION, TRANSACTION_VERSION, Features
from ...metadata.metadata_cache import MetadataCache
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...replication.replica_manager import ReplicaManager
from ...runtime.clock import Clock
from ...runtime.timers import Timer, Timers
from .broker_channel import BatchSender, BrokerChannels, ChannelTasks
from .transaction_markers import Marker, MarkerErrors, MarkerWriter

logger = logging.getLogger(__name__)

MARKER_RETRY_BACKOFF_MS = 50
"""How long to wait before what failed is tried again: a new leader is found in some ten ms."""

MARKERS_PER_REQUEST_MAX = 1000

PARTITIONS_PER_PASS = 50
"""A transaction's markers go out in pieces, each in a pass of its own: to write one takes tens of
microseconds, and a transaction may have ten thousand partitions."""

WRITE_TXN_MARKERS_VERSION = 2
"""Carries the transaction version."""
VERSION_BEFORE_EPOCH_BUMPS = 1
"""Known to older brokers, too, as long as the cluster may have some."""

FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""Somebody newer has ended the transaction: nothing more is to be written."""

NEVER_WRITTEN = frozenset({ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})
"""The partition has nothing of the transaction, and wants no marker."""

EXPECTED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors that pass."""


class EndedTransaction:
    """One transaction whose markers are being written.

    Attributes:
        missing: partitions that have no marker yet.
        is_over: nothing of it is sent any more.
    """

    __slots__ = ("is_over", "markers", "missing", "on_complete")

    def __init__(self, markers: MarkersToWrite, on_complete: MarkersWritten) -> None:
        self.markers = markers
        self.on_complete = on_complete
        self.missing = set(markers.partitions)
        self.is_over = False

    def marker(self, partitions: Collection[TopicPartition]) -> Marker:
        """The marker for some of its partitions."""
        markers = self.markers
        return Marker(
            markers.producer_id,
            markers.producer_epoch,
            markers.coordinator_epoch,
            markers.committed,
            partitions,
            markers.transaction_version,
        )


class MarkersForBroker(NamedTuple):
    """What one broker is to write of one transaction."""

    transaction: EndedTransaction
    partitions: Sequence[TopicPartition]


class MarkerChannels:
    """The `MarkerSender` of a broker that runs.

    Args:
        config: the broker's settings.
        clock, timers: for retries.
        replica_manager: flushed after a retry.
        cache: says which brokers lead the partitions.
        features: says which version of WriteTxnMarkers the cluster knows.
        writer: writes into the partitions that this broker leads.
        tasks: for the channels to the other brokers.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        timers: Timers,
        replica_manager: ReplicaManager,
        cache: MetadataCache,
        features: Features,
        writer: MarkerWriter,
        tasks: ChannelTasks,
    ) -> None:
        self._config = config
        self._clock = clock
        self._timers = timers
        self._replica_manager = replica_manager
        self._cache = cache
        self._features = features
        self._writer = writer
        self._transactions: dict[str, EndedTransaction] = {}
        self._channels = BrokerChannels(
            tasks, BatchSender(self._versions, _take, self._exchange, self._not_answered)
        )
        self._later: list[MarkersForBroker] = []
        self._retry_timer: Timer | None = None

    @property
    def unfinished(self) -> int:
        """How many transactions miss a marker."""
        return len(self._transactions)

    def send(self, markers: MarkersToWrite, on_complete: MarkersWritten) -> None:
        """Write the markers; `on_complete` is called when that is over, never inside this call.

        What is still to be written for the same transactional id is forgotten.
        """
        earlier = self._transactions.get(markers.transactional_id)
        if earlier is not None:
            earlier.is_over = True
        transaction = EndedTransaction(markers, on_complete)
        self._transactions[markers.transactional_id] = transaction
        if transaction.missing:
            self._route(transaction, list(transaction.missing))
        if not transaction.missing:
            now_ms = self._clock.monotonic_ms()
            self._timers.schedule(now_ms, partial(self._finish, transaction, ErrorCode.NONE))

    def drop(self, coordinator_partition: int) -> None:
        """Forget what is to be sent for a partition that is coordinated elsewhere now."""
        for transactional_id, transaction in list(self._transactions.items()):
            if transaction.markers.coordinator_partition == coordinator_partition:
                transaction.is_over = True
                del self._transactions[transactional_id]

    def missing(self, transactional_id: str) -> frozenset[TopicPartition] | None:
        """The partitions that have no marker yet; None if nothing is sent for the id."""
        transaction = self._transactions.get(transactional_id)
        return None if transaction is None else frozenset(transaction.missing)

    # -- to whom ------------------------------------------------------------------------

    def _route(self, transaction: EndedTransaction, partitions: Sequence[TopicPartition]) -> None:
        """Hand partitions to their leaders, the first now and the others in the next passes."""
        self._route_piece(transaction, partitions[:PARTITIONS_PER_PASS])
        others = partitions[PARTITIONS_PER_PASS:]
        if others:
            now_ms = self._clock.monotonic_ms()
            self._timers.schedule(now_ms, partial(self._go_on, transaction, others))

    def _go_on(self, transaction: EndedTransaction, partitions: Sequence[TopicPartition]) -> None:
        if not transaction.is_over:
            self._route(transaction, partitions)
            self._finish_if_written(transaction)
            self._replica_manager.flush()

    def _route_piece(
        self, transaction: EndedTransaction, partitions: Iterable[TopicPartition]
    ) -> None:
        """Hand partitions to their leaders; those that exist no longer need no marker."""
        by_leader: dict[int, list[TopicPartition]] = {}
        unled: list[TopicPartition] = []
        cache = self._cache
        for topic_partition in sorted(partitions):  # a set's order differs from process to process
            state = cache.get_partition_info(topic_partition.topic, topic_partition.partition)
            if state is None and cache.is_complete:
                logger.info("%s is gone and needs no marker", topic_partition)
                transaction.missing.discard(topic_partition)
            elif state is None or not self._is_reachable(state.leader):
                unled.append(topic_partition)
            else:
                by_leader.setdefault(state.leader, []).append(topic_partition)
        for broker_id, theirs in by_leader.items():
            if broker_id == cache.broker_id:
                self._writer.write(transaction.marker(theirs), partial(self._written, transaction))
            else:
                self._channels.put(broker_id, MarkersForBroker(transaction, theirs))
        if unled:
            self._try_again(transaction, unled)

    def _is_reachable(self, broker_id: int) -> bool:
        listener = self._config.inter_broker_listener_name
        return self._cache.get_alive_broker_node(broker_id, listener) is not None

    def _versions(self) -> dict[int, int]:
        finalized = self._features.finalized(TRANSACTION_VERSION)
        is_newer = finalized >= SECOND_GENERATION
        return {
            ApiKey.WRITE_TXN_MARKERS: WRITE_TXN_MARKERS_VERSION
            if is_newer
            else VERSION_BEFORE_EPOCH_BUMPS
        }

    # -- what became of it ----------------------------------------------------------------

    def _written(self, transaction: EndedTransaction, errors: MarkerErrors) -> None:
        """Some partitions have answered."""
        if transaction.is_over:
            return
        retried: list[TopicPartition] = []
        for topic_partition, error in errors.items():
            if error in FENCED:
                logger.info(
                    "the marker of %s is refused by %s: %s",
                    transaction.markers.transactional_id,
                    topic_partition,
                    error.name,
                )
                self._finish(transaction, error)
                return
            if not error or error in NEVER_WRITTEN:
                transaction.missing.discard(topic_partition)
                continue
            if error not in EXPECTED:
                logger.error("the marker of %s is refused: %s", topic_partition, error.name)
            retried.append(topic_partition)
        if retried:
            self._try_again(transaction, retried)
        self._finish_if_written(transaction)

    def _finish_if_written(self, transaction: EndedTransaction) -> None:
        if not transaction.missing:
            self._finish(transaction, ErrorCode.NONE)

    def _finish(self, transaction: EndedTransaction, error: ErrorCode) -> None:
        if transaction.is_over:
            return
        transaction.is_over = True
        self._transactions.pop(transaction.markers.transactional_id, None)
        transaction.on_complete(error)

    def _try_again(
        self, transaction: EndedTransaction, partitions: Sequence[TopicPartition]
    ) -> None:
        self._later.append(MarkersForBroker(transaction, partitions))
        if self._retry_timer is None:
            at_ms = self._clock.monotonic_ms() + MARKER_RETRY_BACKOFF_MS
            self._retry_timer = self._timers.schedule(at_ms, self._retry)

    def _retry(self) -> None:
        self._retry_timer = None
        later, self._later = self._later, []
        for transaction, partitions in later:
            if transaction.is_over:
                continue
            self._route(transaction, partitions)
            self._finish_if_written(transaction)
        self._replica_manager.flush()

    # -- over the wire --------------------------------------------------------------------

    async def _exchange(self, connection: Connection, items: list[MarkersForBroker]) -> None:
        """Have a broker write some markers. Raises ClientError."""
        due = [item for item in items if not item.transaction.is_over]
        if not due:
            return
        answer: messages.WriteTxnMarkersResponse = await connection.request(
            _request(due), timeout_ms=self._config["request.timeout.ms"]
        )
        errors: dict[tuple[int, TopicPartition], ErrorCode] = {
            (marker.producer_id, TopicPartition(topic.name, each.partition_index)): ErrorCode(
                each.error_code
            )
            for marker in answer.markers
            for topic in marker.topics
            for each in topic.partitions
        }
        for transaction, partitions in due:
            producer_id = transaction.markers.producer_id
            self._written(
                transaction,
                {
                    # One that was left out of the answer is sent again.
                    each: errors.get((producer_id, each), ErrorCode.REQUEST_TIMED_OUT)
                    for each in partitions
                },
            )

    def _not_answered(self, items: list[MarkersForBroker]) -> None:
        for transaction, partitions in items:
            if not transaction.is_over:
                self._try_again(transaction, partitions)


def _take(waiting: deque[MarkersForBroker]) -> list[MarkersForBroker]:
    return [waiting.popleft() for _ in range(min(len(waiting), MARKERS_PER_REQUEST_MAX))]


def _request(items: Iterable[MarkersForBroker]) -> messages.WriteTxnMarkersRequest:
    request = messages.WriteTxnMarkersRequest
    markers = []
    for transaction, partitions in items:
        ended = transaction.markers
        markers.append(
            request.WritableTxnMarker(
                producer_id=ended.producer_id,
                producer_epoch=ended.producer_epoch,
                transaction_result=ended.committed,
                topics=[
                    request.WritableTxnMarkerTopic(
                        name=name, partition_indexes=[each.partition for each in group]
                    )
                    for name, group in groupby(sorted(partitions), key=lambda each: each.topic)
                ],
                coordinator_epoch=ended.coordinator_epoch,
                transaction_version=ended.transaction_version,
            )
        )
    return request(markers=markers)
