"""Partitions: idle ones beside the one that is written, and as many written in turns."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence

from ..coordinator.group_rebalance import check
from ..measure import MeasuredBroker
from .connections import BUSY, LOAD_TOPIC
from .loading import EncodedRequests, loaded, member_of, rest
from .requests import SESSION_ERROR_AT, create_topics, metadata, produces, session_fetch
from .series import Figures, Series

PARTITIONS_PER_TOPIC = 100
SESSION_FETCHES_A_SECOND_MAX = 30_000


def idle(running: MeasuredBroker, values: Sequence[int], seconds: float) -> Iterator[Figures]:
    """So many partitions that nobody writes, and one that is written."""
    with member_of(running) as member:
        create_topics(member, [LOAD_TOPIC], 1)
        loaded(running, produces(LOAD_TOPIC), BUSY, seconds / 2)
        made = 0
        for value in values:
            whole = range(made // PARTITIONS_PER_TOPIC, value // PARTITIONS_PER_TOPIC)
            create_topics(member, [f"idle-{n}" for n in whole], PARTITIONS_PER_TOPIC)
            odd = value % PARTITIONS_PER_TOPIC
            if odd:
                create_topics(member, [f"odd-{value}"], odd)
            made = value - odd
            rest(running)
            idle_percent = _idle_percent(running, 2 * seconds)
            figures = loaded(running, produces(LOAD_TOPIC), BUSY, seconds)
            yield {**figures, "idle_percent": idle_percent}


def topics(running: MeasuredBroker, values: Sequence[int], seconds: float) -> Iterator[Figures]:
    """So many topics of one partition, of which Metadata names one."""
    with member_of(running) as member:
        made = 0
        for value in values:
            create_topics(member, [f"topic-{n}" for n in range(made, value)], 1)
            if not made:
                loaded(running, metadata("topic-0"), BUSY, seconds / 2)
            made = value
            rest(running)
            yield loaded(running, metadata("topic-0"), BUSY, seconds)


def written(running: MeasuredBroker, values: Sequence[int], seconds: float) -> Iterator[Figures]:
    """So many partitions that are written one after another."""
    with member_of(running) as member:
        for value in values:
            topic = f"written-{value}"
            create_topics(member, [topic], value)
            requests = produces(topic, range(value))
            loaded(running, requests, BUSY, seconds / 2)
            yield loaded(running, requests, BUSY, seconds)


def in_session(running: MeasuredBroker, values: Sequence[int], seconds: float) -> Iterator[Figures]:
    """Fetches of a session that holds so many partitions without news."""
    with member_of(running) as member:
        for value in values:
            topic = f"session-{value}"
            create_topics(member, [topic], value)
            answer = member.wire.exchange(session_fetch(topic, range(value), 0, 0))
            error, session_id = struct.unpack_from(">hi", answer, SESSION_ERROR_AT)
            check(not error and session_id, f"error {error} and session {session_id}")
            # Each epoch can be used once: more of them than can be answered in the time.
            epochs = range(1, int(seconds * SESSION_FETCHES_A_SECOND_MAX))
            frames = [session_fetch(topic, (), session_id, epoch) for epoch in epochs]
            rest(running)
            yield loaded(running, EncodedRequests(frames, SESSION_ERROR_AT), 1, seconds)


def _idle_percent(running: MeasuredBroker, seconds: float) -> float:
    before, began = running.cpu_seconds(), time.perf_counter()
    time.sleep(seconds)
    return 100 * (running.cpu_seconds() - before) / (time.perf_counter() - began)


SERIES = (
    Series(
        "idle partitions",
        "idle partitions",
        (0, 10, 100, 1000, 10_000),
        "16 connections send Produce of one record to another partition",
        idle,
        each="idle partition",
    ),
    Series(
        "partitions in a session",
        "partitions of a fetch session",
        (1, 10, 100, 1000, 10_000),
        "one consumer fetches, waits for nothing, and there is nothing",
        in_session,
        each="partition",
    ),
    Series(
        "topics",
        "topics of one partition",
        (1, 10, 100, 1000),
        "16 connections ask for the Metadata of one of them",
        topics,
        each="topic",
    ),
    Series(
        "written partitions",
        "partitions",
        (1, 10, 100, 1000, 10_000),
        "16 connections send Produce of one record, to each partition in its turn",
        written,
        each="written partition",
        may_grow="requests of one pass go to different logs, each of which is written by itself",
    ),
)
