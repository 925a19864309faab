"""Decoding and encoding bodies, for tools that are not the broker."""

from __future__ import annotations

import pytest

from odradek.protocol import (
    ProtocolError,
    UnsupportedVersionError,
    decode_body,
    encode_body,
    messages,
)


def test_a_body_decodes_to_a_message_and_encodes_back() -> None:
    body = b"\x02a\x02b\x00"
    request = decode_body(18, 3, body)
    assert request == messages.ApiVersionsRequest(
        client_software_name="a", client_software_version="b"
    )
    assert encode_body(request, 3) == body


def test_a_response_is_decoded_if_response_is_set() -> None:
    response = decode_body(12, 0, b"\x00\x1b", response=True)
    assert response == messages.HeartbeatResponse(error_code=27)


def test_records_are_part_of_an_encoded_body() -> None:
    request = messages.ProduceRequest
    partition = request.PartitionProduceData(records=memoryview(b"records"))
    topic = request.TopicProduceData(name="t", partition_data=[partition])
    body = encode_body(request(topic_data=[topic]), 3)
    assert body.endswith(b"\x00\x00\x00\x07records")
    assert decode_body(0, 3, body).topic_data[0].partition_data[0].records == b"records"


def test_bytes_left_over_are_refused() -> None:
    with pytest.raises(ProtocolError, match="1 bytes are left over"):
        decode_body(12, 0, b"\x00\x1bx", response=True)


def test_unknown_apis_and_versions_are_refused() -> None:
    with pytest.raises(ValueError, match="200"):
        decode_body(200, 0, b"")
    with pytest.raises(UnsupportedVersionError, match="not 9"):
        decode_body(12, 9, b"")
