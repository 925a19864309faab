"""A transactional producer made of single requests, each of which a test sends when it likes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kafka.protocol.admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

from odradek.common.errors import ErrorCode
from odradek.common.sentinels import LATEST_TIMESTAMP

from .raw_connection import RawConnection, build_batch

SETTLE_SECONDS_MAX = 120.0
RETRY_SECONDS = 0.02
TRANSACTION = 1
GROUP = 0
READ_COMMITTED, READ_UNCOMMITTED = 1, 0
RETRIABLE = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
}

Partitions = Mapping[str, Iterable[int]]
"""Indexes by topic."""


class Answer(NamedTuple):
    """What an answer says of a producer; -1 where it says nothing."""

    error: ErrorCode
    producer_id: int = -1
    producer_epoch: int = -1


class Marker(NamedTuple):
    """What a coordinator has written to partitions."""

    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: Partitions
    coordinator_epoch: int = 0
    transaction_version: int = 0


class TransactionPeer:
    """Sends transactional requests to one broker, as the producer of one transactional id.

    `producer_id` and `producer_epoch` are those of the last success of `init` or `end`; every
    request takes others, or another id, by name.

    Args:
        port: the broker's.
        transactional_id: its id.
    """

    def __init__(self, port: int, transactional_id: str) -> None:
        self.connection = RawConnection(port)
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.producer_epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    def close(self) -> None:
        self.connection.close()

    def reconnect(self, port: int) -> None:
        """Go on as the same producer on another connection."""
        self.connection.close()
        self.connection = RawConnection(port)

    def _who(self, other: Mapping[str, Any]) -> dict[str, Any]:
        mine = {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
        }
        assert other.keys() <= mine.keys(), other
        return {**mine, **other}

    # -- what a producer sends -------------------------------------------------------------

    def find_coordinator(self, kind: int = TRANSACTION, key: str | None = None) -> int:
        """Wait for the coordinator; returns its broker id. Creates the internal topic."""
        request = FindCoordinatorRequest(
            key_type=kind, coordinator_keys=[self.transactional_id if key is None else key]
        )

        def find() -> tuple[ErrorCode, int]:
            (found,) = self.connection.ask(request, FindCoordinatorResponse, 4).coordinators
            return ErrorCode(found.error_code), found.node_id

        return int(settled(find)[1])

    def init(
        self, timeout_ms: int = 60_000, version: int = 5, *, keep: bool = True, **other: Any
    ) -> Answer:
        """InitProducerId; without `producer_id` and `producer_epoch` as a new producer."""
        who = {"transactional_id": self.transactional_id, **other}
        request = InitProducerIdRequest(transaction_timeout_ms=timeout_ms, **who)
        answer = _answer(self.connection.ask(request, InitProducerIdResponse, version))
        if keep and answer.error == ErrorCode.NONE:
            self._take(answer)
        return answer

    def init_often(self, count: int) -> None:
        """InitProducerId so many times, sent together: each raises the epoch by one."""
        for _ in range(count):
            self.connection.send(
                InitProducerIdRequest(
                    transactional_id=self.transactional_id, transaction_timeout_ms=60_000
                ),
                5,
            )
        for _ in range(count):
            answer = _answer(self.connection.receive(InitProducerIdResponse, 5))
            assert answer.error == ErrorCode.NONE, answer
            self._take(answer)

    def _take(self, answer: Answer) -> None:
        _, self.producer_id, self.producer_epoch = answer
        self._sequences.clear()

    def start(self, timeout_ms: int = 60_000, version: int = 5, **other: Any) -> TransactionPeer:
        """Find the coordinator, and `init` until that succeeds."""
        self.find_coordinator()
        settled(lambda: self.init(timeout_ms, version, **other))
        return self

    def add_partitions(
        self, partitions: Partitions, version: int = 3, **other: Any
    ) -> dict[tuple[str, int], ErrorCode]:
        """AddPartitionsToTxn as a client sends it."""
        who = {f"v3_and_below_{name}": value for name, value in self._who(other).items()}
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        request = AddPartitionsToTxnRequest(
            v3_and_below_topics=[
                topic(name=name, partitions=list(indexes)) for name, indexes in partitions.items()
            ],
            **who,
        )
        answer = self.connection.ask(request, AddPartitionsToTxnResponse, version)
        return _by_partition(answer.results_by_topic_v3_and_below)

    def add_partitions_as_broker(
        self, partitions: Partitions, version: int = 5, *, verify_only: bool = True, **other: Any
    ) -> dict[tuple[str, int], ErrorCode]:
        """AddPartitionsToTxn as brokers send it, with one transaction."""
        transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
        request = AddPartitionsToTxnRequest(
            transactions=[
                transaction(
                    verify_only=verify_only,
                    topics=[
                        transaction.AddPartitionsToTxnTopic(name=name, partitions=list(indexes))
                        for name, indexes in partitions.items()
                    ],
                    **self._who(other),
                )
            ]
        )
        answer = self.connection.ask(request, AddPartitionsToTxnResponse, version)
        assert answer.error_code == ErrorCode.NONE
        (result,) = answer.results_by_transaction
        return _by_partition(result.topic_results)

    def add_offsets(self, group: str, version: int = 4, **other: Any) -> ErrorCode:
        """AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(group_id=group, **self._who(other))
        return ErrorCode(self.connection.ask(request, AddOffsetsToTxnResponse, version).error_code)

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[tuple[str, int], int],
        version: int = 4,
        *,
        metadata: str = "",
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        **other: Any,
    ) -> dict[tuple[str, int], ErrorCode]:
        """TxnOffsetCommit."""
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        by_topic: dict[str, list[Any]] = {}
        for (name, index), offset in offsets.items():
            by_topic.setdefault(name, []).append(
                topic.TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=metadata
                )
            )
        request = TxnOffsetCommitRequest(
            group_id=group,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=group_instance_id,
            topics=[topic(name=name, partitions=each) for name, each in by_topic.items()],
            **self._who(other),
        )
        answer = self.connection.ask(request, TxnOffsetCommitResponse, version)
        return {
            (each.name, partition.partition_index): ErrorCode(partition.error_code)
            for each in answer.topics
            for partition in each.partitions
        }

    def end(self, *, committed: bool, version: int = 4, keep: bool = True, **other: Any) -> Answer:
        """EndTxn; version 5 is of producers that bump their epoch with every transaction."""
        request = EndTxnRequest(committed=committed, **self._who(other))
        answer = _answer(self.connection.ask(request, EndTxnResponse, version))
        if keep and answer.error == ErrorCode.NONE and answer.producer_id >= 0:
            self._take(answer)
        return answer

    def write(
        self, topic: str, partition: int = 0, *values: bytes, version: int = 11, **other: Any
    ) -> ErrorCode:
        """Produce one batch in the transaction; from version 12 on this adds the partition."""
        who = self._who(other)
        sequence = self._sequences.get((topic, partition), 0)
        values = values or (b"value",)
        batch = build_batch(
            list(values),
            timestamp_ms=int(time.time() * 1000),
            transactional=True,
            producer_id=who["producer_id"],
            producer_epoch=who["producer_epoch"],
            base_sequence=sequence,
        )
        data = ProduceRequest.TopicProduceData
        request = ProduceRequest(
            transactional_id=who["transactional_id"],
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                data(
                    name=topic,
                    partition_data=[data.PartitionProduceData(index=partition, records=batch)],
                )
            ],
        )
        (found,) = self.connection.ask(request, ProduceResponse, version).responses
        error = ErrorCode(found.partition_responses[0].error_code)
        if error == ErrorCode.NONE:
            self._sequences[topic, partition] = sequence + len(values)
        return error

    # -- what a coordinator and operators send -----------------------------------------------

    def write_markers(self, *markers: Marker, version: int = 1) -> dict[tuple[str, int], ErrorCode]:
        """WriteTxnMarkers; the markers name different partitions."""
        make = WriteTxnMarkersRequest.WritableTxnMarker
        request = WriteTxnMarkersRequest(
            markers=[
                make(
                    producer_id=each.producer_id,
                    producer_epoch=each.producer_epoch,
                    transaction_result=each.committed,
                    coordinator_epoch=each.coordinator_epoch,
                    transaction_version=each.transaction_version,
                    topics=[
                        make.WritableTxnMarkerTopic(name=name, partition_indexes=list(indexes))
                        for name, indexes in each.partitions.items()
                    ],
                )
                for each in markers
            ]
        )
        answer = self.connection.ask(request, WriteTxnMarkersResponse, version)
        return {
            (topic.name, partition.partition_index): ErrorCode(partition.error_code)
            for marker in answer.markers
            for topic in marker.topics
            for partition in topic.partitions
        }

    def describe(self, transactional_id: str | None = None) -> Any:
        """DescribeTransactions, of one transaction: what the answer says of it."""
        request = DescribeTransactionsRequest(
            transactional_ids=[
                self.transactional_id if transactional_id is None else transactional_id
            ]
        )
        answer = self.connection.ask(request, DescribeTransactionsResponse, 0)
        (state,) = answer.transaction_states
        return state

    @property
    def state(self) -> str:
        """What the coordinator calls the state of the transaction."""
        described = self.describe()
        assert described.error_code == ErrorCode.NONE, ErrorCode(described.error_code)
        return str(described.transaction_state)

    def wait_state(self, *states: str) -> str:
        """Wait until the transaction is in one of these states; returns which."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while self.state not in states:
            assert time.monotonic() < deadline, f"{self.state} does not become one of {states}"
            time.sleep(RETRY_SECONDS)  # another process has no event to wait for
        return self.state

    def list_transactions(self, version: int = 2, **filters: Any) -> Any:
        """ListTransactions: the answer."""
        return self.connection.ask(
            ListTransactionsRequest(**filters), ListTransactionsResponse, version
        )

    def describe_producers(self, topic: str, partition: int = 0) -> Any:
        """DescribeProducers, of one partition: what the answer says of it."""
        make = DescribeProducersRequest.TopicRequest
        request = DescribeProducersRequest(topics=[make(name=topic, partition_indexes=[partition])])
        answer = self.connection.ask(request, DescribeProducersResponse, 0)
        return answer.topics[0].partitions[0]

    def end_offset(self, topic: str, partition: int = 0, *, isolation: int) -> int:
        """ListOffsets for the end as readers of an isolation level have it."""
        make = ListOffsetsRequest.ListOffsetsTopic
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[
                make(
                    name=topic,
                    partitions=[
                        make.ListOffsetsPartition(
                            partition_index=partition,
                            current_leader_epoch=-1,
                            timestamp=LATEST_TIMESTAMP,
                        )
                    ],
                )
            ],
        )

        def find() -> tuple[ErrorCode, int]:
            answer = self.connection.ask(request, ListOffsetsResponse, 5)
            found = answer.topics[0].partitions[0]
            return ErrorCode(found.error_code), int(found.offset)

        return int(settled(find)[1])

    def wait_stable(self, topic: str, partition: int = 0) -> int:
        """Wait until a partition has no open transaction; returns its end."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while True:
            stable, end = (
                self.end_offset(topic, partition, isolation=isolation)
                for isolation in (READ_COMMITTED, READ_UNCOMMITTED)
            )
            if stable == end:
                return end
            assert time.monotonic() < deadline, f"{topic}-{partition} is not stable at {stable}"
            time.sleep(RETRY_SECONDS)  # another process has no event to wait for


def settled(ask: Callable[[], Any], *also: ErrorCode) -> Any:
    """Ask again while the answer's first part is an error that passes; returns what comes then.

    Args:
        ask: asks once.
        also: errors that pass here, besides those that always may.
    """
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while True:
        answer = ask()
        if answer[0] not in RETRIABLE.union(also):
            assert answer[0] == ErrorCode.NONE, answer
            return answer
        assert time.monotonic() < deadline, answer
        time.sleep(RETRY_SECONDS)  # another process has no event to wait for


def _answer(response: Any) -> Answer:
    return Answer(
        ErrorCode(response.error_code),
        -1 if response.producer_id is None else response.producer_id,
        -1 if response.producer_epoch is None else response.producer_epoch,
    )


def _by_partition(topics: Any) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.partition_error_code)
        for topic in topics
        for partition in topic.results_by_partition
    }
