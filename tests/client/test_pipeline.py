"""Frames out, frames in, without any I/O; and whatever else a broker may send instead."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scripted_cluster import Received, api_versions, encoded, framed

from odradek.client.errors import DisconnectedError, PeerProtocolError
from odradek.client.network.pipeline import InFlight, RequestPipeline
from odradek.common.errors import ErrorCode
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import EncodeError
from odradek.protocol.headers import read_request_header, read_request_start
from odradek.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    ProduceRequest,
)

RESPONSE_MAX_BYTES = 1_000


class Sent:
    """A pipeline with requests in flight, and what became of each."""

    def __init__(self, *requests: object) -> None:
        self.pipeline = RequestPipeline("tester", RESPONSE_MAX_BYTES)
        self.done: list[int] = []
        self.in_flight: list[InFlight] = []
        for request in requests:
            self.send(request)

    def send(self, request, version: int = 4, deadline_ms: int = 0) -> bytes:
        number = len(self.in_flight)
        in_flight, buffers = self.pipeline.start(
            request, version, deadline_ms, lambda: self.done.append(number)
        )
        self.in_flight.append(in_flight)
        return b"".join(map(bytes, buffers))

    def answer(self, number: int, throttle_time_ms: int = 0) -> bytes:
        received = Received(ApiKey.HEARTBEAT, 4, self.in_flight[number].correlation_id, None, None)
        return encoded(received, HeartbeatResponse(throttle_time_ms=throttle_time_ms))


def heartbeat() -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def test_a_request_is_a_frame_with_header_and_body():
    frame = Sent().send(heartbeat())
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    view = memoryview(frame)[4:]
    assert read_request_start(view) == (ApiKey.HEARTBEAT, 4, 0)
    correlation_id, client_id, position = read_request_header(view)
    body, end = HeartbeatRequest.decoder(4)(view, position)
    assert (correlation_id, client_id, end) == (0, "tester", len(view))
    assert body == heartbeat()


def test_records_are_handed_on_without_a_copy():
    records = memoryview(bytearray(5_000))
    partition = ProduceRequest.PartitionProduceData(index=0, records=records)
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    request = ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic])
    pipeline = RequestPipeline(None, RESPONSE_MAX_BYTES)
    _, buffers = pipeline.start(request, 9, 0, lambda: None)
    assert any(buffer is records for buffer in buffers)


def test_answers_belong_to_the_requests_in_their_order():
    sent = Sent(heartbeat(), heartbeat(), heartbeat())
    sent.pipeline.receive(sent.answer(0, 10) + sent.answer(1, 11))
    assert sent.done == [0, 1]
    assert [request.answer.throttle_time_ms for request in sent.in_flight[:2]] == [10, 11]
    assert len(sent.pipeline) == 1
    sent.pipeline.receive(sent.answer(2, 12))
    assert sent.done == [0, 1, 2]


def test_answers_may_come_byte_by_byte():
    sent = Sent(heartbeat(), heartbeat())
    for byte in sent.answer(0) + sent.answer(1):
        sent.pipeline.receive(bytes([byte]))
    assert sent.done == [0, 1]
    assert not sent.pipeline.is_within_answer


def test_a_wrong_correlation_id_is_an_error_that_names_both():
    sent = Sent(heartbeat(), heartbeat())
    with pytest.raises(PeerProtocolError, match=r"answered request 1, and it is 0's turn"):
        sent.pipeline.receive(sent.answer(1))
    assert sent.done == []


def test_an_answer_that_nobody_requested_is_an_error():
    sent = Sent(heartbeat())
    answer = sent.answer(0)
    sent.pipeline.receive(answer)
    with pytest.raises(PeerProtocolError, match="without a request"):
        sent.pipeline.receive(answer)


@pytest.mark.parametrize(
    "size",
    [RESPONSE_MAX_BYTES + 1, 0x7FFFFFFF, -1, -0x80000000],
)
def test_an_answer_announced_too_large_or_negative_is_an_error_at_once(size):
    sent = Sent(heartbeat())
    with pytest.raises(PeerProtocolError, match=f"response_max_bytes={RESPONSE_MAX_BYTES}"):
        sent.pipeline.receive(size.to_bytes(4, "big", signed=True))


def test_an_answer_as_large_as_allowed_is_taken():
    sent = Sent(heartbeat())
    answer = sent.answer(0)[4:]
    padding = bytes(RESPONSE_MAX_BYTES - len(answer))
    sent.pipeline.receive(framed(answer, padding))
    assert sent.done == [0]


def test_every_answer_cut_short_is_an_error_and_never_another_exception():
    whole = Sent(heartbeat()).answer(0)[4:]
    for size in range(len(whole)):
        sent = Sent(heartbeat())
        with pytest.raises(PeerProtocolError):
            sent.pipeline.receive(framed(whole[:size]))


def test_garbage_in_the_body_is_an_error_that_names_the_message():
    sent = Sent(MetadataRequest(topics=None))
    garbage = b"\0\0\0\0" + b"\xff" * 40
    with pytest.raises(PeerProtocolError, match="no MetadataResponse v4"):
        sent.pipeline.receive(framed(garbage))


@settings(max_examples=300, deadline=None)
@given(
    bodies=st.lists(st.binary(max_size=60), max_size=5),
    tail=st.binary(max_size=20),
    cuts=st.lists(st.integers(0, 200), max_size=6),
)
def test_whatever_comes_is_an_answer_or_one_kind_of_error(bodies, tail, cuts):
    sent = Sent(*(MetadataRequest(topics=None) for _ in range(4)))
    stream = b"".join(framed(number.to_bytes(4, "big"), body) for number, body in enumerate(bodies))
    stream += tail
    pieces = sorted({min(cut, len(stream)) for cut in [0, *cuts, len(stream)]})
    try:
        for start, end in itertools.pairwise(pieces):
            sent.pipeline.receive(stream[start:end])
    except PeerProtocolError:
        pass
    assert sent.done == list(range(len(sent.done)))


def test_what_was_answered_before_an_error_counts():
    sent = Sent(heartbeat(), heartbeat())
    with pytest.raises(PeerProtocolError):
        sent.pipeline.receive(sent.answer(0) + framed(b"\xff" * 8))
    assert sent.done == [0]


def test_a_request_that_the_version_cannot_carry_is_not_sent():
    sent = Sent()
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    with pytest.raises(EncodeError):
        sent.send(request, version=0)
    assert len(sent.pipeline) == 0
    assert sent.send(heartbeat())[8:12] == b"\0\0\0\0", "correlation id 0 was given away"


def test_failing_all_tells_each_that_waits_why():
    sent = Sent(heartbeat(), heartbeat())
    failure = DisconnectedError("planted")
    sent.pipeline.fail_all(failure)
    assert sent.done == [0, 1]
    assert all(request.failure is failure for request in sent.in_flight)
    assert len(sent.pipeline) == 0


def test_the_next_deadline_is_the_earliest_of_all_in_flight():
    sent = Sent()
    assert sent.pipeline.next_deadline_ms() is None
    sent.send(heartbeat(), deadline_ms=500)
    sent.send(heartbeat(), deadline_ms=300)
    assert sent.pipeline.next_deadline_ms() == 300


def test_the_refusal_of_an_unknown_api_versions_is_read_though_it_is_of_version_0():
    sent = Sent()
    sent.send(ApiVersionsRequest(), version=4)
    refusal = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=api_versions({18: (0, 2)}).api_keys
    )
    as_version_0 = Received(ApiKey.API_VERSIONS, 0, 0, None, None)
    sent.pipeline.receive(encoded(as_version_0, refusal))
    assert sent.in_flight[0].answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert sent.in_flight[0].answer.api_keys[0].max_version == 2
