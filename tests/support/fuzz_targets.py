"""What hostile bytes go through: each target takes any bytes and lets only refusals out.

A target raises `ProtocolError` or `KafkaError` for what it refuses; anything else that comes
out of it is a fault of ours, and so is what takes longer or more memory than `Spent` allows.
"""

from __future__ import annotations

import contextlib
import gc
import struct
import time
import tracemalloc
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from odradek.protocol import ApiKey, KafkaError, ProtocolError, internal, messages
from odradek.protocol.codec.message import MessageType
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.compression.decompression import decompress, iter_decompressed
from odradek.protocol.compression.recompression import recompress
from odradek.protocol.frames import FrameReader
from odradek.protocol.headers import read_request_header, read_request_start, read_response_header
from odradek.protocol.internal import versioned
from odradek.protocol.records.batch import RecordBatch, iter_batches
from odradek.protocol.records.control import parse_end_transaction_marker
from odradek.protocol.records.records import (
    iter_keys,
    iter_offsets_and_timestamps,
    iter_records,
    read_values,
)
from odradek.protocol.records.validation import (
    decompressed_bytes_max,
    has_valid_crc,
    records_max,
    summarize_records,
)
from odradek.protocol.records.walk import lengths_add_up

REFUSALS = (ProtocolError, KafkaError)

FRAME_BYTES_MAX = 1 << 16
KNOWN_TIMES_MAX = 17
"""How many times the processor time of `_work_that_is_known` an input may cost: about 50 ms."""
TRIES_MAX = 10
MEMORY_BYTES_MAX = 1 << 20
MEMORY_BYTES_PER_BYTE_MAX = 8

DECOMPRESSED_BYTES_MIN = 16 << 10
DECOMPRESSED_BYTES_PER_BYTE = 2
"""What the records of an input may decompress to. A caller chooses that; this is a choice with
which the memory is bound to stay within what `Spent` allows."""

KEYS = frozenset(ApiKey)
INTERNAL_NAMES = internal.message_names()
TOPICS = (versioned.CONSUMER_OFFSETS, versioned.TRANSACTION_STATE, versioned.SHARE_GROUP_STATE)
_codec_ids = struct.Struct(">hh").unpack_from


def decode_frames(data: bytes) -> None:
    """Bytes of a connection: whole, one at a time and in pieces they are the same frames."""
    whole = frames_of(data, max(len(data), 1))
    for piece_bytes in (1, 100):
        assert frames_of(data, piece_bytes) == whole
    for frame in whole[0]:
        try:
            value = decode_request_body(frame)
        except REFUSALS:
            value = None
        received = memoryview(bytearray(frame))
        try:
            assert same(decode_request_body(received), value)
        except REFUSALS:
            assert value is None


def frames_of(data: bytes, piece_bytes: int) -> tuple[list[bytes], str | None]:
    """The frames in what is received piece by piece, and why there are no more."""
    reader = FrameReader(FRAME_BYTES_MAX)
    frames: list[bytes] = []
    received = memoryview(bytearray(data))
    for start in range(0, len(received), piece_bytes):
        frames += map(bytes, reader.receive(received[start : start + piece_bytes]))
    return frames, reader.failure


def same(value: object, other: object) -> bool:
    """Whether values are equal; those with a float that is no number never are."""
    return value == other or "nan" in repr(value)


def decode_request_body(frame: bytes | memoryview) -> object:
    """A request with its header, as a broker reads it; None if no schema has it."""
    api_key, version, _ = read_request_start(frame)
    if api_key not in KEYS:
        return None
    message = messages.request_message(api_key)
    if version not in message.versions:
        return None
    _, _, position = read_request_header(frame)
    value, end = message.decoder(version)(frame, position)
    assert position <= end <= len(frame)
    return value


def decode_request(data: bytes) -> None:
    """A request with its header."""
    decode_request_body(data)


def decode_response(data: bytes) -> None:
    """API key and version in four bytes, and the response to such a request after them."""
    message = chosen(data, messages.response_message)
    if message is not None:
        api_key, version = _codec_ids(data)
        frame = data[4:]
        _, position = read_response_header(frame, api_key, version)
        _, end = message.decoder(version)(frame, position)
        assert position <= end <= len(frame)


def round_trip(data: bytes) -> None:
    """API key and version in four bytes, and a request's body: what is read can be written,
    and what was written is read as the same."""
    message = chosen(data, messages.request_message)
    if message is not None:
        _, version = _codec_ids(data)
        decode, encode = message.decoder(version), message.encoder(version)
        value, _ = decode(data, 4)
        written = b"".join(encode(value))
        again, end = decode(written, 0)
        assert end == len(written)
        assert b"".join(encode(again)) == written


def chosen(data: bytes, find: Callable[[int], MessageType]) -> MessageType | None:
    """The message that the first four bytes name, if there is one."""
    if len(data) < 4:
        return None
    api_key, version = _codec_ids(data)
    if api_key not in KEYS or version not in find(api_key).versions:
        return None
    return find(api_key)


def decode_internal(data: bytes) -> None:
    """The number of a schema without an API key, and its version and content; the same as a
    value, and as a key, of internal topics."""
    if data:
        message = internal.find_message(INTERNAL_NAMES[data[0] % len(INTERNAL_NAMES)])
        content = data[1:]
        for topic in TOPICS:
            with contextlib.suppress(*REFUSALS):
                versioned.decode_record(topic, content, None)
        value, version = versioned.decode_versioned(message, content, newer_as_newest=True)
        written = versioned.encode_versioned(value, version)
        again, _ = versioned.decode_versioned(message, written)
        assert versioned.encode_versioned(again, version) == written


def read_records(data: bytes) -> None:
    """Record batches: headers, checksum, the walks over the records, the records."""
    max_bytes = DECOMPRESSED_BYTES_MIN + DECOMPRESSED_BYTES_PER_BYTE * len(data)
    for batch in iter_batches(data):
        has_valid_crc(batch)
        lengths_add_up(data, batch.position + 61, batch.position + batch.size_in_bytes, 3)
        lengths_add_up(
            data, batch.position + 61, batch.position + batch.size_in_bytes, batch.records_count
        )
        read_batch(batch, max_bytes)


def read_batch(batch: RecordBatch, max_bytes: int) -> None:
    """One batch; what one way of reading it refuses, another may not.

    Walks keep nothing, so they decompress as much as a broker lets them.
    """
    size = batch.size_in_bytes
    with contextlib.suppress(KafkaError):
        if batch.records_count <= records_max(size):
            summarize_records(batch, 0, 1 << 50, decompressed_bytes_max(size))
    for walk in (iter_offsets_and_timestamps, iter_keys, read_values):
        with contextlib.suppress(KafkaError):
            for _ in walk(batch):
                pass
    for record in iter_records(batch, max_bytes):
        with contextlib.suppress(KafkaError):
            parse_end_transaction_marker(record)


def unpack(data: bytes) -> None:
    """The number of a codec, and what is compressed by it."""
    if data:
        max_bytes = DECOMPRESSED_BYTES_MIN + DECOMPRESSED_BYTES_PER_BYTE * len(data)
        codec = Compression(data[0] % len(Compression))
        other = Compression((data[0] + 1) % len(Compression))
        content = memoryview(data)[1:]
        decompressed = b"".join(iter_decompressed(codec, content, max(max_bytes, len(data))))
        again = recompress(
            codec, other, content, None, decompressed_bytes_max=max_bytes, bytes_max=2 * max_bytes
        )
        assert decompress(other, again) == decompressed


TARGETS: dict[str, Callable[[bytes], None]] = {
    "frames": decode_frames,
    "requests": decode_request,
    "responses": decode_response,
    "round_trip": round_trip,
    "internal": decode_internal,
    "records": read_records,
    "decompression": unpack,
}


class Spent(NamedTuple):
    """What an input cost."""

    known_times: float
    memory_bytes: int
    input_bytes: int

    @property
    def is_too_much(self) -> bool:
        """Whether it is more than an input of its length may cost."""
        allowed_bytes = MEMORY_BYTES_MAX + MEMORY_BYTES_PER_BYTE_MAX * self.input_bytes
        return self.known_times > KNOWN_TIMES_MAX or self.memory_bytes > allowed_bytes


def spend(target: Callable[[bytes], object], data: bytes) -> Spent:
    """Have a target take an input, and measure; `tracemalloc` must have been started.

    Processor time is measured beside that of known work, since others may use the machine. Tracing
    multiplies it, and so may a garbage collection of all that the test run holds; so what seems
    slow is measured again without both.
    """
    known = known_seconds()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    seconds = cpu_seconds(target, data)
    memory_bytes = tracemalloc.get_traced_memory()[1] - before
    times = seconds / known
    if times > KNOWN_TIMES_MAX:
        tracemalloc.stop()
        gc.collect()
        times = _known_times(target, data)
        tracemalloc.start()
    return Spent(times, memory_bytes, len(data))


def _known_times(target: Callable[[bytes], object], data: bytes) -> float:
    """How many times as long as known work an input takes, in several tries as long as it seems
    too much; the work is measured beside each, so that caches that others use slow both."""
    known = least = float("inf")
    for _ in range(TRIES_MAX):
        known = min(known, cpu_seconds(_work_that_is_known, data))
        least = min(least, cpu_seconds(target, data))
        if least <= KNOWN_TIMES_MAX * known:
            break
    return least / known


@cache
def known_seconds() -> float:
    """The processor time that known work takes on this machine."""
    was_tracing = tracemalloc.is_tracing()
    tracemalloc.stop()
    least = min(cpu_seconds(_work_that_is_known, b"") for _ in range(TRIES_MAX))
    if was_tracing:
        tracemalloc.start()
    return least


def _work_that_is_known(_: bytes) -> object:
    """What decoders do, mostly; about 3 ms."""
    start = bytes(4)
    return [(_codec_ids(start), {"number": each}, str(each)) for each in range(10_000)]


def cpu_seconds(target: Callable[[bytes], object], data: bytes) -> float:
    """The processor time that a target takes for an input."""
    start = time.thread_time()
    with contextlib.suppress(*REFUSALS):
        target(data)
    return time.thread_time() - start
