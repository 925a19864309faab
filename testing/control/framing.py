"""What goes over the control channel: JSON behind its length, with bytes as base64."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

FRAME_BYTES_MAX = 64 << 20
"""Of one request or answer, without its length."""
HELLO_BYTES_MAX = 1024
"""Of the first frame of a connection, before anybody has shown the token."""
TOKEN_VARIABLE = "ODRADEK_CONTROL_TOKEN"
"""The environment variable that hands the token to the broker's process."""

PREFIX = struct.Struct(">I")
_BYTES_MARK = "$bytes"


class FrameError(Exception):
    """A frame that is too long, or holds no JSON."""


def encode(value: Any) -> bytes:
    """A frame: the length in four bytes, then JSON.

    Args:
        value: of dicts with text as keys, lists, tuples, text, numbers, bytes and None.

    Raises:
        FrameError: it is longer than `FRAME_BYTES_MAX`.
    """
    body = json.dumps(value, default=_as_json, separators=(",", ":")).encode()
    if len(body) > FRAME_BYTES_MAX:
        raise FrameError(
            f"a message of {len(body)} bytes is more than the control channel takes "
            f"({FRAME_BYTES_MAX}): ask for less at once"
        )
    return PREFIX.pack(len(body)) + body


def decode(body: bytes | bytearray) -> Any:
    """What `encode` was given, from a frame without its length.

    Raises:
        FrameError: it is no JSON.
    """
    try:
        return json.loads(body, object_hook=_from_json)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a message on the control channel cannot be read: {error}") from None


def body_length(prefix: bytes | bytearray, length_max: int = FRAME_BYTES_MAX) -> int:
    """How long the frame is that these four bytes announce.

    Raises:
        FrameError: longer than `length_max`.
    """
    (length,) = PREFIX.unpack(prefix)
    if length > length_max:
        raise FrameError(f"a message of {length} bytes is more than {length_max}")
    return int(length)


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return {_BYTES_MARK: base64.b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} cannot go over the control channel")


def _from_json(value: dict[str, Any]) -> Any:
    if len(value) == 1 and isinstance(value.get(_BYTES_MARK), str):
        return base64.b64decode(value[_BYTES_MARK], validate=True)
    return value
