"""Addresses in answers: all that name a broker are known, and rewritten at every version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol import encode_body
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.codec.types import Array, StructType
from odradek.protocol.errors import ProtocolError
from odradek.protocol.headers import read_response_header, response_header
from odradek.protocol.messages import ApiVersionsResponse, response_message
from odradek.testing.recorder.addresses import (
    NAMED_IN,
    Address,
    decoded_api_versions,
    may_name_brokers,
    rewritten,
)

REAL = Address("broker.internal", 9092)
TOLD = Address("127.0.0.1", 19192)
OF_APPLICATIONS = {ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE}
"""Their endpoints are those of the programs that are members."""


def structs_with_addresses(struct: StructType, path: tuple[str, ...] = ()) -> Iterator[Any]:
    fields = {field.name: field for field in struct.fields}
    if "host" in fields and "port" in fields:
        yield path, fields["host"].versions
    for field in struct.fields:
        inner = field.type.element if isinstance(field.type, Array) else field.type
        if isinstance(inner, StructType):
            yield from structs_with_addresses(inner, (*path, field.name))


def test_every_answer_that_names_brokers_is_in_the_table() -> None:
    found = {
        (api_key, path, versions.start)
        for api_key in ApiKey
        if api_key not in OF_APPLICATIONS
        for path, versions in structs_with_addresses(response_message(api_key))
    }
    # A field says "0+" where its struct came later; then the table names the struct's version.
    table = {(api_key, path) for api_key, places in NAMED_IN.items() for path, _ in places}
    assert {(api_key, path) for api_key, path, _ in found} == table


def message_with_addresses(api_key: int, version: int) -> Any:
    message = response_message(api_key)()
    for path, first_version in NAMED_IN[api_key]:
        if version < first_version or (not path and version > 3):
            continue
        holder = message
        for name in path:
            field = next(each for each in schema_of(holder).fields if each.name == name)
            if isinstance(field.type, Array):
                element = field.type.element()
                setattr(holder, name, [element])
                holder = element
            else:
                holder = getattr(holder, name)
        holder.host, holder.port = REAL
    return message


def schema_of(value: Any) -> StructType:
    struct: StructType = type(value)
    return struct


CASES = [
    (api_key, version) for api_key in NAMED_IN for version in response_message(api_key).versions
]


@pytest.mark.parametrize(("api_key", "version"), CASES, ids=str)
def test_addresses_are_rewritten_at_every_version(api_key: int, version: int) -> None:
    message = message_with_addresses(api_key, version)
    header = response_header(api_key, version, 77)
    frame = header + encode_body(message, version)
    result = rewritten(
        api_key, version, frame, lambda reported: TOLD if reported == REAL else reported
    )
    if not may_name_brokers(api_key, version):
        assert result is None
        assert REAL.host.encode() not in frame
        return
    assert REAL.host.encode() in frame
    assert result is not None
    assert REAL.host.encode() not in result
    assert TOLD.host.encode() in result
    correlation_id, position = read_response_header(result, api_key, version)
    assert correlation_id == 77
    # Told the other way round, it is what it was.
    back = rewritten(
        api_key, version, result, lambda reported: REAL if reported == TOLD else reported
    )
    assert back == frame
    assert position == len(header)


def test_where_no_broker_is_named_nothing_is_requested() -> None:
    body = encode_body(response_message(ApiKey.FIND_COORDINATOR)(node_id=-1, port=-1), 2)
    frame = response_header(ApiKey.FIND_COORDINATOR, 2, 1) + body

    def translate(reported: Address) -> Address:
        raise AssertionError(f"{reported} is nobody's address")

    assert rewritten(ApiKey.FIND_COORDINATOR, 2, frame, translate) is None


@pytest.mark.parametrize("code", [0, ErrorCode.UNSUPPORTED_VERSION])
def test_no_version_is_offered_whose_addresses_could_not_be_rewritten(code: int) -> None:
    entry = ApiVersionsResponse.ApiVersion
    apis = [
        entry(api_key=ApiKey.METADATA, min_version=0, max_version=99),
        entry(api_key=ApiKey.HEARTBEAT, min_version=0, max_version=99),
        entry(api_key=999, min_version=0, max_version=1),
    ]
    version = 0 if code else 4
    body = encode_body(ApiVersionsResponse(error_code=code, api_keys=apis), version)
    frame = response_header(ApiKey.API_VERSIONS, 4, 5) + body
    result = rewritten(ApiKey.API_VERSIONS, 4, frame, lambda reported: reported)
    assert result is not None
    message, _ = decoded_api_versions(result, 4, 4)
    offered = {api.api_key: api.max_version for api in message.api_keys}
    assert offered == {ApiKey.METADATA: 13, ApiKey.HEARTBEAT: 99, 999: 1}


def test_what_is_no_such_answer_is_the_brokers_fault() -> None:
    frame = response_header(ApiKey.METADATA, 12, 1) + b"\x00\x00\x00\x00\xff\xff"
    with pytest.raises(ProtocolError):
        rewritten(ApiKey.METADATA, 12, frame, lambda reported: reported)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9092", ("localhost", 9092)),
        ("[::1]:9092", ("::1", 9092)),
        ("::1:0", ("::1", 0)),
        (" a.b:1 ", ("a.b", 1)),
    ],
)
def test_an_address_is_read(text: str, address: tuple[str, int]) -> None:
    assert Address.parse(text) == address
    assert Address.parse(str(Address.parse(text))) == address


@pytest.mark.parametrize("text", ["", "localhost", ":9092", "a:b", "a:65536", "a:-1"])
def test_what_is_no_address_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ValueError, match="write HOST:PORT"):
        Address.parse(text)
