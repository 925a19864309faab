"""Transactional producers: what they commit is read whole, and what they abort is not."""

from __future__ import annotations

from ....client.errors import ClientError, ConnectError
from ....common.errors import ErrorCode
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....protocol.records import build_batch
from ..checkers.transaction_checker import Outcome, TransactionChecker
from .client import SimulatedClient, SimulatedCluster
from .producers import ATTEMPTS_MAX, PRODUCE_TIMEOUT_MS, RETRIABLE

TRANSACTION_KEY = 1
TRANSACTION_TIMEOUT_MS = 12_000
BATCHES_MAX = 4
AGAIN = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""Of a coordinator: the same request is to be sent again."""


class TransactionalProducer(SimulatedClient):
    """One of them, with a transactional id of its own.

    Args:
        cluster: the cluster.
        name: its name, and its transactional id.
        checker: is told what belongs together, and what became of it.
    """

    def __init__(self, cluster: SimulatedCluster, name: str, checker: TransactionChecker) -> None:
        super().__init__(cluster, name)
        self._checker = checker
        self._coordinator: int | None = None
        self._producer_id = -1
        self._epoch = -1
        self._sequences: dict[tuple[bytes, int], int] = {}
        self._transactions = 0

    async def act(self) -> None:
        """One transaction."""
        if self._producer_id < 0:
            await self._begin()
        await self.refresh()
        self._transactions += 1
        transaction = f"{self.name}.{self._transactions}"
        self._checker.begin(transaction)
        is_whole = True
        for number in range(self.random.randint(1, BATCHES_MAX)):
            partition = self.led()
            key = (self.leaders[partition].topic_id, partition.partition)
            value = f"{transaction}.{number}".encode()
            self._checker.sent(transaction, key, value)
            if not await self._produce(partition, key, value):
                is_whole = False
                break
        commits = is_whole and self.random.random() < 0.7
        outcome = await self._end(commits=commits)
        self._checker.ended(transaction, outcome)
        if not is_whole:
            self._producer_id = -1

    async def _ask(self, request: object) -> messages.EndTxnResponse | None:
        """A coordinator's answer but for those that say: again; None where there is none."""
        for _ in range(ATTEMPTS_MAX):
            try:
                if self._coordinator is None:
                    self._coordinator = await self.coordinator_of(TRANSACTION_KEY, self.name)
                answer: messages.EndTxnResponse = await self.request(self._coordinator, request)  # type: ignore[arg-type]  # a message
            except ClientError:
                self._coordinator = None
            else:
                code = ErrorCode(answer.error_code)
                if code not in AGAIN:
                    return answer
                if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    self._coordinator = None
            await self.pause()
        return None

    async def _begin(self) -> None:
        """Get a producer id and epoch, which ends what was under way. Raises ClientError."""
        request = messages.InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        answer = await self._ask(request)
        if answer is None or answer.error_code:
            raise ConnectError("no producer id")
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    async def _produce(
        self, partition: TopicPartition, key: tuple[bytes, int], value: bytes
    ) -> bool:
        """Add a record to the transaction; whether it is in it."""
        sequence = self._sequences.get(key, 0)
        batch = build_batch(
            [(None, value, self.now_ms, ())],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            transactional=True,
        )
        message = messages.ProduceRequest
        data = message.PartitionProduceData(index=partition.partition, records=bytes(batch))
        topic = message.TopicProduceData(
            name=partition.topic, topic_id=key[0], partition_data=[data]
        )
        request = message(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[topic],
        )
        for _ in range(ATTEMPTS_MAX):
            leader = self.leaders.get(partition)
            if leader is None or leader.topic_id != key[0]:
                return False
            try:
                answer = await self.request(leader.broker_id, request)
                (answered,) = answer.responses[0].partition_responses
                code = ErrorCode(answered.error_code)
                if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                    self._sequences[key] = sequence + 1
                    return True
                if code not in RETRIABLE and code not in AGAIN:
                    return False
            except ClientError:
                pass
            await self.pause()
            try:
                await self.refresh()
            except ClientError:
                continue
        return False

    async def _end(self, *, commits: bool) -> Outcome:
        """Commit or abort; what became of it."""
        request = messages.EndTxnRequest(
            transactional_id=self.name,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=commits,
        )
        answer = await self._ask(request)
        if answer is None or answer.error_code:
            # It may be under way still, and what is sent under the same epoch would become part of
            # it. The next producer id ends it.
            self._producer_id = -1
            return Outcome.UNKNOWN if commits else Outcome.ABORTED
        if answer.producer_id >= 0:
            self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()
        return Outcome.COMMITTED if commits else Outcome.ABORTED
