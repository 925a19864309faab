import pytest

from odradek.common.errors import ErrorCode
from odradek.coordinator.group.records import read_group_value


@pytest.fixture
def joined(bench) -> list[str]:
    """Two members of generation 1 that have not synced, the leader first."""
    joins = [bench.new_member() for _ in range(2)]
    bench.advance_until_answered(joins[0][1])
    return [member for member, _ in joins]


def test_followers_wait_for_the_leaders_assignment(bench, joined: list[str]) -> None:
    leader, follower = joined
    followed = bench.sync(follower, 1)
    assert followed.is_waiting
    led = bench.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert (led.answer.error, led.answer.assignment) == (ErrorCode.NONE, b"L")
    assert (followed.answer.error, followed.answer.assignment) == (ErrorCode.NONE, b"F")
    assert (followed.answer.protocol_type, followed.answer.protocol_name) == ("consumer", "range")
    assert bench.state() == "Stable"


def test_an_assignment_is_handed_out_only_when_it_is_stored(bench, joined: list[str]) -> None:
    leader, follower = joined
    followed = bench.sync(follower, 1)
    bench.log.is_held = True
    led = bench.sync(leader, 1, {leader: b"L"})
    assert led.is_waiting
    assert followed.is_waiting
    assert bench.state() == "CompletingRebalance"
    bench.log.release()
    assert (led.answer.assignment, followed.answer.assignment) == (b"L", b"")
    _, value = bench.log.values(bench.group().partition)[-1]
    stored = read_group_value(value)
    assert stored.generation_id == 1
    assert {m.member_id: m.assignment for m in stored.members} == {leader: b"L", follower: b""}


def test_an_assignment_that_cannot_be_stored_calls_everybody_back(bench, joined: list[str]) -> None:
    leader, follower = joined
    followed = bench.sync(follower, 1)
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    led = bench.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert led.answer.error is followed.answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.state() == "PreparingRebalance"
    bench.log.fail_with = ErrorCode.NONE
    again = [bench.join(member) for member in joined]
    assert [pending.answer.generation_id for pending in again] == [2, 2]


def test_an_assignment_of_a_generation_that_is_over_by_then_is_not_handed_out(
    bench, joined: list[str]
) -> None:
    leader, follower = joined
    bench.log.is_held = True
    led = bench.sync(leader, 1, {leader: b"L"})
    bench.join(follower, protocols={"range": b"changed"})
    assert led.answer.error is ErrorCode.REBALANCE_IN_PROGRESS
    bench.log.release()
    assert bench.state() == "PreparingRebalance"
    assert bench.group().members[leader].assignment == b""


def test_a_stable_group_repeats_the_assignment(bench) -> None:
    generation_id, (_, follower) = bench.stable_group(2)
    assert bench.sync(follower, generation_id).answer.assignment == follower.encode()


def test_members_that_send_no_sync_in_time_are_dropped(bench) -> None:
    arguments = {"session_timeout_ms": 90_000, "rebalance_timeout_ms": 20_000}
    leader, _ = bench.new_member(**arguments)
    silent, _ = bench.new_member(**arguments)
    bench.advance(6_000)
    bench.sync(leader, 1, {leader: b"L", silent: b"S"})
    assert bench.state() == "Stable"
    bench.advance(19_999)
    assert bench.state() == "Stable"
    bench.advance(1)
    assert bench.state() == "PreparingRebalance"
    assert list(bench.group().members) == [leader]


def test_the_wait_for_syncs_ends_with_the_last_of_them(bench, joined: list[str]) -> None:
    leader, follower = joined
    bench.sync(leader, 1)
    bench.sync(follower, 1)
    for _ in range(20):
        bench.advance(9_000)
        for member in joined:
            assert bench.heartbeat(member, 1) is ErrorCode.NONE
    assert bench.state() == "Stable"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "roundrobin"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "no such group"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_what_does_not_fit_the_generation_is_refused(
    bench, joined: list[str], change: dict[str, object], error: ErrorCode
) -> None:
    requested = {"member_id": joined[1], "generation_id": 1, **change}
    assert bench.sync(**requested).answer.error is error


def test_an_empty_group_has_nothing_to_sync(bench) -> None:
    _, (member,) = bench.stable_group(1)
    bench.leave(member)
    assert bench.state() == "Empty"
    assert bench.sync(member, 2).answer.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_in_its_join_phase_sends_syncs_back(bench) -> None:
    generation_id, (leader, follower) = bench.stable_group(2)
    bench.join(leader)
    assert bench.sync(follower, generation_id).answer.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_repeated_sync_takes_the_place_of_the_first(bench, joined: list[str]) -> None:
    leader, follower = joined
    first = bench.sync(follower, 1)
    second = bench.sync(follower, 1)
    assert first.answer.error is ErrorCode.REBALANCE_IN_PROGRESS
    bench.sync(leader, 1, {follower: b"F"})
    assert second.answer.assignment == b"F"
