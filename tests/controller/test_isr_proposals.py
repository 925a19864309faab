"""ISRs that a leader proposes (KIP-497): what is written, what is refused, who hears of it."""

from __future__ import annotations

import pytest
from support.elected import ElectedController

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.partition_state import LeaderAndIsr
from odradek.common.topic_partition import TopicPartition
from odradek.controller.partitions.isr_proposals import IsrOutcome, IsrProposals

T0 = TopicPartition("t", 0)
LEADER = 2


@pytest.fixture
async def controller(controller: ElectedController) -> ElectedController:
    """One with a partition that broker 2 leads, and broker 3 has fallen out of its ISR."""
    await controller.create("t", {0: (LEADER, 3)})
    await controller.fail(3)
    await controller.start(3)
    assert await controller.state() == (LEADER, 1, (LEADER,))
    controller.channel.sent.clear()
    return controller


async def propose(
    controller: ElectedController,
    isr: tuple[int, ...],
    broker_id: int = LEADER,
    **epochs: int,
) -> IsrOutcome:
    """What comes of a proposal with the epochs that the store has, plus these differences."""
    current = await controller.node()
    proposed = current._replace(
        leader=broker_id,
        isr=isr,
        **{name: getattr(current, name) + more for name, more in epochs.items()},
    )
    broker = controller.broker(broker_id)
    proposals = IsrProposals(controller.active, broker_id, broker.epoch)
    (outcome,) = (await proposals.write({T0: proposed})).values()
    await controller.settle()
    return outcome


async def test_a_follower_that_has_caught_up_joins_and_everybody_hears_of_it(
    controller: ElectedController,
) -> None:
    before = await controller.node()
    written = await propose(controller, (LEADER, 3))
    assert isinstance(written, LeaderAndIsr)
    assert written == await controller.node()
    assert written.partition_epoch == before.partition_epoch + 1
    assert await controller.state() == (LEADER, 1, (LEADER, 3))
    for broker_id in (1, 2, 3):
        reported = controller.reported(broker_id)
        assert reported is not None
        assert reported.isr == (LEADER, 3)


async def test_what_is_written_already_is_answered_so_and_not_written_again(
    controller: ElectedController,
) -> None:
    written = await propose(controller, (LEADER, 3))
    assert await propose(controller, (LEADER, 3), partition_epoch=-1) == written
    assert await controller.node() == written


@pytest.mark.parametrize(
    ("isr", "broker_id", "epochs", "error"),
    [
        ((2, 3), 2, {"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ((2, 3), 2, {"partition_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ((2, 3), 2, {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ((2, 3), 2, {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ((2, 3), 3, {}, ErrorCode.INVALID_REQUEST),
        ((3,), 2, {}, ErrorCode.INVALID_REQUEST),
        ((), 2, {}, ErrorCode.INVALID_REQUEST),
        ((2, 1), 2, {}, ErrorCode.INVALID_REQUEST),
    ],
    ids=[
        "a later leader epoch",
        "a later partition epoch",
        "an earlier leader epoch",
        "an earlier partition epoch",
        "not the leader",
        "without the leader",
        "empty",
        "a broker without a replica",
    ],
)
async def test_a_proposal_that_may_not_be_written_is_refused(
    controller: ElectedController,
    isr: tuple[int, ...],
    broker_id: int,
    epochs: dict[str, int],
    error: ErrorCode,
) -> None:
    before = await controller.node()
    assert await propose(controller, isr, broker_id, **epochs) is error
    assert await controller.node() == before


async def test_a_replica_whose_broker_is_gone_or_going_may_not_join(
    controller: ElectedController,
) -> None:
    controller.active.context.shutting_down.add(3)
    assert await propose(controller, (LEADER, 3)) is ErrorCode.INELIGIBLE_REPLICA
    controller.active.context.shutting_down.clear()
    await controller.fail(3)
    assert await propose(controller, (LEADER, 3)) is ErrorCode.INELIGIBLE_REPLICA


async def test_a_leader_that_is_going_may_take_one_that_is_going_too(
    controller: ElectedController,
) -> None:
    controller.active.context.shutting_down |= {LEADER, 3}
    found = await propose(controller, (LEADER, 3))
    assert isinstance(found, LeaderAndIsr)
    assert found.isr == (LEADER, 3)


async def test_what_another_has_written_meanwhile_is_not_overwritten(
    controller: ElectedController,
) -> None:
    await controller.write_isr((LEADER, 3))
    refused = await propose(controller, (LEADER,), partition_epoch=-1)
    assert refused is ErrorCode.INVALID_UPDATE_VERSION
    assert await controller.state() == (LEADER, 1, (LEADER, 3))


async def test_a_broker_in_another_life_is_refused(controller: ElectedController) -> None:
    epoch = controller.broker(LEADER).epoch
    for broker_id, broker_epoch in ((LEADER, epoch - 1), (LEADER, epoch + 1), (9, 1)):
        with pytest.raises(KafkaError) as refusal:
            IsrProposals(controller.active, broker_id, broker_epoch)
        assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH


async def test_a_partition_that_is_not_there_is_unknown(controller: ElectedController) -> None:
    proposals = IsrProposals(controller.active, LEADER, controller.broker(LEADER).epoch)
    nowhere = (TopicPartition("t", 7), TopicPartition("u", 0))
    state = await controller.node()
    assert await proposals.write(dict.fromkeys(nowhere, state)) == dict.fromkeys(
        nowhere, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


async def test_an_isr_that_completes_a_reassignment_completes_it(
    controller: ElectedController,
) -> None:
    await controller.leaders.reassign({T0: (3,)})
    await controller.settle()
    assert isinstance(await propose(controller, (LEADER, 3)), LeaderAndIsr)
    assert (await controller.assigned()).assignment == {0: (3,)}
    assert (await controller.state())[0] == 3
