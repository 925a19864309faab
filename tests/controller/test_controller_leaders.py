"""Elections that are asked for, leaders given back, and brokers that leave in good order."""

from __future__ import annotations

import pytest
from support.cluster import Cluster
from support.elected import ElectedController, State, elected_controller

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.partition_state import LeaderAndIsr
from odradek.common.sentinels import NO_LEADER
from odradek.common.topic_partition import TopicPartition
from odradek.controller.partitions.leader_elections import ElectionType
from odradek.metadata_store import znodes

T0 = TopicPartition("t", 0)
PREFERRED, UNCLEAN = ElectionType


async def elect(
    controller: ElectedController, kind: ElectionType, *partitions: TopicPartition
) -> dict[TopicPartition, ErrorCode]:
    """The outcomes of an election, of all partitions where none are named."""
    outcomes = await controller.leaders.elect(kind, partitions or None)
    await controller.settle()
    return {
        each: ErrorCode.NONE if outcome is None else outcome.code
        for each, outcome in outcomes.items()
    }


async def bring_back(controller: ElectedController, broker_id: int, isr: tuple[int, ...]) -> None:
    """A broker dies and comes back, and catches up with t-0."""
    await controller.fail(broker_id)
    await controller.start(broker_id)
    await controller.change_isr(isr)
    controller.channel.sent.clear()


# -- the preferred leader ------------------------------------------------------------


async def test_the_preferred_leader_leads_again_when_asked_for(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3)})
    await bring_back(controller, 2, (3, 2))
    assert await controller.state() == (3, 1, (3, 2))
    assert await elect(controller, PREFERRED, T0) == {T0: ErrorCode.NONE}
    assert await controller.state() == (2, 2, (3, 2))
    for broker_id in (2, 3):
        assert controller.led(broker_id)[-1].leader == 2
    assert controller.reported(1).leader == 2  # type: ignore[union-attr]  # it was told
    assert await elect(controller, PREFERRED, T0) == {T0: ErrorCode.ELECTION_NOT_NEEDED}
    await bring_back(controller, 2, (3, 2))
    assert await elect(controller, PREFERRED) == {T0: ErrorCode.NONE}
    assert await controller.state() == (2, 4, (3, 2))


async def test_a_preferred_leader_that_is_away_or_behind_is_not_available(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3)})
    await controller.fail(2)
    refused = {T0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert await elect(controller, PREFERRED, T0) == refused
    await controller.start(2)  # alive, and not yet in sync
    assert await elect(controller, PREFERRED, T0) == refused
    assert await controller.state() == (3, 1, (3,))


async def test_elections_answer_for_each_partition_and_leave_out_what_needs_none(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3), 1: (1, 3)})
    absent = TopicPartition("absent", 0)
    beyond = TopicPartition("t", 2)
    assert await elect(controller, PREFERRED, T0, absent, beyond) == {
        T0: ErrorCode.ELECTION_NOT_NEEDED,
        absent: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        beyond: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert await elect(controller, PREFERRED) == {}
    assert controller.channel.sent == []


# -- unclean elections ------------------------------------------------------------


async def test_an_unclean_election_asked_for_takes_whom_there_is(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3), 1: (3, 1)})
    assert await elect(controller, UNCLEAN, T0) == {T0: ErrorCode.ELECTION_NOT_NEEDED}
    await controller.change_isr((2,))
    await controller.fail(2)
    assert await controller.state() == (NO_LEADER, 1, (2,))
    assert await elect(controller, UNCLEAN) == {T0: ErrorCode.NONE}
    assert await controller.state() == (3, 2, (3,))
    # The former leader's records beyond are given up: it comes back as a follower.
    await controller.start(2)
    assert await controller.state() == (3, 2, (3,))
    assert controller.led(2)[-1].leader == 3


async def test_an_unclean_election_needs_a_live_replica(controller: ElectedController) -> None:
    await controller.create("t", {0: (2, 3)})
    await controller.fail(2, 3)
    refused = {T0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    assert await elect(controller, UNCLEAN, T0) == refused


async def test_an_unclean_election_still_prefers_one_in_sync(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3, 1)})
    await controller.change_isr((2,))
    await controller.fail(2)
    await controller.write_isr((1, 2))  # the leader's last act, not known yet
    assert await elect(controller, UNCLEAN, T0) == {T0: ErrorCode.NONE}
    assert await controller.state() == (1, 2, (1,))


# -- rebalancing ------------------------------------------------------------


@pytest.mark.parametrize(
    ("percentage", "moved", "returned"),
    [("10", 1, True), ("24", 1, True), ("25", 1, False), ("49", 2, True), ("50", 2, False)],
)
async def test_leaders_return_to_a_broker_that_too_many_are_away_from(
    cluster: Cluster, percentage: str, moved: int, returned: bool
) -> None:
    cluster.configure(leader_imbalance_per_broker_percentage=percentage)
    async with elected_controller(cluster) as controller:
        await controller.create("t", {0: (2, 3), 1: (2, 3), 2: (2, 3), 3: (2, 3)})
        for partition in range(moved):
            path = znodes.partition_state_path("t", partition)
            led_by_3 = LeaderAndIsr(1, 3, 1, (2, 3))
            await controller.store.set(path, znodes.encode_partition_state(led_by_3))
        await controller.elect(1)
        await controller.leaders.rebalance()
        for partition in range(moved):
            leader, _, _ = await controller.state("t", partition)
            assert leader == (2 if returned else 3)


async def test_rebalancing_leaves_alone_what_cannot_return_or_is_moving(
    controller: ElectedController,
) -> None:
    await controller.create("behind", {0: (2, 3)})
    await controller.create("moving", {0: (2, 3)})
    await controller.fail(2)
    await controller.start(2)
    await controller.change_isr((3, 2), "moving")
    outcome = await controller.leaders.reassign({TopicPartition("moving", 0): (2, 1)})
    assert outcome == {TopicPartition("moving", 0): None}
    before = [await controller.state(name) for name in ("behind", "moving")]
    controller.channel.sent.clear()
    await controller.leaders.rebalance()
    assert [await controller.state(name) for name in ("behind", "moving")] == before
    assert controller.channel.sent == []


# -- controlled shutdown ------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "isr", "left", "remaining"),
    [
        ((2, 3, 1), (2, 3, 1), (3, 1, (3, 1)), False),
        ((2, 3, 1), (2, 1), (1, 1, (1,)), False),
        ((2, 3), (2,), (2, 0, (2,)), True),  # nobody else is in sync: it may try again
        ((3, 2), (3, 2), (3, 1, (3,)), False),
        ((3, 1), (3, 1), (3, 0, (3, 1)), False),
        ((2,), (2,), (2, 0, (2,)), False),  # nobody else has it at all
    ],
)
async def test_a_broker_that_leaves_in_good_order_hands_over_before(
    controller: ElectedController,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    left: State,
    remaining: bool,
) -> None:
    await controller.create("t", {0: replicas})
    if isr != replicas:
        await controller.change_isr(isr)
    epoch = controller.broker(2).epoch
    assert await controller.leaders.shut_down(2, epoch) == ([T0] if remaining else [])
    assert await controller.state() == left
    assert controller.active.context.live_broker_ids == [1, 3]


async def test_a_follower_that_leaves_is_stopped_and_the_leader_told(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (3, 2), 1: (2, 3)})
    await controller.leaders.shut_down(2, controller.broker(2).epoch)
    assert controller.stopped(2) == [("t", 0, False), ("t", 0, False)]
    assert controller.led(3)[-1].isr == (3,)
    handed_over = controller.led(2, "t", 1)[-1]
    assert (handed_over.leader, handed_over.isr) == (3, (3,))
    # Clients of every broker, also of the one that leaves, find the new leader.
    for broker_id in (1, 2, 3):
        assert controller.reported(broker_id, "t", 1).leader == 3  # type: ignore[union-attr]  # it was told


async def test_brokers_that_leave_one_after_the_other_leave_the_last_as_it_is(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2, 3)})
    for broker_id, left, remaining in (
        (3, (1, 1, (1, 2)), []),
        (2, (1, 2, (1,)), []),
        (1, (1, 2, (1,)), [T0]),
    ):
        epoch = controller.broker(broker_id).epoch
        assert await controller.leaders.shut_down(broker_id, epoch) == remaining
        assert await controller.state() == left


async def test_brokers_that_all_stop_hand_over_to_one_that_stops_later(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3)})
    await controller.create("u", {0: (3, 2)})
    controller.active.context.shutting_down |= {1, 2, 3}
    assert await controller.leaders.shut_down(2, controller.broker(2).epoch) == []
    assert await controller.state() == (3, 1, (3,))
    assert (await controller.state("u"))[2] == (3,)
    assert len(await controller.leaders.shut_down(3, controller.broker(3).epoch)) == 2


async def test_a_broker_that_cannot_go_yet_stays_in_sync(controller: ElectedController) -> None:
    await controller.create("t", {0: (2, 3)})
    await controller.change_isr((2,))
    await controller.create("u", {0: (3, 2)})
    assert await controller.leaders.shut_down(2, controller.broker(2).epoch) == [T0]
    assert await controller.state("u") == (3, 0, (3, 2))
    assert controller.stopped(2) == []


async def test_a_broker_that_left_and_came_back_takes_partitions_again(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3)})
    await controller.leaders.shut_down(2, controller.broker(2).epoch)
    await controller.fail(2)
    await controller.start(2)
    assert controller.active.context.live_broker_ids == [1, 2, 3]
    await controller.change_isr((3, 2))
    assert await elect(controller, PREFERRED, T0) == {T0: ErrorCode.NONE}


async def test_a_broker_that_leaves_is_given_no_new_leaderships(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (3, 2, 1)})
    controller.active.context.shutting_down.add(2)
    await controller.fail(3)
    assert await controller.state() == (1, 1, (1,))


async def test_a_shutdown_asked_for_by_a_former_life_or_by_nobody_is_refused(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3)})
    epoch = controller.broker(2).epoch
    for broker_id, requested, code in (
        (2, epoch - 1, ErrorCode.STALE_BROKER_EPOCH),
        (9, -1, ErrorCode.BROKER_NOT_AVAILABLE),
    ):
        with pytest.raises(KafkaError) as refusal:
            await controller.leaders.shut_down(broker_id, requested)
        assert refusal.value.code is code
    assert await controller.state() == (2, 0, (2, 3))
    assert await controller.leaders.shut_down(2, -1) == []  # one that does not say its epoch
