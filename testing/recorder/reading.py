"""What a recorded frame says: its message, or why there is none to be read."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...protocol.api_keys import ApiKey
from ...protocol.errors import ProtocolError, UnsupportedVersionError
from ...protocol.headers import read_request_header, read_response_header
from ...protocol.messages import request_message, response_message
from .addresses import decoded_api_versions
from .recording import FrameKind, RecordedFrame

KNOWN_APIS = frozenset(ApiKey)


class Reading(NamedTuple):
    """What a frame says.

    Attributes:
        name: of the API, such as `Produce`; `API 999` of one that is unknown.
        message: decoded; None if that cannot be done.
        version: of the message: an answer to ApiVersions may have another than the request's.
        client_id: of a request.
        problem: why there is no message, or what is wrong beside it.
    """

    name: str
    message: Any = None
    version: int = -1
    client_id: str | None = None
    problem: str = ""


def api_name(api_key: int) -> str:
    """Kafka's name of an API."""
    if api_key not in KNOWN_APIS:
        return f"API {api_key}"
    return request_message(api_key).name.removesuffix("Request")


def read(frame: RecordedFrame) -> Reading:
    """Read a frame; whatever is in it, nothing is raised."""
    if frame.kind in (FrameKind.TOKEN, FrameKind.TOKEN_ANSWER):
        return Reading("SASL token", problem="without a header, and not recorded")
    if frame.kind is FrameKind.UNASKED:
        return Reading("an answer to no request", problem=f"{len(frame.content):,} bytes")
    name, version = api_name(frame.api_key), frame.api_version
    if frame.api_key not in KNOWN_APIS:
        problem = f"no known API, {len(frame.content):,} bytes"
        return Reading(name, version=version, problem=problem)
    try:
        if frame.kind is FrameKind.REQUEST:
            return _request(frame, name)
        return _answer(frame, name)
    except UnsupportedVersionError:
        problem = f"no known version, {len(frame.content):,} bytes"
    except ProtocolError as error:
        problem = f"not understood: {error}"
    return Reading(name, version=version, problem=problem)


def _request(frame: RecordedFrame, name: str) -> Reading:
    decoder = request_message(frame.api_key).decoder(frame.api_version)
    _, client_id, position = read_request_header(frame.content)
    if frame.is_redacted and position == len(frame.content):
        return Reading(name, None, frame.api_version, client_id, "not recorded")
    message, end = decoder(frame.content, position)
    return Reading(name, message, frame.api_version, client_id, _trailing(frame, end))


def _answer(frame: RecordedFrame, name: str) -> Reading:
    decoder = response_message(frame.api_key).decoder(frame.api_version)
    _, position = read_response_header(frame.content, frame.api_key, frame.api_version)
    if frame.api_key == ApiKey.API_VERSIONS:
        message, version = decoded_api_versions(frame.content, position, frame.api_version)
        return Reading(name, message, version)
    if frame.is_redacted and position == len(frame.content):
        return Reading(name, None, frame.api_version, problem="not recorded")
    message, end = decoder(frame.content, position)
    return Reading(name, message, frame.api_version, problem=_trailing(frame, end))


def _trailing(frame: RecordedFrame, end: int) -> str:
    left = len(frame.content) - end
    return f"{left:,} bytes are left over after the message" if left else ""
