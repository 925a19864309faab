"""What goes over the control channel: JSON behind its length, with bytes as base64."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

FRAME_BYTES_MAX = 64 << 20
"""Of one request or answer, without its length."""
HELLO_BYTES_MAX = 1024
"""Of the first frame of a connection, before anybody has shown the token."""
TOKEN_VARIABLE = "ODRADEK_CONTROL_TOKEN"
"""The environment variable that hands the token to the broker's process."""

PREFIX = struct.Struct(">I")
_BYTES_MARK = "$bytes"


class VerbError(Exception):
    """A verb cannot be carried out; the text is a sentence for the caller."""


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


def to_wire(value: Any) -> Any:
    """A value as JSON can say it: tuples and dataclasses as lists of their fields.

    A mapping whose keys are no text becomes a list of pairs.
    """
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: to_wire(each) for key, each in value.items()}
        return [[to_wire(key), to_wire(each)] for key, each in value.items()]
    if isinstance(value, list | tuple):
        return [to_wire(each) for each in value]
    if is_dataclass(value):
        return [to_wire(getattr(value, field.name)) for field in fields(value)]
    return value


@cache
def _field_types(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def from_wire(value: Any, hint: Any) -> Any:
    """The value that `to_wire` was given.

    Args:
        value: from JSON.
        hint: its type: what `to_wire` takes, or one of those or None.

    Raises:
        ValueError: it does not have the fields of the type.
    """
    if value is None:
        return None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (hint,) = (each for each in arguments if each is not type(None))
        return from_wire(value, hint)
    if isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields")):
        types = _field_types(hint)
        if not isinstance(value, list) or len(value) != len(types):
            raise ValueError(f"{hint.__name__} has {len(types)} fields, which {value!r} has not")
        return hint(*(from_wire(*each) for each in zip(value, types.values(), strict=True)))
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(from_wire(*each) for each in zip(value, arguments, strict=True))
    if origin in (list, tuple):
        return origin(from_wire(each, arguments[0]) for each in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        pairs = value.items() if isinstance(value, dict) else value
        return {from_wire(key, arguments[0]): from_wire(each, arguments[1]) for key, each in pairs}
    return value
