import re
from collections.abc import Callable

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.codec.layout import STRING_BYTES_MAX

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def test_a_new_member_is_given_an_id_to_join_with(bench) -> None:
    first = bench.join(client_id="reader")
    assert first.answer.error is ErrorCode.MEMBER_ID_REQUIRED
    assert re.fullmatch(f"reader-{UUID}", first.answer.member_id)
    assert bench.state() == "Empty"


@pytest.mark.parametrize("version", [0, 3])
def test_before_version_4_a_new_member_joins_at_once(bench, version: int) -> None:
    pending = bench.join(version=version)
    assert pending.is_waiting
    bench.advance(3_000)
    assert pending.answer.error is ErrorCode.NONE
    assert pending.answer.generation_id == 1


def test_a_given_id_that_nobody_joins_with_is_forgotten_after_the_session_timeout(bench) -> None:
    member_id = bench.join(session_timeout_ms=7_000).answer.member_id
    bench.advance(6_999)
    assert member_id in bench.group().pending_members
    bench.advance(1)
    assert not bench.group().pending_members
    assert bench.join(member_id).answer.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_those_who_were_given_an_id(bench) -> None:
    generation_id, (member,) = bench.stable_group(1)
    bench.join(session_timeout_ms=20_000)  # asks for an id and never comes back
    rejoined = bench.join(member, session_timeout_ms=30_000)
    assert rejoined.is_waiting
    bench.advance(19_999)
    assert rejoined.is_waiting
    bench.advance(1)
    assert rejoined.answer.generation_id == generation_id + 1


def test_an_id_that_was_given_out_cannot_be_joined_with_statically(bench) -> None:
    member_id = bench.join().answer.member_id
    pending = bench.join(member_id, instance="instance")
    assert pending.answer.error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_unknown_id_is_refused_in_known_and_unknown_groups(bench) -> None:
    assert bench.join("stranger").answer.error is ErrorCode.UNKNOWN_MEMBER_ID
    bench.stable_group(1)
    assert bench.join("stranger").answer.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_only_the_leader_gets_the_members_and_their_metadata(bench) -> None:
    first, first_join = bench.new_member(protocols={"range": b"one"})
    second, second_join = bench.new_member(protocols={"range": b"two"})
    bench.advance(6_000)
    assert first_join.answer.leader == second_join.answer.leader == first
    reported = [(m.member_id, m.group_instance_id, m.metadata) for m in first_join.answer.members]
    assert reported == [(first, None, b"one"), (second, None, b"two")]
    assert second_join.answer.members == []
    assert first_join.answer.protocol_name == "range"
    assert first_join.answer.protocol_type == "consumer"


def test_the_first_members_wait_for_others_and_longer_while_others_come(bench) -> None:
    _, first = bench.new_member()
    bench.advance(2_999)
    _, second = bench.new_member()
    bench.advance(1)
    assert first.is_waiting  # somebody came, so another delay begins
    bench.advance(2_999)
    assert first.is_waiting
    bench.advance(1)
    assert first.answer.generation_id == second.answer.generation_id == 1


def test_the_initial_delay_never_exceeds_the_rebalance_timeout(bench) -> None:
    _, first = bench.new_member(rebalance_timeout_ms=7_000)
    for _ in range(6):
        bench.advance(1_000)
        bench.new_member(rebalance_timeout_ms=7_000)
    assert first.is_waiting
    bench.advance(1_000)
    assert first.answer.error is ErrorCode.NONE


def test_without_initial_delay_the_first_member_is_answered_at_the_next_turn(make_bench) -> None:
    bench = make_bench(initial_rebalance_delay_ms=0)
    _, pending = bench.new_member()
    bench.advance(0)
    assert pending.answer.generation_id == 1


@pytest.mark.parametrize(
    ("timeout_ms", "refused"),
    [(5_999, True), (6_000, False), (1_800_000, False), (1_800_001, True)],
)
def test_session_timeouts_are_held_to_the_limits(bench, timeout_ms: int, refused: bool) -> None:
    if refused:
        with pytest.raises(KafkaError) as refusal:
            bench.join(session_timeout_ms=timeout_ms)
        assert refusal.value.code is ErrorCode.INVALID_SESSION_TIMEOUT
    else:
        pending = bench.join(session_timeout_ms=timeout_ms)
        assert pending.answer.error is ErrorCode.MEMBER_ID_REQUIRED


@pytest.mark.parametrize(
    ("size", "fits"), [(STRING_BYTES_MAX - 37, True), (STRING_BYTES_MAX - 36, False)]
)
def test_an_id_longer_than_the_protocol_can_say_is_not_given_out(
    bench, size: int, fits: bool
) -> None:
    answer = bench.join(client_id="c" * size).answer
    assert answer.error is (ErrorCode.MEMBER_ID_REQUIRED if fits else ErrorCode.INVALID_REQUEST)
    assert len(bench.group().pending_members) == fits


def test_a_group_needs_a_name(bench) -> None:
    with pytest.raises(KafkaError) as refusal:
        bench.join(group_id="")
    assert refusal.value.code is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("", {"range": b""}), ("consumer", {}), ("connect", {"range": b""})],
)
def test_members_that_share_nothing_with_the_group_are_refused(
    bench, protocol_type: str, protocols: dict[str, bytes]
) -> None:
    bench.stable_group(1)
    pending = bench.join(protocol_type=protocol_type, protocols=protocols)
    assert pending.answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", {"range": b""}), ("consumer", {})])
def test_the_first_member_must_name_type_and_protocol(
    bench, protocol_type: str, protocols: dict[str, bytes]
) -> None:
    pending = bench.join(protocol_type=protocol_type, protocols=protocols)
    assert pending.answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_is_what_all_support_and_most_prefer(bench) -> None:
    joins = [
        bench.new_member(protocols=dict.fromkeys(names, b""))[1]
        for names in (
            ("sticky", "range", "roundrobin"),
            ("range", "roundrobin"),
            ("roundrobin", "range"),
            ("range", "cooperative", "roundrobin"),
        )
    ]
    bench.advance(9_000)
    assert {pending.answer.protocol_name for pending in joins} == {"range"}


def test_a_member_that_supports_no_common_protocol_does_not_get_in(bench) -> None:
    bench.new_member(protocols={"a": b"", "b": b""})
    bench.new_member(protocols={"b": b"", "c": b""})
    pending = bench.join(protocols={"a": b"", "c": b""})
    assert pending.answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# -- rejoining ---------------------------------------------------------------------------


def test_the_rejoin_of_a_follower_that_changed_nothing_changes_nothing(bench) -> None:
    generation_id, (leader, follower) = bench.stable_group(2)
    answer = bench.join(follower).answer
    assert (answer.generation_id, answer.leader, answer.members) == (generation_id, leader, [])
    assert bench.state() == "Stable"


def test_the_rejoin_of_the_leader_of_a_stable_group_begins_a_rebalance(bench) -> None:
    generation_id, (leader, follower) = bench.stable_group(2)
    led = bench.join(leader)
    assert bench.heartbeat(follower, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
    followed = bench.join(follower)
    assert led.answer.generation_id == followed.answer.generation_id == generation_id + 1
    assert bench.state() == "CompletingRebalance"


def test_new_metadata_of_a_follower_begin_a_rebalance(bench) -> None:
    generation_id, (leader, follower) = bench.stable_group(2)
    followed = bench.join(follower, protocols={"range": b"changed"})
    assert followed.is_waiting
    led = bench.join(leader)
    assert led.answer.generation_id == generation_id + 1
    assert {m.member_id: m.metadata for m in led.answer.members}[follower] == b"changed"


def test_a_lost_answer_is_repeated_while_the_assignment_is_awaited(bench) -> None:
    joined = [bench.new_member() for _ in range(2)]
    bench.advance(9_000)
    assert bench.state() == "CompletingRebalance"
    for member_id, first in joined:
        assert bench.join(member_id).answer == first.answer


def test_a_change_while_the_assignment_is_awaited_calls_everybody_back(bench) -> None:
    leader, _ = bench.new_member()
    follower, _ = bench.new_member()
    bench.advance(9_000)
    waiting = bench.sync(follower, 1)
    bench.join(leader, protocols={"range": b"changed"})
    assert waiting.answer.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.state() == "PreparingRebalance"


def test_members_that_do_not_rejoin_in_time_are_dropped_and_the_leader_replaced(bench) -> None:
    generation_id, (leader, follower) = bench.stable_group(
        2, session_timeout_ms=90_000, rebalance_timeout_ms=20_000
    )
    followed = bench.join(
        follower,
        protocols={"range": b"x"},
        session_timeout_ms=90_000,
        rebalance_timeout_ms=20_000,
    )
    bench.advance(19_999)
    assert followed.is_waiting
    bench.advance(1)
    assert followed.answer.leader == follower
    assert [m.member_id for m in followed.answer.members] == [follower]
    assert bench.heartbeat(leader, generation_id) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_longest_rebalance_timeout_of_all_members_counts(bench) -> None:
    slow, _ = bench.new_member(rebalance_timeout_ms=50_000, session_timeout_ms=90_000)
    quick, _ = bench.new_member(rebalance_timeout_ms=10_000, session_timeout_ms=90_000)
    bench.advance(9_000)
    bench.sync(slow, 1)
    bench.sync(quick, 1)
    rejoined = bench.join(
        quick, protocols={"range": b"x"}, rebalance_timeout_ms=10_000, session_timeout_ms=90_000
    )
    bench.advance(49_999)
    assert rejoined.is_waiting
    bench.advance(1)
    assert rejoined.answer.error is ErrorCode.NONE


# -- group.max.size -----------------------------------------------------------------------


def test_one_member_more_than_the_group_may_have_is_turned_away(make_bench) -> None:
    bench = make_bench(max_size=2)
    generation_id, (_, follower) = bench.stable_group(2)
    assert bench.join().answer.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.join(follower).answer.error is ErrorCode.NONE
    assert bench.heartbeat(follower, generation_id) is ErrorCode.NONE


def test_in_the_join_phase_those_who_joined_first_have_the_places(make_bench) -> None:
    bench = make_bench(max_size=2)
    first, first_join = bench.new_member()
    ids = [bench.join().answer.member_id for _ in range(2)]
    second_join, third_join = (bench.join(member_id) for member_id in ids)
    assert third_join.answer.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    bench.advance(9_000)
    assert [m.member_id for m in first_join.answer.members] == [first, ids[0]]
    assert second_join.answer.error is ErrorCode.NONE


def test_a_smaller_limit_after_a_restart_makes_the_group_rebalance(
    make_bench: Callable[..., object],
) -> None:
    bench = make_bench()
    _, members = bench.stable_group(3)
    bench.settings = bench.settings._replace(max_size=2)
    bench.restart()
    assert bench.state() == "PreparingRebalance"
    joins = [bench.join(member) for member in members]
    assert [pending.is_waiting for pending in joins] == [False, False, False]
    errors = [pending.answer.error for pending in joins]
    assert errors == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED]
