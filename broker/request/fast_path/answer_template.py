"""Answers that differ only in a few numbers, made by one pack."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

HEAD_AT = 8
"""Behind the answer's size and its correlation id."""

CutAnswer = tuple[int, bytes, bytes, Callable[..., bytes]]
"""The answer's size, what comes before the numbers, what comes behind, and what packs it all: it
takes size, correlation id, head, the numbers and tail. A plain tuple, to be kept in the fields of
whoever answers."""


def cut_answer(encoded: bytes, mark: bytes, numbers: str) -> CutAnswer:
    """Take an encoded answer apart where some numbers stand.

    Args:
        encoded: the whole frame, with marks in place of the numbers.
        mark: the first of these, as they stand there.
        numbers: their formats, as of the struct module.

    Raises:
        ValueError: the mark is not there.
    """
    at = encoded.index(mark)
    head = encoded[HEAD_AT:at]
    tail = encoded[at + Struct(f">{numbers}").size :]
    return len(encoded) - 4, head, tail, Struct(f">ii{len(head)}s{numbers}{len(tail)}s").pack
