"""Addresses of brokers, and the answers that tell them to clients.

A client that gets a broker's own address goes there, past a proxy. So answers that name
brokers get the addresses of the proxy's listeners. Which answers do is a table here; a test holds
it against all schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ...common.errors import ErrorCode
from ...protocol import encode_body
from ...protocol.api_keys import ApiKey
from ...protocol.errors import ProtocolError
from ...protocol.headers import read_response_header, response_header
from ...protocol.messages import ApiVersionsResponse, response_message
from ...protocol.varints import Buffer


class Address(NamedTuple):
    """Where something listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address that HOST:PORT names; an IPv6 address may stand in brackets.

        Raises:
            ValueError: it names none.
        """
        host, colon, port = text.strip().rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not (host and colon and port.isdecimal() and int(port) < 65_536):
            raise ValueError(f"{text!r} is no address; write HOST:PORT, as in 127.0.0.1:9092")
        return cls(host, int(port))


Translate = Callable[[Address], Address]

NAMED_IN: dict[int, tuple[tuple[tuple[str, ...], int], ...]] = {
    ApiKey.PRODUCE: ((("node_endpoints",), 10),),
    ApiKey.FETCH: ((("node_endpoints",), 16),),
    ApiKey.METADATA: ((("brokers",), 0),),
    ApiKey.FIND_COORDINATOR: (((), 0), (("coordinators",), 4)),
    ApiKey.VOTE: ((("node_endpoints",), 1),),
    ApiKey.BEGIN_QUORUM_EPOCH: ((("node_endpoints",), 1),),
    ApiKey.END_QUORUM_EPOCH: ((("node_endpoints",), 1),),
    ApiKey.DESCRIBE_QUORUM: ((("nodes", "listeners"), 2),),
    ApiKey.FETCH_SNAPSHOT: ((("node_endpoints",), 1),),
    ApiKey.DESCRIBE_CLUSTER: ((("brokers",), 0),),
    ApiKey.SHARE_FETCH: ((("node_endpoints",), 0),),
    ApiKey.SHARE_ACKNOWLEDGE: ((("node_endpoints",), 0),),
    ApiKey.UPDATE_RAFT_VOTER: ((("current_leader",), 0),),
}
"""By API, the structs of its answer that hold a broker's host and port, each with the first
version that has it; () is the answer itself. The endpoints in answers to Streams groups are not
here: they are those of the applications."""


def may_name_brokers(api_key: int, version: int) -> bool:
    """Whether an answer may tell a broker's address."""
    return any(version >= first for _, first in NAMED_IN.get(api_key, ()))


def is_rewritten(api_key: int, version: int) -> bool:
    """Whether an answer has to be whole before it is passed on."""
    return api_key == ApiKey.API_VERSIONS or may_name_brokers(api_key, version)


def rewritten(api_key: int, version: int, frame: Buffer, translate: Translate) -> bytes | None:
    """An answer with other addresses, None if it need not be changed.

    Args:
        api_key: of the request that it answers.
        version: of that request.
        frame: the answer, without its length.
        translate: gives the address to send in place of a broker's.

    Raises:
        ProtocolError: it is no such answer.
        UnsupportedVersionError: there is no such version.
    """
    correlation_id, position = read_response_header(frame, api_key, version)
    if api_key == ApiKey.API_VERSIONS:
        message, version = decoded_api_versions(frame, position, version)
        is_changed = _cap_versions(message)
    else:
        message, _ = response_message(api_key).decoder(version)(frame, position)
        is_changed = _translate_all(message, api_key, version, translate)
    if not is_changed:
        return None
    header = response_header(api_key, version, correlation_id)
    return header + encode_body(message, version)


def decoded_api_versions(frame: Buffer, position: int, version: int) -> tuple[Any, int]:
    """An answer to ApiVersions and the version it has, which is 0 where the request's is
    unknown to the broker (KIP-511).

    Raises:
        ProtocolError: it is no such answer.
        UnsupportedVersionError: there is no such version.
    """
    code = int.from_bytes(frame[position : position + 2], "big", signed=True)
    if code == ErrorCode.UNSUPPORTED_VERSION:
        version = 0
    message, end = ApiVersionsResponse.decoder(version)(frame, position)
    if end != len(frame):
        raise ProtocolError(f"{len(frame) - end} bytes are left over after the message")
    return message, version


def _cap_versions(message: Any) -> bool:
    """Offer no version of an answer with addresses that could not be rewritten."""
    is_changed = False
    for api in message.api_keys:
        if api.api_key in NAMED_IN:
            known_max = response_message(api.api_key).versions.stop - 1
            if api.min_version <= known_max < api.max_version:
                api.max_version = known_max
                is_changed = True
    return is_changed


def _translate_all(message: Any, api_key: int, version: int, translate: Translate) -> bool:
    is_changed = False
    for place in places_in(message, api_key, version):
        address = translate(Address(place.host, place.port))
        if address != (place.host, place.port):
            place.host, place.port = address
            is_changed = True
    return is_changed


def places_in(message: Any, api_key: int, version: int) -> Iterable[Any]:
    """The structs of an answer that hold a broker's `host` and `port`.

    Args:
        message: the answer.
        api_key: of the request that it answers.
        version: of that request.
    """
    for path, first_version in NAMED_IN.get(api_key, ()):
        for place in _at(message, path) if version >= first_version else ():
            # Where there is no broker to be named, the host is empty.
            if place.host and place.port > 0:
                yield place


def _at(value: Any, path: tuple[str, ...]) -> Iterable[Any]:
    """The structs that a path leads to, through arrays."""
    if isinstance(value, list):
        for each in value:
            yield from _at(each, path)
    elif not path:
        yield value
    elif value is not None:
        yield from _at(getattr(value, path[0]), path[1:])
