"""What the generated source looks like where speed depends on it."""

from __future__ import annotations

import struct

from odradek.protocol import messages
from odradek.protocol.codec.codegen import KEPT_ARRAY_COUNT_MAX, ArrayCodecs
from odradek.protocol.codec.decoder_source import decoder_source
from odradek.protocol.codec.decoding_budget import CLIENT
from odradek.protocol.codec.encoder_source import encoder_source


def test_fields_of_fixed_width_are_read_at_once_with_the_length_after_them() -> None:
    source = decoder_source(messages.ProduceRequest.layout(3), CLIENT).text()
    assert "value.acks, value.timeout_ms, size = unpack_from_hii(buffer, position)" in source
    flexible = decoder_source(messages.ProduceRequest.layout(9), CLIENT).text()
    assert "value.acks, value.timeout_ms, size = unpack_from_hiB(buffer, position)" in flexible


def test_fields_of_fixed_width_are_written_at_once_with_the_length_after_them() -> None:
    source = encoder_source(messages.ProduceRequest.layout(3)).text()
    assert "pack_hii(value.acks, value.timeout_ms, len(" in source


def test_arrays_of_integers_are_read_and_written_at_once() -> None:
    decoder = decoder_source(messages.OffsetFetchRequest.layout(5), CLIENT).text()
    assert "list(unpack_i_array[size](buffer, position))" in decoder
    encoder = encoder_source(messages.OffsetFetchRequest.layout(5)).text()
    assert "pack_i_array[len(" in encoder


def test_codecs_of_short_arrays_are_kept_and_of_long_ones_not() -> None:
    codecs = ArrayCodecs("pack", "h")
    assert codecs[KEPT_ARRAY_COUNT_MAX](*range(KEPT_ARRAY_COUNT_MAX))[:4] == b"\0\0\0\1"
    assert codecs[KEPT_ARRAY_COUNT_MAX + 1](*range(KEPT_ARRAY_COUNT_MAX + 1))
    assert list(codecs) == [KEPT_ARRAY_COUNT_MAX]


def test_only_messages_with_records_keep_a_view_of_the_frame() -> None:
    assert "memoryview(buffer)" in decoder_source(messages.ProduceRequest.layout(9), CLIENT).text()
    assert "bytes(buffer)" in decoder_source(messages.MetadataRequest.layout(9), CLIENT).text()


def test_the_source_runs_by_itself() -> None:
    source = decoder_source(messages.HeartbeatResponse.layout(1), CLIENT)
    namespace = dict(source.namespace)
    exec(source.text(), namespace)
    value, position = namespace["decode"](struct.pack(">ih", 5, 27), 0)
    assert (value.throttle_time_ms, value.error_code, position) == (5, 27, 6)
