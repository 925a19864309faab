"""Memory of long frames, which is used again."""

import ctypes
import os
import weakref

import pytest
from support.peak_memory import resident_bytes

from odradek.protocol.frame_buffers import (
    PAGED_BYTES_MIN,
    SPARE_BYTES_MAX,
    has_own_memory,
    new_frame_buffer,
)

SLACK = 2 << 20


def address(view: memoryview) -> int:
    return ctypes.addressof(ctypes.c_ubyte.from_buffer(view))


@pytest.mark.parametrize("size", [1, PAGED_BYTES_MIN - 1, PAGED_BYTES_MIN, 3 * PAGED_BYTES_MIN + 1])
def test_a_buffer_is_as_long_as_its_frame_and_its_own(size: int) -> None:
    view = new_frame_buffer(size, None)
    assert (len(view), view.format, has_own_memory(view)) == (size, "B", True)
    view[:] = b"x" * size
    assert view.tobytes() == b"x" * size


def test_what_nobody_has_a_view_of_is_used_for_the_next_frame() -> None:
    first = new_frame_buffer(PAGED_BYTES_MIN, None)
    part, at = first[10:20], address(first)
    del first
    assert address(new_frame_buffer(PAGED_BYTES_MIN, None)) != at, "a part of it is in use"
    del part
    assert address(new_frame_buffer(PAGED_BYTES_MIN, None)) == at


def test_its_reservation_ends_with_its_last_view_though_the_memory_is_kept() -> None:
    class Reservation:
        """Can be referred to weakly."""

    reservation = Reservation()
    known = weakref.ref(reservation)
    part = new_frame_buffer(PAGED_BYTES_MIN, reservation)[:1]
    del reservation
    assert known() is not None
    del part
    assert known() is None


def test_no_more_memory_is_kept_than_the_bound() -> None:
    before = resident_bytes(os.getpid())
    views = [new_frame_buffer(1 << 20, None) for _ in range(4 * SPARE_BYTES_MAX >> 20)]
    for view in views:
        view[:] = bytes(len(view))
    assert resident_bytes(os.getpid()) - before > 3 * SPARE_BYTES_MAX
    del view
    views.clear()
    assert resident_bytes(os.getpid()) - before < SPARE_BYTES_MAX + SLACK
