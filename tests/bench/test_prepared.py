"""Prepared requests say what they should at every version, and the error code is where it is."""

from __future__ import annotations

import pytest

from odradek.bench.cluster import LoadTopic
from odradek.bench.errors import Unavailable
from odradek.bench.loads.fetching import FetchRequest
from odradek.bench.loads.prepared import Produce, answer_bytes, full_batch, one_record
from odradek.bench.loads.wire import Wire
from odradek.client.network.api_version_ranges import ApiVersionRanges
from odradek.protocol import messages
from odradek.protocol.headers import read_request_header
from odradek.protocol.records import RecordBatch, iter_records
from odradek.protocol.records.validation import has_valid_crc

TOPIC = LoadTopic("some-topic", b"0123456789abcdef", (0, 1, 2), "127.0.0.1", 1)
PRODUCE, FETCH = 0, 1


class Versions(Wire):
    """A wire that never connects, to a broker of one version of each API."""

    def __init__(self, api_key: int, version: int) -> None:
        self.peer = "nobody"
        self.versions = ApiVersionRanges.fixed({api_key: version})


@pytest.mark.parametrize("version", messages.ProduceRequest.versions)
def test_produce_names_its_topic_and_finds_the_error(version: int) -> None:
    batch = one_record(100)
    prepared = Produce(Versions(PRODUCE, version), TOPIC, batch, acks=-1)
    frame = prepared.frame
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    _, _, position = read_request_header(
        frame[4:],
    )
    decoded, end = messages.ProduceRequest.decoder(version)(frame[4:], position)
    assert end == len(frame) - 4
    (topic,) = decoded.topic_data
    assert topic.name == (TOPIC.name if version < 13 else "")
    assert topic.topic_id == (TOPIC.id if version >= 13 else bytes(16))
    assert decoded.acks == -1
    assert bytes(topic.partition_data[0].records) == bytes(batch)

    response = messages.ProduceResponse
    partition = response.PartitionProduceResponse(index=0, error_code=87, base_offset=-1)
    of_topic = response.TopicProduceResponse(
        name=TOPIC.name, topic_id=TOPIC.id, partition_responses=[partition]
    )
    answer = answer_bytes(response(responses=[of_topic]), version)
    (error_at,) = prepared.errors_at
    assert int.from_bytes(answer[error_at:][:2], "big") == 87


@pytest.mark.parametrize("version", messages.ProduceRequest.versions)
def test_produce_to_several_partitions_finds_each_error(version: int) -> None:
    prepared = Produce(
        Versions(PRODUCE, version), TOPIC, one_record(9), partitions=TOPIC.partitions
    )
    _, _, position = read_request_header(prepared.frame[4:])
    decoded, _ = messages.ProduceRequest.decoder(version)(prepared.frame[4:], position)
    assert [each.index for each in decoded.topic_data[0].partition_data] == [0, 1, 2]
    response = messages.ProduceResponse
    partitions = [
        response.PartitionProduceResponse(index=each, error_code=80 + each, base_offset=-1)
        for each in TOPIC.partitions
    ]
    of_topic = response.TopicProduceResponse(
        name=TOPIC.name, topic_id=TOPIC.id, partition_responses=partitions
    )
    answer = answer_bytes(response(responses=[of_topic]), version)
    found = [int.from_bytes(answer[at:][:2], "big") for at in prepared.errors_at]
    assert found == [80, 81, 82]


def test_idempotent_requests_count_up_and_have_their_checksums() -> None:
    batch = one_record(100, producer_id=7, producer_epoch=2)
    prepared = Produce(Versions(PRODUCE, 9), TOPIC, batch, acks=-1)
    for sequence, frame in zip(range(3), prepared.in_sequence(batch), strict=False):
        _, _, position = read_request_header(frame[4:])
        decoded, _ = messages.ProduceRequest.decoder(9)(frame[4:], position)
        found = RecordBatch(decoded.topic_data[0].partition_data[0].records, 0)
        assert (found.producer_id, found.producer_epoch, found.base_sequence) == (7, 2, sequence)
        assert has_valid_crc(found)


@pytest.mark.parametrize("version", [v for v in messages.FetchRequest.versions if v >= 7])
def test_fetch_of_several_partitions_moves_all_that_are_busy(version: int) -> None:
    wire = Versions(FETCH, version)
    request = FetchRequest(wire, TOPIC, TOPIC.partitions, moving=2, max_wait_ms=5)
    frame = bytes(request.move(77))
    _, _, position = read_request_header(frame[4:])
    decoded, _ = messages.FetchRequest.decoder(version)(frame[4:], position)
    assert [each.fetch_offset for each in decoded.topics[0].partitions] == [77, 77, 0]


@pytest.mark.parametrize("version", [v for v in messages.FetchRequest.versions if v >= 7])
def test_fetch_moves_offset_and_session_epoch(version: int) -> None:
    wire = Versions(FETCH, version)
    request = FetchRequest(
        wire, TOPIC, TOPIC.partitions, max_wait_ms=5, session_id=17, session_epoch=1
    )
    frame = bytes(request.move(123_456_789_012, 77))
    _, _, position = read_request_header(frame[4:])
    decoded, _ = messages.FetchRequest.decoder(version)(frame[4:], position)
    assert (decoded.session_id, decoded.session_epoch, decoded.max_wait_ms) == (17, 77, 5)
    offsets = [each.fetch_offset for each in decoded.topics[0].partitions]
    assert offsets == [123_456_789_012, 0, 0]


def test_broker_too_old_for_sessions_is_reported() -> None:
    with pytest.raises(Unavailable, match="serves FETCH up to version 6"):
        FetchRequest(Versions(FETCH, 6), TOPIC, max_wait_ms=0, session_epoch=0)


def test_api_that_a_broker_lacks_is_reported() -> None:
    with pytest.raises(Unavailable, match="serves PRODUCE at versions"):
        Produce(Versions(FETCH, 12), TOPIC, one_record(1))


@pytest.mark.parametrize("value_bytes", [1, 100, 1000, 20_000])
def test_full_batch_is_as_full_as_it_can_be(value_bytes: int) -> None:
    batch, count = full_batch(16_384, value_bytes)
    view = RecordBatch(batch, 0)
    assert view.records_count == count == len(list(iter_records(view)))
    if value_bytes < 16_000:
        assert len(batch) <= 16_384 < len(batch) + 2 * (value_bytes + 10)
    else:
        assert count == 1
