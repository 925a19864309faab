import pytest

from odradek.common.errors import ErrorCode
from odradek.coordinator.group.settings import NEW_MEMBER_JOIN_TIMEOUT_MS


def test_a_member_without_heartbeats_is_given_up_after_its_session_timeout(bench) -> None:
    generation_id, (leader, follower) = bench.stable_group(2, session_timeout_ms=10_000)
    bench.advance(9_999)
    assert bench.heartbeat(leader, generation_id) is ErrorCode.NONE
    assert bench.state() == "Stable"
    bench.advance(1)
    assert list(bench.group().members) == [leader]
    assert bench.heartbeat(leader, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.heartbeat(follower, generation_id) is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_keep_a_session_and_do_not_fill_the_heap(bench) -> None:
    generation_id, (member,) = bench.stable_group(1, session_timeout_ms=10_000)
    waiting = len(bench.timers._heap)
    for _ in range(1_000):
        bench.advance(100)
        assert bench.heartbeat(member, generation_id) is ErrorCode.NONE
    assert len(bench.timers._heap) <= waiting
    bench.advance(9_999)
    assert bench.state() == "Stable"
    bench.advance(1)
    assert bench.state() == "Empty"


def test_when_the_last_member_is_given_up_the_group_is_empty_in_a_new_generation(bench) -> None:
    generation_id, _ = bench.stable_group(1)
    bench.advance(10_000)
    assert bench.state() == "Empty"
    assert bench.group().generation_id == generation_id + 1
    assert bench.group().leader_id is None


def test_a_shorter_session_counts_from_the_rejoin_on(bench) -> None:
    _, (member,) = bench.stable_group(1, session_timeout_ms=60_000)
    joined = bench.join(member, session_timeout_ms=6_000)
    generation_id = joined.answer.generation_id
    bench.sync(member, generation_id)
    bench.advance(5_999)
    assert bench.state() == "Stable"
    bench.advance(1)
    assert bench.state() == "Empty"


def test_who_waits_for_our_answer_owes_no_heartbeat(bench) -> None:
    generation_id, (leader, follower) = bench.stable_group(
        2, session_timeout_ms=10_000, rebalance_timeout_ms=60_000
    )
    led = bench.join(leader, session_timeout_ms=10_000, rebalance_timeout_ms=60_000)
    for _ in range(5):  # the follower takes its time, but lives
        bench.advance(9_000)
        assert bench.heartbeat(follower, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
    assert led.is_waiting
    assert leader in bench.group().members
    followed = bench.join(follower)
    assert led.answer.error is followed.answer.error is ErrorCode.NONE
    bench.advance(9_999)
    assert leader in bench.group().members  # its session began with our answer
    bench.advance(1)
    assert leader not in bench.group().members


def test_a_sync_that_waits_keeps_the_session(bench) -> None:
    arguments = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000}
    leader, _ = bench.new_member(**arguments)
    follower, _ = bench.new_member(**arguments)
    bench.advance(6_000)
    followed = bench.sync(follower, 1)
    for _ in range(4):
        bench.advance(9_000)
        assert bench.heartbeat(leader, 1) is ErrorCode.NONE
    assert followed.is_waiting
    bench.sync(leader, 1, {follower: b"F"})
    assert followed.answer.assignment == b"F"


def test_a_new_member_whose_client_is_gone_does_not_wait_for_ever(bench) -> None:
    generation_id, (member,) = bench.stable_group(
        1, session_timeout_ms=1_800_000, rebalance_timeout_ms=2_000_000
    )
    _, waiting = bench.new_member(rebalance_timeout_ms=2_000_000)
    bench.advance(NEW_MEMBER_JOIN_TIMEOUT_MS - 1)
    assert waiting.is_waiting
    bench.advance(1)
    assert waiting.answer.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(bench.group().members) == [member]
    assert bench.heartbeat(member, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 9}, ErrorCode.ILLEGAL_GENERATION),
        ({"instance": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "no such group"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_heartbeats_of_strangers_are_refused(
    bench, change: dict[str, object], error: ErrorCode
) -> None:
    generation_id, (member,) = bench.stable_group(1)
    requested = {"member_id": member, "generation_id": generation_id, **change}
    assert bench.heartbeat(**requested) is error


def test_a_member_may_send_heartbeats_before_it_has_its_assignment(bench) -> None:
    member, _ = bench.new_member()
    bench.advance(3_000)
    assert bench.state() == "CompletingRebalance"
    assert bench.heartbeat(member, 1) is ErrorCode.NONE


def test_a_commit_keeps_the_session_like_a_heartbeat(bench) -> None:
    generation_id, (member,) = bench.stable_group(1, session_timeout_ms=10_000)
    for _ in range(5):
        bench.advance(9_000)
        bench.commit(("orders", 0, 1), member_id=member, generation_id=generation_id)
    assert bench.state() == "Stable"
