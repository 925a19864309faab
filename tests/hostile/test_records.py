"""Record batches that are not what they say: the partition answers an error, nothing is written.

The error codes are those of Apache Kafka 4.3.1, against which this file passes too.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.protocol.admin import CreateTopicsRequest, CreateTopicsResponse
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record.util import calc_crc32c
from support.raw_connection import RawConnection, build_batch

Connect = Callable[[], RawConnection]

NONE = 0
UNKNOWN_SERVER_ERROR = -1
CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER_OR_FOLLOWER = 6
MESSAGE_TOO_LARGE = 10
INVALID_TOPIC_EXCEPTION = 17
INVALID_REQUIRED_ACKS = 21
INVALID_TIMESTAMP = 32
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47
INVALID_RECORD = 87

HOUR_MS = 3_600_000
MESSAGE_MAX_BYTES = 1_048_588
LEADER_TRIES = 1000
"""Apache Kafka tells of a new topic a moment before it leads its partitions."""
NOW_MS = int(time.time() * 1000)

# Positions in a record batch, see Kafka's DefaultRecordBatch.
BASE_OFFSET, BATCH_LENGTH, MAGIC, CRC, ATTRIBUTES = 0, 8, 16, 17, 21
LAST_OFFSET_DELTA, RECORDS_COUNT, FIRST_RECORD = 23, 57, 61


class Appended(NamedTuple):
    """What a partition answered to Produce."""

    error_code: int
    base_offset: int
    record_errors: list[int]


def batch(*values: bytes, timestamp_ms: int = NOW_MS, **settings: int) -> bytes:
    return build_batch(list(values), timestamp_ms=timestamp_ms, **settings)


def with_crc(changed: bytes) -> bytes:
    crc = struct.pack(">I", calc_crc32c(changed[ATTRIBUTES:]))
    return changed[:CRC] + crc + changed[ATTRIBUTES:]


def patched(position: int, layout: str, value: int) -> bytes:
    """A batch of two records with one field overwritten, and a CRC that holds."""
    changed = bytearray(GOOD)
    struct.pack_into(layout, changed, position, value)
    return with_crc(bytes(changed))


GOOD = batch(b"one", b"two")

REFUSED = {
    "with a wrong CRC": (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), {CORRUPT_MESSAGE}),
    "with a changed attribute": (GOOD[:22] + b"\x01" + GOOD[23:], {CORRUPT_MESSAGE}),
    "cut short": (GOOD[:-3], {INVALID_RECORD}),
    "shorter than a header": (GOOD[:30], {INVALID_RECORD}),
    "empty": (b"", {INVALID_RECORD}),
    "followed by a second": (GOOD + GOOD, {INVALID_RECORD}),
    "of negative length": (patched(BATCH_LENGTH, ">i", -5), {CORRUPT_MESSAGE}),
    "of a length below a header": (patched(BATCH_LENGTH, ">i", 10), {CORRUPT_MESSAGE}),
    "of 2 GB": (
        patched(BATCH_LENGTH, ">i", 2**31 - 1),
        {UNKNOWN_SERVER_ERROR, INVALID_RECORD, CORRUPT_MESSAGE},
    ),
    "of magic 1": (patched(MAGIC, ">b", 1), {INVALID_RECORD}),
    "of magic 3": (patched(MAGIC, ">b", 3), {CORRUPT_MESSAGE}),
    "of magic -1": (patched(MAGIC, ">b", -1), {CORRUPT_MESSAGE}),
    "of three records, it says": (patched(RECORDS_COUNT, ">i", 3), {INVALID_RECORD}),
    "of one record, it says": (patched(RECORDS_COUNT, ">i", 1), {INVALID_RECORD}),
    "of no record, it says": (patched(RECORDS_COUNT, ">i", 0), {INVALID_RECORD}),
    "of -1 records, it says": (patched(RECORDS_COUNT, ">i", -1), {INVALID_RECORD}),
    "of 2 billion records, it says": (patched(RECORDS_COUNT, ">i", 2**31 - 1), {INVALID_RECORD}),
    "with offsets to 5": (patched(LAST_OFFSET_DELTA, ">i", 5), {INVALID_RECORD}),
    "with offsets to -1": (patched(LAST_OFFSET_DELTA, ">i", -1), {INVALID_RECORD}),
    "with a base offset of 77": (patched(BASE_OFFSET, ">q", 77), {INVALID_RECORD}),
    "with a record longer than itself": (patched(FIRST_RECORD, ">b", 100), {INVALID_RECORD}),
    "with a record of length -1": (patched(FIRST_RECORD, ">b", 1), {INVALID_RECORD}),
    "with a codec that is none": (
        patched(ATTRIBUTES, ">h", 7),
        {UNKNOWN_SERVER_ERROR, INVALID_RECORD, CORRUPT_MESSAGE},
    ),
    "that is a control batch": (patched(ATTRIBUTES, ">h", 0x20), {INVALID_RECORD}),
    "from tomorrow": (batch(b"x", timestamp_ms=NOW_MS + 24 * HOUR_MS), {INVALID_TIMESTAMP}),
    "larger than message.max.bytes": (batch(b"x" * MESSAGE_MAX_BYTES), {MESSAGE_TOO_LARGE}),
}


@pytest.fixture(scope="module")
def admin(broker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


@pytest.fixture
def create_topic(admin: KafkaAdminClient, topic: str) -> Callable[..., str]:
    def create(**configs: str) -> str:
        requested = {"num_partitions": 1, "replication_factor": 1, "configs": configs}
        admin.create_topics({topic: requested}, wait_for_metadata=True)
        return topic

    return create


@pytest.fixture
def produce(connect: Connect) -> Callable[..., Appended]:
    connection = connect()
    topic_type = ProduceRequest.TopicProduceData

    def send(topic: str, records: bytes, *, acks: int = -1, partition: int = 0) -> Appended:
        part = topic_type.PartitionProduceData(index=partition, records=records)
        topic_data = [topic_type(name=topic, partition_data=[part])]
        request = ProduceRequest(
            transactional_id=None, acks=acks, timeout_ms=30_000, topic_data=topic_data
        )
        for _ in range(LEADER_TRIES):
            response = connection.ask(request, ProduceResponse, 9)
            answer = response.responses[0].partition_responses[0]
            if answer.error_code != NOT_LEADER_OR_FOLLOWER:
                break
        record_errors = [error.batch_index for error in answer.record_errors or []]
        return Appended(answer.error_code, answer.base_offset, record_errors)

    return send


@pytest.fixture
def log_end_offset(connect: Connect) -> Callable[[str], int]:
    connection = connect()
    topic_type = ListOffsetsRequest.ListOffsetsTopic

    def ask(topic: str) -> int:
        latest = topic_type.ListOffsetsPartition(partition_index=0, timestamp=-1)
        topics = [topic_type(name=topic, partitions=[latest])]
        request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)
        return connection.ask(request, ListOffsetsResponse, 2).topics[0].partitions[0].offset

    return ask


@pytest.mark.parametrize("case", REFUSED)
def test_batch_is_refused(create_topic, produce, log_end_offset, case: str) -> None:
    records, errors = REFUSED[case]
    topic = create_topic()
    assert produce(topic, GOOD) == (NONE, 0, [])

    refused = produce(topic, records)

    assert refused.error_code in errors
    assert refused.base_offset == -1
    assert log_end_offset(topic) == 2
    assert produce(topic, GOOD) == (NONE, 2, [])


def test_batch_of_just_the_allowed_size_is_taken_and_one_byte_more_refused(
    create_topic, produce, log_end_offset
) -> None:
    topic = create_topic(**{"max.message.bytes": "1000"})
    largest = batch(b"x" * 930)
    assert len(largest) == 1000

    assert produce(topic, largest).error_code == NONE
    assert produce(topic, batch(b"x" * 931)).error_code == MESSAGE_TOO_LARGE
    assert log_end_offset(topic) == 1


def test_bytes_after_the_batch_are_not_written(create_topic, produce, log_end_offset) -> None:
    topic = create_topic()

    assert produce(topic, GOOD + b"junk") == (NONE, 0, [])
    assert produce(topic, GOOD) == (NONE, 2, [])
    assert log_end_offset(topic) == 4


def test_record_without_a_key_is_refused_by_a_compacted_topic(
    create_topic, produce, log_end_offset
) -> None:
    topic = create_topic(**{"cleanup.policy": "compact"})

    refused = produce(topic, GOOD)

    assert refused.error_code == INVALID_RECORD
    assert refused.record_errors[0] == 0
    assert log_end_offset(topic) == 0


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_acks_that_do_not_exist_are_refused(
    create_topic, produce, log_end_offset, acks: int
) -> None:
    topic = create_topic()

    assert produce(topic, GOOD, acks=acks).error_code == INVALID_REQUIRED_ACKS
    assert log_end_offset(topic) == 0


@pytest.mark.parametrize("partition", [-1, 1, 2**31 - 1])
def test_partition_that_does_not_exist_is_refused(create_topic, produce, partition: int) -> None:
    topic = create_topic()

    refused = produce(topic, GOOD, partition=partition)

    assert refused.error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_topic_that_does_not_exist_is_not_made_by_produce(produce, admin, topic: str) -> None:
    assert produce(topic, GOOD).error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert topic not in admin.list_topics()


def test_client_cannot_write_to_the_offsets_topic(broker, create_topic, produce) -> None:
    partition = TopicPartition(create_topic(), 0)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="committer")
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(0, "", -1)})
    consumer.close()

    assert produce("__consumer_offsets", GOOD).error_code == INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a/b", "a b", "ä", "../../etc", "a\0"])
def test_topic_of_a_bad_name_is_refused_with_a_message(connect: Connect, name: str) -> None:
    requested = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=1, replication_factor=1
    )
    request = CreateTopicsRequest(topics=[requested], timeout_ms=30_000)

    (refused,) = connect().ask(request, CreateTopicsResponse, 5).topics

    assert refused.error_code == INVALID_TOPIC_EXCEPTION
    assert refused.error_message


def test_idempotent_batch_sent_again_is_written_once(create_topic, produce, log_end_offset) -> None:
    topic = create_topic()
    sequenced = batch(b"a", b"b", producer_id=90_001, producer_epoch=0, base_sequence=0)

    assert produce(topic, sequenced) == (NONE, 0, [])
    assert produce(topic, sequenced) == (NONE, 0, [])
    assert log_end_offset(topic) == 2


def test_idempotent_batch_that_leaves_a_gap_is_refused(
    create_topic, produce, log_end_offset
) -> None:
    topic = create_topic()
    producer = {"producer_id": 90_002, "producer_epoch": 0}
    assert produce(topic, batch(b"a", base_sequence=0, **producer)).error_code == NONE

    gap = produce(topic, batch(b"c", base_sequence=2, **producer))

    assert gap.error_code == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log_end_offset(topic) == 1
    assert produce(topic, batch(b"b", base_sequence=1, **producer)) == (NONE, 1, [])


def test_idempotent_batch_of_an_older_epoch_is_refused(
    create_topic, produce, log_end_offset
) -> None:
    topic = create_topic()

    def sequenced(epoch: int, sequence: int) -> bytes:
        return batch(b"x", producer_id=90_003, producer_epoch=epoch, base_sequence=sequence)

    assert produce(topic, sequenced(1, 0)).error_code == NONE

    assert produce(topic, sequenced(0, 1)).error_code == INVALID_PRODUCER_EPOCH
    assert produce(topic, sequenced(2, 7)).error_code == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log_end_offset(topic) == 1
    assert produce(topic, sequenced(2, 0)).error_code == NONE
