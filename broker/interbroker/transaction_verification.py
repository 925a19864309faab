"""Verifies with transactions' coordinators that a partition is part of a transaction (KIP-890).

Older clients add partitions themselves, and are only verified; newer ones leave the adding to
the broker they write to. Either way the first batch of a transaction in a partition waits for
the coordinator's answer; what follows it does not. Source: Kafka's AddPartitionsToTxnManager and
ReplicaManager.maybeSendPartitionsToTransactionCoordinator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from ...client.network.connection import Connection
from ...common.errors import ErrorCode, KafkaError
from ...common.internal_topics import TRANSACTION_STATE
from ...common.topic_partition import TopicPartition
from ...config.broker_config import BrokerConfig
from ...metadata.features import SECOND_GENERATION
from ...metadata.metadata_cache import MetadataCache
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...replication.replica_manager import ReplicaManager
from ...runtime.clock import Clock
from ...runtime.steps import Steps, run_at_once
from ...runtime.timers import Timers
from ...storage.producer_state.verification_guard import NOT_REQUIRED, VerificationGuard
from .broker_channel import BatchSender, BrokerChannels, ChannelTasks

if TYPE_CHECKING:
    from ...coordinator.transaction.coordinator import TransactionCoordinator

ADD_PARTITIONS_VERSION = 5
RETRIABLE = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""The batch will come again, and those after it must not go first."""

PartitionErrors = dict[TopicPartition, ErrorCode]
Guards = Mapping[TopicPartition, VerificationGuard]
VerifiedCallback = Callable[[PartitionErrors, Guards], None]
"""Called once, at once or later, with those that may not be written to, and with what the batches
of the others are to bring along."""


class WriterInTransaction(NamedTuple):
    """Who writes, and what its client understands.

    Attributes:
        adds_partitions: whether partitions join the transaction by being written to.
        knows_abortable: whether TRANSACTION_ABORTABLE may be answered.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    adds_partitions: bool
    knows_abortable: bool


class Question(NamedTuple):
    """Partitions that a coordinator is to verify or add; `on_answer` gets each one's outcome."""

    writer: WriterInTransaction
    partitions: frozenset[TopicPartition]
    on_answer: Callable[[PartitionErrors], None]


class TransactionVerifier:
    """Verifies transactions for the partitions that a broker leads.

    Args:
        config: the broker's settings.
        clock, timers: for retries.
        replica_manager: the partitions.
        cache: says which brokers lead the partitions of `__transaction_state`.
        coordinator: the transaction coordinator of this broker.
        tasks: for the channels to the other brokers.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        timers: Timers,
        replica_manager: ReplicaManager,
        cache: MetadataCache,
        coordinator: Callable[[], TransactionCoordinator],
        tasks: ChannelTasks,
    ) -> None:
        self._config = config
        self._clock = clock
        self._timers = timers
        self._replica_manager = replica_manager
        self._cache = cache
        self._coordinator = coordinator
        self._channels = BrokerChannels(
            tasks,
            BatchSender(
                lambda: {ApiKey.ADD_PARTITIONS_TO_TXN: ADD_PARTITIONS_VERSION},
                take_questions,
                self._exchange,
                partial(_answer_all, error=ErrorCode.NETWORK_EXCEPTION),
            ),
        )

    def verify(
        self,
        writer: WriterInTransaction,
        base_sequences: Mapping[TopicPartition, int],
        on_complete: VerifiedCallback,
    ) -> Steps[None]:
        """Find out whether batches of a transaction may be written.

        Where it is called back later, a flush follows what the callee stages.

        Args:
            writer: whose batches they are.
            base_sequences: the partitions, each with its batch's first sequence number.
            on_complete: gets the outcome.
        """
        is_enforced = self._config["transaction.partition.verification.enable"]
        if not is_enforced and not writer.adds_partitions:
            on_complete({}, dict.fromkeys(base_sequences, NOT_REQUIRED))
            return
        give_up_ms = self._clock.monotonic_ms() + min(
            self._config["add.partitions.to.txn.retry.backoff.max.ms"],
            self._config["request.timeout.ms"],
        )
        yield from self._verify(writer, base_sequences, on_complete, give_up_ms)

    def _verify(
        self,
        writer: WriterInTransaction,
        base_sequences: Mapping[TopicPartition, int],
        on_complete: VerifiedCallback,
        give_up_ms: int,
    ) -> Steps[None]:
        """Ask the coordinator, and again after a pause where the transaction before is not over.

        It often is not when a producer goes straight on. Its marker takes away the guards that
        were handed out before, so each time others are.
        """
        errors, guards = yield from self._start(writer, base_sequences)
        if not guards:
            on_complete(errors, guards)
            return

        def answered(outcome: PartitionErrors) -> None:
            refused = {each: _client_error(writer, code) for each, code in outcome.items() if code}
            now_ms = self._clock.monotonic_ms()
            if (
                writer.adds_partitions
                and ErrorCode.CONCURRENT_TRANSACTIONS in refused.values()
                and now_ms < give_up_ms
            ):
                backoff_ms = self._config["add.partitions.to.txn.retry.backoff.ms"]
                self._timers.schedule(now_ms + backoff_ms, retry)
                return
            self._forget_refused(writer.producer_id, refused, guards)
            on_complete(errors | refused, guards)

        def retry() -> None:
            run_at_once(self._verify(writer, base_sequences, on_complete, give_up_ms))
            self._replica_manager.flush()

        self._ask(Question(writer, frozenset(guards), answered))

    def _start(
        self, writer: WriterInTransaction, base_sequences: Mapping[TopicPartition, int]
    ) -> Steps[tuple[PartitionErrors, dict[TopicPartition, VerificationGuard]]]:
        """Guards for the partitions that have to be verified, and the errors of the others."""
        now_ms = self._clock.now_ms()
        errors: PartitionErrors = {}
        guards: dict[TopicPartition, VerificationGuard] = {}
        for topic_partition, base_sequence in base_sequences.items():
            yield
            try:
                leader = self._replica_manager.partition_or_error(topic_partition)
            except KafkaError as refusal:
                errors[topic_partition] = refusal.code
                continue
            guard = leader.log.producers.start_verification(
                writer.producer_id,
                writer.producer_epoch,
                base_sequence,
                supports_epoch_bump=writer.adds_partitions,
                now_ms=now_ms,
            )
            if guard is not None:
                guards[topic_partition] = guard
        return errors, guards

    def _forget_refused(self, producer_id: int, outcome: PartitionErrors, guards: Guards) -> None:
        """What is refused for good leaves nothing behind."""
        for topic_partition, error in outcome.items():
            if error not in RETRIABLE:
                leader = self._replica_manager.get_partition(topic_partition)
                guard = guards.get(topic_partition)
                if leader is not None and guard is not None:
                    leader.log.producers.verifications.end(producer_id, guard)

    # -- asking ---------------------------------------------------------------------------

    def _ask(self, question: Question) -> None:
        """Hand the question to the coordinator, which may be this broker."""
        writer = question.writer
        coordinator = self._coordinator()
        number = coordinator.partition_for(writer.transactional_id)
        state = self._cache.get_partition_info(TRANSACTION_STATE, number)
        if state is None or not self._cache.has_alive_broker(state.leader):
            question.on_answer(
                dict.fromkeys(question.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            )
        elif state.leader != self._cache.broker_id:
            self._channels.put(state.leader, question)
        elif writer.adds_partitions:
            coordinator.add_partitions(
                writer.transactional_id,
                writer.producer_id,
                writer.producer_epoch,
                question.partitions,
                lambda error: question.on_answer(dict.fromkeys(question.partitions, error)),
                client_version=SECOND_GENERATION,
            )
        else:
            question.on_answer(
                coordinator.verify_partitions(
                    writer.transactional_id,
                    writer.producer_id,
                    writer.producer_epoch,
                    question.partitions,
                )
            )

    async def _exchange(self, connection: Connection, questions: list[Question]) -> None:
        """Ask another broker. Raises ClientError."""
        answer: messages.AddPartitionsToTxnResponse = await connection.request(
            _request(questions), timeout_ms=self._config["request.timeout.ms"]
        )
        if answer.error_code:
            error = ErrorCode(answer.error_code)
            if error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                error = ErrorCode.INVALID_TXN_STATE  # nothing that a client should hear of
            _answer_all(questions, error)
            return
        outcomes = {
            result.transactional_id: {
                TopicPartition(topic.name, each.partition_index): ErrorCode(
                    each.partition_error_code
                )
                for topic in result.topic_results
                for each in topic.results_by_partition
            }
            for result in answer.results_by_transaction
        }
        for question in questions:
            outcome = outcomes.get(question.writer.transactional_id, {})
            question.on_answer(
                # One that was left out of the answer was not verified.
                {
                    each: outcome.get(each, ErrorCode.NETWORK_EXCEPTION)
                    for each in question.partitions
                }
            )


def take_questions(waiting: deque[Question]) -> list[Question]:
    """What goes into one request: a transactional id stands in it once, others wait."""
    taken: dict[str, Question] = {}
    for _ in range(len(waiting)):
        question = waiting.popleft()
        if question.writer.transactional_id in taken:
            waiting.append(question)
        else:
            taken[question.writer.transactional_id] = question
    return list(taken.values())


def _answer_all(questions: Collection[Question], error: ErrorCode) -> None:
    for question in questions:
        question.on_answer(dict.fromkeys(question.partitions, error))


def _client_error(writer: WriterInTransaction, error: ErrorCode) -> ErrorCode:
    """The error as the version of the writer's client knows it."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not writer.knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error


def _request(questions: Collection[Question]) -> messages.AddPartitionsToTxnRequest:
    request = messages.AddPartitionsToTxnRequest
    return request(
        transactions=[
            request.AddPartitionsToTxnTransaction(
                transactional_id=writer.transactional_id,
                producer_id=writer.producer_id,
                producer_epoch=writer.producer_epoch,
                verify_only=not writer.adds_partitions,
                topics=[
                    request.AddPartitionsToTxnTopic(
                        name=name, partitions=[each.partition for each in group]
                    )
                    for name, group in groupby(sorted(partitions), key=lambda each: each.topic)
                ],
            )
            for writer, partitions, _ in questions
        ]
    )
