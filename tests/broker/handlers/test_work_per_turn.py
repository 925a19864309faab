"""However much a request names, others have a turn after a bounded number of calls of functions.

The requests are the worst ones of the benchmark `worst_requests`. Work is counted by a profiler,
not timed: a step is as short as it can be.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
import trio
from support.selection import slow_unless

from odradek.protocol.api_keys import ApiKey
from odradek.runtime import long_work
from odradek.tools.benchmarks.worst.requests import UNKNOWN, Candidate, Scene, candidates

from .conftest import Bench

TOPIC = "orders"
REQUEST_BYTES = 80_000
CALLS_PER_TURN_MAX = 10_000
"""Of a step of 64 items, or of a few things that are done in one go: some milliseconds."""

WORST: list[tuple[ApiKey, str]] = [
    (ApiKey.PRODUCE, "topic_data"),
    (ApiKey.FETCH, "topics.partitions"),
    (ApiKey.LEADER_AND_ISR, "topic_states.partition_states"),
    (ApiKey.LEADER_AND_ISR, "topic_states"),
    (ApiKey.STOP_REPLICA, "topic_states.partition_states"),
    (ApiKey.UPDATE_METADATA, "topic_states.partition_states"),
    (ApiKey.DELETE_RECORDS, "topics.partitions"),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "transactions.topics.partitions"),
    (ApiKey.WRITE_TXN_MARKERS, "markers"),
    (ApiKey.DESCRIBE_CONFIGS, "resources"),
    (ApiKey.ALTER_CONFIGS, "resources"),
    (ApiKey.ALTER_CONFIGS, "resources.configs"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "resources"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "resources.configs"),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, "dirs.topics.partitions"),
    (ApiKey.DESCRIBE_LOG_DIRS, "topics.partitions"),
    (ApiKey.CREATE_PARTITIONS, "topics"),
    (ApiKey.CREATE_TOPICS, "topics"),
    (ApiKey.DELETE_TOPICS, "topics"),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, "topics"),
    (ApiKey.DELETE_GROUPS, "groups_names"),
    (ApiKey.ELECT_LEADERS, "topic_partitions.partitions"),
    (ApiKey.ELECT_LEADERS, "topic_partitions"),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, "topics.partitions"),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, "topics.partition_indexes"),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "users"),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "upsertions"),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "deletions"),
    (ApiKey.ALTER_CLIENT_QUOTAS, "entries"),
]
"""APIs, and the array that is filled with what is not known."""


class Work:
    """Counts calls of functions, Python's and C's, between an onlooker's turns.

    Attributes:
        most: the largest count between two turns so far.
        total: all of them.
    """

    def __init__(self) -> None:
        self.most = self.total = 0
        self._count = 0

    def profile(self, _frame: FrameType, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            self._count += 1

    async def run(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.most = max(self.most, self._count)
            self.total += self._count
            self._count = 0


@pytest.fixture
async def work(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    counted = Work()
    nursery.start_soon(counted.run)
    yield counted
    sys.setprofile(None)


def worst_request(api: ApiKey, array: str, scene: Scene) -> Candidate:
    """The longest that is not refused for its length."""
    for candidate in candidates(api, scene, REQUEST_BYTES):
        if candidate.shape.startswith(f"{array}: {UNKNOWN}"):
            return candidate
    raise AssertionError(f"{api.name} has no such array")


async def answer_to(bench: Bench, frame: bytes) -> bool:
    """Send a request; returns whether it was answered: else it was too long."""
    client = bench.another_client()
    connection = client.connection
    connection.process([memoryview(bytearray(frame[4:]))])
    bench.broker.server.finish_outside_work()
    with trio.fail_after(60):
        while connection.unanswered and not connection.is_closing:
            await client.woken()
    return not connection.is_closing


@pytest.mark.parametrize(
    ("api", "array"),
    [
        pytest.param(*case, marks=slow_unless(number < 4), id=f"{case[0].name}-{case[1]}")
        for number, case in enumerate(WORST)
    ],
)
async def test_others_have_a_turn_after_a_bounded_number_of_calls(
    bench: Bench, work: Work, api: ApiKey, array: str
) -> None:
    topic_id = await bench.create_topic(TOPIC)
    scene = Scene(bench.broker.broker_id, [TOPIC], 1, {TOPIC: topic_id}, ["g"], ["x"], ["/none"])
    candidate = worst_request(api, array, scene)
    while not await answer_to(bench, candidate.frame):
        smaller = candidate.smaller()
        assert smaller is not None
        candidate = smaller
    # What was imported and compiled at the first request is no part of what others cost.
    await trio.lowlevel.checkpoint()
    frame = candidate.frame
    work.most = work.total = 0
    sys.setprofile(work.profile)
    assert await answer_to(bench, frame)
    sys.setprofile(None)
    await trio.lowlevel.checkpoint()
    assert work.total > 2 * CALLS_PER_TURN_MAX, "the request is long"
    assert work.most <= CALLS_PER_TURN_MAX
