"""`segment.jitter.ms`: segments begun together do not all roll at the same time."""

from __future__ import annotations

import pytest

from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.storage import LogConfig, LogManager, TopicPartition
from odradek.tools.simulation.disks.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
SEGMENT_MS = 10_000
ORDERS = TopicPartition("orders", 0)


class Chance:
    """Gives one number whenever it is asked."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number

    def getrandbits(self, bits: int) -> int:
        return 0


def append(log, timestamp: int) -> None:
    batch = build_batch([(b"key", b"value", timestamp, [])])
    log.append_as_leader(batch, leader_epoch=0, now_ms=timestamp)
    log.flush_appends()


@pytest.mark.parametrize(
    ("chance", "jitter_ms", "age_ms"),
    [
        (0.0, 4_000, SEGMENT_MS),
        (0.5, 4_000, SEGMENT_MS - 2_000),
        (0.5, 0, SEGMENT_MS),
        (0.5, 10 * SEGMENT_MS, SEGMENT_MS // 2),
    ],
    ids=["none by chance", "half", "none set", "no more than segment.ms"],
)
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_segment_rolls_earlier_by_a_part_of_the_jitter(chance, jitter_ms, age_ms, is_restarted):
    files = MemoryFiles()
    config = LogConfig(segment_ms=SEGMENT_MS, segment_jitter_ms=jitter_ms)

    def start() -> LogManager:
        manager = LogManager(
            ["/data"],
            clock=ManualClock(NOW_MS),
            files=files,
            rng=Chance(chance),
            default_config=config,
        )
        manager.load_logs()
        return manager

    manager = start()
    log = manager.get_or_create_log(ORDERS)
    append(log, NOW_MS)
    if is_restarted:
        manager.close()
        manager = start()
        log = manager.logs[ORDERS]
    append(log, NOW_MS + age_ms)
    assert len(log.segments) == 1
    append(log, NOW_MS + age_ms + 1)
    assert len(log.segments) == 2
    manager.abandon()


def test_a_jitter_that_is_set_later_holds_for_the_segment_that_is_there():
    manager = LogManager(["/data"], clock=ManualClock(NOW_MS), files=MemoryFiles(), rng=Chance(0.5))
    manager.load_logs()
    log = manager.get_or_create_log(ORDERS, config=LogConfig(segment_ms=SEGMENT_MS))
    append(log, NOW_MS)
    log.configure(LogConfig(segment_ms=SEGMENT_MS, segment_jitter_ms=4_000))
    append(log, NOW_MS + SEGMENT_MS - 2_000)
    assert len(log.segments) == 1
    append(log, NOW_MS + SEGMENT_MS - 2_000 + 1)
    assert len(log.segments) == 2
    manager.abandon()
