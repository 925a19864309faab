"""Segments of one log: writing its end, and reading anywhere in it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from ..coordinator.group_rebalance import MemberConnection
from ..measure import MeasuredBroker
from .connections import BUSY, LOAD_TOPIC
from .loading import loaded, member_of, rest
from .requests import create_topics, fetches, produce, produces, records
from .series import Figures, Series

STEP_MS = 1000
"""Between two batches, by their timestamps: each is too young for the segment of the last."""

FAR_APART = 7919
"""A prime: fetches that follow each other are at places of the log that do not."""

RECORDS_PER_SEGMENT = 10
FETCHES = 1000
FETCH_BYTES = 1000
WARM_UP_SECONDS = 0.3
ROLLING = {"segment.ms": "1", "segment.jitter.ms": "0", "retention.ms": "-1"}


def written(running: MeasuredBroker, values: Sequence[int], seconds: float) -> Iterator[Figures]:
    """Produce to a log of so many segments."""
    for _ in _grown(running, values):
        yield loaded(running, produces(LOAD_TOPIC), BUSY, seconds)


def read(running: MeasuredBroker, values: Sequence[int], seconds: float) -> Iterator[Figures]:
    """Fetch from every part of a log of so many segments."""
    for value in _grown(running, values):
        end = value * RECORDS_PER_SEGMENT
        offsets = [(number * FAR_APART) % end for number in range(FETCHES)]
        yield loaded(running, fetches(LOAD_TOPIC, offsets, FETCH_BYTES), BUSY, seconds)


def _grown(running: MeasuredBroker, values: Sequence[int]) -> Iterator[int]:
    """Let a log grow to each number of segments, of which the last is the active one."""
    began_ms = int(time.time() * 1000) - values[-1] * STEP_MS
    with member_of(running) as member:
        create_topics(member, [LOAD_TOPIC], 1, ROLLING)
        _send(member, began_ms)
        loaded(running, fetches(LOAD_TOPIC, [0], FETCH_BYTES), BUSY, WARM_UP_SECONDS)
        made = 1
        for value in values:
            for number in range(made, value):
                _send(member, began_ms + number * STEP_MS)
            made = value
            rest(running)
            yield value


def _send(member: MemberConnection, timestamp_ms: int) -> None:
    batch = records(RECORDS_PER_SEGMENT, timestamp_ms=timestamp_ms)
    member.wire.exchange(produce(LOAD_TOPIC, [0], batch))


SERIES = (
    Series(
        "segments, written",
        "segments of the log",
        (1, 10, 100, 1000, 5000),
        "16 connections send Produce of one record to its end",
        written,
        each="segment",
    ),
    Series(
        "segments, read",
        "segments of the log",
        (1, 10, 100, 1000, 5000),
        "16 connections fetch 1 KB each, from all over the log",
        read,
        each="segment",
    ),
)
