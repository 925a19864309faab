"""Values of any message and version, of every kind that its bytes can say, from a seed."""

from __future__ import annotations

from random import Random
from typing import Any

import construct

from odradek.protocol.codec.types import UNKNOWN_TAGS
from odradek.protocol.codec.wire import (
    TAGGED_FIELDS,
    Presence,
    Repeated,
    ResolvedStruct,
    Sized,
    Text,
)

INTEGER_BITS = {"b": 8, "h": 16, "l": 32, "q": 64}
UNSIGNED_BITS = {"H": 16, "L": 32}
TEXTS = ("", "a", "topic-1", "größe", "日本", "\U0001f680", "x" * 130)
LONG_BYTES = b"\x01" * 130
"""Lengths above 127 take another byte."""


def random_value(resolved: ResolvedStruct, rng: Random) -> Any:
    """A value of one version of a message or struct, with tagged fields known and unknown.

    Args:
        resolved: of the message, such as `MetadataRequest.version(9)`.
        rng: the same seed gives the same value.
    """
    fields: dict[str, Any] = {}
    for subcon in resolved.subcons:
        if subcon.name == TAGGED_FIELDS:
            for field in subcon.subcon.fields.values():
                fields[field.name] = _content(field.subcon, rng)
            if rng.randrange(4) == 0:
                fields[UNKNOWN_TAGS] = {
                    rng.randrange(1000, 2**20): _bytes(rng) for _ in range(rng.randint(1, 2))
                }
        else:
            fields[subcon.name] = _content(subcon.subcon, rng)
    return resolved.declaration(**fields)


def _content(wire_type: construct.Construct, rng: Random) -> Any:
    if wire_type is construct.Flag:
        return rng.random() < 0.5
    if isinstance(wire_type, construct.Bytes):
        return rng.randbytes(wire_type.length)
    if isinstance(wire_type, construct.FormatField):
        return _number(wire_type.fmtstr[-1], rng)
    if isinstance(wire_type, Presence):
        return None if rng.randrange(4) == 0 else _content(wire_type.content, rng)
    if isinstance(wire_type, ResolvedStruct):
        return random_value(wire_type, rng)
    assert isinstance(wire_type, Sized)
    if wire_type.nullable and rng.randrange(4) == 0:
        return None
    if isinstance(wire_type, Text):
        return rng.choice(TEXTS)
    if isinstance(wire_type, Repeated):
        return [_content(wire_type.element, rng) for _ in range(rng.randrange(3))]
    return _bytes(rng)


def _number(form: str, rng: Random) -> int | float:
    if form == "d":
        return rng.uniform(-1e9, 1e9)
    if form in UNSIGNED_BITS:
        return rng.randrange(1 << UNSIGNED_BITS[form])
    half = 1 << (INTEGER_BITS[form] - 1)
    return rng.choice((rng.randrange(-half, half), 0, -1, 1, half - 1, -half))


def _bytes(rng: Random) -> bytes:
    return LONG_BYTES if rng.randrange(8) == 0 else rng.randbytes(rng.randrange(7))
