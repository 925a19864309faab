"""The requests of a producer for its identity and its transaction, to brokers and coordinators.

One at a time, each until it has an answer that does not ask to try again, as Kafka's
`TransactionManager` sends them. What refusals mean is `TransactionManager`'s to say here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol

import trio

from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from ..client import KafkaClient
from ..consumer.group.committed_offsets import OffsetAndMetadata
from ..error_kinds import RETRIABLE_ERRORS, error_name, error_of
from ..errors import DisconnectedError, MetadataTimeoutError, UnknownNodeError
from ..metadata.cluster import Node
from ..network.attempts import Attempts
from .errors import TransactionTimeoutError
from .producer_batch import NO_IDENTITY, ProducerIdentity
from .settings import ProducerSettings
from .transaction_manager import SECOND_GENERATION, TransactionManager

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

ADD_PARTITIONS_VERSION_MAX = 3
"""Later versions are for brokers."""
FIRST_GENERATION_END_VERSION_MAX = 4
FIRST_GENERATION_OFFSETS_VERSION_MAX = 4
ONE_KEY_VERSION_MAX = 3
"""FindCoordinator finds several from version 4 on."""

CONCURRENT_TRANSACTIONS_BACKOFF_MS = 20
"""Before the first partition is added again while the coordinator ends the last transaction."""

WITHOUT_TIMEOUT_MS = 0x7FFFFFFF
"""The transaction timeout of a producer without transactions."""

REFUSING_CLIENT = frozenset(
    {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    }
)
"""After these of InitProducerId, `init_transactions` may be tried again."""

MOVING = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class KeyType(IntEnum):
    """What FindCoordinator calls its kinds of keys."""

    GROUP = 0
    TRANSACTION = 1


class ConsumerGroupMetadata(Protocol):
    """Which member of which group processed what is committed (KIP-447)."""

    @property
    def group_id(self) -> str:
        """Of the group."""

    @property
    def generation_id(self) -> int:
        """Of the group, or the member's epoch; -1 if it is not checked."""

    @property
    def member_id(self) -> str:
        """Of the member; empty if it is not checked."""

    @property
    def group_instance_id(self) -> str | None:
        """Of a static member."""


class CoordinatorRequests:
    """Sends them.

    Args:
        client: is open.
        settings: of the producer.
        transactions: hears what comes of them.
    """

    def __init__(
        self, client: KafkaClient, settings: ProducerSettings, transactions: TransactionManager
    ) -> None:
        self._client = client
        self._settings = settings
        self._transactions = transactions
        self._coordinators: dict[tuple[KeyType, str], Node] = {}
        self._lock = trio.Lock()

    # --- Identity ----------------------------------------------------------------------------

    async def init_producer_id(self) -> None:
        """Get an identity for a producer without transactions, however long that takes.

        Raises:
            KafkaError: the brokers refuse to give one.
            ClientError: they cannot be spoken with at all.
        """
        request = messages.InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=WITHOUT_TIMEOUT_MS
        )
        attempts = self._client.attempts(WITHOUT_TIMEOUT_MS)
        while True:
            try:
                response = await self._client.send_to_any(request)
                code = error_of(response.error_code)
                if code == ErrorCode.NONE:
                    identity = ProducerIdentity(response.producer_id, response.producer_epoch)
                    self._transactions.initialized(identity)
                    return
                failure: Exception = KafkaError(code, "the brokers gave no producer id")
                if code not in RETRIABLE_ERRORS:
                    raise failure
            except (DisconnectedError, UnknownNodeError, MetadataTimeoutError) as error:
                failure = error
            await attempts.pause(failure)

    async def init_transactions(self) -> None:
        """Get the next epoch of the transactional id, which fences the producer before.

        Raises:
            ProducerFencedError: another producer with the id was started meanwhile.
            FatalProducerError: the coordinator's answer cannot be overcome.
            KafkaError: the coordinator refuses this client.
            TransactionTimeoutError: there was no answer within `max_block_ms`.
        """
        async with self._lock:
            self._transactions.initialized(await self._next_identity(NO_IDENTITY))

    async def _next_identity(self, current: ProducerIdentity) -> ProducerIdentity:
        request = messages.InitProducerIdRequest(
            transactional_id=self._settings.transactional_id,
            transaction_timeout_ms=self._settings.transaction_timeout_ms,
            producer_id=current.producer_id,
            producer_epoch=current.epoch,
        )
        response = await self._ask_coordinator(request, lambda answer: answer.error_code)
        code = error_of(response.error_code)
        if code in REFUSING_CLIENT and current == NO_IDENTITY:
            self._transactions.refused()
            raise KafkaError(code, f"transactional id {self._settings.transactional_id!r}")
        self._require_none(code, "InitProducerId")
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    async def is_second_generation(self) -> bool:
        """Whether the cluster speaks the second generation of transactions now (KIP-890).

        Raises:
            TransactionTimeoutError: the coordinator could not be reached.
        """
        attempts = self._attempts()
        while True:
            try:
                node = await self._coordinator(KeyType.TRANSACTION, self._transactional_id)
                features = await self._client.network.finalized_features(node)
                return features.get("transaction.version", 0) >= SECOND_GENERATION
            except (DisconnectedError, UnknownNodeError, KafkaError) as failure:
                await self._pause(attempts, failure)

    # --- The transaction ---------------------------------------------------------------------

    async def add_partitions(self) -> None:
        """Add the partitions that are not part of the transaction yet (first generation).

        Raises:
            TransactionError: they cannot be added.
            TransactionTimeoutError: there was no answer within `max_block_ms`.
        """
        async with self._lock:
            partitions = self._transactions.partitions_to_add
            if not partitions:
                return
            make = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
            topics: dict[str, list[int]] = {}
            for topic, partition in partitions:
                topics.setdefault(topic, []).append(partition)
            request = messages.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._transactional_id,
                v3_and_below_producer_id=self._transactions.identity.producer_id,
                v3_and_below_producer_epoch=self._transactions.identity.epoch,
                v3_and_below_topics=[
                    make(name=topic, partitions=indexes) for topic, indexes in topics.items()
                ],
            )
            response = await self._ask_coordinator(
                request,
                _partitions_error,
                version_max=ADD_PARTITIONS_VERSION_MAX,
                is_first=not self._transactions.is_started,
            )
            self._require_none(error_of(_partitions_error(response)), "AddPartitionsToTxn")
            self._transactions.partitions_added(partitions)

    async def commit_offsets(
        self,
        offsets: Mapping[tuple[str, int], OffsetAndMetadata],
        group: ConsumerGroupMetadata,
    ) -> None:
        """Make a group's offsets part of the transaction.

        Raises:
            TransactionError: they cannot be.
            TransactionTimeoutError: there was no answer within `max_block_ms`.
        """
        async with self._lock:
            transactions = self._transactions
            is_second = transactions.is_second_generation
            if not is_second:
                request = messages.AddOffsetsToTxnRequest(
                    transactional_id=self._transactional_id,
                    producer_id=transactions.identity.producer_id,
                    producer_epoch=transactions.identity.epoch,
                    group_id=group.group_id,
                )
                response = await self._ask_coordinator(request, lambda answer: answer.error_code)
                self._require_none(error_of(response.error_code), f"group {group.group_id!r}")
            transactions.is_started = True
            answer = await self._ask(
                KeyType.GROUP,
                group.group_id,
                self._offsets_request(offsets, group),
                _offsets_error,
                version_max=None if is_second else FIRST_GENERATION_OFFSETS_VERSION_MAX,
            )
            self._require_none(error_of(_offsets_error(answer)), f"group {group.group_id!r}")

    def _offsets_request(
        self,
        offsets: Mapping[tuple[str, int], OffsetAndMetadata],
        group: ConsumerGroupMetadata,
    ) -> messages.TxnOffsetCommitRequest:
        make_topic = messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        make = messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
        topics: dict[str, messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = {}
        for (topic, partition), position in offsets.items():
            of_topic = topics.setdefault(topic, make_topic(name=topic, partitions=[]))
            of_topic.partitions.append(
                make(
                    partition_index=partition,
                    committed_offset=position.offset,
                    committed_leader_epoch=position.leader_epoch,
                    committed_metadata=position.metadata,
                )
            )
        return messages.TxnOffsetCommitRequest(
            transactional_id=self._transactional_id,
            group_id=group.group_id,
            producer_id=self._transactions.identity.producer_id,
            producer_epoch=self._transactions.identity.epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=list(topics.values()),
        )

    async def end_transaction(self, *, is_commit: bool) -> None:
        """Commit the transaction, or abort it.

        Raises:
            TransactionError: the coordinator refuses it.
            TransactionTimeoutError: there was no answer within `max_block_ms`.
        """
        async with self._lock:
            transactions = self._transactions
            identity: ProducerIdentity | None = None
            if transactions.is_started and not transactions.is_mapping_lost:
                request = messages.EndTxnRequest(
                    transactional_id=self._transactional_id,
                    producer_id=transactions.identity.producer_id,
                    producer_epoch=transactions.identity.epoch,
                    committed=is_commit,
                )
                response = await self._ask_coordinator(
                    request,
                    lambda answer: answer.error_code,
                    version_max=None
                    if transactions.is_second_generation
                    else FIRST_GENERATION_END_VERSION_MAX,
                )
                self._require_none(error_of(response.error_code), "EndTxn")
                if response.producer_id != NO_IDENTITY.producer_id:
                    identity = ProducerIdentity(response.producer_id, response.producer_epoch)
            if identity is None and transactions.must_bump_epoch:
                identity = await self._next_identity(transactions.identity)
            transactions.ended(identity)

    # --- Inside ------------------------------------------------------------------------------

    @property
    def _transactional_id(self) -> str:
        assert self._settings.transactional_id is not None
        return self._settings.transactional_id

    def _require_none(self, code: ErrorCode, what: str) -> None:
        if code != ErrorCode.NONE:
            raise self._transactions.coordinator_refused(code, what)

    async def _ask_coordinator(
        self,
        request: Message,
        error_code: Callable[[Any], int],
        *,
        version_max: int | None = None,
        is_first: bool = False,
    ) -> Any:
        return await self._ask(
            KeyType.TRANSACTION,
            self._transactional_id,
            request,
            error_code,
            version_max=version_max,
            is_first=is_first,
        )

    async def _ask(
        self,
        key_type: KeyType,
        key: str,
        request: Message,
        error_code: Callable[[Any], int],
        *,
        version_max: int | None = None,
        is_first: bool = False,
    ) -> Any:
        """The answer of a coordinator, found again when it has moved, once it is ready to give
        one."""
        attempts = self._attempts()
        while True:
            failure: Exception
            try:
                node = await self._coordinator(key_type, key)
                answer = await self._client.network.send(node, request, version_max=version_max)
                code = error_of(error_code(answer))
                if code not in RETRIABLE_ERRORS:
                    return answer
                if code in MOVING:
                    self._coordinators.pop((key_type, key), None)
                elif (
                    is_first
                    and code == ErrorCode.CONCURRENT_TRANSACTIONS
                    and attempts.remaining_ms > CONCURRENT_TRANSACTIONS_BACKOFF_MS
                ):
                    await trio.sleep(CONCURRENT_TRANSACTIONS_BACKOFF_MS / 1000)
                    continue
                failure = KafkaError(code, f"{type(request).name} for {key!r}")
            except (DisconnectedError, UnknownNodeError) as error:
                self._coordinators.pop((key_type, key), None)
                failure = error
            await self._pause(attempts, failure)

    async def _coordinator(self, key_type: KeyType, key: str) -> Node:
        """The broker that coordinates a group or a transactional id.

        Raises:
            KafkaError: it cannot be found for the moment.
            TransactionError: it will not be found.
            ClientError: no broker could be reached.
        """
        known = self._coordinators.get((key_type, key))
        if known is not None:
            return known
        request = messages.FindCoordinatorRequest(key=key, key_type=key_type)
        answer = await self._client.send_to_any(request, version_max=ONE_KEY_VERSION_MAX)
        code = error_of(answer.error_code)
        if code in RETRIABLE_ERRORS:
            raise DisconnectedError(f"the coordinator of {key!r}: {error_name(code)}")
        self._require_none(code, f"the coordinator of {key!r}")
        node = Node(answer.node_id, answer.host, answer.port)
        self._coordinators[key_type, key] = node
        return node

    def _attempts(self) -> Attempts:
        return self._client.attempts(self._client.settings.max_block_ms)

    async def _pause(self, attempts: Attempts, failure: Exception) -> None:
        try:
            await attempts.pause(failure)
        except type(failure) as error:
            raise TransactionTimeoutError(
                f"no answer from the coordinator within {self._client.settings.max_block_ms} ms: "
                f"{failure}"
            ) from error


def _partitions_error(answer: messages.AddPartitionsToTxnResponse) -> int:
    """The error of an answer: one that does not pass before one that does."""
    codes = {
        partition.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    }
    return _worst(codes)


def _offsets_error(answer: messages.TxnOffsetCommitResponse) -> int:
    return _worst(
        {partition.error_code for topic in answer.topics for partition in topic.partitions}
    )


def _worst(codes: set[int]) -> int:
    codes.discard(ErrorCode.NONE)
    lasting = sorted(code for code in codes if code not in RETRIABLE_ERRORS)
    # That others failed is why the rest was not attempted.
    lasting.sort(key=lambda code: code == ErrorCode.OPERATION_NOT_ATTEMPTED)
    return (lasting or sorted(codes) or [ErrorCode.NONE])[0]
