"""Bytes <-> messages: wire types, one schema per API, headers, frames, record batches.

Nothing here may read a socket, a file or a clock, or know of trio: bytes in, messages
out, and back. Everything else uses this package.

Importing the package imports no schema; `messages` does at first use. Only plain constructs, which
the codecs are tested against, import construct.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import ErrorCode, KafkaError
from ..common.sentinels import ZERO_UUID
from .api_keys import ApiKey
from .errors import EncodeError, ProtocolError, UnsupportedVersionError

if TYPE_CHECKING:
    from .codec.message import Message
    from .varints import Buffer

__all__ = [
    "ZERO_UUID",
    "ApiKey",
    "EncodeError",
    "ErrorCode",
    "KafkaError",
    "ProtocolError",
    "UnsupportedVersionError",
    "decode_body",
    "encode_body",
]


def decode_body(api_key: int, version: int, body: Buffer, *, response: bool = False) -> Any:
    """The message in a request's or response's body, that is without its header.

    Args:
        api_key: which API.
        version: of the message.
        body: all of its bytes.
        response: whether it is a response.

    Raises:
        ProtocolError: the bytes are no such message, or bytes are left over.
        UnsupportedVersionError: the API has no such version.
        ValueError: there is no such API.
    """
    from . import messages

    find = messages.response_message if response else messages.request_message
    message, position = find(api_key).decoder(version)(body, 0)
    if position != len(body):
        raise ProtocolError(f"{len(body) - position} bytes are left over after the message")
    return message


def encode_body(message: Message, version: int) -> bytes:
    """The bytes of a request's or response's body, records included.

    Raises:
        EncodeError: the version cannot carry what the message holds.
        UnsupportedVersionError: the message has no such version.
    """
    return b"".join(type(message).encoder(version)(message))
