"""Where reading begins and ends: offsets, times, or a word for all partitions."""

from __future__ import annotations

from typing import NamedTuple

from ...common.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ..errors import SparkConnectorError
from ..option_values import Options, integer_of, numbers_by_partition

WORDS = {"latest": LATEST_TIMESTAMP, "earliest": EARLIEST_TIMESTAMP}

TopicPartition = tuple[str, int]


class OffsetLimit(NamedTuple):
    """One end of what is read. Exactly one of the first four fields is not None."""

    option: str
    """The option that gave it, for messages."""
    everywhere: int | None = None
    """LATEST_TIMESTAMP or EARLIEST_TIMESTAMP."""
    offsets: dict[TopicPartition, int] | None = None
    timestamp_ms: int | None = None
    timestamps_ms: dict[TopicPartition, int] | None = None
    latest_if_none_as_late: bool = False
    """Of a start by time: where no record is as late, begin at the end rather than fail."""


def starting_limit(options: Options, *, is_stream: bool) -> OffsetLimit:
    """Where to begin: streams by default at the end, batches at the beginning.

    Raises:
        SparkConnectorError: an option cannot be what it says.
    """
    limit = _limit(options, "starting", LATEST_TIMESTAMP if is_stream else EARLIEST_TIMESTAMP)
    if not is_stream:
        _refuse(limit, LATEST_TIMESTAMP, "start at the latest offset")
    strategy = (options.get("startingOffsetsByTimestampStrategy") or "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise SparkConnectorError(
            f"option 'startingOffsetsByTimestampStrategy' must be error or latest, not {strategy!r}"
        )
    return limit._replace(latest_if_none_as_late=strategy == "latest")


def ending_limit(options: Options) -> OffsetLimit:
    """Where a batch ends, by default at the latest offset.

    Raises:
        SparkConnectorError: an option cannot be what it says.
    """
    limit = _limit(options, "ending", LATEST_TIMESTAMP)
    _refuse(limit, EARLIEST_TIMESTAMP, "end at the earliest offset")
    return limit


ENDING_OPTIONS = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")


def refuse_ending(options: Options) -> None:
    """A stream has no end.

    Raises:
        SparkConnectorError: one was given.
    """
    for name in ENDING_OPTIONS:
        if options.get(name) is not None:
            raise SparkConnectorError(
                f"option {name!r} is for batch queries, and a streaming query has no end"
            )


def _limit(options: Options, end: str, default: int) -> OffsetLimit:
    """As in Spark, a time for all wins over times by partition, and those over offsets."""
    name = f"{end}Timestamp"
    timestamp_ms = integer_of(options, name, 0, None)
    if timestamp_ms is not None:
        return OffsetLimit(name, timestamp_ms=timestamp_ms)
    name = f"{end}OffsetsByTimestamp"
    text = options.get(name)
    if text is not None:
        timestamps_ms = numbers_by_partition(name, text)
        _require_at_least(name, timestamps_ms, 0)
        return OffsetLimit(name, timestamps_ms=timestamps_ms)
    name = f"{end}Offsets"
    text = options.get(name)
    if text is None:
        return OffsetLimit(name, everywhere=default)
    word = WORDS.get(text.strip().lower())
    if word is not None:
        return OffsetLimit(name, everywhere=word)
    if not text.strip().startswith("{"):
        raise SparkConnectorError(
            f"option {name!r} must be earliest, latest or offsets in JSON, not {text!r}"
        )
    offsets = numbers_by_partition(name, text)
    _require_at_least(name, offsets, EARLIEST_TIMESTAMP)
    return OffsetLimit(name, offsets=offsets)


def _require_at_least(name: str, numbers: dict[TopicPartition, int], least: int) -> None:
    for (topic, partition), number in numbers.items():
        if number < least:
            raise SparkConnectorError(
                f"option {name!r} gives partition {partition} of {topic!r} the impossible {number}"
            )


def _refuse(limit: OffsetLimit, number: int, what: str) -> None:
    if limit.everywhere == number or number in (limit.offsets or {}).values():
        raise SparkConnectorError(f"option {limit.option!r}: a batch query cannot {what}")
