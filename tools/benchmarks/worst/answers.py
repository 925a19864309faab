"""What answers say: error codes, wherever a message has them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ....common.errors import ErrorCode
from ....protocol.codec.types import StructType

SHOWN = 3
"""Codes that are shown of an answer, the most frequent ones."""


def error_codes(answer: Any) -> list[int]:
    """The error codes of an answer.

    Of each element that is refused its own code; of one that is not, those of its elements, or
    NONE where it has none.

    Args:
        answer: a response, or a struct in one.
    """
    declared = type(answer).fields
    failed = [
        code
        for code in (getattr(answer, each.name) for each in declared if _is_code(each.name))
        if code
    ]
    if failed:
        return failed
    inner: list[int] = []
    for each in declared:
        value = getattr(answer, each.name)
        for element in value if isinstance(value, list) else [value]:
            if isinstance(type(element), StructType):
                inner += error_codes(element)
    return inner or [ErrorCode.NONE]


def _is_code(name: str) -> bool:
    return name.endswith("error_code")


def names_of(codes: list[int]) -> dict[str, int]:
    """How often each code is there, by its name, the most frequent first."""
    return {
        ErrorCode(code).name if code in set(ErrorCode) else str(code): count
        for code, count in Counter(codes).most_common()
    }


def in_words(found: dict[str, int]) -> str:
    """The most frequent codes, with their number."""
    shown = [f"{name} x {count:,}" for name, count in list(found.items())[:SHOWN]]
    return ", ".join(shown) + (", ..." if len(found) > SHOWN else "")
