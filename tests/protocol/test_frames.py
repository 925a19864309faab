import os
import struct
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.peak_memory import resident_bytes

from odradek.protocol.frame_buffers import PAGED_BYTES_MIN
from odradek.protocol.frames import (
    UNRESERVED_BYTES,
    FrameReader,
    kept_in_own_memory,
)


def framed(*payloads: bytes) -> bytearray:
    return bytearray(b"".join(struct.pack(">i", len(p)) + p for p in payloads))


@given(
    payloads=st.lists(st.binary(max_size=3 * PAGED_BYTES_MIN), max_size=8),
    data=st.data(),
)
def test_any_cutting_of_the_stream_gives_the_same_frames(
    payloads: list[bytes], data: st.DataObject
) -> None:
    stream = framed(*payloads)
    reader = FrameReader(10 * PAGED_BYTES_MIN)
    frames: list[bytes] = []
    position = 0
    while position < len(stream):
        size = data.draw(st.integers(1, len(stream) - position))
        piece = stream[position : position + size]
        frames += [bytes(frame) for frame in reader.receive(memoryview(piece))]
        position += size
    assert frames == payloads
    assert not reader.has_unfinished_frame


def test_one_byte_at_a_time_gives_the_same_frames() -> None:
    reader, frames = FrameReader(100), []
    for byte in framed(b"", b"abc", b"d" * 100):
        frames += [bytes(f) for f in reader.receive(memoryview(bytearray([byte])))]
    assert frames == [b"", b"abc", b"d" * 100]


def test_frames_share_the_memory_they_were_received_in() -> None:
    stream = framed(b"abc")
    (frame,) = FrameReader(100).feed(memoryview(stream))
    frame[0] = ord("x")
    assert stream == framed(b"xbc")


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_absurd_lengths_are_the_peers_fault(size: int) -> None:
    reader = FrameReader(100)
    assert reader.receive(memoryview(bytearray(struct.pack(">i", size)))) == []
    assert reader.failure is not None
    assert str(size) in reader.failure


@pytest.mark.parametrize("size", [-1, 101])
def test_absurd_lengths_are_found_when_the_length_itself_came_in_two_parts(size: int) -> None:
    reader = FrameReader(100)
    stream = bytearray(struct.pack(">i", size))
    assert reader.receive(memoryview(stream[:3])) == []
    assert reader.receive(memoryview(stream[3:])) == []
    assert reader.failure is not None


def test_frames_before_an_absurd_length_still_count() -> None:
    reader = FrameReader(100)
    frames = reader.receive(memoryview(framed(b"abc") + struct.pack(">i", -5) + framed(b"d")))
    assert [bytes(frame) for frame in frames] == [b"abc"]
    assert reader.failure is not None


def test_the_largest_allowed_frame_passes() -> None:
    (frame,) = FrameReader(100).receive(memoryview(framed(b"x" * 100)))
    assert len(frame) == 100


def test_an_announced_length_takes_no_memory_before_its_bytes_come() -> None:
    reader = FrameReader(2**30)
    before = resident_bytes(os.getpid())
    reader.receive(memoryview(bytearray(struct.pack(">i", 2**30) + b"x")))
    region = reader.tail_region()
    assert region is not None
    assert len(region) == 2**30 - 1
    assert resident_bytes(os.getpid()) - before < 2**20


@pytest.mark.parametrize("length", [UNRESERVED_BYTES, PAGED_BYTES_MIN, 2 * PAGED_BYTES_MIN])
def test_a_frame_that_needs_memory_waits_for_it_and_keeps_it_as_long_as_its_view(
    length: int,
) -> None:
    class Memory:
        """Is in use while there is one."""

    granted: list[Memory] = []
    lengths: list[int] = []

    def reserve(frame_bytes: int) -> object | None:
        lengths.append(frame_bytes)
        return granted.pop() if granted else None

    reader = FrameReader(length)
    reader.reserve = reserve
    payload = os.urandom(length)
    stream = memoryview(framed(payload))
    assert reader.feed(stream[:100]) == []
    assert reader.tail_region() == b""
    assert not reader.may_receive()
    assert set(lengths) == {length + 4}

    memory = Memory()
    used = weakref.ref(memory)
    granted.append(memory)
    del memory
    assert reader.may_receive()
    region = reader.tail_region()
    assert region is not None
    region[:] = stream[100:]
    frame = reader.feed_tail(len(region))
    del region
    assert frame == payload
    assert kept_in_own_memory(frame) is frame
    assert used() is not None
    del frame
    assert used() is None


def test_a_short_frame_needs_no_memory() -> None:
    reader = FrameReader(100)
    reader.reserve = lambda _: None
    stream = memoryview(framed(b"x" * 100))
    assert reader.feed(stream[:50]) == []
    assert list(map(bytes, reader.receive(stream[50:]))) == [b"x" * 100]


@given(
    payloads=st.lists(st.binary(max_size=40), max_size=30),
    frames_max=st.integers(1, 10),
    data=st.data(),
)
def test_who_takes_some_frames_at_once_gets_them_all(
    payloads: list[bytes], frames_max: int, data: st.DataObject
) -> None:
    stream = framed(*payloads)
    reader = FrameReader(100)
    frames: list[bytes] = []
    position = 0
    while position < len(stream):
        size = data.draw(st.integers(1, len(stream) - position))
        given_now = reader.receive(memoryview(stream[position : position + size]), frames_max)
        assert len(given_now) <= frames_max + 1  # one that was unfinished
        frames += map(bytes, given_now)
        while reader:
            frames.append(bytes(reader.take()))
        position += size
    assert frames == payloads
    assert not reader.has_unfinished_frame
    assert not reader.held_bytes


def test_frames_that_are_left_take_no_more_memory_than_their_bytes() -> None:
    reader = FrameReader(100)
    stream = framed(*[b""] * 10_000)
    assert len(reader.feed(memoryview(stream), 10)) == 10
    assert reader.held_bytes == 4 * 9_990


@pytest.mark.parametrize("size", [-1, 101])
def test_an_absurd_length_among_frames_that_are_left_ends_them(size: int) -> None:
    reader = FrameReader(100)
    stream = framed(b"a", b"b") + struct.pack(">i", size) + framed(b"c")
    assert [bytes(frame) for frame in reader.feed(memoryview(stream), 1)] == [b"a"]
    assert bytes(reader.take()) == b"b"
    assert not reader
    assert reader.failure is not None
