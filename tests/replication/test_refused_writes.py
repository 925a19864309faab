"""Refused writes in the log: a line for each kind and disk, then a count."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.records import build_batch
from odradek.replication.refused_writes import INTERVAL_MS

if TYPE_CHECKING:
    from conftest import Bench

NOW_MS = 1_700_000_000_000
T0 = TopicPartition("t", 0)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What the log says of refused writes, since this was called last."""
    caplog.set_level(logging.INFO, "odradek.replication.refused_writes")

    def take() -> list[str]:
        found = [
            record.getMessage()
            for record in caplog.records
            if record.name == "odradek.replication.refused_writes"
        ]
        caplog.clear()
        return found

    return take


def test_a_full_disk_is_one_line_and_then_a_count_for_each_minute(
    bench: Bench, full_disk: Callable[[bool], None], lines: Callable[[], list[str]]
) -> None:
    bench.lead(bench.state())
    full_disk(True)
    for _ in range(50):
        assert bench.produce("t", b"lost").error is ErrorCode.KAFKA_STORAGE_ERROR
    (line,) = lines()
    assert "t-0" in line
    assert "KAFKA_STORAGE_ERROR" in line
    assert "No space left on device" in line
    assert bench.manager.partition_or_error(T0).log.log_dir in line
    bench.advance(INTERVAL_MS)
    (line,) = lines()
    assert line.startswith("49 more writes in ")
    assert "KAFKA_STORAGE_ERROR in the last 60 s" in line
    bench.produce("t", b"lost")
    bench.advance(INTERVAL_MS)
    (line,) = lines()
    assert line.startswith("1 more writes in ")
    bench.advance(INTERVAL_MS)
    assert lines() == []
    bench.produce("t", b"lost")
    (line,) = lines()
    assert "No space left on device" in line


def test_each_kind_has_a_line_of_its_own(bench: Bench, lines: Callable[[], list[str]]) -> None:
    bench.lead(bench.state())
    broken = build_batch([(None, b"broken", NOW_MS, ())])
    large = build_batch([(None, bytes(2 << 20), NOW_MS, ())])
    broken[-1] ^= 1
    for _ in range(3):
        bench.append({T0: broken})
        bench.append({T0: large})
        bench.manager.flush()
    told = lines()
    assert len(told) == 2
    assert "CORRUPT_MESSAGE" in told[0]
    assert "MESSAGE_TOO_LARGE" in told[1]


def test_what_every_change_of_leaders_brings_is_not_logged(
    bench: Bench, lines: Callable[[], list[str]]
) -> None:
    bench.lead(bench.state(leader=2, replicas=(1, 2), isr=(2,)))
    assert bench.produce("t", b"elsewhere").error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert lines() == []


def test_what_was_counted_last_is_reported_without_another_refusal(
    bench: Bench, full_disk: Callable[[bool], None], lines: Callable[[], list[str]]
) -> None:
    bench.lead(bench.state())
    full_disk(True)
    bench.produce("t", b"lost")
    bench.produce("t", b"lost")
    full_disk(False)
    lines()
    bench.advance(INTERVAL_MS)
    assert [line.split(" in ")[0] for line in lines()] == ["1 more writes"]
