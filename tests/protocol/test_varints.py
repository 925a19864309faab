"""Unsigned varints, against kafka-python's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.schemas.fields.codecs import UnsignedVarInt32

from odradek.protocol import ProtocolError
from odradek.protocol.varints import (
    encode_unsigned_varint,
    encode_unsigned_varint_rest,
    read_unsigned_varint,
)


@given(st.integers(0, 2**32 - 1))
def test_varints_are_kafka_pythons_and_read_back(value: int) -> None:
    encoded = encode_unsigned_varint(value)
    assert encoded == UnsignedVarInt32.encode(value)
    assert read_unsigned_varint(b"x" + encoded, 1) == (value, 1 + len(encoded))
    if value > 127:
        assert encoded[1:] == encode_unsigned_varint_rest(value)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_a_value_outside_32_bits_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match="32 bits"):
        encode_unsigned_varint(value)


def test_a_varint_has_five_bytes_and_32_bits_at_most() -> None:
    assert read_unsigned_varint(b"\xff\xff\xff\xff\x0f", 0) == (2**32 - 1, 5)
    with pytest.raises(ProtocolError, match="32 bits"):
        read_unsigned_varint(b"\xff\xff\xff\xff\x10", 0)
    with pytest.raises(ProtocolError, match="more than 5 bytes"):
        read_unsigned_varint(b"\x80\x80\x80\x80\x80\x00", 0)
    with pytest.raises(IndexError):
        read_unsigned_varint(b"\x80\x80", 0)
