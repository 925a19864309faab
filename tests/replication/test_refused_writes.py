"""Refused writes: counted, a line of the log for each kind and disk, and which disk is full."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.log_lines import LimitedLogHandler
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.records import build_batch
from odradek.replication.refused_writes import FULL_MS, logger

if TYPE_CHECKING:
    from conftest import Bench

NOW_MS = 1_700_000_000_000
T0 = TopicPartition("t", 0)


@pytest.fixture
def lines() -> Iterator[Callable[[], list[str]]]:
    """What the log of a broker says of refused writes, all that was suppressed being counted."""
    stream = io.StringIO()
    handler = LimitedLogHandler(stream)
    logger.addHandler(handler)

    def take() -> list[str]:
        handler.end_intervals(float("inf"))
        return stream.getvalue().splitlines()

    yield take
    logger.removeHandler(handler)


def test_a_full_disk_is_one_line_and_a_count(
    bench: Bench, full_disk: Callable[[bool], None], lines: Callable[[], list[str]]
) -> None:
    bench.lead(bench.state())
    full_disk(True)
    for _ in range(264):
        assert bench.produce("t", b"lost").error is ErrorCode.KAFKA_STORAGE_ERROR
    line, count = lines()
    directory = bench.manager.partition_or_error(T0).log.log_dir
    for text in ("t-0", "KAFKA_STORAGE_ERROR", "No space left on device", directory):
        assert text in line
    assert count.startswith("263 more like this followed: ")
    assert bench.manager.refused_writes.counts == {(ErrorCode.KAFKA_STORAGE_ERROR, directory): 264}


def test_a_disk_is_full_until_a_minute_without_refusals(
    bench: Bench, full_disk: Callable[[bool], None]
) -> None:
    bench.lead(bench.state())
    refused = bench.manager.refused_writes
    directory = bench.manager.partition_or_error(T0).log.log_dir
    assert not refused.is_full(directory)
    full_disk(True)
    bench.produce("t", b"lost")
    assert refused.is_full(directory)
    bench.advance(FULL_MS - 1)
    assert refused.is_full(directory)
    assert not refused.is_full("/another")
    bench.advance(1)
    assert not refused.is_full(directory)


def test_each_kind_has_a_line_of_its_own(bench: Bench, lines: Callable[[], list[str]]) -> None:
    bench.lead(bench.state())
    broken = build_batch([(None, b"broken", NOW_MS, ())])
    large = build_batch([(None, bytes(2 << 20), NOW_MS, ())])
    broken[-1] ^= 1
    for records in (broken, large):
        bench.append({T0: records})
        bench.manager.flush()
    told = lines()
    assert len(told) == 2
    assert "CORRUPT_MESSAGE" in told[0]
    assert "MESSAGE_TOO_LARGE" in told[1]
    directory = bench.manager.partition_or_error(T0).log.log_dir
    assert not bench.manager.refused_writes.is_full(directory)


def test_what_every_change_of_leaders_brings_is_not_logged(
    bench: Bench, lines: Callable[[], list[str]]
) -> None:
    bench.lead(bench.state(leader=2, replicas=(1, 2), isr=(2,)))
    assert bench.produce("t", b"elsewhere").error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert lines() == []
