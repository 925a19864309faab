"""Sizes of batches: records in one Produce, and what a Fetch brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..measure import MeasuredBroker
from .connections import BUSY, LOAD_TOPIC
from .loading import loaded, member_of
from .requests import create_topics, fetches, produces
from .series import Figures, Series

FILLED_RECORDS = 10_000
BY_SIZE = "bytes are received, checked and written, or sent"


def produced(running: MeasuredBroker, values: Sequence[int], seconds: float) -> Iterator[Figures]:
    """Produce with so many records of 100 bytes in its batch."""
    with member_of(running) as member:
        create_topics(member, [LOAD_TOPIC], 1, {"retention.bytes": "100000000"})
    for value in values:
        requests = produces(LOAD_TOPIC, count=value)
        loaded(running, requests, BUSY, seconds / 2)
        yield loaded(running, requests, BUSY, seconds)


def fetched(running: MeasuredBroker, values: Sequence[int], seconds: float) -> Iterator[Figures]:
    """Fetch of so many bytes, out of batches of 10 records."""
    with member_of(running) as member:
        create_topics(member, [LOAD_TOPIC], 1)
        requests = produces(LOAD_TOPIC, count=10)
        for _ in range(FILLED_RECORDS // 10):
            member.wire.exchange(requests.frames[0])
    for value in values:
        requests = fetches(LOAD_TOPIC, [0], value)
        loaded(running, requests, BUSY, seconds / 2)
        yield loaded(running, requests, BUSY, seconds)


SERIES = (
    Series(
        "records in a batch",
        "records of 100 B",
        (1, 10, 100, 1000, 5000),
        "16 connections send Produce of one batch",
        produced,
        may_grow=BY_SIZE,
    ),
    Series(
        "bytes in a fetch",
        "bytes",
        (1000, 10_000, 100_000, 1_000_000),
        "16 connections fetch from the log's start",
        fetched,
        may_grow=BY_SIZE,
    ),
)
