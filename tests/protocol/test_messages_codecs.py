"""The generated codecs against the interpreted constructs, for every message and version."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.random_messages import random_value

from odradek.protocol import internal, messages
from odradek.protocol.codec.message import MessageType
from odradek.protocol.codec.wire import ResolvedStruct

MESSAGES: list[MessageType] = [
    *(getattr(messages, name) for name in messages.message_names()),
    *map(internal.find_message, internal.message_names()),
]

Strategy = Callable[[ResolvedStruct], st.SearchStrategy[Any]]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_generated_codecs_equal_the_interpreted_construct(message: MessageType) -> None:
    rng = Random(message.name)
    for version in message.versions:
        require_equal_codecs(message, version, random_value(message.version(version), rng))


@pytest.mark.slow
@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
@given(data=st.data())
@settings(max_examples=16, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_generated_codecs_equal_the_interpreted_construct_in_many_values(
    message: MessageType, value_strategy: Strategy, data: st.DataObject
) -> None:
    version = data.draw(st.sampled_from(message.versions))
    require_equal_codecs(message, version, data.draw(value_strategy(message.version(version))))


def require_equal_codecs(message: MessageType, version: int, value: Any) -> None:
    """What either of the two writes, both read."""
    encoded = b"".join(message.encoder(version)(value))
    assert encoded == message.build(value, version=version)
    decoded, position = message.decoder(version)(encoded, 0)
    assert position == len(encoded)
    assert decoded == value
    assert message.parse(encoded, version=version) == value


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_decoders_take_any_buffer_from_any_position(message: MessageType) -> None:
    for version in message.versions:
        encoded = b"".join(message.encoder(version)(message()))
        expected = message.decoder(version)(encoded, 0)[0]
        framed = b"header" + encoded + b"rest"
        for buffer in (framed, bytearray(framed), memoryview(framed)):
            value, position = message.decoder(version)(buffer, 6)
            assert value == expected
            assert framed[position:] == b"rest"
