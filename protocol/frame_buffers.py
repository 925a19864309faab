"""Memory that frames are put together in, which is used again for the next ones.

A long frame has memory of the system's, which is there only once something is written to it:
announcing a large frame costs the peer its sending, not us our memory. But the first write to each
page costs 2 us where the machine is a virtual one, 100 us for 200 KB, which is more than all else
that is done for such a request. So what nobody refers to any more is kept for the next long frame.
"""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from typing import Final

PAGED_BYTES_MIN: Final = 128 * 1024
"""A frame as long as this has memory of the system's. For shorter ones that would cost more than it
spares."""
SPARE_BYTES_MAX: Final = 16 << 20
"""So much is kept for the next frames. Sixteen producers whose requests have a megabyte use no
more."""


class FrameBuffer(bytearray):
    """Memory of a short frame; whoever has a view of it has what is reserved for it.

    Attributes:
        reservation: of its memory; None where nobody counts it.
    """

    reservation: object | None = None


class FrameRegion:
    """The same for a long frame: pages of which another frame gets the use afterwards."""

    reservation: object | None = None
    pages: mmap.mmap

    def __del__(self) -> None:
        _give_back(self.pages)


_region_types: dict[int, type[ctypes.Array[ctypes.c_ubyte]]] = {}
_spare: dict[int, list[mmap.mmap]] = {}
"""By their sizes, which are powers of two."""


def new_frame_buffer(size: int, reservation: object | None) -> memoryview:
    """Memory for a frame.

    Args:
        size: in bytes.
        reservation: is referred to for as long as the memory is.
    """
    if size < PAGED_BYTES_MIN:
        buffer = FrameBuffer(size)
        buffer.reservation = reservation
        return memoryview(buffer)
    pages = _take_pages(1 << (size - 1).bit_length())
    region = _region_type(len(pages)).from_buffer(pages)
    assert isinstance(region, FrameRegion)
    region.pages, region.reservation = pages, reservation
    return memoryview(region).cast("B")[:size]


def has_own_memory(frame: memoryview) -> bool:
    """Whether a frame lies in memory from here, which is its own."""
    return isinstance(frame.obj, FrameBuffer | FrameRegion)


def _region_type(size: int) -> type[ctypes.Array[ctypes.c_ubyte]]:
    """Who exports the pages to views, and hears when the last view is gone."""
    known = _region_types.get(size)
    if known is None:
        members = {"_length_": size, "_type_": ctypes.c_ubyte}
        known = _region_types[size] = type("Region", (FrameRegion, ctypes.Array), members)
    return known


def _take_pages(size: int) -> mmap.mmap:
    with suppress(KeyError, IndexError):  # another thread may take the last at the same time
        return _spare[size].pop()
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _give_back(pages: mmap.mmap) -> None:
    size = len(pages)
    kept_bytes = sum(each * len(kept) for each, kept in list(_spare.items()))
    if kept_bytes + size <= SPARE_BYTES_MAX:
        _spare.setdefault(size, []).append(pages)
