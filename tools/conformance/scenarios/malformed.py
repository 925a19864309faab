"""Every API's requests at their edges: empty, with more than belongs there, cut short, garbled, and
in versions that there are not; and frames that are no request at all."""

from __future__ import annotations

import struct
from typing import Any

from ....protocol.api_keys import ApiKey
from ....protocol.messages import ApiVersionsRequest, request_message
from ..connection import ConnectionClosedError
from ..scenario import NEWEST, scenario
from ..talk import Talk, served_versions
from .classic_groups import Member, heartbeat

HUGE = 0x7FFFFFFF
UNKNOWN_TAG = 9999
LEFT_OUT = frozenset(
    {
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.ELECT_LEADERS,
        ApiKey.LIST_CONFIG_RESOURCES,
        ApiKey.LIST_GROUPS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.METADATA,
    }
)
"""APIs whose empty request asks for all that there is, of which some changes with time; and one
that Kafka never answers then."""


def least(api_key: ApiKey) -> Any:
    """A request that says as little as possible, and wants an answer."""
    request: Any = request_message(api_key)()
    if api_key is ApiKey.PRODUCE:
        request.acks = -1
    return request


def body_of(api_key: ApiKey, version: int) -> bytes:
    """The body of a request that says as little as possible."""
    request = least(api_key)
    return b"".join(map(bytes, type(request).encoder(version)(request)))


def still_served(talk: Talk) -> None:
    """The broker answers on the connection, or on a new one."""
    talk.refused(heartbeat(Member("absent-group", "nobody", 1)))


def register(api_key: ApiKey) -> None:
    """The scenarios that every API has."""

    @scenario(api_key)
    def request_says_nothing(talk: Talk) -> None:
        if api_key not in LEFT_OUT:
            talk.refused(least(api_key), talk.version)
        still_served(talk)

    @scenario(api_key, NEWEST)
    def request_has_bytes_after_it(talk: Talk) -> None:
        if api_key not in LEFT_OUT:
            body = body_of(api_key, talk.version) + b"\0\1\2"
            talk.refused_bytes(request_message(api_key)(), talk.version, body)
        still_served(talk)

    @scenario(api_key, NEWEST)
    def request_has_a_tag_that_nobody_knows(talk: Talk) -> None:
        request = least(api_key)
        if api_key not in LEFT_OUT and talk.version in type(request).flexible:
            request.unknown_tags = {UNKNOWN_TAG: b"something"}
            talk.refused(request, talk.version)
        still_served(talk)

    @scenario(api_key, NEWEST)
    def request_is_in_versions_that_are_not_there(talk: Talk) -> None:
        served = served_versions()[api_key]
        request = request_message(api_key)()
        for version in (served[-1] + 1, served[0] - 1, 99, -1, HUGE >> 16):
            if version not in served:
                talk.refused_bytes(request, version, b"")
        still_served(talk)

    @scenario(api_key, NEWEST)
    def request_is_cut_short(talk: Talk) -> None:
        body = body_of(api_key, talk.version)
        if body and not all(byte == 0 for byte in body[-1:]):
            body += b"\0"
        talk.refused_bytes(request_message(api_key)(), talk.version, body[: len(body) // 2])
        still_served(talk)

    @scenario(api_key, NEWEST)
    def request_is_of_random_bytes(talk: Talk) -> None:
        body = bytes((31 * position + 200) % 256 for position in range(64))
        talk.refused_bytes(request_message(api_key)(), talk.version, body)
        still_served(talk)


for key in served_versions():
    register(ApiKey(key))


def frame(api_key: int, version: int, rest: bytes = b"") -> bytes:
    """A request's start, with a client id of four letters."""
    return struct.pack(">hhih", api_key, version, 7, 4) + b"peer" + rest


FRAMES = {
    "an API that is not there": frame(999, 0),
    "a negative API": frame(-1, 0),
    "an empty frame": b"",
    "two bytes": b"\0\1",
    "no client id": struct.pack(">hhih", ApiKey.API_VERSIONS, 0, 7, -1),
    "a client id that is longer than the frame": struct.pack(">hhih", 18, 0, 7, 500),
    "a client id of a negative length": struct.pack(">hhih", 18, 0, 7, -2),
    "an answer's shape": struct.pack(">i", 7),
}


@scenario(ApiKey.API_VERSIONS, "0", cases=FRAMES)
def frame_is(talk: Talk, data: bytes) -> None:
    talk.refused_frame(data)
    still_served(talk)


@scenario(
    ApiKey.API_VERSIONS,
    "0",
    cases={"negative": -1, "the smallest": -HUGE - 1, "the largest": HUGE, "too large": 104857601},
)
def length_of_a_frame_is(talk: Talk, length: int) -> None:
    talk.connection.send_bytes(struct.pack(">i", length) + frame(ApiKey.API_VERSIONS, 0))
    talk.refused_frame(None)
    still_served(talk)


@scenario(ApiKey.API_VERSIONS, "0")
def requests_are_sent_together(talk: Talk) -> None:
    for _ in range(3):
        talk.connection.send(ApiVersionsRequest(), 0)
    for _ in range(3):
        talk.send(ApiVersionsRequest(), 0)
        talk.receive()


@scenario(ApiKey.API_VERSIONS, "0")
def good_request_follows_a_bad_one(talk: Talk) -> None:
    talk.connection.send_frame(frame(999, 0))
    try:
        talk.ask(ApiVersionsRequest(), 0)
    except ConnectionClosedError:
        talk.reconnect()
    still_served(talk)
