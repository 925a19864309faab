import struct
from typing import TYPE_CHECKING, Any

import pytest

from odradek.broker.interbroker.forwarding import ensure_topics
from odradek.broker.network.connection import PRODUCES_WAITING_MAX
from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import build_batch

if TYPE_CHECKING:
    from conftest import Bench

    from odradek.replication.partition.partition import Partition

NOW_MS = 1_700_000_000_000
VERSIONS = range(3, 14)
Produce = messages.ProduceRequest


def batch(*values: bytes, compression: Compression = Compression.NONE) -> bytes:
    records = [(b"k", value, NOW_MS, ()) for value in values]
    return bytes(build_batch(records, compression=compression))


def transactional(records: bytes) -> bytes:
    """The batch with its transactional bit set and the right checksum."""
    import crc32c

    changed = bytearray(records)
    changed[22] |= 0x10
    changed[17:21] = crc32c.crc32c(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


def produce(
    name: str, records: bytes | None, *, acks: int = 1, partition: int = 0, topic_id: bytes = b""
) -> Any:
    data = Produce.PartitionProduceData(index=partition, records=records)
    topic = Produce.TopicProduceData(name=name, partition_data=[data])
    if topic_id:
        topic = Produce.TopicProduceData(topic_id=topic_id, partition_data=[data])
    return Produce(acks=acks, timeout_ms=1000, topic_data=[topic])


def only(answer: Any) -> Any:
    (topic,) = answer.responses
    (partition,) = topic.partition_responses
    return partition


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_version_appends_and_answers_the_offset(bench: "Bench", version: int) -> None:
    topic_id = await bench.create_topic("t")
    for expected in (0, 2):
        request = produce(
            "" if version >= 13 else "t",
            batch(b"a", b"b"),
            topic_id=topic_id if version >= 13 else b"",
        )
        answer = only(await bench.client.call(request, version))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, expected)
    assert bench.log_end_offset("t") == 4


async def test_requests_after_one_another_on_a_connection_may_differ(bench: "Bench") -> None:
    await bench.create_topic("t", 2)
    await bench.create_topic("u")
    for name, partition, value in [
        ("t", 0, b"1"),
        ("t", 0, b"2" * 300),
        ("t", 1, b"3"),
        ("u", 0, b"4"),
        ("t", 0, b"5"),
    ]:
        answer = await bench.client.call(produce(name, batch(value), partition=partition), 9)
        assert answer.responses[0].name == name
        assert only(answer).index == partition
        assert only(answer).error_code == ErrorCode.NONE
    ends = [bench.log_end_offset("t", 0), bench.log_end_offset("t", 1), bench.log_end_offset("u")]
    assert ends == [3, 1, 1]


async def test_a_repeated_request_to_a_topic_that_was_deleted_and_made_anew(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t")
    for _ in range(3):
        await bench.client.call(produce("t", batch(b"old")), 9)
    await bench.broker.controller.delete_topics([topic_id])
    answer = only(await bench.client.call(produce("t", batch(b"nowhere")), 9))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await bench.create_topic("t")
    answer = only(await bench.client.call(produce("t", batch(b"new")), 9))
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)


async def test_acks_zero_is_not_answered_and_the_next_request_is(bench: "Bench") -> None:
    await bench.create_topic("t")
    bench.client.send(produce("t", batch(b"a"), acks=0), 9)
    assert bench.client.connection.output == []
    answer = only(await bench.client.call(produce("t", batch(b"b")), 9))
    assert answer.base_offset == 1


async def test_acks_zero_that_fails_closes_the_connection(bench: "Bench") -> None:
    bench.client.send(produce("nowhere", batch(b"a"), acks=0), 9)
    assert bench.client.connection.is_closing


@pytest.mark.parametrize("acks", [2, -2, 100])
async def test_other_acks_are_refused(bench: "Bench", acks: int) -> None:
    await bench.create_topic("t")
    answer = only(await bench.client.call(produce("t", batch(b"a"), acks=acks), 9))
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert bench.log_end_offset("t") == 0


@pytest.mark.parametrize("records", [None, b""])
async def test_a_partition_without_a_batch_is_refused(
    bench: "Bench", records: bytes | None
) -> None:
    await bench.create_topic("t")
    answer = only(await bench.client.call(produce("t", records), 9))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert answer.error_message


async def test_a_damaged_batch_is_corrupt_and_the_next_is_taken(bench: "Bench") -> None:
    await bench.create_topic("t")
    good = batch(b"a")
    await bench.client.call(produce("t", good), 9)
    damaged = bytearray(good)
    damaged[-2] ^= 0x40
    answer = only(await bench.client.call(produce("t", bytes(damaged)), 9))
    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE
    answer = only(await bench.client.call(produce("t", good), 9))
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 1)


async def test_a_batch_larger_than_the_topic_allows_is_too_large(bench: "Bench") -> None:
    size = len(batch(b"x" * 500))
    await bench.create_topic("t", max_message_bytes=str(size))
    answer = only(await bench.client.call(produce("t", batch(b"x" * 500)), 9))
    assert answer.error_code == ErrorCode.NONE
    answer = only(await bench.client.call(produce("t", batch(b"x" * 501)), 9))
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE


async def test_zstd_needs_version_seven(bench: "Bench") -> None:
    await bench.create_topic("t")
    records = batch(b"a" * 100, compression=Compression.ZSTD)
    refused = only(await bench.client.call(produce("t", records), 6))
    taken = only(await bench.client.call(produce("t", records), 7))
    assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    await bench.client.call(produce("t", batch(b"a" * 100)), 6)
    assert any(map(len, bench.client.connection.memos.values()))
    refused = only(await bench.client.call(produce("t", records), 6))
    assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert taken.error_code == ErrorCode.NONE


async def test_an_unknown_topic_id_is_named_as_such(bench: "Bench") -> None:
    answer = only(await bench.client.call(produce("", batch(b"a"), topic_id=b"\7" * 16), 13))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_internal_topics_are_closed_to_clients_but_the_admin_client(bench: "Bench") -> None:
    await ensure_topics(bench.broker.context, ["__consumer_offsets"])
    refused = only(await bench.client.call(produce("__consumer_offsets", batch(b"a")), 9))
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    admin = bench.another_client("__admin_client")
    taken = only(await admin.call(produce("__consumer_offsets", batch(b"a")), 9))
    assert taken.error_code == ErrorCode.NONE
    refused = only(await bench.client.call(produce("__consumer_offsets", batch(b"a")), 9))
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_pipelined_requests_share_a_flush_and_keep_their_order(bench: "Bench") -> None:
    await bench.create_topic("t")
    client = bench.client
    frames = []
    from odradek.protocol.headers import request_header

    for correlation_id in range(5):
        header = request_header(0, 9, correlation_id, "test")
        request = produce("t", batch(b"%d" % correlation_id))
        body = b"".join(bytes(part) for part in Produce.encoder(9)(request))
        frames.append(memoryview(bytearray(header + body)))
    client.connection.process(frames)
    assert client.connection.output == []
    assert bench.log_end_offset("t") == 0
    bench.broker.server.finish_outside_work()
    data = b"".join(bytes(part) for part in client.connection.output)
    seen = []
    while data:
        size = int.from_bytes(data[:4], "big")
        answer, _ = messages.ProduceResponse.decoder(9)(data[9 : 4 + size], 0)
        seen.append((int.from_bytes(data[4:8], "big"), only(answer).base_offset))
        data = data[4 + size :]
    assert seen == [(index, index) for index in range(5)]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_second_request_like_the_first_is_answered_like_the_first(
    bench: "Bench", version: int
) -> None:
    """The fast path's answers are the slow path's, byte for byte but for the offsets."""
    topic_id = await bench.create_topic("t")
    by_id = {"topic_id": topic_id} if version >= 13 else {}
    name = "" if by_id else "t"
    answers = []
    for _ in range(3):
        request = produce(name, batch(b"v" * 200), **by_id)
        assert not bench.client.connection.memos or len(answers) > 0
        answers.append(await bench.client.call(request, version))
    assert any(map(len, bench.client.connection.memos.values()))
    assert [only(answer).base_offset for answer in answers] == [0, 1, 2]
    for answer in answers:
        only(answer).base_offset = 0
    assert answers[0] == answers[1] == answers[2]


async def test_another_api_with_the_same_bytes_does_not_take_the_fast_path(bench: "Bench") -> None:
    await bench.create_topic("t")
    from odradek.protocol.headers import request_header

    request = produce("t", batch(b"a"))
    await bench.client.call(request, 3)
    body = b"".join(bytes(part) for part in Produce.encoder(3)(request))
    frame = bytearray(request_header(0, 3, 9, "test") + body)
    frame[:2] = (12).to_bytes(2, "big")  # Heartbeat
    bench.client.connection.process([memoryview(frame)])
    bench.broker.server.finish_outside_work()
    assert bench.log_end_offset("t") == 1


async def test_records_whose_length_is_wrong_do_not_take_the_fast_path(bench: "Bench") -> None:
    await bench.create_topic("t")
    from odradek.protocol.headers import request_header

    for version in (3, 9):
        request = produce("t", batch(b"a"))
        await bench.client.call(request, version)
        end = bench.log_end_offset("t")
        body = b"".join(bytes(part) for part in Produce.encoder(version)(request))
        frame = bytearray(request_header(0, version, 9, "test") + body)
        del frame[-5:]
        client = bench.another_client("test")
        client.connection.memos = bench.client.connection.memos
        client.connection.process([memoryview(frame)])
        bench.broker.server.finish_outside_work()
        assert client.connection.is_closing
        assert bench.log_end_offset("t") == end


def lead_with_a_follower(bench: "Bench") -> "Partition":
    """Partition t-0, led here, with broker 99 in the ISR, which has not fetched yet."""
    from odradek.common.partition_state import PartitionState
    from odradek.common.topic_partition import TopicPartition

    partition = bench.broker.replica_manager.partition_or_error(TopicPartition("t", 0))
    both = (partition.broker_id, 99)
    partition.make_leader(
        PartitionState(
            topic="t",
            topic_id=partition.topic_id,
            partition=0,
            controller_epoch=1,
            leader=partition.broker_id,
            leader_epoch=partition.leader_epoch + 1,
            isr=both,
            partition_epoch=partition.partition_epoch + 1,
            replicas=both,
        )
    )
    return partition


def follower_fetched(bench: "Bench", partition: "Partition", offset: int) -> None:
    follower = partition.remote_replicas[99]
    partition.update_follower_fetch_state(follower, offset, 0, partition.log_end_offset)
    bench.broker.server.finish_outside_work()


async def test_acks_all_waits_on_the_fast_path_too(bench: "Bench") -> None:
    await bench.create_topic("t")
    first = only(await bench.client.call(produce("t", batch(b"a"), acks=-1), 9))
    assert first.base_offset == 0
    partition = lead_with_a_follower(bench)
    bench.client.send(produce("t", batch(b"b"), acks=-1), 9)
    assert bench.client.connection.output == []
    assert partition.log_end_offset == 2
    follower_fetched(bench, partition, 2)
    answer = only(await bench.client.receive(0, 9))
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 1)


def answered(bench: "Bench") -> list[int]:
    """Take the answers so far, as a transport would send them; their correlation ids."""
    connection = bench.client.connection
    data, ids = b"".join(bytes(part) for part in connection.output), []
    connection.output.clear()
    connection.note_sent()
    while data:
        size, correlation_id = struct.unpack_from(">ii", data)
        ids.append(correlation_id)
        data = data[4 + size :]
    if connection.may_go_on:
        connection.start_turn()
        connection.process_backlog()
        bench.broker.server.finish_outside_work()
    return ids


async def test_many_produces_of_a_connection_wait_for_replicas_at_once(bench: "Bench") -> None:
    await bench.create_topic("t")
    partition = lead_with_a_follower(bench)
    for _ in range(3):
        bench.client.send(produce("t", batch(b"a"), acks=-1), 9)
    assert partition.log_end_offset == 3
    assert not bench.client.connection.is_muted
    bench.client.send(messages.MetadataRequest(topics=[]), 8)  # Kafka answers it after them
    assert bench.client.connection.is_muted
    bench.client.send(produce("t", batch(b"a"), acks=-1), 9)
    assert partition.log_end_offset == 3
    follower_fetched(bench, partition, 2)
    assert answered(bench) == [1, 2]
    assert answered(bench) == []
    follower_fetched(bench, partition, 3)
    assert answered(bench) == [3]
    assert answered(bench) == [4]
    assert partition.log_end_offset == 4
    follower_fetched(bench, partition, 4)
    assert answered(bench) == [5]


async def test_no_more_produces_are_read_than_may_wait(bench: "Bench") -> None:
    await bench.create_topic("t")
    partition = lead_with_a_follower(bench)
    for _ in range(PRODUCES_WAITING_MAX):
        assert not bench.client.connection.is_muted
        bench.client.send(produce("t", batch(b"a"), acks=-1), 9)
    assert bench.client.connection.is_muted
    bench.client.send(produce("t", batch(b"a"), acks=-1), 9)
    assert partition.log_end_offset == PRODUCES_WAITING_MAX
    follower_fetched(bench, partition, PRODUCES_WAITING_MAX)
    assert len(answered(bench)) == PRODUCES_WAITING_MAX
    assert partition.log_end_offset == PRODUCES_WAITING_MAX + 1


async def test_a_fetch_behind_a_produce_sees_its_records(bench: "Bench") -> None:
    await bench.create_topic("t")
    from odradek.protocol.headers import request_header

    fetch = messages.FetchRequest
    requested = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000)
    topics = [fetch.FetchTopic(topic="t", partitions=[requested])]
    frames = []
    for message, version in [
        (produce("t", batch(b"a")), 9),
        (fetch(max_wait_ms=0, min_bytes=1, max_bytes=10_000, topics=topics), 12),
    ]:
        header = request_header(type(message).api_key, version, 1, "test")
        body = b"".join(bytes(part) for part in type(message).encoder(version)(message))
        frames.append(memoryview(bytearray(header + body)))
    bench.client.connection.process(frames)
    bench.broker.server.finish_outside_work()
    data = b"".join(
        bytes(part) if isinstance(part, bytes | bytearray | memoryview) else part.read()
        for part in bench.client.connection.output
    )
    size = int.from_bytes(data[:4], "big")
    answer, _ = messages.FetchResponse.decoder(12)(data[4 + size + 9 :], 0)
    assert answer.responses[0].partitions[0].high_watermark == 1


async def test_transactional_batches_are_refused_on_the_fast_path_too(bench: "Bench") -> None:
    await bench.create_topic("t")
    await bench.client.call(produce("t", batch(b"a")), 9)
    assert any(map(len, bench.client.connection.memos.values()))
    answer = only(await bench.client.call(produce("t", transactional(batch(b"a"))), 9))
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    in_transaction = build_batch(
        [(b"k", b"v", 1, ())], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True
    )
    named = produce("t", bytes(in_transaction))
    named.transactional_id = "tx"
    for _ in range(3):
        answer = only(await bench.client.call(named, 9))
        assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS, "there is no coordinator to ask"
    assert bench.log_end_offset("t") == 1


async def test_what_follows_a_failed_acks_zero_is_not_answered(bench: "Bench") -> None:
    from odradek.protocol.headers import request_header

    await bench.create_topic("t")
    frames = []
    for request in (produce("nowhere", batch(b"a"), acks=0), produce("t", batch(b"b"))):
        body = b"".join(bytes(part) for part in Produce.encoder(9)(request))
        frames.append(memoryview(bytearray(request_header(0, 9, 1, "test") + body)))
    bench.client.connection.process(frames)
    bench.broker.server.finish_outside_work()
    assert bench.client.connection.is_closing
    assert bench.client.connection.output == []
