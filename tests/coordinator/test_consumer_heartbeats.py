"""What a heartbeat does: epochs, fencing, static members, time-outs, and what it waits for."""

from __future__ import annotations

from typing import Any

import pytest
from support.consumer_bench import GROUP, ORDERS, PAYMENTS, ConsumerBench
from support.pending import Pending

from odradek.common.errors import ErrorCode
from odradek.coordinator.group.consumer.heartbeat_request import HeartbeatAnswer, HeartbeatRequest
from odradek.coordinator.group.consumer.member import ConsumerGroupMember
from odradek.coordinator.group.consumer.states import MemberState
from odradek.coordinator.group.records import NAMES_AT_ONCE
from odradek.runtime.steps import run_at_once

ALL_OF_ORDERS = {ORDERS: {0, 1, 2, 3}}


@pytest.fixture
def consumers() -> ConsumerBench:
    return ConsumerBench()


def owned(member: ConsumerGroupMember) -> dict[bytes, set[int]]:
    return {topic_id: set(numbers) for topic_id, numbers in member.assigned_partitions.items()}


def share(consumers: ConsumerBench) -> None:
    """m1 and m2 own two partitions each, in epoch 3."""
    consumers.join("m1")
    consumers.join("m2")
    consumers.beat("m1", 2)
    consumers.beat("m1", 2, owned={ORDERS: {0, 1}})
    consumers.beat("m2", 3)
    assert consumers.state == "Stable"


def names(word: str) -> frozenset[str]:
    """More than are put in order at once."""
    return frozenset(f"{word}-{number}" for number in range(2 * NAMES_AT_ONCE))


# -- joining and going on --------------------------------------------------------------------


def test_the_first_member_gets_everything_at_once(consumers: ConsumerBench) -> None:
    answer = consumers.join("m1")
    assert (answer.error, answer.member_id) == (ErrorCode.NONE, "m1")
    assert answer.member_epoch == 2  # groups begin in epoch 1, and a member came
    assert answer.heartbeat_interval_ms == 5_000
    assert owned(consumers.group().members["m1"]) == ALL_OF_ORDERS
    assert answer.assignment is not None
    assert {t: set(p) for t, p in answer.assignment.items()} == ALL_OF_ORDERS


def test_partitions_go_over_only_after_they_were_given_up(consumers: ConsumerBench) -> None:
    consumers.join("m1")
    second = consumers.join("m2")
    assert (second.member_epoch, second.assignment) == (3, {})
    assert consumers.group().members["m2"].state is MemberState.UNRELEASED_PARTITIONS
    reported = consumers.beat("m1", 2)
    assert reported.member_epoch == 2
    assert reported.assignment == {ORDERS: {0: 2, 1: 2}}
    assert consumers.beat("m2", 3).assignment is None  # m1 may be at work on them still
    acknowledged = consumers.beat("m1", 2, owned={ORDERS: {0, 1}})
    assert acknowledged.member_epoch == 3
    assert consumers.beat("m2", 3).assignment == {ORDERS: {2: 3, 3: 3}}
    assert consumers.state == "Stable"


def test_nobody_else_is_disturbed_when_a_third_member_comes(consumers: ConsumerBench) -> None:
    share(consumers)
    consumers.join("m3")
    shares = consumers.settle("m1", "m2", "m3")
    assert sorted(len(share[ORDERS]) for share in shares.values()) == [1, 1, 2]


def test_a_member_that_lost_the_answer_may_come_in_its_former_epoch(
    consumers: ConsumerBench,
) -> None:
    share(consumers)
    again = consumers.beat("m1", 2, owned={ORDERS: {0, 1}})
    assert (again.error, again.member_epoch) == (ErrorCode.NONE, 3)


@pytest.mark.parametrize(
    ("epoch", "reported"),
    [(2, None), (2, {ORDERS: {0, 3}}), (2, {PAYMENTS: {0}}), (1, {}), (4, {ORDERS: {0, 1}})],
)
def test_a_member_of_another_epoch_is_fenced(
    consumers: ConsumerBench, epoch: int, reported: dict[bytes, set[int]] | None
) -> None:
    share(consumers)
    answer = consumers.beat("m1", epoch, owned=reported)
    assert answer.error is ErrorCode.FENCED_MEMBER_EPOCH
    assert answer.error_message


def test_a_member_may_join_again_without_leaving(consumers: ConsumerBench) -> None:
    consumers.join("m1")
    answer = consumers.join("m1")
    assert (answer.member_epoch, answer.assignment) == (2, {ORDERS: dict.fromkeys(range(4), 2)})


def test_an_answer_tells_all_to_a_member_that_tells_all(consumers: ConsumerBench) -> None:
    consumers.join("m1")
    assert consumers.beat("m1", 2).assignment is None
    answer = consumers.beat(
        "m1", 2, topics=["orders"], owned=ALL_OF_ORDERS, rebalance_timeout_ms=30_000
    )
    assert answer.assignment == {ORDERS: dict.fromkeys(range(4), 2)}


def test_a_broker_makes_the_id_of_a_member_of_version_0(consumers: ConsumerBench) -> None:
    first = consumers.join("", api_version=0)
    second = consumers.join("", api_version=0)
    assert first.member_id
    assert second.member_id
    assert first.member_id != second.member_id
    assert set(consumers.group().members) == {first.member_id, second.member_id}


def test_a_changed_subscription_takes_partitions_away_at_once(consumers: ConsumerBench) -> None:
    consumers = ConsumerBench(assignment_interval_ms=1_000)
    consumers.join("m1")
    answer = consumers.beat("m1", 2, topics=["payments"])
    assert (answer.member_epoch, answer.assignment) == (2, {})
    assert consumers.state == "Assigning"
    consumers.advance(1_000)
    answer = consumers.beat("m1", 2, owned={})
    assert (answer.member_epoch, answer.assignment) == (3, {PAYMENTS: {0: 3, 1: 3}})


def test_a_target_stands_for_its_interval() -> None:
    consumers = ConsumerBench(assignment_interval_ms=1_000)
    consumers.join("m1")
    consumers.advance(999)
    assert consumers.join("m2").member_epoch == 2
    assert consumers.state == "Assigning"
    consumers.advance(1)
    assert consumers.beat("m2", 2).member_epoch == 3


def test_the_assignor_is_the_one_that_most_members_wish_for(consumers: ConsumerBench) -> None:
    consumers.join("m1")
    assert consumers.coordinator.describe_consumer_group(GROUP).assignor_name == "uniform"
    consumers.join("m2", server_assignor="range")
    assert consumers.coordinator.describe_consumer_group(GROUP).assignor_name == "range"
    assert consumers.settle("m1", "m2") == {"m1": {ORDERS: {0, 1}}, "m2": {ORDERS: {2, 3}}}


def test_a_group_is_assigned_anew_when_a_topic_grows(consumers: ConsumerBench) -> None:
    consumers.join("m1")
    consumers.topics.put("orders", ORDERS, 6)
    consumers.change_topics("orders")
    answer = consumers.beat("m1", 2)
    assert (answer.member_epoch, len((answer.assignment or {})[ORDERS])) == (3, 6)


def test_a_topic_that_is_gone_is_given_up(consumers: ConsumerBench) -> None:
    consumers.join("m1", ["orders", "payments"])
    consumers.topics.drop("payments")
    consumers.change_topics("payments")
    reported = consumers.beat("m1", 2)
    assert reported.assignment == {ORDERS: dict.fromkeys(range(4), 2)}
    assert consumers.beat("m1", 2, owned=ALL_OF_ORDERS).member_epoch == 3


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member_id", "epoch", "reported"),
    [
        ("", 0, {}),
        ("", 1, {}),
        ("", 1, {"api_version": 0}),
        ("", -1, {"api_version": 0}),
        (" ", 0, {}),
        ("m1", 0, {"group_id": ""}),
        ("m1", 0, {"group_id": " \t"}),
        ("m1", 0, {"instance_id": ""}),
        ("m1", 0, {"rack_id": ""}),
        ("m1", 0, {"rebalance_timeout_ms": -1}),
        ("m1", 0, {"owned": None}),
        ("m1", 0, {"owned": {ORDERS: {0}}}),
        ("m1", 0, {"topics": None}),
        ("m1", -2, {}),
        ("m1", -3, {"instance_id": "i1"}),
        ("m" * 40_000, 0, {}),
    ],
)
def test_an_invalid_request_is_refused(
    consumers: ConsumerBench, member_id: str, epoch: int, reported: dict[str, Any]
) -> None:
    first = {"topics": ["orders"], "owned": {}, "rebalance_timeout_ms": 30_000, **reported}
    answer = consumers.beat(member_id, epoch, **first)
    assert answer.error is ErrorCode.INVALID_REQUEST
    assert answer.error_message
    assert not consumers.coordinator.consumer_groups


def test_an_unknown_assignor_is_refused(consumers: ConsumerBench) -> None:
    answer = consumers.join("m1", server_assignor="sticky")
    assert answer.error is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in (answer.error_message or "")


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_a_group_that_is_not_there_is_not_found(consumers: ConsumerBench, epoch: int) -> None:
    answer = consumers.beat("m1", epoch, instance_id="i1")
    assert answer.error is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [2, -1])
def test_a_member_that_is_not_there_is_unknown(consumers: ConsumerBench, epoch: int) -> None:
    consumers.join("m1")
    assert consumers.beat("m2", epoch).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert consumers.beat("m1", epoch, instance_id="i1").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_takes_nobody_more() -> None:
    consumers = ConsumerBench(max_size=2)
    consumers.join("m1")
    consumers.join("m2")
    assert consumers.join("m3").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert consumers.join("m2").error is ErrorCode.NONE
    consumers.leave("m1")
    assert consumers.join("m3").error is ErrorCode.NONE


def test_a_group_of_another_broker_is_not_coordinated_here(consumers: ConsumerBench) -> None:
    consumers.coordinator.note_leadership(consumers.partition_of(), 1, is_leader=False)
    assert consumers.join("m1").error is ErrorCode.NOT_COORDINATOR


# -- leaving ---------------------------------------------------------------------------------


def test_who_leaves_gives_everything_up(consumers: ConsumerBench) -> None:
    share(consumers)
    answer = consumers.leave("m2")
    assert (answer.error, answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "m2", -1)
    assert consumers.state == "Assigning"
    answer = consumers.beat("m1", 3)
    assert answer.member_epoch == 4
    assert owned(consumers.group().members["m1"]) == ALL_OF_ORDERS


def test_a_static_member_that_leaves_for_a_while_keeps_its_partitions(
    consumers: ConsumerBench,
) -> None:
    consumers.join("m1", instance_id="i1")
    consumers.join("m2")
    consumers.settle("m1", "m2")
    before = owned(consumers.group().members["m1"])
    answer = consumers.beat("m1", -2, instance_id="i1")
    assert (answer.error, answer.member_epoch) == (ErrorCode.NONE, -2)
    epoch = consumers.group().epoch
    assert consumers.beat("m2", 3).assignment is None
    back = consumers.join("m3", instance_id="i1")
    assert back.assignment is not None
    assert {t: set(p) for t, p in back.assignment.items()} == before
    assert (consumers.group().epoch, consumers.state) == (epoch, "Stable")


def test_a_static_member_in_use_is_not_handed_over(consumers: ConsumerBench) -> None:
    consumers.join("m1", instance_id="i1")
    assert consumers.join("m2", instance_id="i1").error is ErrorCode.UNRELEASED_INSTANCE_ID


@pytest.mark.parametrize("epoch", [2, -1, -2])
def test_who_was_replaced_is_fenced(consumers: ConsumerBench, epoch: int) -> None:
    consumers.join("m1", instance_id="i1")
    consumers.beat("m1", -2, instance_id="i1")
    consumers.join("m2", instance_id="i1")
    answer = consumers.beat("m1", epoch, instance_id="i1")
    assert answer.error is ErrorCode.FENCED_INSTANCE_ID
    assert consumers.beat("m2", 2, instance_id="i1").error is ErrorCode.NONE


def test_a_static_member_that_stays_away_is_given_up(consumers: ConsumerBench) -> None:
    consumers.join("m1", instance_id="i1")
    consumers.beat("m1", -2, instance_id="i1")
    consumers.advance(44_999)
    assert "m1" in consumers.group().members
    consumers.advance(1)
    assert consumers.state == "Empty"
    assert not consumers.group().static_members


# -- time ------------------------------------------------------------------------------------


def test_a_silent_member_is_given_up_after_its_session(consumers: ConsumerBench) -> None:
    share(consumers)
    consumers.advance(40_000)
    consumers.beat("m1", 3)
    consumers.advance(4_999)
    assert set(consumers.group().members) == {"m1", "m2"}
    consumers.advance(1)
    assert set(consumers.group().members) == {"m1"}
    assert consumers.beat("m1", 3).assignment == {ORDERS: {0: 2, 1: 2, 2: 4, 3: 4}}
    assert consumers.beat("m2", 3).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_keep_a_member_for_any_time(consumers: ConsumerBench) -> None:
    consumers.join("m1")
    for _ in range(100):
        consumers.advance(5_000)
        assert consumers.beat("m1", 2).error is ErrorCode.NONE


def test_a_member_that_does_not_give_up_is_fenced_when_its_time_is_over(
    consumers: ConsumerBench,
) -> None:
    consumers.join("m1", rebalance_timeout_ms=10_000)
    consumers.join("m2")
    consumers.beat("m1", 2)
    for _ in range(4):
        consumers.advance(2_499)
        assert consumers.beat("m1", 2, owned=ALL_OF_ORDERS).error is ErrorCode.NONE
    consumers.advance(4)
    assert consumers.beat("m1", 2).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert consumers.settle("m2") == {"m2": ALL_OF_ORDERS}


def test_a_member_that_gave_up_in_time_is_not_fenced(consumers: ConsumerBench) -> None:
    consumers.join("m1", rebalance_timeout_ms=10_000)
    consumers.join("m2")
    consumers.beat("m1", 2)
    consumers.advance(9_000)
    consumers.beat("m1", 2, owned={ORDERS: {0, 1}})
    consumers.beat("m2", 3)
    consumers.advance(9_000)
    assert consumers.beat("m1", 3).error is ErrorCode.NONE


def test_sessions_run_on_after_a_change_of_leader(consumers: ConsumerBench) -> None:
    share(consumers)
    consumers.restart()
    consumers.advance(44_999)
    assert set(consumers.group().members) == {"m1", "m2"}
    consumers.advance(1)
    assert consumers.state == "Empty"


def test_the_time_to_give_up_begins_anew_after_a_change_of_leader(
    consumers: ConsumerBench,
) -> None:
    consumers.join("m1", rebalance_timeout_ms=10_000)
    consumers.join("m2", rebalance_timeout_ms=10_000)
    consumers.beat("m1", 2)
    consumers.restart()
    consumers.advance(9_999)
    assert consumers.beat("m1", 2).error is ErrorCode.NONE
    consumers.advance(1)
    assert set(consumers.group().members) == {"m2"}


# -- what is stored --------------------------------------------------------------------------


def holdings(consumers: ConsumerBench) -> tuple[object, ...]:
    image = consumers.group().image()
    return image._replace(
        members=dict(sorted(image.members.items())), targets=dict(sorted(image.targets.items()))
    )


def test_another_broker_reads_back_what_the_group_held(consumers: ConsumerBench) -> None:
    share(consumers)
    consumers.join("m3", ["orders", "payments"], instance_id="i3", rack_id="r3")
    consumers.beat("m2", 3)
    before = holdings(consumers)
    consumers.restart()
    assert holdings(consumers) == before
    consumers.settle("m1", "m2", "m3")


def test_members_go_on_in_their_epochs_after_a_change_of_leader(consumers: ConsumerBench) -> None:
    share(consumers)
    consumers.restart()
    for member_id in ("m1", "m2"):
        answer = consumers.beat(member_id, 3)
        assert (answer.error, answer.member_epoch) == (ErrorCode.NONE, 3)


def test_a_heartbeat_that_changes_nothing_writes_nothing(consumers: ConsumerBench) -> None:
    share(consumers)
    end = consumers.log.end_offset(consumers.partition_of())
    for member_id in ("m1", "m2"):
        assert consumers.beat(member_id, 3).error is ErrorCode.NONE
    assert consumers.log.end_offset(consumers.partition_of()) == end


def test_an_answer_waits_until_what_it_tells_is_on_enough_replicas(
    consumers: ConsumerBench,
) -> None:
    consumers.log.is_held = True
    joined = consumers.send("m1", 0, topics=["orders"], owned={}, rebalance_timeout_ms=30_000)
    plain = consumers.send("m1", 2)
    assert joined.is_waiting
    assert plain.is_waiting  # what it would tell could still be lost
    assert consumers.state == "Empty"  # nor is anybody else told yet
    consumers.log.release()
    assert joined.answer.member_epoch == plain.answer.member_epoch == 2
    assert consumers.state == "Stable"


def test_a_change_that_could_not_be_stored_is_taken_back(consumers: ConsumerBench) -> None:
    share(consumers)
    before = holdings(consumers)
    consumers.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert consumers.join("m3").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert consumers.leave("m1").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert holdings(consumers) == before
    consumers.log.fail_with = ErrorCode.NONE
    assert consumers.beat("m1", 3).error is ErrorCode.NONE
    consumers.advance(45_000)
    assert consumers.state == "Empty"  # the session of who could not leave ended as any does


def test_a_group_whose_first_member_could_not_be_stored_is_not_there(
    consumers: ConsumerBench,
) -> None:
    consumers.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert consumers.join("m1").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not consumers.coordinator.consumer_groups
    consumers.log.fail_with = ErrorCode.NONE
    assert consumers.beat("m1", 2).error is ErrorCode.GROUP_ID_NOT_FOUND


def send_late(
    consumers: ConsumerBench, member_id: str, epoch: int, **fields: Any
) -> HeartbeatAnswer:
    """Change something while replicas lag: it is in the log, and nobody waits any longer."""
    log, partition = consumers.log, consumers.partition_of()
    log.replicated_up_to = log.end_offset(partition)
    log.is_held = True
    late = consumers.send(member_id, epoch, **fields)
    ((on_complete, _, offset),) = log.take_waiting()
    log.is_held = False
    on_complete(ErrorCode.REQUEST_TIMED_OUT, offset)
    return late.answer


def test_a_change_that_is_in_the_log_but_late_on_replicas_stands(
    consumers: ConsumerBench,
) -> None:
    consumers.join("m1")
    first = {"topics": ["orders"], "owned": {}, "rebalance_timeout_ms": 30_000}
    answer = send_late(consumers, "m2", 0, **first)
    assert answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert set(consumers.group().members) == {"m1", "m2"}
    assert consumers.state == "Stable"  # nobody is told of it yet
    consumers.log.replicated_up_to = None
    consumers.advance(1_000)
    assert consumers.state == "Reconciling"
    consumers.restart()
    assert set(consumers.group().members) == {"m1", "m2"}


def test_nobody_is_notified_of_a_late_change_before_the_replicas_have_it(
    consumers: ConsumerBench,
) -> None:
    consumers.join("m1")
    send_late(consumers, "m1", 2, rack_id="r1")
    waiting = consumers.send("m1", 2)
    consumers.advance(4_000)
    assert waiting.is_waiting
    consumers.log.replicated_up_to = None
    consumers.advance(500)
    assert waiting.answer.error is ErrorCode.NONE
    (member,) = consumers.coordinator.describe_consumer_group(GROUP).members
    assert member.member.rack_id == "r1"


def test_a_heartbeat_waits_for_a_late_change_no_longer_than_for_its_own(
    consumers: ConsumerBench,
) -> None:
    consumers.join("m1")
    send_late(consumers, "m1", 2, rack_id="r1")
    waiting = consumers.send("m1", 2)
    consumers.advance(5_000)
    assert waiting.answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    consumers.log.replicated_up_to = None
    consumers.advance(1_000)
    assert consumers.beat("m1", 2).error is ErrorCode.NONE


def test_a_change_that_is_refused_at_once_is_never_built_upon(consumers: ConsumerBench) -> None:
    consumers.join("m1")
    consumers.log.is_held = True
    consumers.log.fail_with = ErrorCode.MESSAGE_TOO_LARGE
    first = {"topics": ["orders"], "owned": {}, "rebalance_timeout_ms": 30_000}
    lost = consumers.send("m2", 0, **first)
    consumers.log.fail_with = ErrorCode.NONE
    stored = consumers.send("m3", 0, **first)
    consumers.log.release()
    consumers.log.is_held = False
    assert lost.answer.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (stored.answer.error, stored.answer.member_epoch) == (ErrorCode.NONE, 3)
    before = holdings(consumers)
    consumers.restart()
    assert holdings(consumers) == before
    consumers.settle("m1", "m3")


def fail_waiting(consumers: ConsumerBench, *outcomes: ErrorCode) -> None:
    """Let appends that wait end so, though the log in memory has their records."""
    waiting = consumers.log.take_waiting()
    for (on_complete, _, offset), outcome in zip(waiting, outcomes, strict=True):
        on_complete(outcome, -1 if outcome else offset)


def test_nobody_is_notified_of_a_change_that_is_lost(consumers: ConsumerBench) -> None:
    """A client that hears nothing asks again: it must not own what nobody else knows of."""
    consumers.log.is_held = True
    first = {"owned": {}, "rebalance_timeout_ms": 30_000, "topics": ["orders"]}
    joining = consumers.send("m1", 0, **first)
    asking_again = consumers.send("m1", 0, **first)
    for on_complete, _, _ in consumers.log.take_waiting():
        on_complete(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert joining.answer.error is ErrorCode.NOT_COORDINATOR
    assert asking_again.answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert asking_again.answer.assignment is None


def test_changes_that_are_lost_in_a_flush_are_taken_back_together(
    consumers: ConsumerBench,
) -> None:
    consumers.join("m1")
    before = holdings(consumers)
    consumers.log.is_held = True
    first = {"topics": ["orders"], "owned": {}, "rebalance_timeout_ms": 30_000}
    lost = [consumers.send(name, 0, **first) for name in ("m2", "m3")]
    fail_waiting(consumers, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR)
    assert [answer.answer.error for answer in lost] == [ErrorCode.NOT_COORDINATOR] * 2
    assert holdings(consumers) == before


def test_a_group_is_read_back_when_a_change_built_on_a_lost_one_was_stored(
    consumers: ConsumerBench,
) -> None:
    consumers.join("m1")
    consumers.log.is_held = True
    first = {"topics": ["orders"], "owned": {}, "rebalance_timeout_ms": 30_000}
    lost = consumers.send("m2", 0, **first)
    stored = consumers.send("m3", 0, **first)
    del consumers.log.batches[consumers.partition_of()][-2]
    fail_waiting(consumers, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE)
    consumers.log.is_held = False
    assert lost.answer.error is ErrorCode.NOT_COORDINATOR
    assert stored.answer.error is ErrorCode.NONE
    assert consumers.join("m4").error is ErrorCode.NOT_COORDINATOR  # until it is read back
    consumers.advance(0)
    assert set(consumers.group().members) == {"m1", "m3"}
    consumers.settle("m1", "m3")


# -- members that read very many topics ------------------------------------------------------


@pytest.mark.parametrize("rack", [None, "rack-b"])
def test_what_was_encoded_of_a_member_is_stored_if_it_is_still_so(
    consumers: ConsumerBench, rack: str | None
) -> None:
    epoch = consumers.join("m1").member_epoch
    request = HeartbeatRequest(GROUP, "m1", epoch, subscribed_topic_names=names("t"))
    work = consumers.coordinator.consumer_group_heartbeat(request, Pending())
    for _ in range(3 * NAMES_AT_ONCE):  # on its way: nothing has changed yet
        next(work)
    assert consumers.group().subscribed_topics == {"orders"}
    if rack is not None:
        assert consumers.beat("m1", epoch, rack_id=rack).error is ErrorCode.NONE
    run_at_once(work)
    consumers.log.flush()

    consumers.restart()

    member = consumers.group().members["m1"]
    assert (member.subscribed_topic_names, member.rack_id) == (names("t"), rack)


def test_a_member_that_reads_very_many_topics_changes_and_comes_back(
    consumers: ConsumerBench,
) -> None:
    epoch = consumers.join("m1", names("t"), instance_id="i").member_epoch
    changed = consumers.beat("m1", epoch, rack_id="rack-b", instance_id="i")
    assert changed.error is ErrorCode.NONE
    assert consumers.beat("m1", -2, instance_id="i").error is ErrorCode.NONE
    assert consumers.join("m2", names("u"), instance_id="i").error is ErrorCode.NONE

    consumers.restart()

    (member,) = consumers.group().members.values()
    assert (member.member_id, member.rack_id) == ("m2", "rack-b")
    assert member.subscribed_topic_names == names("u")
