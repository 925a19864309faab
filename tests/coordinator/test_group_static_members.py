"""KIP-345: members that keep their place over restarts."""

import pytest

from odradek.common.errors import ErrorCode
from odradek.coordinator.group.records import read_group_value


@pytest.fixture
def pair(bench) -> list[str]:
    """A stable group of the static members `i-0`, which leads, and `i-1`."""
    joins = [bench.join(instance=f"i-{number}") for number in range(2)]
    bench.advance_until_answered(joins[0])
    ids = [pending.answer.member_id for pending in joins]
    bench.sync(ids[0], 1, {member: member.encode() for member in ids}, instance="i-0")
    bench.sync(ids[1], 1, instance="i-1")
    assert bench.state() == "Stable"
    return ids


def test_a_static_member_joins_without_asking_for_an_id(bench) -> None:
    pending = bench.join(instance="i-0", version=9)
    assert pending.is_waiting
    bench.advance(3_000)
    assert pending.answer.member_id.startswith("i-0-")


def test_a_follower_that_comes_back_takes_its_place_without_a_rebalance(
    bench, pair: list[str]
) -> None:
    answer = bench.join(instance="i-1").answer
    assert answer.error is ErrorCode.NONE
    assert answer.member_id != pair[1]
    assert (answer.generation_id, answer.leader, answer.skip_assignment) == (1, pair[0], False)
    assert bench.state() == "Stable"
    synced = bench.sync(answer.member_id, 1, instance="i-1")
    assert synced.answer.assignment == pair[1].encode()
    assert bench.heartbeat(answer.member_id, 1, instance="i-1") is ErrorCode.NONE


def test_who_uses_the_former_id_is_fenced(bench, pair: list[str]) -> None:
    bench.join(instance="i-1")
    former = pair[1]
    assert bench.heartbeat(former, 1, instance="i-1") is ErrorCode.FENCED_INSTANCE_ID
    assert bench.sync(former, 1, instance="i-1").answer.error is ErrorCode.FENCED_INSTANCE_ID
    assert bench.join(former, instance="i-1").answer.error is ErrorCode.FENCED_INSTANCE_ID
    assert bench.heartbeat(former, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_new_id_is_stored_before_it_is_reported(bench, pair: list[str]) -> None:
    bench.log.is_held = True
    pending = bench.join(instance="i-1")
    assert pending.is_waiting
    bench.log.release()
    _, value = bench.log.values(bench.group().partition)[-1]
    stored = {m.group_instance_id: m for m in read_group_value(value).members}
    assert stored["i-1"].member_id == pending.answer.member_id
    assert stored["i-1"].assignment == pair[1].encode()


def test_a_new_id_that_cannot_be_stored_is_taken_back(bench, pair: list[str]) -> None:
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    answer = bench.join(instance="i-1").answer
    assert answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.heartbeat(pair[1], 1, instance="i-1") is ErrorCode.NONE
    assert bench.group().static_members["i-1"] == pair[1]
    assert bench.group().members_awaiting_join == 0


def test_a_leader_that_comes_back_skips_the_assignment(bench, pair: list[str]) -> None:
    answer = bench.join(instance="i-0", version=9).answer
    assert answer.skip_assignment
    assert answer.leader == answer.member_id != pair[0]
    assert {m.group_instance_id for m in answer.members} == {"i-0", "i-1"}
    assert bench.state() == "Stable"


def test_before_version_9_a_leader_that_comes_back_gets_its_former_id(
    bench, pair: list[str]
) -> None:
    answer = bench.join(instance="i-0", version=8).answer
    assert not answer.skip_assignment
    assert answer.leader == pair[0] != answer.member_id
    assert answer.members == []


def test_a_member_that_comes_back_with_another_protocol_makes_the_group_rebalance(bench) -> None:
    preferences = [{"a": b"", "b": b""}, {"b": b"", "a": b""}, {"a": b"", "b": b""}]
    joins = [bench.join(instance=f"i-{n}", protocols=p) for n, p in enumerate(preferences)]
    bench.advance(9_000)
    assert joins[0].answer.protocol_name == "a"
    for n, pending in enumerate(joins):
        bench.sync(pending.answer.member_id, 1, instance=f"i-{n}")
    assert bench.state() == "Stable"
    came_back = bench.join(instance="i-2", protocols={"b": b"", "a": b""})
    assert came_back.is_waiting
    assert bench.state() == "PreparingRebalance"


def test_coming_back_while_the_assignment_is_made_begins_anew(bench) -> None:
    joins = [bench.join(instance=f"i-{n}") for n in range(2)]
    bench.advance(9_000)
    assert bench.state() == "CompletingRebalance"
    waiting = bench.sync(joins[1].answer.member_id, 1, instance="i-1")
    came_back = bench.join(instance="i-1")
    assert waiting.answer.error is ErrorCode.FENCED_INSTANCE_ID
    assert came_back.is_waiting
    assert bench.state() == "PreparingRebalance"
    rejoined = bench.join(joins[0].answer.member_id, instance="i-0")
    assert came_back.answer.generation_id == rejoined.answer.generation_id == 2


def test_two_that_claim_one_instance_while_joining_fence_the_first(bench) -> None:
    first = bench.join(instance="i-0")
    second = bench.join(instance="i-0")
    assert first.answer.error is ErrorCode.FENCED_INSTANCE_ID
    bench.advance(9_000)
    assert second.answer.error is ErrorCode.NONE
    assert len(bench.group().members) == 1


def test_a_rebalance_waits_for_no_static_member_longer_than_its_timeout(
    bench, pair: list[str]
) -> None:
    led = bench.join(pair[0], instance="i-0", session_timeout_ms=100_000)
    bench.advance(9_000)
    assert bench.heartbeat(pair[1], 1, instance="i-1") is ErrorCode.REBALANCE_IN_PROGRESS
    bench.advance(10_000)  # the session of i-1 is over before the rebalance timeout
    assert led.answer.generation_id == 2
    assert [m.group_instance_id for m in led.answer.members] == ["i-0"]


def test_a_static_member_that_did_not_rejoin_stays_in_the_generation_until_its_session_ends(
    bench,
) -> None:
    arguments = {"session_timeout_ms": 100_000, "rebalance_timeout_ms": 20_000}
    joins = [bench.join(instance=f"i-{n}", **arguments) for n in range(2)]
    bench.advance(9_000)
    ids = [pending.answer.member_id for pending in joins]
    for n, member in enumerate(ids):
        bench.sync(member, 1, instance=f"i-{n}")
    led = bench.join(ids[0], instance="i-0", **arguments)
    bench.advance(20_000)
    assert led.answer.generation_id == 2
    assert {m.member_id for m in led.answer.members} == set(ids)


def test_a_static_member_comes_back_after_a_restart_of_the_broker(bench, pair: list[str]) -> None:
    bench.restart()
    answer = bench.join(instance="i-1").answer
    assert (answer.error, answer.generation_id) == (ErrorCode.NONE, 1)
    assert bench.sync(answer.member_id, 1, instance="i-1").answer.assignment == pair[1].encode()


def test_a_rebalance_that_begins_before_the_new_id_is_stored_answers_at_its_end(bench) -> None:
    joins = [bench.join(instance=f"i-{number}") for number in range(3)]
    bench.advance_until_answered(joins[0])
    ids = [pending.answer.member_id for pending in joins]
    for number, member in enumerate(ids):
        bench.sync(member, 1, instance=f"i-{number}")
    bench.log.is_held = True
    came_back = bench.join(instance="i-1")
    led = bench.join(ids[0], instance="i-0")
    bench.log.is_held = False
    bench.log.release()
    assert came_back.is_waiting  # for i-2, like everybody
    bench.join(ids[2], instance="i-2")
    assert came_back.answer.error is ErrorCode.NONE
    assert came_back.answer.generation_id == led.answer.generation_id == 2
