"""Administration of transactions: list, describe, find those that hang, and end them (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from ...protocol.errors import EncodeError
from ..client import KafkaClient
from ..error_kinds import RETRIABLE_ERRORS, error_name, error_of
from ..errors import UnsupportedByBrokerError
from ..metadata.cluster import Node
from .coordinators import TRANSACTION_KEYS, Coordinators
from .group_descriptions import TopicPartition
from .transaction_descriptions import (
    HangingTransaction,
    ProducerOfPartition,
    TransactionDescription,
    TransactionListing,
)

PARTITIONS_MAX: Final = 500
"""Partitions in one DescribeProducers request, as in Kafka's tool."""

NOT_STARTED: Final = -1
NO_DURATION_FILTER: Final = -1


class TransactionAdmin:
    """Administers transactions through a client.

    Args:
        client: is open, and stays so.
        timeout_ms: for each call.
    """

    def __init__(self, client: KafkaClient, timeout_ms: int = 30_000) -> None:
        self._client = client
        self._coordinators = Coordinators(client, TRANSACTION_KEYS, timeout_ms)
        self._timeout_ms = timeout_ms

    async def list_transactions(
        self,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        longer_than_ms: int = NO_DURATION_FILTER,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """All transactional ids of all brokers, by name.

        Args:
            states: only those in one of these; all if empty.
            producer_ids: only those with one of these; all if empty.
            longer_than_ms: only those with a transaction open for longer.
            pattern: only those that match this expression (RE2) as a whole.

        Raises:
            KafkaError: a broker refused: INVALID_REQUEST names states that are none,
                INVALID_REGULAR_EXPRESSION.
            ClientError: a broker could not be reached, or is too old for the filter.
        """
        listings = []
        for node in await self._client.live_brokers():
            answer = await self._list(
                node,
                messages.ListTransactionsRequest(
                    state_filters=list(states),
                    producer_id_filters=list(producer_ids),
                    duration_filter=longer_than_ms,
                    transactional_id_pattern=pattern,
                ),
            )
            if answer.unknown_state_filters:
                unknown = ", ".join(answer.unknown_state_filters)
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"the filter: no state of transactions is called {unknown}",
                )
            listings += [
                TransactionListing(
                    each.transactional_id, each.producer_id, each.transaction_state, node.id
                )
                for each in answer.transaction_states
            ]
        return sorted(listings)

    async def _list(
        self, node: Node, request: messages.ListTransactionsRequest
    ) -> messages.ListTransactionsResponse:
        """The transactions that one broker lists; retried while its coordinator loads."""
        attempts = self._client.attempts(self._timeout_ms)
        while True:
            try:
                answer: messages.ListTransactionsResponse = await self._client.network.send(
                    node, request, timeout_ms=max(attempts.remaining_ms, 1)
                )
            except EncodeError as error:
                raise UnsupportedByBrokerError(
                    f"broker {node.id} cannot filter so: durations came with Kafka 3.8, patterns "
                    "with Kafka 4.1"
                ) from error
            if answer.error_code == ErrorCode.NONE:
                return answer
            failure = _refusal(answer.error_code, f"broker {node.id}")
            if failure.code not in RETRIABLE_ERRORS:
                raise failure
            await attempts.pause(failure)

    async def describe(
        self, transactional_ids: Iterable[str]
    ) -> dict[str, TransactionDescription | None]:
        """Transactional ids with their transactions; None for one that there is not.

        Raises:
            KafkaError: a coordinator refused.
            ClientError: a coordinator could not be reached.
        """
        names = list(transactional_ids)
        described: dict[str, TransactionDescription | None] = dict.fromkeys(names)
        answers = await self._coordinators.ask(
            names,
            lambda keys: messages.DescribeTransactionsRequest(transactional_ids=keys),
            lambda answer: {each.transactional_id: each for each in answer.transaction_states},
        )
        for name, (coordinator, each) in answers.items():
            if each.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                continue
            _require(each.error_code, f"transactional id {name!r}")
            start_ms = each.transaction_start_time_ms
            described[name] = TransactionDescription(
                name,
                coordinator,
                each.transaction_state,
                each.producer_id,
                each.producer_epoch,
                each.transaction_timeout_ms,
                start_ms if start_ms > NOT_STARTED else None,
                frozenset(
                    (topic.topic, index) for topic in each.topics for index in topic.partitions
                ),
            )
        return described

    async def producers(
        self, partitions: Iterable[TopicPartition], broker_id: int | None = None
    ) -> dict[TopicPartition, list[ProducerOfPartition]]:
        """The producers that partitions remember.

        Args:
            broker_id: ask this replica; each partition's leader if left out.

        Raises:
            KafkaError: a broker refused, or does not hold a partition.
            ClientError: a broker could not be reached in time.
        """
        missing = sorted(set(partitions))
        found: dict[TopicPartition, list[ProducerOfPartition]] = {}
        attempts = self._client.attempts(self._timeout_ms)
        while missing:
            failure: KafkaError | None = None
            for node_id, theirs in (await self._by_broker(missing, broker_id)).items():
                for first in range(0, len(theirs), PARTITIONS_MAX):
                    answer: messages.DescribeProducersResponse = await self._client.send(
                        node_id,
                        _describe_producers(theirs[first : first + PARTITIONS_MAX]),
                        timeout_ms=max(attempts.remaining_ms, 1),
                    )
                    failure = self._take_producers(answer, found) or failure
            missing = [each for each in missing if each not in found]
            if missing:
                await attempts.pause(
                    failure or KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "nothing was answered")
                )
        return found

    async def _by_broker(
        self, partitions: Sequence[TopicPartition], broker_id: int | None
    ) -> dict[int, list[TopicPartition]]:
        if broker_id is not None:
            return {broker_id: list(partitions)}
        grouped: dict[int, list[TopicPartition]] = {}
        for topic in {topic for topic, _ in partitions}:
            await self._client.wait_for_topic(topic, timeout_ms=self._timeout_ms)
        for topic, index in partitions:
            leader = await self._client.wait_for_leader(topic, index, self._timeout_ms)
            grouped.setdefault(leader.id, []).append((topic, index))
        return grouped

    def _take_producers(
        self,
        answer: messages.DescribeProducersResponse,
        found: dict[TopicPartition, list[ProducerOfPartition]],
    ) -> KafkaError | None:
        """Note what was answered; returns an error that may go away, raises one that will not."""
        retriable = None
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error_code == ErrorCode.NONE:
                    found[topic.name, each.partition_index] = [
                        ProducerOfPartition(
                            state.producer_id,
                            state.producer_epoch,
                            state.last_sequence,
                            state.last_timestamp,
                            state.coordinator_epoch,
                            start if (start := state.current_txn_start_offset) >= 0 else None,
                        )
                        for state in sorted(each.active_producers, key=lambda p: p.producer_id)
                    ]
                    continue
                self._client.partition_error(topic.name, each.partition_index, each.error_code)
                what = f"{topic.name}:{each.partition_index}"
                error = _refusal(each.error_code, what, each.error_message)
                if error.code not in RETRIABLE_ERRORS:
                    raise error
                retriable = error
        return retriable

    async def find_hanging(
        self,
        partitions: Iterable[TopicPartition],
        *,
        now_ms: int,
        older_than_ms: int,
        broker_id: int | None = None,
    ) -> list[HangingTransaction]:
        """Open transactions in partitions that no coordinator knows of any more.

        After Kafka's FindHangingTransactionsCommand: what has been open for longer than any
        transaction may last, and whose transactional id is unknown, or in no transaction with
        this partition.

        Args:
            partitions: where to look.
            now_ms: wall time.
            older_than_ms: the longest that a transaction may last.
            broker_id: ask this replica; each partition's leader if left out.

        Raises:
            KafkaError: a broker refused.
            ClientError: a broker could not be reached.
        """
        producers = await self.producers(partitions, broker_id)
        candidates = [
            (partition, producer)
            for partition, states in sorted(producers.items())
            for producer in states
            if producer.open_since_offset is not None
            and now_ms - producer.last_timestamp > older_than_ms
        ]
        if not candidates:
            return []
        ids = sorted({producer.producer_id for _, producer in candidates})
        names = {
            each.producer_id: each.transactional_id
            for each in await self.list_transactions(producer_ids=ids)
        }
        described = await self.describe(names.values())
        return [
            HangingTransaction(partition, producer, names.get(producer.producer_id))
            for partition, producer in candidates
            if _is_hanging(partition, described.get(names.get(producer.producer_id, "")))
        ]

    async def abort(
        self,
        partition: TopicPartition,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
    ) -> None:
        """End a transaction in one partition, without its coordinator.

        Args:
            coordinator_epoch: of the last marker that the producer wrote there; below 0 counts
                as 0.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED and so on.
            ClientError: the leader could not be reached.
        """
        topic, index = partition
        make = messages.WriteTxnMarkersRequest
        await self._client.wait_for_topic(topic, index, self._timeout_ms)
        leader = await self._client.wait_for_leader(topic, index, self._timeout_ms)
        marker = make.WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=[make.WritableTxnMarkerTopic(name=topic, partition_indexes=[index])],
            coordinator_epoch=max(coordinator_epoch, 0),
        )
        answer: messages.WriteTxnMarkersResponse = await self._client.send(
            leader.id, make(markers=[marker]), timeout_ms=self._timeout_ms
        )
        for result in answer.markers:
            for answered in result.topics:
                for each in answered.partitions:
                    _require(each.error_code, f"{answered.name}:{each.partition_index}")

    async def abort_open(self, partition: TopicPartition, start_offset: int) -> bool:
        """End the transaction that begins at an offset of a partition, without its coordinator.

        Returns:
            Whether there was one.

        Raises:
            KafkaError, ClientError: as `producers` and `abort`.
        """
        for producer in (await self.producers([partition]))[partition]:
            if producer.open_since_offset == start_offset:
                await self.abort(
                    partition,
                    producer.producer_id,
                    producer.producer_epoch,
                    producer.coordinator_epoch,
                )
                return True
        return False

    async def fence(self, transactional_id: str) -> None:
        """End whatever transaction a transactional id is in, and shut its producers out.

        Kafka's `fenceProducers`: the next producer's beginning, without that producer.

        Raises:
            KafkaError: the coordinator refused.
            ClientError: the coordinator could not be reached.
        """
        attempts = self._client.attempts(self._timeout_ms)
        while True:
            answers = await self._coordinators.ask(
                [transactional_id],
                lambda _: messages.InitProducerIdRequest(
                    transactional_id=transactional_id, transaction_timeout_ms=self._timeout_ms
                ),
                lambda answer: {transactional_id: answer},
            )
            code = answers[transactional_id].item.error_code
            if code != ErrorCode.CONCURRENT_TRANSACTIONS:
                _require(code, f"transactional id {transactional_id!r}")
                return
            await attempts.pause(_refusal(code, f"transactional id {transactional_id!r}"))


def _is_hanging(partition: TopicPartition, description: TransactionDescription | None) -> bool:
    """The coordinator does not know of this partition, so it will write no marker there."""
    return description is None or partition not in description.partitions


def _describe_producers(
    partitions: Sequence[TopicPartition],
) -> messages.DescribeProducersRequest:
    grouped: dict[str, list[int]] = {}
    for topic, index in partitions:
        grouped.setdefault(topic, []).append(index)
    make = messages.DescribeProducersRequest.TopicRequest
    return messages.DescribeProducersRequest(
        topics=[make(name=name, partition_indexes=indexes) for name, indexes in grouped.items()]
    )


def _refusal(code: int, what: str, message: str | None = None) -> KafkaError:
    return KafkaError(error_of(code), f"{what}: {message or error_name(code)}")


def _require(code: int, what: str, message: str | None = None) -> None:
    if code != ErrorCode.NONE:
        raise _refusal(code, what, message)
