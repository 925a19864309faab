"""The records of `__transaction_state`, against the schemas and against what Kafka wrote."""

import contextlib
import random
from pathlib import Path

import pytest
from support.transaction_bench import FIRST, SECOND, A, B, TransactionBench

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.topic_partition import TopicPartition
from odradek.coordinator.transaction.records import (
    read_key,
    read_value,
    tombstone,
    transaction_key,
    transaction_record,
    transaction_value,
)
from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transaction import Transaction
from odradek.protocol.errors import ProtocolError
from odradek.protocol.internal.transactions import TransactionLogKey, TransactionLogValue

STORED = [
    state
    for state in TransactionState
    if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
]
SIMPLE = Transaction(
    producer_id=4001,
    timeout_ms=60_000,
    last_update_ms=1_700_000_000_123,
    producer_epoch=12,
    state=TransactionState.ONGOING,
    partitions=frozenset((A, B)),
    start_ms=1_700_000_000_001,
    previous_producer_id=4001,
    client_version=2,
)


WRITTEN_BY_KAFKA = [
    bytes.fromhex(line)
    for line in (Path(__file__).parent / "data" / "transaction-4.3.1.txt").read_text().split("\n")
    if line and not line.startswith("#")
]
GOLDEN = [TopicPartition("t-golden", partition) for partition in range(3)]


def some_transaction(rng: random.Random) -> Transaction:
    state = rng.choice(STORED)
    partitions = {
        TopicPartition(rng.choice(["a", "b" * 130, "orders", "ü"]), rng.randrange(1 << 20))
        for _ in range(rng.choice([0, 1, 3, 200]))
    }
    return Transaction(
        producer_id=rng.randrange(1 << 60),
        timeout_ms=rng.randrange(1, 1 << 31),
        last_update_ms=rng.randrange(1 << 45),
        producer_epoch=rng.randrange(-1, 1 << 15),
        state=state,
        partitions=frozenset() if state is TransactionState.EMPTY else frozenset(partitions),
        start_ms=rng.randrange(-1, 1 << 45),
        previous_producer_id=rng.choice([-1, 7, 1 << 50]),
        next_producer_id=rng.choice([-1, 9]),
        client_version=rng.choice([0, 2]),
    )


def decoded(value: bytes) -> tuple[int, object]:
    """The value as the schema reads it; all of it is used up."""
    version = int.from_bytes(value[:2], "big")
    message, end = TransactionLogValue.decoder(version)(value, 2)
    assert end == len(value)
    return version, message


@pytest.mark.parametrize("is_flexible", [False, True])
def test_what_is_packed_by_hand_is_what_the_schema_says(is_flexible: bool) -> None:
    rng = random.Random(5)
    for _ in range(200):
        transaction = some_transaction(rng)
        version, message = decoded(transaction_value(transaction, is_flexible=is_flexible))
        assert version == int(is_flexible)
        assert message.producer_id == transaction.producer_id
        assert message.producer_epoch == transaction.producer_epoch
        assert message.transaction_timeout_ms == transaction.timeout_ms
        assert message.transaction_status == transaction.state
        assert message.transaction_last_update_timestamp_ms == transaction.last_update_ms
        assert message.transaction_start_timestamp_ms == transaction.start_ms
        if transaction.state is TransactionState.EMPTY:
            assert message.transaction_partitions is None
        else:
            assert transaction.partitions == {
                TopicPartition(entry.topic, partition)
                for entry in message.transaction_partitions
                for partition in entry.partition_ids
            }
        if is_flexible:
            assert message.previous_producer_id == transaction.previous_producer_id
            assert message.next_producer_id == transaction.next_producer_id
            assert message.client_transaction_version == transaction.client_version


def test_a_flexible_value_is_read_back_as_it_was() -> None:
    rng = random.Random(6)
    for _ in range(200):
        transaction = some_transaction(rng)
        assert read_value(transaction_value(transaction, is_flexible=True)) == transaction


def test_the_older_format_does_not_tell_of_the_second_generation() -> None:
    read = read_value(transaction_value(SIMPLE, is_flexible=False))
    assert read == SIMPLE._replace(previous_producer_id=-1, client_version=0)


@pytest.mark.parametrize(("finalized", "version"), [(0, 0), (1, 1), (2, 1)])
def test_the_finalized_version_decides_the_format(finalized: int, version: int) -> None:
    record = transaction_record("x", SIMPLE, finalized)
    assert record.value is not None
    assert decoded(record.value)[0] == version


def test_a_key_is_the_transactional_id() -> None:
    key = transaction_key("zahlung-ü")
    assert key[:2] == b"\0\0"
    message, end = TransactionLogKey.decoder(0)(key, 2)
    assert (message.transactional_id, end) == ("zahlung-ü", len(key))
    assert read_key(key) == "zahlung-ü"
    assert tombstone("zahlung-ü") == (key, None)


def test_a_key_of_another_kind_is_not_known() -> None:
    assert read_key(b"\0\x01\0\x01x") is None


def test_an_id_that_no_key_can_hold_is_refused() -> None:
    assert len(transaction_key("x" * 32_767)) == 32_771
    with pytest.raises(KafkaError) as refusal:
        transaction_key("x" * 32_768)
    assert refusal.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("is_flexible", [False, True])
def test_whatever_is_cut_short_is_reported_and_nothing_else_happens(is_flexible: bool) -> None:
    value = transaction_value(SIMPLE, is_flexible=is_flexible)
    for length in range(len(value)):
        with pytest.raises(ProtocolError):
            read_value(value[:length])
    with pytest.raises(ProtocolError):
        read_key(transaction_key("abc")[:-1])


@pytest.mark.parametrize("state", [6, 7, 8, 255])
def test_a_state_that_is_never_stored_is_refused(state: int) -> None:
    value = bytearray(transaction_value(SIMPLE, is_flexible=True))
    value[16] = state
    with pytest.raises(ProtocolError, match=str(state)):
        read_value(bytes(value))


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ProtocolError, match="not 2"):
        read_value(b"\0\x02" + bytes(60))


def test_a_count_of_topics_that_cannot_be_there_is_refused() -> None:
    value = bytearray(transaction_value(SIMPLE, is_flexible=False))
    value[17:21] = (0x7FFF_FFFF).to_bytes(4, "big")
    with pytest.raises(ProtocolError):
        read_value(bytes(value))


def test_random_bytes_are_refused_or_read_but_never_more() -> None:
    rng = random.Random(8)
    for _ in range(2000):
        value = bytearray(transaction_value(SIMPLE, is_flexible=rng.random() < 0.5))
        for _ in range(rng.randrange(1, 4)):
            value[rng.randrange(len(value))] = rng.randrange(256)
        with contextlib.suppress(ProtocolError):
            assert isinstance(read_value(bytes(value)), Transaction)


@pytest.mark.parametrize("value", WRITTEN_BY_KAFKA)
def test_what_kafka_wrote_is_written_again_byte_for_byte(value: bytes) -> None:
    assert transaction_value(read_value(value), is_flexible=True) == value


def test_the_same_requests_store_what_kafka_stores() -> None:
    kafkas = [read_value(value) for value in WRITTEN_BY_KAFKA]
    bench = TransactionBench()
    bench.producer_ids = [kafkas[0].producer_id]

    producer = bench.init().producer
    bench.add(producer, GOLDEN[1], client_version=FIRST)
    producer = bench.end(producer, client_version=SECOND).producer
    bench.markers_written()
    producer = bench.end(producer, commit=False, client_version=SECOND).producer
    bench.add(producer, GOLDEN[2], client_version=FIRST)
    bench.end(producer, client_version=FIRST)
    bench.markers_written()
    bench.add(producer, GOLDEN[0], client_version=FIRST)
    assert bench.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.markers_written()
    bench.init()

    def untimed(transaction: Transaction | None) -> Transaction:
        assert transaction is not None
        return transaction._replace(last_update_ms=0, start_ms=min(transaction.start_ms, 0))

    ours = [untimed(transaction) for _, transaction in bench.stored()]
    assert ours == [untimed(transaction) for transaction in kafkas]
