"""Frames that no client of good will sends: the broker closes that connection, or answers.

Which of the two was learned from Apache Kafka 4.3.1, against which this file passes too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from kafka.protocol.metadata import (
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from support.raw_connection import RawConnection, encode

Connect = Callable[[], RawConnection]
AssertLogged = Callable[[RawConnection, str], None]

API_VERSIONS = 18
METADATA = 3
PRODUCE = 0
UPDATE_METADATA = 6
CONTROLLED_SHUTDOWN = 7
UNSUPPORTED_VERSION = 35
SOCKET_REQUEST_MAX_BYTES = 104_857_600


def length(announced: int) -> bytes:
    return struct.pack(">i", announced)


def frame(api_key: int, api_version: int, body: bytes = b"") -> bytes:
    """A frame with a header of version 1, that is with a client id `c`."""
    content = struct.pack(">hhi", api_key, api_version, 7) + b"\x00\x01c" + body
    return length(len(content)) + content


def names(*encoded: bytes, count: int | None = None) -> bytes:
    """The body of Metadata v1: an array of topic names."""
    return struct.pack(">i", len(encoded) if count is None else count) + b"".join(encoded)


CLOSED = {
    "longer than socket.request.max.bytes": (length(SOCKET_REQUEST_MAX_BYTES + 1), "104857601"),
    "of 2 GB": (length(2**31 - 1), "2147483647"),
    "of length -1": (length(-1), "-1"),
    "of the least length": (length(-(2**31)), "-2147483648"),
    "of length 0": (length(0), ""),
    "of one byte": (length(1) + b"x", ""),
    "with a header cut short": (length(4) + b"\x00\x03\x00\x01", ""),
    "with a client id longer than itself": (length(10) + struct.pack(">hhih", 3, 1, 7, 500), ""),
    "of an unknown API key": (frame(999, 0), "999"),
    "of a negative API key": (frame(-1, 0), "-1"),
    "of a version yet to come": (frame(METADATA, 99), "99"),
    "of a version that is gone": (frame(PRODUCE, 2), "2"),
    "of a negative version": (frame(METADATA, -1), "-1"),
    "of the controller to a broker": (frame(UPDATE_METADATA, 0), "6"),
    "of a broker to the controller": (frame(CONTROLLED_SHUTDOWN, 0), "7"),
    "without a body": (frame(METADATA, 1), ""),
    "with an array longer than itself": (frame(METADATA, 1, names(count=2**31 - 1)), ""),
    "with a string longer than itself": (frame(METADATA, 1, names(b"\x03\xe8abc")), ""),
    "with a string of negative length": (frame(METADATA, 1, names(b"\xff\xfbabc")), ""),
    "with a null where none may be": (frame(METADATA, 1, names(b"\xff\xff")), ""),
    "with an endless varint": (frame(METADATA, 12, b"\x00" + b"\xff" * 6), ""),
    "with HTTP in it": (b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", "1195725856"),
    "with TLS in it": (bytes.fromhex("16030100c8010000c40303") + b"\x00" * 200, "369295616"),
}


@pytest.mark.parametrize("case", CLOSED)
def test_connection_is_closed_on_a_frame(
    connect: Connect, assert_logged: AssertLogged, case: str
) -> None:
    data, why = CLOSED[case]
    connection = connect()

    connection.send_bytes(data)

    connection.assert_closed()
    assert_logged(connection, why)


def test_connection_is_closed_though_requests_before_were_good(
    connect: Connect, assert_logged: AssertLogged
) -> None:
    connection = connect()
    connection.assert_served()

    connection.send_bytes(frame(METADATA, 99))

    connection.assert_closed()
    assert_logged(connection, "99")


def test_requests_before_a_bad_frame_in_one_packet_are_answered(connect: Connect) -> None:
    connection = connect()

    connection.send_bytes(frame(API_VERSIONS, 0) + frame(METADATA, 99))

    response = connection.receive(ApiVersionsResponse, 0)
    assert (response.header.correlation_id, response.error_code) == (7, 0)
    connection.assert_closed()


@pytest.mark.parametrize("version", [99, 32767, -1])
def test_unsupported_version_of_api_versions_is_answered_in_version_0(
    connect: Connect, version: int
) -> None:
    connection = connect()

    connection.send_bytes(frame(API_VERSIONS, version, b"\x00"))

    response = connection.receive(ApiVersionsResponse, 0)
    served = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert response.error_code == UNSUPPORTED_VERSION
    assert served[API_VERSIONS] == (0, 4)
    connection.assert_served()


@pytest.mark.parametrize("version", [1, 12])
def test_bytes_after_the_body_are_ignored(connect: Connect, version: int) -> None:
    connection = connect()

    request = encode(MetadataRequest(topics=[]), version, correlation_id=7)
    connection.send_frame(request + b"trailing bytes")

    response = connection.receive(MetadataResponse, version)
    assert (response.header.correlation_id, list(response.topics)) == (7, [])
    connection.assert_served()


def test_unknown_tagged_fields_are_ignored(connect: Connect) -> None:
    connection = connect()
    header_tags = b"\x01\x63\x02ab"
    body = b"\x01\x01\x00" + b"\x01\x44\x03abc"

    connection.send_bytes(frame(METADATA, 12, header_tags + body))

    assert connection.receive(MetadataResponse, 12).header.correlation_id == 7


def test_null_client_id_is_served(connect: Connect) -> None:
    connection = connect()

    connection.send_frame(struct.pack(">hhih", METADATA, 1, 7, -1) + names())

    assert connection.receive(MetadataResponse, 1).header.correlation_id == 7


def test_frame_that_comes_byte_by_byte_is_answered(connect: Connect) -> None:
    connection = connect()

    for byte in frame(API_VERSIONS, 0):
        connection.send_bytes(bytes([byte]))

    assert connection.receive(ApiVersionsResponse, 0).header.correlation_id == 7


def test_connection_that_ends_within_a_frame_is_closed(connect: Connect) -> None:
    connection = connect()

    connection.send_bytes(frame(API_VERSIONS, 0)[:-1])
    connection.close_sending()

    connection.assert_closed()
