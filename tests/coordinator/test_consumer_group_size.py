"""What a write of one member costs does not depend on how many members its group has."""

from __future__ import annotations

import random

import pytest

from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.consumer.member import ConsumerGroupMember
from odradek.coordinator.group.consumer.states import ConsumerGroupState, MemberState

MEMBERS = 300


def group_of(count: int, epoch: int) -> ConsumerGroup:
    group = ConsumerGroup("orders", 0)
    group.epoch = group.target_epoch = epoch
    for number in range(count):
        group.put_member(ConsumerGroupMember(f"member-{number}", member_epoch=epoch))
    group.refresh_state(loading=True)
    return group


def test_a_rebalance_looks_at_each_member_a_few_times_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = group_of(MEMBERS, epoch=2)
    looks = 0
    look = ConsumerGroupMember.is_reconciled_to

    def counted(member: ConsumerGroupMember, target_epoch: int) -> bool:
        nonlocal looks
        looks += 1
        return look(member, target_epoch)

    monkeypatch.setattr(ConsumerGroupMember, "is_reconciled_to", counted)
    group.epoch = group.target_epoch = 3
    # The last comes first, so that who is looked at in order finds no laggard early.
    for member in reversed(list(group.members.values())):
        group.put_member(member.with_epoch(3))
        group.refresh_state()
    assert group.state is ConsumerGroupState.STABLE
    assert looks <= 3 * MEMBERS


def test_a_group_is_stable_when_each_member_is_whatever_came_before() -> None:
    rng = random.Random(11)
    group = group_of(5, epoch=2)
    image = group.image()
    for _ in range(3000):
        deed = rng.randrange(10)
        member_id = f"member-{rng.randrange(6)}"
        if deed == 0:
            group.remove_member(member_id)
        elif deed == 1:
            group.epoch = group.target_epoch = rng.randint(2, 4)
        elif deed == 2:
            group.restore(image)
        elif deed == 3:
            image = group.image()
        else:
            state = rng.choice(list(MemberState))
            epoch = rng.choice([group.target_epoch, group.target_epoch, 2])
            group.put_member(ConsumerGroupMember(member_id, epoch, state=state))
        group.refresh_state(loading=True)
        is_stable = group.members and all(
            each.state is MemberState.STABLE and each.member_epoch == group.target_epoch
            for each in group.members.values()
        )
        assert (group.state is ConsumerGroupState.STABLE) == bool(is_stable)
