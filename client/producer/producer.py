"""The producer: records are accumulated into batches, and a task sends these.

The thin shell of trio around `RecordAccumulator`, `Sender` and `TransactionManager`, which decide.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import NamedTuple, Self, cast, overload

import trio

from ...common.errors import KafkaError
from ...protocol.compression.codecs import Compression
from ...protocol.records.builder import Headers, RecordToBuild
from ..client import KafkaClient
from ..consumer.group.committed_offsets import OffsetAndMetadata
from ..errors import ClientError
from ..metadata.cluster import Cluster
from ..network.backoff import ExponentialBackoff
from ..network.nursery import OwnedNursery
from ..network.trio_clock import trio_deadline
from .batch_producer import BatchProducer, ProduceResult
from .coordinator_requests import ConsumerGroupMetadata, CoordinatorRequests
from .delivery import Delivery, wait_done
from .errors import (
    BufferExhaustedError,
    ProducerClosedError,
    TransactionAbortedError,
)
from .partitioner import StickyPartition, partition_of_key
from .produce_requests import ProduceRequests
from .producer_batch import ProducerBatch
from .record_accumulator import RecordAccumulator
from .sender import NEVER, Sender
from .settings import ProducerSettings
from .transaction_manager import TransactionManager, TransactionState

ABORT_SECONDS_MAX = 5
"""How long leaving a transaction by an exception may take, though everything is cancelled."""

FAILURES_REMEMBERED_MAX = 1000
"""Of the batches that failed unseen, `flush` raises the first: no more need be kept."""


class HeldUp(NamedTuple):
    """Why a producer does not come on.

    Attributes:
        reason: what became of the last attempt, as a sentence that names the partition.
        since_ms: for how long the oldest record has been waiting.
        records: how many are not delivered.
    """

    reason: str
    since_ms: int
    records: int


class Producer:
    """Sends records; use it as `async with Producer(client) as producer`.

    It is idempotent unless the settings say otherwise, so nothing is written twice or out of order
    within a partition, and with a `transactional_id` it is transactional (KIP-98). Any number of
    tasks may use it. Leaving the `async with` without an exception flushes; with one it does not,
    and what has not been sent is dropped.

    Args:
        client: is open, and stays so.
        settings: Kafka's, in Python's spelling.
        acks: deprecated, and so are the following: they are in the settings.
        compression: is `compression_type` there.
        idempotent: is `enable_idempotence` there.
        delivery_timeout_ms: is called so there, too.

    Raises:
        ValueError: a setting is out of its range, or two contradict each other.
    """

    def __init__(
        self,
        client: KafkaClient,
        settings: ProducerSettings | None = None,
        *,
        acks: int | None = None,
        compression: Compression | None = None,
        idempotent: bool | None = None,
        delivery_timeout_ms: int | None = None,
    ) -> None:
        given = {
            "acks": acks,
            "compression_type": compression,
            "enable_idempotence": idempotent,
            "delivery_timeout_ms": delivery_timeout_ms,
        }
        old = {name: value for name, value in given.items() if value is not None}
        if old:
            _deprecated(f"Producer(client, ProducerSettings({', '.join(old)}=...))")
            settings = (settings or ProducerSettings())._replace(**old)  # type: ignore[arg-type]  # each has its own type
        self.settings = settings = settings or ProducerSettings()
        self._client = client
        self._batch_producer: BatchProducer | None = None
        self._transactions = TransactionManager(settings.transactional_id)
        self._accumulator = RecordAccumulator(settings)
        self._accumulator.on_release = self._memory_was_freed
        self._coordinators = CoordinatorRequests(client, settings, self._transactions)
        requests = ProduceRequests(client, settings, self._transactions, self._wake)
        self._sender = Sender(
            settings,
            self._accumulator,
            self._transactions,
            ExponentialBackoff(
                client.settings.retry_backoff_ms,
                client.settings.retry_backoff_max_ms,
                client.random,
            ),
            requests,
        )
        requests.outcomes = self._sender
        self._sender.on_failure = self._batch_failed
        self._open: dict[tuple[str, int | None], ProducerBatch] = {}
        """The batches that records are written into, by topic and partition; None: those without a
        key."""
        self._sticky: dict[str, StickyPartition] = {}
        self._unseen: list[ProducerBatch] = []
        self._wakeup = trio.Event()
        self._freed = trio.Event()
        self._waiting_for_memory = 0
        self._has_identity_task = self._has_adding_task = False
        self._owned_nursery = OwnedNursery()
        self._nursery: trio.Nursery | None = None
        self._now_ms = client.clock.now_ms

    async def __aenter__(self) -> Self:
        self.settings.checked(self._client.settings)
        self._nursery = await self._owned_nursery.open()
        self._client.connection_listeners.append(self._wake)
        self._client.metadata.listeners.append(self._metadata_changed)
        self._nursery.start_soon(self._run, self._nursery)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        flush_error: BaseException | None = None
        if error is None:
            try:
                await self.flush()
            except BaseException as raised:
                flush_error = raised
        self._close()
        suppressed = await self._owned_nursery.close(kind, error, traceback)
        if flush_error is not None:
            raise flush_error
        return suppressed

    def _close(self) -> None:
        self._nursery = None
        self._open.clear()
        self._client.connection_listeners.remove(self._wake)
        self._client.metadata.listeners.remove(self._metadata_changed)
        closed = ProducerClosedError("the producer was closed before the record was delivered")
        for batch in list(self._accumulator.incomplete):
            batch.failed(closed)
            self._accumulator.done(batch)

    # --- Records -----------------------------------------------------------------------------

    @overload
    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> Delivery: ...

    @overload
    async def send(self, topic: str, value: int, key: Iterable[RecordToBuild]) -> ProduceResult: ...

    async def send(
        self,
        topic: str,
        value: bytes | int | None,
        key: bytes | Iterable[RecordToBuild] | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> Delivery | ProduceResult:
        """Accept a record, to be sent soon; waits while the buffer is full.

        Records of one task for one partition are written in the order of its calls. Returns at
        once if there is a batch to write the record into.

        Args:
            topic: its name; the broker may create it.
            value: None is a tombstone.
            key: records of one key go to one partition.
            partition: instead of the one by the key, or of any.
            headers: names and values.
            timestamp_ms: milliseconds since the epoch; now if left out.

        Returns:
            What can be awaited for the record's place in the log. `flush` raises what nobody
            awaited.

        Raises:
            RecordTooLargeError: the record is larger than `max_request_size` or `buffer_memory`.
            BufferExhaustedError: the buffer was full for `max_block_ms`.
            MetadataTimeoutError: the topic, or the partition, does not seem to exist.
            AbortableTransactionError: the transaction must be aborted.
            FatalProducerError: this producer cannot go on.
            KafkaError: the topic cannot be written to.
            ClientError: as `KafkaClient.wait_for_metadata`.
            RuntimeError: a transactional producer sends within a transaction only.
            TypeError: key or value are not bytes.
        """
        if isinstance(value, int):
            return await self._send_batch(topic, value, cast(Iterable[RecordToBuild], key))
        key = cast("bytes | None", key)
        if timestamp_ms is None:
            timestamp_ms = self._now_ms()
        batch = self._open_for(topic, key, partition)
        if batch is None or not batch.append(timestamp_ms, key, value, headers):
            batch = await self._append_waiting(
                topic, partition, (timestamp_ms, key, value, headers)
            )
        return Delivery(batch, batch.count - 1, timestamp_ms)

    def send_nowait(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> None:
        """Accept a record without waiting and without account: `flush` raises what fails.

        For many records. Call `send` where it would block, and let other tasks run now and then.

        Raises:
            trio.WouldBlock: the buffer is full, or the topic's metadata is not there.
            ProducerError: as `send`.
        """
        if timestamp_ms is None:
            timestamp_ms = self._now_ms()
        batch = self._open_for(topic, key, partition)
        if batch is None or not batch.append(timestamp_ms, key, value, headers):
            record = timestamp_ms, key, value, headers
            if self._append(topic, partition, record) is None:
                raise trio.WouldBlock

    @property
    def has_failed(self) -> bool:
        """Whether a record failed that nobody has awaited, which `flush` will raise."""
        return any(not batch.failure_was_seen for batch in self._unseen)

    def held_up(self) -> HeldUp | None:
        """What the oldest record waits for that is not delivered; None if all are."""
        batch = next(iter(self._accumulator.incomplete), None)
        if batch is None:
            return None
        where = f"partition {batch.partition} of topic {batch.topic!r}"
        if batch.refusal is not None:
            reason = str(batch.refusal)
        elif self._client.metadata.current_leader(batch.topic, batch.partition) is None:
            reason = f"{where}: it has no leader"
        elif batch.attempts:
            reason = f"{where}: its leader has not answered yet"
        else:
            reason = f"{where}: its leader is not connected"
        records = sum(each.count for each in self._accumulator.incomplete)
        return HeldUp(reason, self._client.clock.monotonic_ms() - batch.created_ms, records)

    async def flush(self) -> None:
        """Send what was accepted so far without lingering, and wait until all of it is done.

        Raises:
            KafkaError: the broker refused a record that nobody awaited.
            ProducerError: such a record failed otherwise.
        """
        pending = list(self._accumulator.incomplete)
        self._sender.flushing += 1
        try:
            self._wake()
            while pending:
                batch = pending.pop()
                await wait_done(batch)
                pending.extend(batch.parts)
        finally:
            self._sender.flushing -= 1
        unseen, self._unseen = self._unseen, []
        for batch in unseen:
            if not batch.failure_was_seen and batch.failure is not None:
                raise type(batch.failure)(*batch.failure.args) from batch.failure
        await trio.lowlevel.checkpoint()

    # --- Transactions ------------------------------------------------------------------------

    async def init_transactions(self) -> None:
        """Fence earlier producers with the transactional id, and finish what they left open. To be
        called once, before the first transaction.

        Raises:
            FatalProducerError: this producer cannot go on.
            KafkaError: the coordinator refuses this client.
            TransactionTimeoutError: it did not answer; this may be called again.
            RuntimeError: the producer has no transactional id, or this was done before.
        """
        self._transactions.enter(TransactionState.INITIALIZING)
        await self._coordinators.init_transactions()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A transaction for the length of an `async with`: committed at its end, aborted by an
        exception, which passes on.

        Raises:
            AbortableTransactionError: it was aborted, since a record failed.
            FatalProducerError: this producer cannot go on.
            TransactionTimeoutError: the coordinator did not answer in time, and nobody knows
                whether the transaction is committed; `commit_transaction` may be called again.
            RuntimeError: `init_transactions` was not called, or a transaction is open.
        """
        await self.begin_transaction()
        try:
            yield
        except BaseException as error:
            await self._abort_after(error)
            raise
        try:
            await self.commit_transaction()
        except BaseException as error:
            if self._transactions.state is TransactionState.ABORTABLE_ERROR:
                await self._abort_after(error)
            raise

    async def begin_transaction(self) -> None:
        """Begin a transaction; `transaction` ends it as well.

        Raises:
            FatalProducerError: this producer cannot go on.
            TransactionTimeoutError: the coordinator could not be reached.
            RuntimeError: `init_transactions` was not called, or a transaction is open.
        """
        is_second_generation = (
            self._transactions.state is TransactionState.READY
            and await self._coordinators.is_second_generation()
        )
        self._transactions.begin(is_second_generation=is_second_generation)

    async def commit_transaction(self) -> None:
        """Send what is left, then commit the transaction.

        Raises:
            AbortableTransactionError: a record failed: the transaction must be aborted.
            FatalProducerError: this producer cannot go on.
            TransactionTimeoutError: the coordinator did not answer; this may be called again.
            RuntimeError: no transaction is open.
        """
        self._transactions.enter(TransactionState.COMMITTING)
        try:
            await self.flush()
        except (KafkaError, ClientError):
            self._transactions.raise_error()
            raise
        self._transactions.raise_error()
        await self._end_transaction(is_commit=True)

    async def abort_transaction(self) -> None:
        """Drop what is left, then abort the transaction.

        Raises:
            FatalProducerError: this producer cannot go on.
            TransactionTimeoutError: the coordinator did not answer; this may be called again.
            RuntimeError: no transaction is open.
        """
        self._transactions.enter(TransactionState.ABORTING)
        self._open.clear()
        self._sender.fail_waiting(
            TransactionAbortedError("the transaction was aborted before the record was sent")
        )
        while self._accumulator.incomplete:
            await wait_done(next(iter(self._accumulator.incomplete)))
        self._unseen.clear()
        await self._end_transaction(is_commit=False)

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[tuple[str, int], OffsetAndMetadata | int],
        group: ConsumerGroupMetadata,
    ) -> None:
        """Commit a consumer's positions with the transaction, or not at all (KIP-447).

        Args:
            offsets: by topic and partition, what is to be read next.
            group: the consumer's group, and its member; a group that has moved on refuses.

        Raises:
            AbortableTransactionError: the group refuses: abort the transaction.
            FatalProducerError: this producer cannot go on.
            TransactionTimeoutError: a coordinator did not answer.
            RuntimeError: no transaction is open.
        """
        self._transactions.require_sending()
        if self._transactions.transactional_id is None:
            raise RuntimeError("the producer has no transactional_id")
        positions = {
            key: OffsetAndMetadata(position) if isinstance(position, int) else position
            for key, position in offsets.items()
        }
        if positions:
            await self._coordinators.commit_offsets(positions, group)

    async def _end_transaction(self, *, is_commit: bool) -> None:
        await self._coordinators.end_transaction(is_commit=is_commit)
        for queue in self._accumulator.queues.values():
            if queue.identity != self._transactions.identity:
                queue.forget_sequence()

    async def _abort_after(self, error: BaseException) -> None:
        """Abort the transaction if that is still possible; what keeps it from that is noted."""
        with trio.move_on_after(ABORT_SECONDS_MAX) as scope:
            scope.shield = True
            try:
                await self.abort_transaction()
            except (ClientError, RuntimeError) as failure:
                error.add_note(f"the transaction was not aborted: {failure}")

    # --- Accepting records -------------------------------------------------------------------

    def _open_for(
        self, topic: str, key: bytes | None, partition: int | None
    ) -> ProducerBatch | None:
        """The batch that is being filled where a record goes to."""
        if partition is None and key is not None:
            info = self._client.cluster.topics.get(topic)
            if info is None or not info.partitions:
                return None
            partition = partition_of_key(key, len(info.partitions))
        return self._open.get((topic, partition))

    def _append(
        self,
        topic: str,
        partition: int | None,
        record: tuple[int, bytes | None, bytes | None, Headers],
    ) -> ProducerBatch | None:
        """Write a record into a batch, a new one if need be.

        Returns:
            The batch; None while the topic's metadata, or memory, is not there.
        """
        if self._nursery is None:
            raise ProducerClosedError("the producer is not open: use it as `async with`")
        self._transactions.require_sending()
        _, key, value, headers = record
        chosen = self._partition_for(topic, key, partition)
        if chosen is None:
            return None
        batch = self._accumulator.open_batch(topic, chosen)
        if batch is None or not batch.append(*record):
            now_ms = self._client.clock.monotonic_ms()
            batch = self._accumulator.new_batch(topic, chosen, now_ms, key, value, headers)
            if batch is None:
                return None
            try:
                batch.append(*record)
            except BaseException:
                self._accumulator.discard(batch)
                raise
            self._accumulator.add(batch)
            self._transactions.add_partition(topic, chosen)
            self._client.add_topic(topic)
            self._wake()
        self._open[topic, partition if key is None else chosen] = batch
        return batch

    def _partition_for(self, topic: str, key: bytes | None, partition: int | None) -> int | None:
        info = self._client.cluster.topics.get(topic)
        if info is None or not info.partitions:
            return None
        if partition is not None:
            return partition if partition in info.partitions else None
        if key is not None:
            return partition_of_key(key, len(info.partitions))
        sticky = self._sticky.get(topic)
        if sticky is None:
            sticky = self._sticky[topic] = StickyPartition(
                self.settings.batch_size, self._client.random
            )
        filled = self._open.pop((topic, None), None)
        if filled is not None:
            sticky.produced(filled.size)
        return sticky.current(_available(self._client.cluster, topic))

    async def _append_waiting(
        self,
        topic: str,
        partition: int | None,
        record: tuple[int, bytes | None, bytes | None, Headers],
    ) -> ProducerBatch:
        """Write a record into a batch as soon as that is possible."""
        max_block_ms = self._client.settings.max_block_ms
        deadline_ms = self._client.clock.monotonic_ms() + max_block_ms
        await trio.lowlevel.checkpoint()
        while True:
            batch = self._append(topic, partition, record)
            if batch is not None:
                return batch
            remaining_ms = deadline_ms - self._client.clock.monotonic_ms()
            info = self._client.cluster.topics.get(topic)
            if info is None or not info.partitions or partition not in (None, *info.partitions):
                await self._client.wait_for_topic(topic, partition, max(remaining_ms, 0))
                continue
            await self._wait_for_memory(deadline_ms, max_block_ms)

    async def _wait_for_memory(self, deadline_ms: int, max_block_ms: int) -> None:
        self._waiting_for_memory += 1
        self._sender.is_memory_exhausted = True
        self._wake()
        try:
            with trio.move_on_at(trio_deadline(self._client.clock, deadline_ms)) as scope:
                await self._freed.wait()
        finally:
            self._waiting_for_memory -= 1
            self._sender.is_memory_exhausted = self._waiting_for_memory > 0
        if scope.cancelled_caught:
            raise BufferExhaustedError(
                f"buffer_memory={self.settings.buffer_memory} was full for {max_block_ms} ms"
            )

    def _memory_was_freed(self) -> None:
        if self._waiting_for_memory:
            self._freed.set()
            self._freed = trio.Event()

    def _batch_failed(self, batch: ProducerBatch) -> None:
        if len(self._unseen) < FAILURES_REMEMBERED_MAX:
            self._unseen.append(batch)

    async def _send_batch(
        self, topic: str, partition: int, records: Iterable[RecordToBuild]
    ) -> ProduceResult:
        _deprecated("BatchProducer(client).send(topic, partition, records)")
        if self._batch_producer is None:
            self._batch_producer = BatchProducer(
                self._client,
                acks=self.settings.acks,
                compression=self.settings.compression_type,
                idempotent=bool(self.settings.enable_idempotence),
                delivery_timeout_ms=self.settings.delivery_timeout_ms,
            )
        return await self._batch_producer.send(topic, partition, records)

    # --- The task ----------------------------------------------------------------------------

    def _wake(self) -> None:
        self._wakeup.set()

    def _metadata_changed(self, cluster: Cluster) -> None:
        self._wakeup.set()

    async def _run(self, nursery: trio.Nursery) -> None:
        """Do what the sender says, again whenever something happened."""
        clock = self._client.clock
        while True:
            self._wakeup = trio.Event()
            delay_ms = self._sender.step(clock.monotonic_ms())
            if self._must_get_identity():
                self._has_identity_task = True
                nursery.start_soon(self._get_identity)
            if self._transactions.partitions_to_add and not self._has_adding_task:
                self._has_adding_task = True
                nursery.start_soon(self._add_partitions)
            at_ms = None if delay_ms >= NEVER else clock.monotonic_ms() + delay_ms
            with trio.move_on_at(trio_deadline(clock, at_ms)):
                await self._wakeup.wait()

    def _must_get_identity(self) -> bool:
        return (
            self.settings.is_idempotent
            and self._transactions.needs_identity
            and not self._has_identity_task
            and bool(self._accumulator.incomplete)
        )

    async def _get_identity(self) -> None:
        try:
            await self._coordinators.init_producer_id()
        except (KafkaError, ClientError) as failure:
            self._open.clear()
            self._sender.fail_waiting(failure)
        finally:
            self._has_identity_task = False
            self._wake()

    async def _add_partitions(self) -> None:
        try:
            await self._coordinators.add_partitions()
        except (KafkaError, ClientError) as failure:
            self._sender.fail_waiting(failure)
        finally:
            self._has_adding_task = False
            self._wake()


def _available(cluster: Cluster, topic: str) -> list[int]:
    """The partitions of a topic that have a leader; all of them where none has."""
    partitions = cluster.topics[topic].partitions
    led = [index for index, info in partitions.items() if info.leader_id is not None]
    return led or list(partitions)


def _deprecated(replacement: str) -> None:
    warnings.warn(
        f"this form of Producer goes with the next release: use {replacement}",
        DeprecationWarning,
        stacklevel=3,
    )
