"""How many requests of an API were answered, how long they took, and with which errors.

After Kafka's RequestMetrics. A request pays for counting only: a few additions and one step in a
list. Quantiles are computed when the metrics are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...common.errors import ErrorCode
from ...protocol.codec.types import Array, StructType
from ...protocol.error_response import ERROR_CODE_FIELDS

if TYPE_CHECKING:
    from ...protocol.codec.message import Message
    from ...runtime.steps import Steps

PRECISION_BITS = 5
"""A bucket is at most 1/32 of its value wide."""
EXACT_MS = 2 << PRECISION_BITS
"""Times below are counted to the millisecond."""
TIME_MS_MAX = (1 << 31) - 1
WINDOW_MS_MIN = 60_000
"""Quantiles are of what was answered in the current window and the one before it. A window ends
with the first look at it after so long."""


def bucket_of(time_ms: int) -> int:
    """The bucket that a time falls into."""
    if time_ms < EXACT_MS:
        return time_ms
    shift = time_ms.bit_length() - PRECISION_BITS - 1
    return (shift << PRECISION_BITS) + (time_ms >> shift)


def bucket_middle(bucket: int) -> float:
    """A time in the middle of a bucket, in milliseconds."""
    if bucket < EXACT_MS:
        return float(bucket)
    shift = (bucket >> PRECISION_BITS) - 1
    lowest = (bucket - (shift << PRECISION_BITS)) << shift
    return lowest + ((1 << shift) - 1) / 2


BUCKETS = bucket_of(TIME_MS_MAX) + 1


class RequestTimes:
    """The requests of one version of one API that were answered.

    Attributes:
        sub_millisecond_count: how many were answered within a millisecond, by their memos.
        sum_ms: how long all took together.
    """

    __slots__ = (
        "_before",
        "_now",
        "_recorded",
        "_sub_millisecond_before",
        "_window_began_ms",
        "sub_millisecond_count",
        "sum_ms",
    )

    def __init__(self) -> None:
        self.sub_millisecond_count = 0
        self.sum_ms = 0
        self._recorded = 0
        self._sub_millisecond_before = [0, 0]
        self._now = [0] * BUCKETS
        self._before = [0] * BUCKETS
        self._window_began_ms: int | None = None

    @property
    def count(self) -> int:
        """How many, since the start."""
        return self.sub_millisecond_count + self._recorded

    def record(self, time_ms: int) -> None:
        """Count a request that took so long; a clock that was set back makes it 0."""
        self._recorded += 1
        time_ms = min(max(time_ms, 0), TIME_MS_MAX)
        self.sum_ms += time_ms
        self._now[bucket_of(time_ms)] += 1

    def recent(self, now_ms: int) -> list[int]:
        """How many fell into each bucket lately.

        Args:
            now_ms: monotonic; windows end by it.
        """
        if self._window_began_ms is None:
            self._window_began_ms = now_ms
        elif now_ms - self._window_began_ms >= WINDOW_MS_MIN:
            self._before, self._now = self._now, [0] * BUCKETS
            self._sub_millisecond_before = [
                self._sub_millisecond_before[1],
                self.sub_millisecond_count,
            ]
            self._window_began_ms = now_ms
        recent = [now + before for now, before in zip(self._now, self._before, strict=True)]
        recent[0] += self.sub_millisecond_count - self._sub_millisecond_before[0]
        return recent


def quantiles(buckets: Sequence[int], shares: Iterable[float]) -> list[float]:
    """The times, in ms, that these shares of all requests did not exceed; 0 if there were none.

    Args:
        buckets: how many requests each bucket holds.
        shares: between 0 and 1, ascending.
    """
    total = sum(buckets)
    found: list[float] = []
    filled = [(bucket, count) for bucket, count in enumerate(buckets) if count]
    position = -1
    seen = 0
    for share in shares:
        while position + 1 < len(filled) and (position < 0 or seen < share * total):
            position += 1
            seen += filled[position][1]
        found.append(bucket_middle(filled[position][0]) if filled else 0.0)
    return found


Path = tuple[str, ...]
"""Names of arrays, each in an element of the one before, and then that of an error code."""


class ErrorCounts:
    """How often each error code was answered, by one version of one API (Kafka's ErrorsPerSec).

    As in Kafka every error code of an answer counts, that of each partition or group too, and
    NONE as one of them.

    Args:
        response: the answer's message.
        version: which.

    Attributes:
        counts: how often each code was answered, but for what `none_count` counts.
        none_count: how often NONE was, where nothing had to be looked for in an answer.
    """

    __slots__ = ("_paths", "counts", "none_count")

    def __init__(self, response: StructType, version: int) -> None:
        self.counts: dict[int, int] = {}
        self.none_count = 0
        self._paths = tuple(_paths(response, version))

    def count(self, answer: Message) -> None:
        """Count the codes of one answer."""
        for *arrays, field in self._paths:
            elements: Iterable[Any] = (answer,)
            for array in arrays:
                elements = [inner for each in elements for inner in getattr(each, array) or ()]
            for element in elements:
                self.count_one(getattr(element, field))

    def count_in_steps(self, answer: Message) -> Steps[None]:
        """The same, as work that yields after each code."""
        for *arrays, field in self._paths:
            elements: Iterable[Any] = (answer,)
            for array in arrays:
                inner: list[Any] = []
                for each in elements:
                    inner += getattr(each, array) or ()
                    yield
                elements = inner
            for element in elements:
                self.count_one(getattr(element, field))
                yield

    def count_one(self, code: int) -> None:
        """Count one code."""
        counts = self.counts
        counts[code] = counts.get(code, 0) + 1

    def by_name(self) -> Iterator[tuple[str, int]]:
        """Each error that was answered, by Kafka's name for it."""
        total = Counter(self.counts)
        total[ErrorCode.NONE] += self.none_count
        for code, count in total.items():
            if count:
                yield ErrorCode(code).name, count


def _paths(struct: StructType, version: int) -> Iterator[Path]:
    for field in struct.fields:
        if version not in field.versions:
            continue
        if field.name in ERROR_CODE_FIELDS:
            yield (field.slot,)
        elif isinstance(field.type, Array) and isinstance(field.type.element, StructType):
            for path in _paths(field.type.element, version):
                yield (field.slot, *path)
