"""Writes changed ISRs into the metadata store, and notes them for the controller (article 001).

A leader replaces its partition's state by compare-and-set: if the controller, or anybody, has
written it since, the change is refused (Kafka's ZkAlterPartitionManager and ReplicationUtils).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...common.partition_state import LeaderAndIsr
from ...common.topic_partition import TopicPartition
from ...metadata_store import znodes
from ...metadata_store.errors import BadVersion, MetadataStoreError, NoNode
from ...metadata_store.store import MetadataStore
from ...metadata_store.znodes import CorruptNode
from ...replication.partition.isr_propagation import CHECK_INTERVAL_MS, IsrPropagation
from ...replication.partition.partition import IsrChangeOutcome, Partition
from ...runtime import waiting
from ...runtime.clock import Clock
from ...runtime.timers import Timers

logger = logging.getLogger(__name__)

ISR_RETRY_SECONDS = 0.1
"""Between attempts, while the store does not answer."""


class IsrWriter:
    """Has ISRs written, one task for each change.

    Args:
        store: where they are.
        clock: the time.
        timers: where the next look at what to propagate waits.
        keep_running: runs an async function beside the requests, again should it fail.
    """

    def __init__(
        self, store: MetadataStore, clock: Clock, timers: Timers, keep_running: Callable[..., None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._timers = timers
        self._keep_running = keep_running
        self._propagation = IsrPropagation(clock.monotonic_ms())
        self._is_scheduled = False

    def submit(self, partition: Partition, change: LeaderAndIsr) -> None:
        """Have a change written; the partition gets the outcome."""
        self._keep_running(self._write, partition, change)

    async def _write(self, partition: Partition, change: LeaderAndIsr) -> None:
        topic_partition = partition.topic_partition
        while partition.pending_isr_change is change:
            try:
                version = await self._compare_and_set(topic_partition, change)
            except MetadataStoreError as error:
                logger.warning("the ISR of %s is not written: %s", topic_partition, error)
                await waiting.sleep(ISR_RETRY_SECONDS)
                continue
            if version is None:
                partition.isr_change_failed(change, IsrChangeOutcome.REFUSED)
            else:
                partition.isr_changed(change, version)
                self._record(topic_partition)
            return

    async def _compare_and_set(
        self, topic_partition: TopicPartition, change: LeaderAndIsr
    ) -> int | None:
        """The new version; None if the state was not as the leader knew it.

        Raises:
            MetadataStoreError: it is not known.
        """
        path = znodes.partition_state_path(*topic_partition)
        try:
            return await self._store.set(
                path, znodes.encode_partition_state(change), change.partition_epoch
            )
        except NoNode:
            return None
        except BadVersion:
            pass
        # It may be this very change, whose answer was lost.
        try:
            node = await self._store.get(path)
            written = znodes.decode_partition_state(node.data, change.partition_epoch)
        except (NoNode, CorruptNode):
            return None
        return node.version if written == change else None

    def _record(self, topic_partition: TopicPartition) -> None:
        self._propagation.record_isr_change(topic_partition, self._clock.monotonic_ms())
        self._schedule()

    def _schedule(self) -> None:
        if self._is_scheduled or not len(self._propagation):
            return
        self._is_scheduled = True
        at_ms = self._clock.monotonic_ms() + CHECK_INTERVAL_MS
        self._timers.schedule(at_ms, lambda: self._keep_running(self._propagate))

    async def _propagate(self) -> None:
        self._is_scheduled = False
        due = self._propagation.take_due(self._clock.monotonic_ms())
        try:
            if due:
                note = znodes.encode_isr_change(due)
                await self._store.create(znodes.ISR_CHANGE_PREFIX, note, sequential=True)
        except MetadataStoreError as error:
            logger.warning("could not propagate changed ISRs to the controller: %s", error)
            self._propagation.put_back(due)
        except BaseException:
            self._propagation.put_back(due)
            raise
        self._schedule()
