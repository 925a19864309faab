"""How often each error was answered, by API (Kafka's ErrorsPerSec).

Kafka counts every error code of an answer, that of each partition or group too, and "no error"
as one of them; so does this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...common.errors import ErrorCode
from ...protocol.codec.types import Array, Struct
from ...protocol.error_response import ERROR_CODE_FIELDS

Path = tuple[str, ...]
"""Names of arrays, each in an element of the one before, and then that of an error code."""


class ErrorCounts:
    """The error codes in the answers of one version of one API.

    Args:
        response: the answer's message.
        version: which.

    Attributes:
        counts: how often each code was answered.
    """

    __slots__ = ("_paths", "counts")

    def __init__(self, response: Struct, version: int) -> None:
        self.counts: dict[int, int] = {}
        self._paths = tuple(_paths(response, version))

    def count(self, answer: Any) -> None:
        """Count the codes of one answer."""
        for *arrays, field in self._paths:
            elements = [answer]
            for array in arrays:
                elements = [inner for each in elements for inner in getattr(each, array) or ()]
            for element in elements:
                self.count_one(getattr(element, field))

    def count_one(self, code: int, times: int = 1) -> None:
        """Count one code."""
        counts = self.counts
        counts[code] = counts.get(code, 0) + times

    def by_name(self) -> Iterator[tuple[str, int]]:
        """Each error that was answered, by Kafka's name for it."""
        for code, count in self.counts.items():
            yield ErrorCode(code).name, count


def _paths(struct: Struct, version: int) -> Iterator[Path]:
    for field in struct.fields:
        if version not in field.versions:
            continue
        if field.name in ERROR_CODE_FIELDS:
            yield (field.slot,)
        elif isinstance(field.type, Array) and isinstance(field.type.element, Struct):
            for path in _paths(field.type.element, version):
                yield (field.slot, *path)
