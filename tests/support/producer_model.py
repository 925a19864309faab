"""A producer's sender against leaders that are a model: virtual time, no network.

The leaders accept batches by Kafka's rules of sequence numbers (`ProducerAppendInfo`, and the five
batches that `ProducerStateEntry` remembers), so what the sender does wrong is a gap, a copy or a
record out of order in their logs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from odradek.client.network.backoff import ExponentialBackoff
from odradek.client.producer.producer_batch import ProducerBatch, ProducerIdentity
from odradek.client.producer.record_accumulator import RecordAccumulator
from odradek.client.producer.sender import NEVER, BatchAnswer, Sender
from odradek.client.producer.settings import ProducerSettings
from odradek.client.producer.transaction_manager import TransactionManager
from odradek.common.errors import ErrorCode
from odradek.protocol.records import RecordBatch, iter_records

from .client_parts import NoChance

NOW = 1_700_000_000_000
LEADER = 1
IN_FLIGHT_MAX = 5


class Request(NamedTuple):
    """Batches on their way, as they were when they were sent."""

    node_id: int
    batches: list[ProducerBatch]
    data: list[bytes]


class ModelLog:
    """One partition at its leader."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self._epoch = -1
        self._next_sequence = 0
        self._latest: deque[tuple[int, int, int]] = deque(maxlen=5)

    def append(self, data: bytes) -> BatchAnswer:
        """Append a batch, or say what is wrong with its sequence."""
        batch = RecordBatch(data)
        offset = len(self.values)
        if batch.has_producer_id:
            if batch.producer_epoch < self._epoch:
                return BatchAnswer(ErrorCode.INVALID_PRODUCER_EPOCH)
            if batch.producer_epoch > self._epoch:
                if batch.base_sequence != 0 and self._epoch >= 0:
                    return BatchAnswer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
                self._epoch = batch.producer_epoch
                self._next_sequence = batch.base_sequence
                self._latest.clear()
            for sequence, count, at in self._latest:
                if (sequence, count) == (batch.base_sequence, batch.records_count):
                    return BatchAnswer(base_offset=at)
            if batch.base_sequence != self._next_sequence:
                return BatchAnswer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
            self._next_sequence += batch.records_count
            self._latest.append((batch.base_sequence, batch.records_count, offset))
        self.values += [record.value for record in iter_records(batch)]
        return BatchAnswer(base_offset=offset)


class ProducerModel:
    """The sender, with everything around it.

    Attributes:
        requests: what was sent and not answered, oldest first.
        leaders: which node leads a partition; `LEADER` leads those that are not here.
        logs: of the partitions.
        failed: the batches that failed.
    """

    def __init__(self, **settings: int) -> None:
        self.settings = ProducerSettings(**settings)  # type: ignore[arg-type]  # as the test says
        self.now_ms = 0
        self.accumulator = RecordAccumulator(self.settings)
        self.transactions = TransactionManager(self.settings.transactional_id)
        if self.settings.is_idempotent:
            self.transactions.identity = ProducerIdentity(7, 0)
        self.sender = Sender(
            self.settings,
            self.accumulator,
            self.transactions,
            ExponentialBackoff(100, 1000, NoChance()),
            self,
        )
        self.failed: list[ProducerBatch] = []
        self.sender.on_failure = self.failed.append
        self.requests: list[Request] = []
        self.leaders: dict[tuple[str, int], int | None] = {}
        self.busy: dict[int, int] = {}
        self.logs: dict[tuple[str, int], ModelLog] = {}

    # --- What the sender asks for --------------------------------------------------------------

    def leader_of(self, topic: str, partition: int) -> int | None:
        """The node that leads a partition."""
        return self.leaders.get((topic, partition), LEADER)

    def delay_ms(self, node_id: int, now_ms: int) -> int:
        """Whether the node takes another request."""
        if self.busy.get(node_id):
            return self.busy[node_id]
        in_flight = sum(request.node_id == node_id for request in self.requests)
        return NEVER if in_flight >= IN_FLIGHT_MAX else 0

    def send(self, node_id: int, batches: Sequence[ProducerBatch]) -> None:
        """Take a request."""
        self.requests.append(Request(node_id, list(batches), [bytes(b.data) for b in batches]))

    # --- What a test does ----------------------------------------------------------------------

    def produce(self, value: bytes, topic: str = "t", partition: int = 0) -> ProducerBatch:
        """Accept a record."""
        record = NOW, None, value, ()
        batch = self.accumulator.open_batch(topic, partition)
        if batch is None or not batch.append(*record):
            batch = self.accumulator.new_batch(topic, partition, self.now_ms, None, value, ())
            assert batch is not None, "the buffer is full"
            batch.append(*record)
            self.accumulator.add(batch)
            self.transactions.add_partition(topic, partition)
        return batch

    def step(self, after_ms: int = 0) -> int:
        """Let time pass, and the sender do what is due."""
        self.now_ms += after_ms
        return self.sender.step(self.now_ms)

    def produce_batches(self, *values: bytes) -> list[ProducerBatch]:
        """Send records in batches of their own, each in a request of its own."""
        batches = []
        for value in values:
            batches.append(self.produce(value))
            self.step(self.settings.linger_ms)
        return batches

    def begin(self) -> None:
        """Have the first batch of a sequence, which goes alone, in the log."""
        self.produce(b"first")
        self.settle()

    def log(self, topic: str = "t", partition: int = 0) -> ModelLog:
        """The log of a partition."""
        return self.logs.setdefault((topic, partition), ModelLog())

    def apply(self, request: Request) -> list[BatchAnswer]:
        """Let the leader have a request."""
        return [
            self.log(batch.topic, batch.partition).append(data)
            for batch, data in zip(request.batches, request.data, strict=True)
        ]

    def answer(self, *answers: BatchAnswer) -> None:
        """Answer the oldest request: so, or as the leader does."""
        request = self.requests.pop(0)
        for batch, answer in zip(request.batches, answers or self.apply(request), strict=True):
            self.sender.answered(batch, answer, self.now_ms)

    def disconnect(self) -> None:
        """Lose the connections, with what is in flight on them."""
        requests, self.requests = self.requests, []
        for request in requests:
            for batch in request.batches:
                self.sender.unanswered(batch, ConnectionError("lost"), self.now_ms)

    def settle(self, steps_max: int = 1000) -> None:
        """Answer everything until nothing is left."""
        self.sender.flushing += 1
        for _ in range(steps_max):
            if not self.accumulator.incomplete and not self.requests:
                self.sender.flushing -= 1
                return
            delay_ms = self.step()
            if self.requests:
                self.answer()
            elif self.accumulator.incomplete:
                assert delay_ms < NEVER, "the sender waits for nothing"
                self.now_ms += delay_ms
        raise AssertionError(f"{len(self.accumulator.incomplete)} batches are left")


class FaultyRun:
    """Random records, and random faults, in random order.

    Args:
        seed: of all of it.
        settings: of the producer.
    """

    def __init__(self, seed: int, **settings: int) -> None:
        self.rng = Random(seed)
        self.model = ProducerModel(linger_ms=2, batch_size=150, **settings)
        self.accepted: dict[tuple[str, int], list[tuple[bytes, ProducerBatch]]] = {}

    def run(self, steps: int = 300) -> None:
        """Do it, then let everything come to its end without faults."""
        for number in range(steps):
            for _ in range(self.rng.randrange(3)):
                partition = self.rng.randrange(2)
                value = b"%d-%d-" % (number, self.rng.randrange(1 << 30)) + b"x" * 40
                batch = self.model.produce(value, "t", partition)
                self.accepted.setdefault(("t", partition), []).append((value, batch))
            self.model.step(self.rng.choice([0, 1, 3, 50, 400]))
            self._maybe_answer()
        self.model.settle()

    def _maybe_answer(self) -> None:
        model = self.model
        while model.requests and self.rng.random() < 0.6:
            match self.rng.randrange(12):
                case 0:
                    model.disconnect()
                case 1:
                    # What the leader had of it, and the answers are lost.
                    for request in model.requests[: self.rng.randrange(4)]:
                        model.apply(request)
                    model.disconnect()
                case 2:
                    code = self.rng.choice(
                        [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS]
                    )
                    model.answer(*[BatchAnswer(code)] * len(model.requests[0].batches))
                case 3:
                    model.apply(model.requests[0])
                    code = ErrorCode.REQUEST_TIMED_OUT
                    model.answer(*[BatchAnswer(code)] * len(model.requests[0].batches))
                case 4 if self._is_new(model.requests[0]):
                    code = self.rng.choice([ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE])
                    model.answer(*[BatchAnswer(code)] * len(model.requests[0].batches))
                case _:
                    model.answer()

    def _is_new(self, request: Request) -> bool:
        """Whether nothing of a request is in a log: what a leader refuses it has never taken."""
        return not any(
            record.value in self.model.log(batch.topic, batch.partition).values
            for batch, data in zip(request.batches, request.data, strict=True)
            for record in iter_records(RecordBatch(data))
        )

    def violations(self) -> list[str]:
        """Records that are lost, there twice, out of order, or there though they were refused."""
        found: list[str] = []
        for key, accepted in self.accepted.items():
            log = self.model.log(*key).values
            place = {value: at for at, value in enumerate(log)}
            if len(place) != len(log):
                found.append(f"{key}: {len(log) - len(place)} records are there twice")
            last = -1
            for value, batch in accepted:
                at = place.get(value)
                part = batch.part_of(_index(accepted, value, batch))[0]
                if part.failure is None and at is None:
                    found.append(f"{key}: {value!r} is lost")
                if at is not None:
                    if at < last:
                        found.append(f"{key}: {value!r} is out of order")
                    last = at
        return found


def _index(accepted: list[tuple[bytes, ProducerBatch]], value: bytes, batch: ProducerBatch) -> int:
    return [each for each, its in accepted if its is batch].index(value)
