"""Headers of requests and responses, against Kafka's rules and kafka-python's bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka.protocol.api_header import RequestHeader, ResponseHeader

from odradek.protocol import ApiKey, ProtocolError, encode_body, internal, messages
from odradek.protocol.headers import (
    FLEXIBLE_FROM,
    read_request_header,
    read_request_start,
    read_response_header,
    request_header,
    request_header_version,
    response_header,
    response_header_version,
)

Rows = Callable[[str], list[list[str]]]


def test_header_versions_are_kafkas(kafka_rows: Rows) -> None:
    for api_key, _, versions, *flexible in kafka_rows("kafka-4.3.1-headers.tsv"):
        first, last = map(int, versions.split("-"))
        from_request, from_response = (99 if text == "-" else int(text) for text in flexible)
        for version in range(first, last + 1):
            key = int(api_key)
            assert request_header_version(key, version) == (2 if version >= from_request else 1)
            assert response_header_version(key, version) == (1 if version >= from_response else 0)


def test_header_versions_of_older_versions_are_kafkas(kafka_rows: Rows) -> None:
    for api_key, versions, headers in kafka_rows("kafka-3.9.1-headers.tsv"):
        first = int(versions.partition("-")[0])
        for version, header in enumerate(headers.split(), first):
            ours = (
                request_header_version(int(api_key), version),
                response_header_version(int(api_key), version),
            )
            assert ours == tuple(map(int, header.split("/"))), (api_key, version)


@pytest.mark.parametrize("client_id", ["producer-1", "", None, "é" * 100])
@pytest.mark.parametrize(
    ("api_key", "version", "header"),
    [(ApiKey.CONTROLLED_SHUTDOWN, 0, 0), (ApiKey.PRODUCE, 8, 1), (ApiKey.PRODUCE, 9, 2)],
)
def test_headers_are_those_of_the_schemas(
    api_key: ApiKey, version: int, header: int, client_id: str | None
) -> None:
    value = internal.RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=-77,
        client_id=client_id,
    )
    ours = request_header(api_key, version, -77, client_id)
    assert ours == encode_body(value, header)
    answer = internal.ResponseHeader(correlation_id=-77)
    assert response_header(api_key, version, -77) == encode_body(answer, header // 2)


def test_the_table_of_flexible_versions_is_that_of_the_schemas() -> None:
    for api_key in ApiKey:
        flexible = messages.request_message(api_key).flexible
        assert FLEXIBLE_FROM.get(api_key) == (flexible.start if flexible else None)


@pytest.mark.parametrize("client_id", ["producer-1", "", None, "é" * 100])
@pytest.mark.parametrize(("version", "flexible"), [(8, False), (9, True)])
def test_a_request_header_is_kafka_pythons_bytes_and_reads_back(
    client_id: str | None, version: int, flexible: bool
) -> None:
    header = request_header(ApiKey.PRODUCE, version, 77, client_id)
    theirs = RequestHeader(
        request_api_key=0, request_api_version=version, correlation_id=77, client_id=client_id
    )
    assert header == bytes(theirs.encode(flexible=flexible))
    for frame in (header + b"body", bytearray(header + b"body"), memoryview(header + b"body")):
        assert read_request_header(frame) == (77, client_id, len(header))


def test_a_response_header_is_kafka_pythons_bytes_and_reads_back() -> None:
    for version, flexible in ((8, False), (9, True)):
        header = response_header(ApiKey.PRODUCE, version, 77)
        assert header == bytes(ResponseHeader(correlation_id=77).encode(flexible=flexible))
        assert read_response_header(header, ApiKey.PRODUCE, version) == (77, len(header))


def test_api_versions_responses_never_have_tagged_fields_in_their_header() -> None:
    assert request_header_version(ApiKey.API_VERSIONS, 3) == 2
    for version in (0, 3, 4, 99):
        assert response_header(ApiKey.API_VERSIONS, version, 1) == b"\0\0\0\1"


def test_the_first_controlled_shutdown_has_no_client_id() -> None:
    header = request_header(ApiKey.CONTROLLED_SHUTDOWN, 0, 5, "ignored")
    assert header == b"\x00\x07\x00\x00\x00\x00\x00\x05"
    assert read_request_header(header + b"\x00\x00\x00\x01") == (5, None, 8)
    assert request_header(ApiKey.CONTROLLED_SHUTDOWN, 1, 5, "id").endswith(b"\x00\x02id")


def test_the_start_of_any_request_can_be_read() -> None:
    assert read_request_start(b"\x7f\xff\x7f\xff\x00\x00\x00\x09rest") == (0x7FFF, 0x7FFF, 9)
    with pytest.raises(ProtocolError, match="7 bytes"):
        read_request_start(bytes(7))


def test_tagged_fields_of_a_header_are_skipped() -> None:
    header = request_header(ApiKey.PRODUCE, 9, 1, "id")[:-1] + b"\x02\x00\x03abc\x05\x00"
    assert read_request_header(header + b"body") == (1, "id", len(header))
    response = b"\0\0\0\1" + b"\x01\x09\x01x"
    assert read_response_header(response + b"body", ApiKey.PRODUCE, 9) == (1, len(response))


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        b"\x00",
        b"\x00\x05abc",
        b"\xff\xfe",
        b"\x00\x02\xc3\x28\x00",
        b"\xff\xff",
        b"\xff\xff\x01",
        b"\xff\xff\x01\x00\x09a",
        b"\xff\xff\xff\xff\xff\xff\x0f",
        b"\xff\xff\x80\x80\x80\x80\x80\x00",
    ],
)
def test_a_broken_request_header_is_refused(rest: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_request_header(b"\x00\x00\x00\x09\x00\x00\x00\x01" + rest)


def test_a_broken_response_header_is_refused() -> None:
    for frame in (b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\x01\x00\x09a"):
        with pytest.raises(ProtocolError):
            read_response_header(frame, ApiKey.PRODUCE, 9)


def test_a_client_id_has_a_limit() -> None:
    assert len(request_header(ApiKey.PRODUCE, 3, 1, "c" * 0x7FFF)) == 10 + 0x7FFF
    with pytest.raises(ValueError, match="32768 bytes"):
        request_header(ApiKey.PRODUCE, 3, 1, "c" * 0x8000)
