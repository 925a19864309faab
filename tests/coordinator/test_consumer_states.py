"""Every cell of the tables of consumer groups and of their members, and none besides."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.consumer_bench import GROUP, ORDERS, PAYMENTS, ConsumerBench

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.consumer.current_assignment import Reconciliation, reconcile
from odradek.coordinator.group.consumer.member import ConsumerGroupMember
from odradek.coordinator.group.consumer.states import (
    GROUP_TRANSITIONS,
    MEMBER_TRANSITIONS,
    ConsumerGroupState,
    MemberEvent,
    MemberState,
)

EMPTY, ASSIGNING, RECONCILING, STABLE, DEAD = ConsumerGroupState
MUST_REVOKE, MUST_WAIT, COMPLETE = MemberEvent


def test_the_names_and_numbers_are_kafkas() -> None:
    assert [state.value for state in ConsumerGroupState] == [
        "Empty",
        "Assigning",
        "Reconciling",
        "Stable",
        "Dead",
    ]
    assert {state.name: state.value for state in MemberState} == {
        "STABLE": 0,
        "UNREVOKED_PARTITIONS": 1,
        "UNRELEASED_PARTITIONS": 2,
        "UNKNOWN": 127,
    }


# -- the group -------------------------------------------------------------------------------


def in_empty(bench: ConsumerBench) -> None:
    bench.join("m1")
    bench.leave("m1")
    bench.advance(60_000)


def in_assigning(bench: ConsumerBench) -> None:
    bench.join("m1")
    bench.join("m2")


def in_reconciling(bench: ConsumerBench) -> None:
    bench.join("m1")
    bench.advance(1_000)
    bench.join("m2")


def in_stable(bench: ConsumerBench) -> None:
    bench.join("m1")
    bench.advance(1_000)


def rejoin_after_a_while(bench: ConsumerBench) -> None:
    bench.advance(1_000)
    bench.beat("m1", 2)


def a_topic_grows(bench: ConsumerBench) -> None:
    bench.topics.put("orders", ORDERS, 5)
    bench.change_topics("orders")
    bench.beat("m1", 2)


def finish(bench: ConsumerBench) -> None:
    bench.beat("m1", 2)
    bench.beat("m1", 2, owned={ORDERS: {0, 1}})
    bench.beat("m2", 3)


def leave_all(bench: ConsumerBench) -> None:
    bench.leave("m1")
    bench.leave("m2")


def leave_first(bench: ConsumerBench) -> None:
    bench.leave("m1")


def alone_again(bench: ConsumerBench) -> None:
    bench.leave("m2")
    bench.advance(1_000)
    bench.beat("m1", 2)


CHANGES: dict[
    tuple[ConsumerGroupState, ConsumerGroupState],
    tuple[Callable[[ConsumerBench], None], Callable[[ConsumerBench], None]],
] = {
    (EMPTY, STABLE): (in_empty, lambda bench: bench.join("m1")),
    (ASSIGNING, EMPTY): (in_assigning, leave_all),
    (ASSIGNING, RECONCILING): (in_assigning, rejoin_after_a_while),
    (ASSIGNING, STABLE): (in_assigning, alone_again),
    (RECONCILING, EMPTY): (in_reconciling, leave_all),
    (RECONCILING, ASSIGNING): (in_reconciling, lambda bench: bench.join("m3")),
    (RECONCILING, STABLE): (in_reconciling, finish),
    (STABLE, EMPTY): (in_stable, leave_first),
    (STABLE, ASSIGNING): (lambda bench: bench.join("m1"), lambda bench: bench.join("m2")),
    (STABLE, RECONCILING): (in_stable, lambda bench: bench.join("m2")),
}
"""How each change comes about, but for those that need another beginning."""


@pytest.mark.parametrize(("before", "after"), CHANGES, ids=lambda state: state.value)
def test_a_group_goes_from_one_state_to_another(
    before: ConsumerGroupState, after: ConsumerGroupState
) -> None:
    bench = ConsumerBench(assignment_interval_ms=1_000)
    begin, change = CHANGES[before, after]
    begin(bench)
    assert bench.state == before.value
    change(bench)
    assert bench.state == after.value


def test_an_empty_group_is_assigning_where_the_last_target_is_too_young() -> None:
    bench = ConsumerBench(assignment_interval_ms=1_000)
    bench.join("m1")
    bench.leave("m1")
    assert bench.state == "Empty"
    assert bench.join("m1").assignment == {}
    assert bench.state == "Assigning"


def test_an_empty_group_may_come_to_have_members_of_different_targets() -> None:
    # So it is when a classic group is taken over: its members go on in its generation.
    bench = ConsumerBench()
    bench.join("m1")
    group = bench.group()
    bench.leave("m1")
    group.put_member(ConsumerGroupMember("m1", member_epoch=1))
    group.target_epoch = group.epoch
    group.refresh_state()
    assert group.state is RECONCILING


def test_a_stable_group_reconciles_when_a_topic_grows() -> None:
    bench = ConsumerBench(assignment_interval_ms=1_000)
    in_reconciling(bench)
    finish(bench)
    assert bench.state == "Stable"
    bench.advance(1_000)
    bench.topics.put("orders", ORDERS, 8)
    bench.change_topics("orders")
    bench.beat("m1", 3)
    assert bench.state == "Reconciling"


@pytest.mark.parametrize("begin", [in_empty, in_assigning, in_reconciling, in_stable])
def test_a_group_is_dead_where_another_broker_leads_its_partition(
    begin: Callable[[ConsumerBench], None],
) -> None:
    bench = ConsumerBench(assignment_interval_ms=1_000)
    begin(bench)
    group = bench.group()
    bench.coordinator.note_leadership(bench.partition_of(), 1, is_leader=False)
    assert group.state is DEAD
    with pytest.raises(KafkaError) as refusal:
        bench.coordinator.describe_consumer_group(GROUP)
    assert refusal.value.code is ErrorCode.NOT_COORDINATOR


def test_every_change_of_the_table_is_tested() -> None:
    tested = {*CHANGES, (EMPTY, ASSIGNING), (EMPTY, RECONCILING)}
    tested |= {(state, DEAD) for state in ConsumerGroupState if state is not DEAD}
    assert tested == set(GROUP_TRANSITIONS.by_target)


# -- a member --------------------------------------------------------------------------------


def step(
    member: ConsumerGroupMember,
    target: dict[bytes, set[int]],
    *,
    taken: set[int] = frozenset(),
    owned: dict[bytes, set[int]] | None = None,
    epoch: int = 5,
    subscribed: set[bytes] | None = None,
    has_subscription_changed: bool = False,
) -> ConsumerGroupMember:
    return reconcile(
        Reconciliation(
            member,
            epoch,
            {topic_id: frozenset(numbers) for topic_id, numbers in target.items()},
            {ORDERS, PAYMENTS} if subscribed is None else subscribed,
            has_subscription_changed,
            owned,
            lambda _topic_id, number, _member_id: number in taken,
        )
    )


def member(
    state: MemberState,
    assigned: set[int],
    pending: set[int] = frozenset(),
    epoch: int = 4,
) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        "m1",
        member_epoch=epoch,
        previous_member_epoch=epoch - 1,
        state=state,
        assigned_partitions={ORDERS: dict.fromkeys(assigned, 3)} if assigned else {},
        partitions_pending_revocation={ORDERS: dict.fromkeys(pending, 3)} if pending else {},
    )


M = MemberState
CELLS = {
    (M.STABLE, MUST_REVOKE): (member(M.STABLE, {0, 1}), {"target": {ORDERS: {0}}}),
    (M.STABLE, MUST_WAIT): (
        member(M.STABLE, {0}),
        {"target": {ORDERS: {0, 1}}, "taken": {1}},
    ),
    (M.STABLE, COMPLETE): (member(M.STABLE, {0}), {"target": {ORDERS: {0, 1}}}),
    (M.UNREVOKED_PARTITIONS, MUST_REVOKE): (
        member(M.UNREVOKED_PARTITIONS, {0, 1}, {2}),
        {"target": {ORDERS: {0}}, "owned": {ORDERS: {0, 1}}},
    ),
    (M.UNREVOKED_PARTITIONS, MUST_WAIT): (
        member(M.UNREVOKED_PARTITIONS, {0}, {2}),
        {"target": {ORDERS: {0, 1}}, "owned": {ORDERS: {0}}, "taken": {1}},
    ),
    (M.UNREVOKED_PARTITIONS, COMPLETE): (
        member(M.UNREVOKED_PARTITIONS, {0}, {2}),
        {"target": {ORDERS: {0, 1}}, "owned": {ORDERS: {0}}},
    ),
    (M.UNRELEASED_PARTITIONS, MUST_REVOKE): (
        member(M.UNRELEASED_PARTITIONS, {0, 1}),
        {"target": {ORDERS: {0}}, "epoch": 6},
    ),
    (M.UNRELEASED_PARTITIONS, MUST_WAIT): (
        member(M.UNRELEASED_PARTITIONS, {0}, epoch=5),
        {"target": {ORDERS: {0, 1, 2}}, "taken": {2}},
    ),
    (M.UNRELEASED_PARTITIONS, COMPLETE): (
        member(M.UNRELEASED_PARTITIONS, {0}, epoch=5),
        {"target": {ORDERS: {0, 1}}},
    ),
    (M.UNKNOWN, MUST_WAIT): (
        member(M.UNKNOWN, {0}),
        {"target": {ORDERS: {0, 1}}, "owned": {}, "taken": {1}},
    ),
    (M.UNKNOWN, COMPLETE): (
        member(M.UNKNOWN, {0}),
        {"target": {ORDERS: {0, 1}}, "owned": {}},
    ),
}


def test_every_cell_of_a_member_is_tested() -> None:
    assert set(CELLS) == set(MEMBER_TRANSITIONS.by_event)


@pytest.mark.parametrize(("state", "event"), CELLS, ids=lambda cell: cell.name)
def test_a_member_goes_where_the_table_says(state: MemberState, event: MemberEvent) -> None:
    before, circumstances = CELLS[state, event]
    after = step(before, **circumstances)
    assert after.state is MEMBER_TRANSITIONS.next_state(state, event)
    # Whoever has to give up stays in its epoch; everybody else takes the target's.
    expected_epoch = before.member_epoch if event is MUST_REVOKE else circumstances.get("epoch", 5)
    assert after.member_epoch == expected_epoch
    assert after.previous_member_epoch == before.member_epoch


def test_what_is_given_up_and_what_is_kept_are_distinguished() -> None:
    after = step(member(M.STABLE, {0, 1, 2}), {ORDERS: {1, 3}})
    assert after.assigned_partitions == {ORDERS: {1: 3}}
    assert after.partitions_pending_revocation == {ORDERS: {0: 3, 2: 3}}


def test_a_member_gets_only_what_is_free_and_in_the_epoch_of_the_target() -> None:
    after = step(member(M.STABLE, {0}), {ORDERS: {0, 1, 2}, PAYMENTS: {0}}, taken={2})
    assert after.assigned_partitions == {ORDERS: {0: 3, 1: 5}, PAYMENTS: {0: 5}}
    assert after.partitions_pending_revocation == {}


@pytest.mark.parametrize("owned", [None, {ORDERS: {2}}, {ORDERS: {0, 2}}])
def test_a_member_waits_until_the_client_says_that_it_gave_up(
    owned: dict[bytes, set[int]] | None,
) -> None:
    before = member(M.UNREVOKED_PARTITIONS, {0}, {2})
    assert step(before, {ORDERS: {0}}, owned=owned) is before


def test_a_stable_member_in_the_epoch_of_its_target_stays_as_it_is() -> None:
    before = member(M.STABLE, {0}, epoch=5)
    assert step(before, {ORDERS: {0}}) is before


def test_what_the_client_has_given_up_already_needs_no_revocation() -> None:
    after = step(member(M.STABLE, {0, 1}), {ORDERS: {0}}, owned={ORDERS: {0}})
    assert (after.state, after.member_epoch) == (M.STABLE, 5)
    assert after.assigned_partitions == {ORDERS: {0: 3}}


def test_partitions_of_a_topic_that_is_not_subscribed_any_more_go_without_a_new_target() -> None:
    before = member(M.STABLE, {0, 1}, epoch=5)
    after = step(before, {ORDERS: {0, 1}}, subscribed={PAYMENTS}, has_subscription_changed=True)
    assert after.state is M.UNREVOKED_PARTITIONS
    assert after.member_epoch == 5
    assert after.assigned_partitions == {}
    assert after.partitions_pending_revocation == {ORDERS: {0: 3, 1: 3}}


def test_a_target_gives_nothing_of_a_topic_that_is_not_subscribed_any_more() -> None:
    after = step(member(M.STABLE, set()), {ORDERS: {0}, PAYMENTS: {1}}, subscribed={PAYMENTS})
    assert after.assigned_partitions == {PAYMENTS: {1: 5}}


@pytest.mark.parametrize("owned", [None, {ORDERS: {0}}])
def test_a_member_of_an_unknown_state_that_owns_partitions_is_fenced(
    owned: dict[bytes, set[int]] | None,
) -> None:
    with pytest.raises(KafkaError) as refusal:
        step(member(M.UNKNOWN, {0}), {ORDERS: {0}}, owned=owned)
    assert refusal.value.code is ErrorCode.FENCED_MEMBER_EPOCH
