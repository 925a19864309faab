"""Requests that are handled later than they came: their bodies keep no memory of a frame."""

from __future__ import annotations

from typing import Any


def keep_memory(value: Any) -> None:
    """Copy what a decoded request refers to in its frame, which is used again after the pass.

    Args:
        value: a message, or a struct or list within one; it is changed in place.
    """
    if isinstance(value, list):
        for index, element in enumerate(value):
            if isinstance(element, memoryview):
                value[index] = _copied(element)
            else:
                keep_memory(element)
        return
    for name in getattr(type(value), "__slots__", ()):
        element = getattr(value, name, None)
        if isinstance(element, memoryview):
            setattr(value, name, _copied(element))
        elif not isinstance(element, str | bytes | int | float | dict | None):
            keep_memory(element)


def _copied(view: memoryview) -> memoryview:
    # Writable, for offsets are patched into records where they lie.
    return memoryview(bytearray(view))


def records_size(value: Any) -> int:
    """How many bytes of records a request brings."""
    if isinstance(value, memoryview):
        return len(value)
    if isinstance(value, list):
        return sum(records_size(element) for element in value)
    if isinstance(value, str | bytes | int | float | dict | None):
        return 0
    names = getattr(type(value), "__slots__", ())
    return sum(records_size(getattr(value, name, None)) for name in names)
