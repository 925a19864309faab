"""Keys of a compacted log: what a compaction takes for a record, and what the broker holds then."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from ....config.definition import ConfigResourceType
from ....protocol import messages
from ....protocol.records import build_batch
from ....storage.checkpoint.checkpoint_file import read_offsets
from ....storage.file_names import CLEANER_OFFSETS_FILE
from ....storage.io.files import REAL_FILES
from ....testing.waiting import wait_until
from ..coordinator.group_rebalance import MemberConnection, check
from ..measure import MeasuredBroker
from .loading import member_of, rest
from .requests import create_topics, produce
from .series import Figures, Series

TIMES = 2
"""So often each key is written."""
BATCH = 1_000
LAG = "min.compaction.lag.ms"
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 << 20),
    "segment.ms": "60000",
    LAG: str(1 << 40),
}
"""Nothing is compacted before the lag is taken back."""
COMPACT_SECONDS_MAX = 600


def compacted(running: MeasuredBroker, values: Sequence[int], seconds: float) -> Iterator[Figures]:
    """A log of so many keys, each written twice; the figures are of its records, not of seconds."""
    _compact(running, "first", values[0])  # what it needs is imported
    for value in values:
        yield _compact(running, f"keys-{value}", value)


def _compact(running: MeasuredBroker, topic: str, keys: int) -> Figures:
    with member_of(running) as member:
        create_topics(member, [topic], 1, SETTINGS)
        _write(member, topic, keys)
        rest(running)
        before, began = running.cpu_seconds(), time.perf_counter()
        _allow(member, topic)
        memory_mb = _await_compacted(running, topic, TIMES * keys)
    records = TIMES * keys
    return {
        "rate": records / (time.perf_counter() - began),
        "cpu_us": (running.cpu_seconds() - before) / records * 1e6,
        "memory_mb": memory_mb,
    }


def _write(member: MemberConnection, topic: str, keys: int) -> None:
    """Each key so often, and one record so late that what is before it is no active segment."""
    now_ms = int(time.time() * 1000)
    late_ms = now_ms + 10 * int(SETTINGS["segment.ms"])
    for _ in range(TIMES):
        for first in range(0, keys, BATCH):
            numbers = range(first, min(first + BATCH, keys))
            _send(member, topic, [(b"key-%d" % each, now_ms) for each in numbers])
    _send(member, topic, [(b"last", late_ms)])


def _send(member: MemberConnection, topic: str, keys: Sequence[tuple[bytes, int]]) -> None:
    batch = build_batch([(key, b"v" * 100, timestamp_ms, []) for key, timestamp_ms in keys])
    member.wire.exchange(produce(topic, [0], batch))


def _allow(member: MemberConnection, topic: str) -> None:
    make = messages.IncrementalAlterConfigsRequest
    config = make.AlterableConfig(name=LAG, config_operation=0, value="0")
    resource = make.AlterConfigsResource(
        resource_type=ConfigResourceType.TOPIC, resource_name=topic, configs=[config]
    )
    member.send(make(resources=[resource]))
    answer = member.receive()
    check(not any(each.error_code for each in answer.responses), answer)


def _await_compacted(running: MeasuredBroker, topic: str, end_offset: int) -> float:
    """Wait until the log is compacted up to there; returns the most memory that was seen."""
    seen_mb: list[float] = []

    def is_compacted() -> bool:
        seen_mb.append(running.resident_mb())
        done = read_offsets(REAL_FILES, str(running.data / CLEANER_OFFSETS_FILE))
        return any(tp.topic == topic and offset >= end_offset for tp, offset in done.items())

    wait_until(is_compacted, COMPACT_SECONDS_MAX, f"{topic} is not compacted")
    return max(seen_mb)


SERIES = (
    Series(
        "keys",
        "keys of a compacted log",
        (1_000, 10_000, 100_000, 1_000_000),
        "the log is compacted once, each key in it twice; its records are counted",
        compacted,
        each="key",
        settings=("log.cleaner.backoff.ms=100",),
    ),
)
