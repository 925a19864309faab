"""However many partitions a topic has, the controller lets others on its loop have their turns.

Work is counted as calls of functions, not timed, and steps end by that count.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from support.cluster import Cluster, RecordingChannel
from support.elected import ElectedController, elected_controller
from support.work_per_turn import Work

from odradek.common.errors import ErrorCode
from odradek.common.partition_state import LeaderAndIsr
from odradek.controller.channel.channel import ControllerRequest, OnAnswer, StopReplica
from odradek.controller.partitions.leader_elections import ElectionType
from odradek.controller.topics.planning import NewPartitions, TopicCreation
from odradek.runtime import long_work

PARTITIONS = 1_000
CALLS_PER_TURN_MAX = 6_000
"""Of a transaction with the store."""


class Answers:
    """What brokers are to answer, once they are asked for it."""

    def __init__(self) -> None:
        self.waiting: list[tuple[ControllerRequest, OnAnswer]] = []

    def give(self) -> None:
        """Every broker did everything."""
        waiting, self.waiting = self.waiting, []
        for request, on_answer in waiting:
            assert isinstance(request, StopReplica)
            on_answer({each.topic_partition: ErrorCode.NONE for each in request.partitions})


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Brokers that only listen: what they do with requests is none of the controller's work."""
    answers = Answers()

    def send(
        channel: RecordingChannel,
        broker_id: int,
        request: ControllerRequest,
        on_answer: OnAnswer | None,
    ) -> None:
        if on_answer is not None and isinstance(request, StopReplica):
            answers.waiting.append((request, on_answer))

    monkeypatch.setattr(RecordingChannel, "send", send)
    return answers


@pytest.fixture
async def controller(
    tmp_path: Path, answers: Answers, work: Work
) -> AsyncIterator[ElectedController]:
    async with elected_controller(Cluster(tmp_path)) as controller:
        yield controller


@pytest.fixture
def work(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> Work:
    work = Work(CALLS_PER_TURN_MAX)
    monkeypatch.setattr(long_work, "precise_seconds", work.seconds)
    nursery.start_soon(work.run)
    return work


def leaders(controller: ElectedController) -> set[int]:
    states: dict[int, LeaderAndIsr] = controller.topic("t").leaderships
    return {state.leader for state in states.values()}


async def create(controller: ElectedController, count: int) -> None:
    (created,) = await controller.topics.create([TopicCreation("t", count, 2)])
    assert created.error is None
    assert len(controller.topic("t").leaderships) == count


async def test_a_topic_of_many_partitions_is_made_grown_and_deleted_in_turns(
    controller: ElectedController, work: Work, answers: Answers
) -> None:
    with work.counted():
        await create(controller, PARTITIONS)
    await work.check()
    with work.counted():
        outcomes = await controller.topics.add_partitions([NewPartitions("t", 2 * PARTITIONS)])
        assert outcomes == {"t": None}
    await work.check()
    assert len(controller.topic("t").leaderships) == 2 * PARTITIONS
    with work.counted():
        await controller.topics.delete([controller.topic("t").topic_id])
    await work.check()
    answers.give()
    with work.counted():
        await controller.settle()
    await work.check()
    assert not controller.active.context.has_name("t")


async def test_brokers_with_many_partitions_come_and_go_in_turns(
    controller: ElectedController, work: Work
) -> None:
    await create(controller, PARTITIONS)
    led = leaders(controller)
    assert len(led) > 1
    with work.counted():
        await controller.fail(2)
    await work.check()
    assert leaders(controller) == led - {2}
    with work.counted():
        await controller.start(2)
    await work.check()
    with work.counted():
        await controller.elect(1, restarted=[1])
    await work.check()
    with work.counted():
        await controller.leaders.elect(ElectionType.PREFERRED, None)
    await work.check()


async def test_a_broker_with_many_partitions_shuts_down_in_turns(
    controller: ElectedController, work: Work
) -> None:
    await create(controller, PARTITIONS)
    with work.counted():
        assert await controller.leaders.shut_down(3, -1) == []
    await work.check()
    assert 3 not in leaders(controller)
