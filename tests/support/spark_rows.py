"""Topics filled with records of every kind, and the rows that Spark must make of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from confluent_kafka import Producer

START_MS = 1_370_088_000_000
"""Timestamp of record number 0: 1 June 2013, 12:00 UTC."""

STEP_MS = 1_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CREATE_TIME, LOG_APPEND_TIME = 0, 1
FLUSH_SECONDS_MAX = 60

Headers = tuple[tuple[str, bytes | None], ...]


class Row(NamedTuple):
    """A record as a row of Spark's Kafka source."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    """None: the record has none."""

    def without_headers(self) -> Row:
        """As it is where `includeHeaders` is not set."""
        return self._replace(headers=None)


def varied(topic: str, number: int, partitions: int) -> Row:
    """Record `number` of a topic that is filled in turn: nulls, emptiness and headers vary."""
    headers: Headers = (("n", b"%d" % number), ("null", None), ("n", b""), ("\u00e9", b"\xff"))
    return Row(
        topic,
        number % partitions,
        number // partitions,
        START_MS + number * STEP_MS,
        CREATE_TIME,
        None if number % 3 == 0 else b"key-%d" % number,
        None if number % 5 == 0 else b"value-%d " % number * (number % 7),
        headers[: number % 5] or None,
    )


def fill(
    bootstrap: str, topic: str, count: int, partitions: int, first: int = 0, **settings: Any
) -> list[Row]:
    """Produce records number `first` to `first + count - 1`; a codec for each fifth of them.

    A topic must be filled by calls that go on where the last one ended.
    """
    rows = [varied(topic, number, partitions) for number in range(first, first + count)]
    share = -(-count // len(CODECS))
    for place, codec in enumerate(CODECS):
        send(bootstrap, rows[place * share : (place + 1) * share], codec=codec, **settings)
    return rows


def send(bootstrap: str, rows: Iterable[Row], codec: str = "none", **settings: Any) -> None:
    """Produce rows where they say; fails where one ends elsewhere."""
    misplaced: list[str] = []

    def placed(row: Row) -> Callable[[Any, Any], None]:
        def note(error: Any, message: Any) -> None:
            if error is not None or message.offset() != row.offset:
                misplaced.append(f"{row}: {error or message.offset()}")

        return note

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            **settings,
        }
    )
    for row in rows:
        producer.produce(
            row.topic,
            row.value,
            row.key,
            row.partition,
            timestamp=row.timestamp_ms,
            headers=list(row.headers or ()),
            on_delivery=placed(row),
        )
    assert producer.flush(FLUSH_SECONDS_MAX) == 0
    assert not misplaced, misplaced[:3]


def rows_of(frame: Any) -> list[Row]:
    """A frame of either source as rows, ordered by their places."""
    has_headers = "headers" in frame.columns
    chosen = frame.selectExpr(
        "topic",
        "partition",
        "offset",
        "unix_millis(timestamp)",
        "timestampType",
        "key",
        "value",
        "headers" if has_headers else "NULL AS headers",
    )
    return sorted(map(_row, chosen.collect()), key=lambda row: row[:3])


def by_place(rows: Iterable[Row]) -> list[Row]:
    """Rows in the order in which `rows_of` gives them."""
    return sorted(rows, key=lambda row: row[:3])


def _row(found: Any) -> Row:
    key, value, headers = found[5:]
    topic, partition, offset, timestamp, timestamp_type = found[:5]
    return Row(
        topic,
        partition,
        offset,
        timestamp,
        timestamp_type,
        key=None if key is None else bytes(key),
        value=None if value is None else bytes(value),
        headers=None
        if headers is None
        else tuple(
            (each["key"], None if each["value"] is None else bytes(each["value"]))
            for each in headers
        ),
    )


# -- cases: options, in which FIRST stands for a topic, and the records that they select ------

Selects = Callable[[Row], bool]


def places(*numbers: int) -> str:
    """Numbers for the partitions of FIRST, as JSON."""
    return json.dumps({"FIRST": {str(place): number for place, number in enumerate(numbers)}})


def at(number: int) -> int:
    """The timestamp of record `number`."""
    return START_MS + number * STEP_MS


def first(selects: Selects = lambda row: True) -> Selects:
    """Only records of FIRST."""
    return lambda row: row.topic.endswith("-first") and selects(row)
