"""Which batches go into which request, and what becomes of them: the decisions, without trio.

Kafka's `Sender` with `RecordAccumulator.ready` and `drain`. `step` is called whenever something
happened; it sends what can be sent and says when to be called again. Answers come back through
`answered` and `unanswered`. Time is an argument, in monotonic milliseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple, Protocol

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_OFFSET, NO_TIMESTAMP
from ..error_kinds import RETRIABLE_ERRORS, error_name, error_of
from ..network.backoff import ExponentialBackoff
from .errors import DeliveryTimeoutError
from .partition_queue import PartitionQueue
from .producer_batch import NO_IDENTITY, ProducerBatch
from .record_accumulator import RecordAccumulator
from .settings import ProducerSettings
from .transaction_manager import TransactionManager

logger = logging.getLogger(__name__)

NEVER = 1 << 62
"""Later than any moment."""


class BatchAnswer(NamedTuple):
    """What a broker said about one batch."""

    error_code: int = ErrorCode.NONE
    error_message: str | None = None
    base_offset: int = NO_OFFSET
    log_append_time_ms: int = NO_TIMESTAMP


class ProduceNetwork(Protocol):
    """Where batches are sent."""

    def leader_of(self, topic: str, partition: int) -> int | None:
        """The node that leads a partition; None, and it is looked for, while nobody knows."""

    def delay_ms(self, node_id: int, now_ms: int) -> int:
        """How long a node cannot be sent to: 0 if it can be; `NEVER` if `step` will be called
        when that has changed."""

    def send(self, node_id: int, batches: Sequence[ProducerBatch]) -> None:
        """Send a request, whose outcome is reported to `answered` or `unanswered`."""


class Sender:
    """Sends the batches of a producer.

    Args:
        settings: of the producer.
        accumulator: where the batches are.
        transactions: the producer's identity, and its transaction.
        backoff: before a batch is sent again.
        network: where they go.

    Attributes:
        flushing: how many callers need batches sent without lingering.
        is_memory_exhausted: whether somebody waits for memory, so that no batch should linger.
        on_failure: is called with each batch that has failed.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        accumulator: RecordAccumulator,
        transactions: TransactionManager,
        backoff: ExponentialBackoff,
        network: ProduceNetwork,
    ) -> None:
        self.flushing = 0
        self.is_memory_exhausted = False
        self.on_failure: Callable[[ProducerBatch], None] = _ignore
        self._settings = settings
        self._accumulator = accumulator
        self._transactions = transactions
        self._backoff = backoff
        self._network = network
        self._turn = 0

    # --- Sending -----------------------------------------------------------------------------

    def step(self, now_ms: int) -> int:
        """Send what can be sent; returns in how many milliseconds to call again at the latest,
        or `NEVER`."""
        if self._transactions.error is not None:
            self.fail_waiting(self._transactions.error)
        self._expire(now_ms)
        self._mend_sequences()
        due_ms = self._expires_ms()
        by_node: dict[int, list[PartitionQueue]] = {}
        for queue in self._queues_in_turn():
            ready_ms = self._ready_ms(queue)
            if ready_ms > now_ms:
                due_ms = min(due_ms, ready_ms)
                continue
            leader = self._network.leader_of(queue.topic, queue.partition)
            if leader is not None:
                by_node.setdefault(leader, []).append(queue)
        for node_id, queues in by_node.items():
            delay_ms = self._send_to(node_id, queues, now_ms)
            due_ms = min(due_ms, now_ms + delay_ms)
        return NEVER if due_ms >= NEVER else max(due_ms - now_ms, 0)

    def _send_to(self, node_id: int, queues: list[PartitionQueue], now_ms: int) -> int:
        """Send requests to a node while it takes them and queues are ready; returns how long it
        takes no more."""
        while queues:
            delay_ms = self._network.delay_ms(node_id, now_ms)
            if delay_ms:
                return delay_ms
            self._network.send(node_id, self._drain(queues))
            queues = [
                queue for queue in queues if queue.waiting and self._ready_ms(queue) <= now_ms
            ]
        return NEVER

    def _drain(self, queues: Iterable[PartitionQueue]) -> list[ProducerBatch]:
        """One batch of each queue, as many as a request may hold."""
        batches: list[ProducerBatch] = []
        size = 0
        for queue in queues:
            size += queue.waiting[0].size
            if batches and size > self._settings.max_request_size:
                break
            batches.append(queue.take(self._transactions.identity))
        return batches

    def _queues_in_turn(self) -> list[PartitionQueue]:
        """The queues with something to send, beginning with another each time."""
        queues = [queue for queue in self._accumulator.queues.values() if queue.waiting]
        if not queues:
            return queues
        self._turn = (self._turn + 1) % len(queues)
        return queues[self._turn :] + queues[: self._turn]

    def _ready_ms(self, queue: PartitionQueue) -> int:
        """When the first batch of a queue may be sent; `NEVER` while something else must happen
        before."""
        if not queue.may_send(self._transactions.identity):
            return NEVER
        if not self._transactions.may_send_to(queue.topic, queue.partition):
            return NEVER
        head = queue.waiting[0]
        if head.attempts:
            return head.retry_at_ms
        if head.is_full or self.flushing or self.is_memory_exhausted:
            return head.created_ms
        return head.created_ms + self._settings.linger_ms

    # --- Answers -----------------------------------------------------------------------------

    def answered(self, batch: ProducerBatch, answer: BatchAnswer, now_ms: int) -> None:
        """A broker has answered for a batch."""
        queue = self._accumulator.queue(batch.topic, batch.partition)
        queue.answered(batch)
        code = answer.error_code
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            queue.acknowledged(batch)
            if not batch.is_done:
                batch.delivered(answer.base_offset, answer.log_append_time_ms)
                self._accumulator.done(batch)
        elif batch.is_done:
            return
        elif code == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            logger.warning("%s is larger than the broker takes: splitting it", batch)
            self._accumulator.split(batch)
        elif self._may_send_again(queue, batch, code, now_ms):
            self._send_again(queue, batch, _refusal(batch, answer), now_ms)
        else:
            self._fail(queue, batch, _refusal(batch, answer), is_refused=True)

    def unanswered(self, batch: ProducerBatch, failure: Exception, now_ms: int) -> None:
        """The connection ended before the answer, so nobody knows whether a batch is in the
        log."""
        queue = self._accumulator.queue(batch.topic, batch.partition)
        queue.answered(batch)
        if batch.is_done:
            return
        if self._has_time(batch, now_ms):
            logger.info("%s was not answered, sending it again: %s", batch, failure)
            self._send_again(queue, batch, failure, now_ms)
        elif batch.attempts > self._settings.retries:
            self._fail(queue, batch, failure, is_refused=False)
        else:
            batch.refusal = failure
            self._fail(queue, batch, self._too_late(batch), is_refused=False)

    def unsendable(self, batch: ProducerBatch, failure: Exception) -> None:
        """A batch cannot be sent to this broker at all; it was not."""
        queue = self._accumulator.queue(batch.topic, batch.partition)
        queue.answered(batch)
        if not batch.is_done:
            self._fail(queue, batch, failure, is_refused=True)

    def fail_waiting(self, failure: Exception) -> None:
        """Give up all batches that are not in flight."""
        for batch in self._accumulator.waiting_batches():
            queue = self._accumulator.queue(batch.topic, batch.partition)
            self._fail(queue, batch, failure, is_refused=False)

    def _may_send_again(
        self, queue: PartitionQueue, batch: ProducerBatch, code: int, now_ms: int
    ) -> bool:
        """Whether a batch that was refused may be accepted the next time (KIP-360)."""
        if not self._has_time(batch, now_ms):
            return False
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch.has_sequence:
            return self._is_order_mendable(queue, batch)
        if code == ErrorCode.UNKNOWN_PRODUCER_ID and batch.has_sequence:
            if self._transactions.is_transactional:
                return False
            queue.note_gap(batch)
            return True
        return code in RETRIABLE_ERRORS

    def _is_order_mendable(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """A batch came before the one in front of it, or there is a gap in the log."""
        if queue.is_behind_gap(batch):
            return True
        if queue.has_unknown_outcome:
            is_gap = queue.is_first_of_sequence(batch)
        else:
            is_gap = queue.is_next_in_log(batch)
        if not is_gap:
            return True
        if self._transactions.is_transactional:
            return False
        queue.note_gap(batch)
        return True

    def _has_time(self, batch: ProducerBatch, now_ms: int) -> bool:
        return (
            batch.attempts <= self._settings.retries
            and now_ms - batch.created_ms < self._settings.delivery_timeout_ms
        )

    def _send_again(
        self, queue: PartitionQueue, batch: ProducerBatch, refusal: Exception, now_ms: int
    ) -> None:
        batch.refusal = refusal
        batch.retry_at_ms = now_ms + self._backoff.wait_ms(batch.attempts - 1)
        queue.send_again(batch)

    def _fail(
        self, queue: PartitionQueue, batch: ProducerBatch, failure: Exception, *, is_refused: bool
    ) -> None:
        queue.given_up(batch, is_refused=is_refused)
        batch.failed(failure)
        self._accumulator.done(batch)
        self._transactions.batch_failed(failure, leaves_gap=batch.has_sequence)
        self.on_failure(batch)

    # --- Time and sequences ------------------------------------------------------------------

    def _expires_ms(self) -> int:
        """When the time of the oldest batch is over, be it in flight."""
        oldest = next(iter(self._accumulator.incomplete), None)
        return NEVER if oldest is None else oldest.created_ms + self._settings.delivery_timeout_ms

    def _expire(self, now_ms: int) -> None:
        """Give up the batches whose time is over, those in flight included."""
        timeout_ms = self._settings.delivery_timeout_ms
        # They are in the order of their creation, but for the parts of split ones.
        oldest = takewhile(
            lambda batch: now_ms - batch.created_ms >= timeout_ms, self._accumulator.incomplete
        )
        for batch in list(oldest):
            queue = self._accumulator.queue(batch.topic, batch.partition)
            self._fail(queue, batch, self._too_late(batch), is_refused=False)

    def _too_late(self, batch: ProducerBatch) -> DeliveryTimeoutError:
        """The failure of a batch whose time is over, with what went wrong last."""
        why = "" if batch.refusal is None else f": {batch.refusal}"
        return DeliveryTimeoutError(
            f"{batch.count} records for partition {batch.partition} of topic {batch.topic!r} "
            f"were not delivered within {self._settings.delivery_timeout_ms} ms{why}"
        )

    def _mend_sequences(self) -> None:
        """Number batches anew where a sequence cannot be continued."""
        transactions = self._transactions
        for queue in self._accumulator.queues.values():
            if queue.resolve():
                if transactions.is_transactional:
                    transactions.must_bump_epoch = True
                else:
                    queue.has_gap = True
            if not queue.can_renumber or transactions.is_transactional:
                continue
            if queue.identity == transactions.identity != NO_IDENTITY:
                logger.info(
                    "the sequence of %s-%d has a gap: taking the next epoch of producer id %d",
                    queue.topic,
                    queue.partition,
                    transactions.identity.producer_id,
                )
                transactions.bump_epoch()
            if transactions.identity != NO_IDENTITY:
                queue.renumber(transactions.identity)


def _refusal(batch: ProducerBatch, answer: BatchAnswer) -> KafkaError:
    where = f"partition {batch.partition} of topic {batch.topic!r}"
    detail = answer.error_message or error_name(answer.error_code)
    if answer.error_code == ErrorCode.MESSAGE_TOO_LARGE:
        detail = (
            f"a record of {batch.size} bytes is larger than the broker takes (max.message.bytes "
            "of the topic, message.max.bytes of the broker)"
        )
    return KafkaError(error_of(answer.error_code), f"{where}: {detail}")


def _ignore(batch: ProducerBatch) -> None:
    """Nobody keeps account of failures."""
