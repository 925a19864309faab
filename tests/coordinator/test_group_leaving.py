from odradek.common.errors import ErrorCode
from odradek.coordinator.group.classic.messages import LeavingMember
from odradek.coordinator.group.records import read_group_value


def test_the_others_rebalance_when_a_member_leaves(bench) -> None:
    generation_id, (leader, follower) = bench.stable_group(2)
    assert bench.leave(leader) == [ErrorCode.NONE]
    assert bench.heartbeat(follower, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.join(follower).answer.leader == follower


def test_when_the_last_member_leaves_the_empty_group_is_stored(bench) -> None:
    generation_id, (member,) = bench.stable_group(1)
    bench.leave(member)
    assert bench.state() == "Empty"
    _, value = bench.log.values(bench.group().partition)[-1]
    stored = read_group_value(value)
    assert (stored.generation_id, stored.members) == (generation_id + 1, ())
    assert (stored.protocol_type, stored.protocol_name, stored.leader_id) == (
        "consumer",
        None,
        None,
    )


def test_leaving_ends_a_join_phase_that_waits_for_nobody_else(bench) -> None:
    _, (leader, follower) = bench.stable_group(2)
    led = bench.join(leader)
    assert led.is_waiting
    bench.leave(follower)
    assert led.answer.error is ErrorCode.NONE


def test_a_member_that_leaves_while_it_waits_is_answered(bench) -> None:
    _, (leader, follower) = bench.stable_group(2)
    led = bench.join(leader)
    bench.leave(leader)
    assert led.answer.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(bench.group().members) == [follower]


def test_a_member_that_leaves_while_its_sync_waits_is_answered(bench) -> None:
    bench.new_member()
    follower, _ = bench.new_member()
    bench.advance(9_000)
    waiting = bench.sync(follower, 1)
    bench.leave(follower)
    assert waiting.answer.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_was_given_out_can_be_given_back(bench) -> None:
    member_id = bench.join().answer.member_id
    assert bench.leave(member_id) == [ErrorCode.NONE]
    assert bench.state() == "Empty"
    assert bench.join(member_id).answer.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_each_member_of_a_batch_has_an_error_of_its_own(bench) -> None:
    _, (leader, follower) = bench.stable_group(2)
    assert bench.leave("stranger", follower, follower) == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert list(bench.group().members) == [leader]


def test_an_administrator_removes_static_members_by_their_instance(bench) -> None:
    bench.stable_group(1, instance=None)
    member = bench.join(instance="i-1")
    assert bench.leave(LeavingMember("", "i-1", "shrinking")) == [ErrorCode.NONE]
    assert member.answer.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.leave(LeavingMember("", "i-1")) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert bench.leave(LeavingMember("", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_static_member_leaves_only_under_its_current_id(bench) -> None:
    pending = bench.join(instance="i-1")
    bench.advance(3_000)
    member = pending.answer.member_id
    assert bench.leave(LeavingMember("former", "i-1")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert bench.leave(LeavingMember(member, "i-1")) == [ErrorCode.NONE]


def test_nobody_can_leave_an_unknown_group(bench) -> None:
    assert bench.leave("a", "b") == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
