"""What a hostile or broken peer sends: every decoder refuses it, at once and in one way."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator

import pytest

from odradek.protocol import ProtocolError, messages
from odradek.protocol.codec.message import MessageType

Rows = Callable[[str], list[list[str]]]

INSERTIONS = (b"\xff\xff\xff\xff\x0f", b"\x80", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe")
EDGES = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF)


def kafkas_messages(kafka_rows: Rows) -> Iterator[tuple[MessageType, int, bytes]]:
    for side, api_key, version, body in kafka_rows("kafka-4.3.1-messages.tsv"):
        find = messages.request_message if side == "request" else messages.response_message
        yield find(int(api_key)), int(version), bytes.fromhex(body)


def mutated(body: bytes, rng: random.Random) -> bytes:
    """The body with one to three bytes changed, put in or taken out."""
    damaged = bytearray(body)
    for _ in range(rng.randint(1, 3)):
        index = rng.randrange(len(damaged) + 1)
        match rng.randrange(5):
            case 0:
                damaged[index : index + 1] = bytes([rng.choice(EDGES)])
            case 1:
                damaged[index:index] = rng.choice(INSERTIONS)
            case _:
                del damaged[index : index + rng.randint(1, 4)]
    return bytes(damaged)


def decoded_or_none(message: MessageType, version: int, body: bytes) -> object:
    try:
        return message.decoder(version)(body, 0)[0]
    except ProtocolError:
        return None


def test_a_body_cut_short_anywhere_is_refused(kafka_rows: Rows) -> None:
    for message, version, body in kafkas_messages(kafka_rows):
        decode = message.decoder(version)
        for size in range(min(len(body), 200)):
            with pytest.raises(ProtocolError):
                decode(body[:size], 0)


def test_random_bytes_raise_nothing_but_protocol_errors(kafka_rows: Rows) -> None:
    rng = random.Random(1)
    for message, version, _ in kafkas_messages(kafka_rows):
        for _ in range(60):
            decoded_or_none(message, version, rng.randbytes(rng.randrange(60)))


def test_mutated_bodies_raise_nothing_but_protocol_errors(kafka_rows: Rows) -> None:
    rng = random.Random(2)
    for message, version, body in kafkas_messages(kafka_rows):
        for _ in range(60):
            decoded_or_none(message, version, mutated(body, rng))


def test_decoder_and_interpreted_construct_refuse_the_same(kafka_rows: Rows) -> None:
    rng = random.Random(3)
    for message, version, body in kafkas_messages(kafka_rows):
        for _ in range(5):
            damaged = mutated(body, rng)
            try:
                interpreted = message.parse(damaged, version=version)
            except ProtocolError:
                interpreted = None
            decoded = decoded_or_none(message, version, damaged)
            # Values with a float that is no number differ from themselves.
            assert decoded == interpreted or "nan" in repr(decoded)


@pytest.mark.parametrize("count", [2**31 - 1, -2, -(2**31)])
def test_a_hostile_count_of_structs_is_refused_before_anything_is_made(count: int) -> None:
    body = struct.pack(">i", count) + bytes(64)
    with pytest.raises(ProtocolError, match="topics"):
        messages.MetadataRequest.decoder(0)(body, 0)


def test_a_hostile_count_of_integers_is_refused_before_anything_is_made() -> None:
    request = messages.ListPartitionReassignmentsRequest
    topic = request.ListPartitionReassignmentsTopics(name="t", partition_indexes=[1, 2])
    body = b"".join(request.encoder(0)(request(topics=[topic])))
    hostile = body.replace(b"\x03\x00\x00\x00\x01", b"\xff\xff\xff\xff\x0f\x00\x00\x00\x01")
    assert hostile != body
    with pytest.raises(ProtocolError, match="partition_indexes"):
        request.decoder(0)(hostile, 0)


def test_a_count_is_measured_by_what_its_elements_need() -> None:
    # Three topics need at least a length of two bytes each; five bytes hold two.
    with pytest.raises(ProtocolError, match="announces 3 elements"):
        messages.MetadataRequest.decoder(0)(struct.pack(">i", 3) + bytes(5), 0)
    assert len(messages.MetadataRequest.decoder(0)(struct.pack(">i", 3) + bytes(6), 0)[0].topics)


def test_a_string_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ProtocolError, match="UTF-8"):
        messages.MetadataRequest.decoder(0)(b"\x00\x00\x00\x01\x00\x02\xc3\x28", 0)


def test_null_is_refused_where_the_version_has_none() -> None:
    body = b"\x00\x00\x00\x01\xff\xff"
    with pytest.raises(ProtocolError, match=r"MetadataRequestTopic\.name is null"):
        messages.MetadataRequest.decoder(0)(body, 0)
    assert messages.MetadataRequest.decoder(1)(b"\xff\xff\xff\xff", 0)[0].topics is None
    with pytest.raises(ProtocolError, match=r"MetadataRequest\.topics is null"):
        messages.MetadataRequest.decoder(0)(b"\xff\xff\xff\xff", 0)


def test_a_negative_length_is_null_only_if_it_is_minus_one() -> None:
    with pytest.raises(ProtocolError, match="a length of -2"):
        messages.MetadataRequest.decoder(1)(b"\xff\xff\xff\xfe", 0)


def test_a_string_longer_than_kafka_allows_is_refused() -> None:
    heartbeat = messages.HeartbeatRequest
    for size, refused in ((0x7FFF, False), (0x8000, True)):
        length = size + 1
        varint = bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14])
        body = varint + b"g" * size + b"\x00\x00\x00\x01\x02m\x00\x00"
        if refused:
            with pytest.raises(ProtocolError, match="more than a string may"):
                heartbeat.decoder(4)(body, 0)
        else:
            assert heartbeat.decoder(4)(body, 0)[0].group_id == "g" * size


def test_a_varint_of_six_bytes_is_refused() -> None:
    with pytest.raises(ProtocolError, match="varint"):
        messages.MetadataRequest.decoder(9)(b"\x80\x80\x80\x80\x80\x01", 0)


def test_a_tagged_field_must_have_the_size_it_announces() -> None:
    fetch = messages.FetchRequest
    body = b"".join(fetch.encoder(12)(fetch(cluster_id="abc")))
    assert body.endswith(b"\x01\x00\x04\x04abc")
    for size in (b"\x03", b"\x05"):
        with pytest.raises(ProtocolError):
            fetch.decoder(12)(body[:-5] + size + b"\x04abc", 0)


def test_more_tagged_fields_than_bytes_are_refused() -> None:
    encoded = b"".join(messages.HeartbeatResponse.encoder(4)(messages.HeartbeatResponse()))
    with pytest.raises(ProtocolError, match="tagged fields"):
        messages.HeartbeatResponse.decoder(4)(encoded[:-1] + b"\xff\xff\xff\xff\x0f", 0)
