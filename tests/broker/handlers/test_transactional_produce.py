"""Produce in transactions: what waits for the coordinator, and what becomes of it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
import trio

from odradek.broker.interbroker.transaction_verification import (
    Question,
    WriterInTransaction,
    take_questions,
)
from odradek.common.errors import ErrorCode
from odradek.common.sentinels import READ_COMMITTED
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import request_header
from odradek.protocol.records import build_batch, iter_batches, iter_records
from odradek.runtime import long_work

if TYPE_CHECKING:
    from conftest import Bench, Client

NOW_MS = 1_700_000_000_000
NEW, OLD = 12, 11
TRANSACTION = 1
WAIT_MS_MAX = 1_000
Produce = messages.ProduceRequest


@pytest.fixture
def settings() -> dict[str, str]:
    return {
        "add.partitions.to.txn.retry.backoff.max.ms": str(WAIT_MS_MAX),
        "transaction.state.log.num.partitions": "3",
    }


MANY = 150
"""Partitions of a request that no step decodes whole, where a step is as short as it can be."""


class Writer:
    """A producer of one transactional id, on the bench's client."""

    def __init__(self, bench: Bench, transactional_id: str = "tx") -> None:
        self.bench = bench
        self.transactional_id = transactional_id
        self.producer_id = self.epoch = -1

    async def start(self) -> Writer:
        call = self.bench.client.call
        find = messages.FindCoordinatorRequest(
            key_type=TRANSACTION, coordinator_keys=[self.transactional_id]
        )
        init = messages.InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=60_000
        )
        (found,) = (await call(find, 4)).coordinators
        assert found.error_code == ErrorCode.NONE
        answer = await call(init, 5)
        assert answer.error_code == ErrorCode.NONE
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return self

    def request(self, partition: int, sequence: int = 0, value: bytes = b"v") -> Any:
        batch = build_batch(
            [(b"k", value, NOW_MS, ())],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = Produce.PartitionProduceData(index=partition, records=bytes(batch))
        topic = Produce.TopicProduceData(name="t", partition_data=[data])
        return Produce(
            transactional_id=self.transactional_id, acks=-1, timeout_ms=5000, topic_data=[topic]
        )

    async def write(self, partition: int, sequence: int = 0, version: int = NEW) -> ErrorCode:
        return error_of(await self.bench.client.call(self.request(partition, sequence), version))

    async def end(self) -> ErrorCode:
        """EndTxn of the newer generation: the next transaction has an epoch of its own."""
        answer = await self.bench.client.call(
            messages.EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                committed=True,
            ),
            5,
        )
        if not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return ErrorCode(answer.error_code)


def error_of(answer: Any) -> ErrorCode:
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def partition(bench: Bench, index: int) -> Any:
    found = bench.broker.replica_manager.get_partition(TopicPartition("t", index))
    assert found is not None
    return found


async def between_transactions(bench: Bench) -> Writer:
    """A producer whose last transaction cannot end, since partition 1 takes no marker."""
    await bench.create_topic("t", 2)
    writer = await Writer(bench).start()
    assert await writer.write(1) is ErrorCode.NONE
    partition(bench, 1).is_leader = False
    assert await writer.end() is ErrorCode.NONE
    return writer


async def test_the_next_transaction_begins_when_the_former_one_is_over(bench: Bench) -> None:
    writer = await between_transactions(bench)
    bench.client.send(writer.request(0), NEW)
    assert bench.client.connection.is_parked
    partition(bench, 1).is_leader = True
    answer = await bench.client.receive(ApiKey.PRODUCE, NEW)
    assert error_of(answer) is ErrorCode.NONE
    assert not bench.client.connection.is_parked


async def test_the_former_transactions_marker_may_come_while_the_next_one_waits(
    bench: Bench,
) -> None:
    """The marker ends what was asked before it; the next transaction begins all the same."""
    await bench.create_topic("t", 2)
    writer = await Writer(bench).start()
    for index in range(2):
        assert await writer.write(index) is ErrorCode.NONE
        partition(bench, index).is_leader = False
    assert await writer.end() is ErrorCode.NONE
    partition(bench, 0).is_leader = True
    bench.client.send(writer.request(0), NEW)
    assert bench.client.connection.is_parked
    with trio.fail_after(60):
        while bench.log_end_offset("t") == 1:  # until the marker is there
            await trio.lowlevel.checkpoint()
    assert bench.client.connection.is_parked
    partition(bench, 1).is_leader = True
    answer = await bench.client.receive(ApiKey.PRODUCE, NEW)
    assert error_of(answer) is ErrorCode.NONE


async def test_nobody_waits_for_ever_for_the_former_transaction(bench: Bench) -> None:
    writer = await between_transactions(bench)
    began_ms = bench.broker.clock.monotonic_ms()
    assert await writer.write(0) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.broker.clock.monotonic_ms() - began_ms >= WAIT_MS_MAX
    assert bench.log_end_offset("t") == 0


async def test_a_request_that_waits_keeps_its_records(bench: Bench) -> None:
    """The memory that it came in is another's by the time that the coordinator has answered."""
    writer = await between_transactions(bench)
    body = b"".join(bytes(part) for part in Produce.encoder(NEW)(writer.request(0, value=b"mine")))
    bench.client._correlation_id += 1
    header = request_header(ApiKey.PRODUCE, NEW, bench.client._correlation_id, "test")
    frame = bytearray(header + body)
    bench.client.connection.process([memoryview(frame)])
    bench.broker.server.finish_outside_work()
    assert bench.client.connection.is_parked
    frame[:] = bytes(len(frame))
    partition(bench, 1).is_leader = True
    answer = await bench.client.receive(ApiKey.PRODUCE, NEW)
    assert error_of(answer) is ErrorCode.NONE
    read = partition(bench, 0).log.read(0, 1 << 20, upper_offset=1, minimum_one_batch=True)
    (batch,) = iter_batches(read.records.read())
    (record,) = iter_records(batch)
    assert record.value == b"mine"


async def test_what_follows_in_a_transaction_asks_nobody(bench: Bench) -> None:
    await bench.create_topic("t")
    writer = await Writer(bench).start()
    assert await writer.write(0) is ErrorCode.NONE
    assert any(map(len, bench.client.connection.memos.values()))
    requested: list[Any] = []
    verifier = bench.broker.coordinators.transaction_verifier
    bench.broker.coordinators.transaction_verifier = requested  # type: ignore[assignment]  # nobody is to ask it
    try:
        for sequence in (1, 2, 3):
            assert await writer.write(0, sequence) is ErrorCode.NONE
    finally:
        bench.broker.coordinators.transaction_verifier = verifier
    assert bench.log_end_offset("t") == 4


async def test_each_partition_of_a_request_has_an_outcome_of_its_own(bench: Bench) -> None:
    await bench.create_topic("t", 2)
    writer = await Writer(bench).start()
    request = writer.request(0)
    request.topic_data[0].partition_data += writer.request(1).topic_data[0].partition_data
    request.topic_data[0].partition_data += writer.request(9).topic_data[0].partition_data
    partition(bench, 1).is_leader = False
    answer = await bench.client.call(request, NEW)
    partition(bench, 1).is_leader = True
    found = {
        each.index: ErrorCode(each.error_code) for each in answer.responses[0].partition_responses
    }
    assert found == {
        0: ErrorCode.NONE,
        1: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def of_many_partitions(writer: Writer, *partitions: int) -> Any:
    request = writer.request(0)
    request.topic_data[0].partition_data = [
        writer.request(each).topic_data[0].partition_data[0] for each in partitions
    ]
    return request


async def test_a_long_request_is_verified_and_appended_in_steps(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    await bench.create_topic("t", MANY)
    writer = await Writer(bench).start()
    answer = await bench.client.call(of_many_partitions(writer, *range(MANY + 1)), NEW)
    found = [ErrorCode(each.error_code) for each in answer.responses[0].partition_responses]
    assert found == [*[ErrorCode.NONE] * MANY, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert all(partition(bench, each).log.log_end_offset == 1 for each in range(MANY))


async def test_a_long_request_of_two_producers_is_refused_whole(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    await bench.create_topic("t", MANY)
    writer = await Writer(bench).start()
    request = of_many_partitions(writer, *range(MANY))
    writer.epoch += 1
    request.topic_data[0].partition_data[-1] = (
        writer.request(MANY - 1).topic_data[0].partition_data[0]
    )
    answer = await bench.client.call(request, NEW)
    found = {ErrorCode(each.error_code) for each in answer.responses[0].partition_responses}
    assert found == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert bench.log_end_offset("t") == 0


async def test_acks_zero_in_a_transaction_is_verified_all_the_same(bench: Bench) -> None:
    await bench.create_topic("t")
    writer = await Writer(bench).start()
    request = writer.request(0)
    request.acks = 0
    bench.client.send(request, OLD)
    assert bench.client.connection.is_closing, "the partition was not added"
    assert bench.log_end_offset("t") == 0


def test_a_request_names_a_transaction_once() -> None:
    def question(name: str, index: int) -> Question:
        writer = WriterInTransaction(name, 1, 0, True, True)
        return Question(writer, frozenset({TopicPartition("t", index)}), lambda outcome: None)

    waiting: deque[Question] = deque(
        [question("a", 0), question("b", 0), question("a", 1), question("a", 2)]
    )
    rounds = []
    while waiting:
        rounds.append(
            [
                (each.writer.transactional_id, min(each.partitions).partition)
                for each in take_questions(waiting)
            ]
        )
    assert rounds == [[("a", 0), ("b", 0)], [("a", 1)], [("a", 2)]]


# -- markers of others ------------------------------------------------------------------------


async def mark(client: Client, writer: Writer, **fields: int) -> ErrorCode:
    """Send a marker for the writer's transaction in partition 0."""
    marking = messages.WriteTxnMarkersRequest
    marker = marking.WritableTxnMarker(
        transaction_result=False,
        topics=[marking.WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        **{
            "producer_id": writer.producer_id,
            "producer_epoch": writer.epoch,
            "coordinator_epoch": 0,
        }
        | fields,
    )
    answer = await client.call(marking(markers=[marker]), 2)
    return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"coordinator_epoch": 2**31 - 1}, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        ({"producer_epoch": 100}, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
    ids=["coordinator epoch", "producer epoch"],
)
async def test_a_transaction_ends_whatever_markers_a_client_sends(
    bench: Bench, fields: dict[str, int], error: ErrorCode
) -> None:
    await bench.create_topic("t")
    writer = await Writer(bench).start()
    other = bench.another_client()
    assert await mark(other, writer, **fields) is error
    assert await writer.write(0) is ErrorCode.NONE
    assert await mark(other, writer, **fields) is error
    assert await writer.end() is ErrorCode.NONE
    make = messages.FetchRequest
    partitions = [make.FetchPartition(partition=0)]
    fetch = make(
        max_wait_ms=60_000,
        min_bytes=1,
        isolation_level=READ_COMMITTED,
        topics=[make.FetchTopic(topic="t", partitions=partitions)],
    )
    (read,) = (await other.call(fetch, 12)).responses[0].partitions
    assert (read.last_stable_offset, read.aborted_transactions) == (2, [])


async def test_a_newer_coordinator_marks_with_a_newer_epoch(bench: Bench) -> None:
    await bench.create_topic("t")
    writer = await Writer(bench).start()
    assert await writer.write(0) is ErrorCode.NONE
    broker = bench.another_client()
    broker.connection.is_broker = True
    same = {"producer_epoch": writer.epoch, "transaction_version": 2}
    assert await mark(broker, writer, **same) is ErrorCode.INVALID_PRODUCER_EPOCH
    newer = same | {"producer_epoch": writer.epoch + 1}
    assert await mark(broker, writer, **newer) is ErrorCode.NONE
    assert await mark(broker, writer, **newer) is ErrorCode.NONE, "sent again"
    assert partition(bench, 0).log.last_stable_offset == 3
