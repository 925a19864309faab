import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.offset_metadata_manager import PartitionCommit
from odradek.coordinator.group.offsets import AppendedAt, OffsetAndMetadata
from odradek.coordinator.group.records import read_offset_value
from odradek.protocol.codec.layout import STRING_BYTES_MAX

TOPIC_ID = bytes(range(16))


def refusal_of(bench, **arguments: object) -> ErrorCode:
    with pytest.raises(KafkaError) as refusal:
        bench.commit(("orders", 0, 1), **arguments)
    return refusal.value.code


def test_anybody_commits_for_a_group_without_members(bench) -> None:
    assert bench.commit(("orders", 0, 5), ("orders", 1, 7)).answer == [ErrorCode.NONE] * 2
    assert bench.offsets() == {("orders", 0): 5, ("orders", 1): 7}
    assert bench.state() == "Empty"


def test_a_group_may_commit_without_a_name(bench) -> None:
    assert bench.commit(("orders", 0, 5), group_id="").answer == [ErrorCode.NONE]
    assert bench.offsets("") == {("orders", 0): 5}


def test_a_commit_is_seen_and_answered_when_it_is_stored_and_not_before(bench) -> None:
    bench.commit(("orders", 0, 5))
    bench.log.is_held = True
    pending = bench.commit(("orders", 0, 6))
    assert pending.is_waiting
    assert bench.offsets() == {("orders", 0): 5}
    bench.log.release()
    assert pending.answer == [ErrorCode.NONE]
    assert bench.offsets() == {("orders", 0): 6}


def test_what_is_stored_is_all_that_the_client_said(bench) -> None:
    bench.commit(PartitionCommit("orders", 3, 42, 7, "note", TOPIC_ID))
    position = bench.group().offsets.get("orders", 3)
    now_ms = bench.clock.now_ms()
    assert position == OffsetAndMetadata(42, 7, "note", now_ms, -1, TOPIC_ID, AppendedAt(0))
    ((_, value),) = bench.log.values(bench.group().partition)
    assert read_offset_value(value, 0) == position


def test_members_commit_for_their_generation(bench) -> None:
    generation_id, (member,) = bench.stable_group(1)
    known = {"member_id": member, "generation_id": generation_id}
    assert bench.commit(("orders", 0, 1), **known).answer == [ErrorCode.NONE]
    assert refusal_of(bench, **{**known, "generation_id": 7}) is ErrorCode.ILLEGAL_GENERATION
    assert refusal_of(bench, **{**known, "generation_id": -1}) is ErrorCode.ILLEGAL_GENERATION
    assert refusal_of(bench, **{**known, "member_id": "x"}) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal_of(bench, **{**known, "instance": "i"}) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.offsets() == {("orders", 0): 1}


def test_nobody_else_commits_for_a_group_that_has_members(bench) -> None:
    bench.stable_group(1)
    assert refusal_of(bench) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_was_replaced_is_fenced(bench) -> None:
    first = bench.join(instance="i")
    bench.advance_until_answered(first)
    bench.sync(first.answer.member_id, 1, instance="i")
    second = bench.join(instance="i").answer.member_id
    known = {"generation_id": 1, "instance": "i"}
    former = refusal_of(bench, member_id=first.answer.member_id, **known)
    assert former is ErrorCode.FENCED_INSTANCE_ID
    assert bench.commit(("orders", 0, 1), member_id=second, **known).answer == [ErrorCode.NONE]


def test_members_may_commit_what_they_did_while_they_are_called_back(bench) -> None:
    generation_id, (leader, follower) = bench.stable_group(2)
    bench.join(leader)
    assert bench.state() == "PreparingRebalance"
    known = {"member_id": follower, "generation_id": generation_id}
    assert bench.commit(("orders", 0, 1), **known).answer == [ErrorCode.NONE]


def test_nobody_commits_between_two_assignments(bench) -> None:
    member, pending = bench.new_member()
    bench.advance_until_answered(pending)
    assert bench.state() == "CompletingRebalance"
    refused = refusal_of(bench, member_id=member, generation_id=1)
    assert refused is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("error", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND])
def test_a_member_of_an_unknown_group_gets_the_error_of_its_version(
    bench, error: ErrorCode
) -> None:
    refused = refusal_of(bench, member_id="m", generation_id=3, unknown_group_error=error)
    assert refused is error


def test_metadata_are_stored_up_to_the_limit_and_not_one_character_longer(make_bench) -> None:
    bench = make_bench(offset_metadata_max_bytes=10)
    errors = bench.commit(
        PartitionCommit("orders", 0, 1, metadata="x" * 10),
        PartitionCommit("orders", 1, 1, metadata="x" * 11),
    ).answer
    assert errors == [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert bench.offsets() == {("orders", 0): 1}


def test_metadata_that_no_record_can_hold_are_too_large_whatever_the_setting(make_bench) -> None:
    bench = make_bench(offset_metadata_max_bytes=100_000)
    pending = bench.commit(PartitionCommit("orders", 0, 1, metadata="x" * (STRING_BYTES_MAX + 1)))
    assert pending.answer == [ErrorCode.OFFSET_METADATA_TOO_LARGE]


@pytest.mark.parametrize(
    ("append_error", "answer"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_what_the_log_refuses_is_reported_in_words_that_a_client_knows(
    bench, append_error: ErrorCode, answer: ErrorCode
) -> None:
    bench.commit(("orders", 0, 5))
    bench.log.fail_with = append_error
    assert bench.commit(("orders", 0, 6)).answer == [answer]
    assert bench.offsets() == {("orders", 0): 5}


def test_a_reader_who_wants_it_stable_waits_for_commits_on_their_way(bench, pending) -> None:
    bench.commit(("orders", 0, 5))
    bench.log.is_held = True
    bench.commit(("orders", 0, 6))
    seen = []

    def reported(error: ErrorCode, offsets) -> None:
        seen.append((error, offsets.get("orders", 0).offset))

    bench.coordinator.fetch_offsets("group", reported, require_stable=True)
    assert seen == []
    bench.log.release()
    assert seen == [(ErrorCode.NONE, 6)]
    bench.coordinator.fetch_offsets("group", reported, require_stable=True)
    assert len(seen) == 2


def test_an_unknown_group_has_committed_nothing(bench) -> None:
    assert bench.offsets("no such group") == {}
