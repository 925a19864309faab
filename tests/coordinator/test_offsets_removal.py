from collections.abc import Sequence

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.offset_metadata_manager import TOMBSTONES_PER_APPEND_MAX
from odradek.coordinator.group.offsets import OffsetAndMetadata
from odradek.coordinator.group.records import GroupKey, OffsetKey, offset_record, read_key
from odradek.runtime.steps import run_at_once

HOUR_MS = 3_600_000


def delete_offsets(bench, *partitions: tuple[str, int]) -> Sequence[ErrorCode]:
    answers: list[Sequence[ErrorCode]] = []
    bench.coordinator.delete_offsets("group", partitions, answers.append)
    bench.log.flush()
    return answers[0]


def delete_group(bench, group_id: str = "group") -> ErrorCode:
    answers: list[ErrorCode] = []
    run_at_once(bench.coordinator.delete_group(group_id, answers.append))
    bench.log.flush()
    return answers[0]


def tombstones(bench, partition: int) -> list[object]:
    return [read_key(key) for key, value in bench.log.values(partition) if value is None]


# -- OffsetDelete -------------------------------------------------------------------------


def test_deleted_offsets_are_gone_also_after_a_restart(bench) -> None:
    bench.commit(("orders", 0, 1), ("orders", 1, 2), ("bills", 0, 3))
    errors = delete_offsets(bench, ("orders", 0), ("bills", 0), ("never committed", 9))
    assert errors == [ErrorCode.NONE] * 3
    assert bench.offsets() == {("orders", 1): 2}
    assert tombstones(bench, bench.group().partition) == [
        OffsetKey("group", "orders", 0),
        OffsetKey("group", "bills", 0),
    ]
    bench.restart()
    assert bench.offsets() == {("orders", 1): 2}


def test_what_consumers_read_at_the_moment_is_not_deleted(bench) -> None:
    bench.commit(("orders", 0, 1), ("bills", 0, 3))
    bench.stable_group(1)  # subscribed to `orders`
    errors = delete_offsets(bench, ("orders", 0), ("bills", 0))
    assert errors == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
    assert bench.offsets() == {("orders", 0): 1}


def test_of_consumers_with_unreadable_subscriptions_nothing_is_deleted(bench) -> None:
    bench.commit(("bills", 0, 3))
    bench.stable_group(1, protocols={"range": b"\x00\x00\x00\x00\x00\x09rubbish"})
    assert delete_offsets(bench, ("bills", 0)) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]


@pytest.mark.parametrize(
    ("prepare", "error"),
    [
        (lambda bench: None, ErrorCode.GROUP_ID_NOT_FOUND),
        (lambda bench: bench.stable_group(1, protocol_type="connect"), ErrorCode.NON_EMPTY_GROUP),
    ],
)
def test_offsets_of_unknown_groups_and_of_members_that_are_no_consumers_stay(
    bench, prepare, error: ErrorCode
) -> None:
    prepare(bench)
    with pytest.raises(KafkaError) as refusal:
        delete_offsets(bench, ("orders", 0))
    assert refusal.value.code is error


def test_offsets_that_cannot_be_deleted_are_still_there(bench) -> None:
    bench.commit(("orders", 0, 1))
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert delete_offsets(bench, ("orders", 0)) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert bench.offsets() == {("orders", 0): 1}


# -- DeleteGroups ---------------------------------------------------------------------------


def test_a_deleted_group_leaves_nothing_behind(bench) -> None:
    bench.commit(("orders", 0, 1))
    _, (member,) = bench.stable_group(1)
    bench.leave(member)
    partition = bench.group().partition
    assert delete_group(bench) is ErrorCode.NONE
    assert bench.state() == "Dead"
    assert bench.offsets() == {}
    assert tombstones(bench, partition) == [OffsetKey("group", "orders", 0), GroupKey("group")]
    bench.restart()
    assert run_at_once(bench.coordinator.list_groups((), ())) == []


def test_a_group_with_members_is_not_deleted(bench) -> None:
    bench.stable_group(1)
    with pytest.raises(KafkaError) as refusal:
        delete_group(bench)
    assert refusal.value.code is ErrorCode.NON_EMPTY_GROUP


def test_an_unknown_group_is_not_deleted(bench) -> None:
    with pytest.raises(KafkaError) as refusal:
        delete_group(bench)
    assert refusal.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_of_many_offsets_is_deleted_in_several_appends(bench) -> None:
    count = 2 * TOMBSTONES_PER_APPEND_MAX + 1
    bench.commit(*(("orders", partition, 1) for partition in range(count)))
    partition = bench.group().partition
    before = len(bench.log.batches[partition])
    assert delete_group(bench) is ErrorCode.NONE
    sizes = [len(batch.records) for batch in bench.log.batches[partition][before:]]
    assert sum(sizes) == count + 1
    assert max(sizes) <= TOMBSTONES_PER_APPEND_MAX
    assert len(sizes) >= 3
    assert bench.state() == "Dead"


def test_what_is_committed_while_a_group_is_deleted_is_not_lost(bench) -> None:
    bench.commit(("orders", 0, 1))
    bench.log.is_held = True
    answers: list[ErrorCode] = []
    run_at_once(bench.coordinator.delete_group("group", answers.append))
    late = bench.commit(("orders", 1, 2))
    bench.log.release()
    assert answers == [ErrorCode.NONE]
    assert late.answer == [ErrorCode.NONE]
    assert bench.offsets() == {("orders", 1): 2}
    bench.restart()
    assert bench.offsets() == {("orders", 1): 2}


def test_a_member_that_joins_while_its_group_is_deleted_keeps_it(bench) -> None:
    bench.commit(("orders", 0, 1))
    bench.log.is_held = True
    run_at_once(bench.coordinator.delete_group("group", lambda error: None))
    _, joined = bench.new_member()
    bench.log.is_held = False
    bench.log.release()
    bench.advance_until_answered(joined)
    assert joined.answer.error is ErrorCode.NONE
    assert bench.offsets() == {}


# -- expiry -----------------------------------------------------------------------------------


def test_offsets_of_a_simple_consumer_expire_counted_from_their_commit(make_bench) -> None:
    bench = make_bench(offsets_retention_ms=HOUR_MS, offsets_retention_check_interval_ms=60_000)
    bench.commit(("orders", 0, 1))
    bench.advance(HOUR_MS // 2)
    bench.commit(("orders", 1, 2))
    bench.advance(HOUR_MS // 2 - 60_000)
    assert bench.offsets() == {("orders", 0): 1, ("orders", 1): 2}
    bench.advance(120_000)
    assert bench.offsets() == {("orders", 1): 2}
    bench.advance(HOUR_MS)
    assert bench.state() == "Dead"
    bench.restart()
    assert bench.offsets() == {}


def test_offsets_of_a_group_expire_counted_from_when_it_became_empty(make_bench) -> None:
    bench = make_bench(offsets_retention_ms=HOUR_MS, offsets_retention_check_interval_ms=60_000)
    generation_id, (member,) = bench.stable_group(1, session_timeout_ms=1_800_000)
    bench.commit(("orders", 0, 1), member_id=member, generation_id=generation_id)
    for _ in range(4):
        bench.advance(HOUR_MS // 3)
        bench.heartbeat(member, generation_id)
    assert bench.offsets() == {("orders", 0): 1}
    bench.leave(member)
    bench.advance(HOUR_MS - 60_000)
    assert bench.offsets() == {("orders", 0): 1}
    bench.advance(120_000)
    assert bench.state() == "Dead"


def test_topics_that_a_stable_group_reads_no_longer_expire(make_bench) -> None:
    bench = make_bench(offsets_retention_ms=HOUR_MS, offsets_retention_check_interval_ms=60_000)
    generation_id, (member,) = bench.stable_group(1, session_timeout_ms=1_800_000)
    known = {"member_id": member, "generation_id": generation_id}
    bench.commit(("orders", 0, 1), ("bills", 0, 2), **known)
    for _ in range(4):
        bench.advance(HOUR_MS // 3)
        bench.heartbeat(member, generation_id)
    assert bench.offsets() == {("orders", 0): 1}


def test_a_commit_may_bring_a_retention_of_its_own(make_bench) -> None:
    bench = make_bench(offsets_retention_check_interval_ms=60_000)
    bench.commit(("orders", 0, 1), retention_ms=300_000)
    bench.commit(("orders", 1, 1))
    bench.restart()
    bench.advance(240_000)
    assert len(bench.offsets()) == 2
    bench.advance(60_000)
    assert bench.offsets() == {("orders", 1): 1}


def test_offsets_whose_tombstones_cannot_be_stored_expire_at_the_next_round(make_bench) -> None:
    bench = make_bench(offsets_retention_ms=1_000, offsets_retention_check_interval_ms=60_000)
    bench.commit(("orders", 0, 1))
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.advance(60_000)
    assert bench.offsets() == {("orders", 0): 1}
    bench.log.fail_with = ErrorCode.NONE
    bench.advance(60_000)
    assert bench.state() == "Dead"


def test_a_group_that_somebody_is_about_to_join_is_not_removed(make_bench) -> None:
    bench = make_bench(offsets_retention_check_interval_ms=5_000)
    member_id = bench.join(session_timeout_ms=10_000).answer.member_id
    bench.advance(6_000)
    assert bench.join(member_id).is_waiting


def test_a_group_for_which_a_commit_is_on_its_way_is_not_removed(make_bench) -> None:
    bench = make_bench(offsets_retention_check_interval_ms=5_000)
    _, (member,) = bench.stable_group(1)
    bench.leave(member)
    bench.log.is_held = True
    bench.commit(("orders", 0, 1))
    bench.advance(5_000)
    bench.log.release()
    assert tombstones(bench, bench.group().partition) == []


def test_offsets_of_deleted_partitions_go_with_them(bench) -> None:
    bench.commit(("orders", 0, 1), ("orders", 1, 2), ("bills", 0, 3))
    gone = [("orders", 1), ("bills", 0), ("other", 0)]
    run_at_once(bench.coordinator.delete_partition_offsets(gone))
    assert bench.offsets() == {("orders", 0): 1}
    bench.restart()
    assert bench.offsets() == {("orders", 0): 1}


# -- transactions -------------------------------------------------------------------------------


def pending_commit(bench, offset: int, producer_id: int = 77) -> int:
    """A transaction's commit of ("orders", 0) in the log; returns the partition."""
    partition = bench.coordinator.partition_for("group")
    record = offset_record("group", "orders", 0, OffsetAndMetadata(offset, commit_timestamp_ms=1))
    bench.log.put(partition, [(record.key, record.value)], producer_id=producer_id)
    return partition


@pytest.mark.parametrize(("committed", "offset"), [(True, 9), (False, 5)])
def test_a_transactions_commits_count_from_its_end_on(bench, committed: bool, offset: int) -> None:
    bench.commit(("orders", 0, 5))
    partition = pending_commit(bench, 9)
    bench.restart()
    assert bench.offsets() == {("orders", 0): 5}
    assert bench.group().offsets.is_pending("orders", 0)
    assert not bench.group().offsets.is_pending("orders", 1)
    bench.log.put(partition, [], producer_id=77, committed=committed)
    bench.restart()
    assert bench.offsets() == {("orders", 0): offset}
    assert not bench.group().offsets.has_open_transactions


def test_of_a_transaction_and_a_later_plain_commit_the_later_counts(bench) -> None:
    partition = pending_commit(bench, 9)
    bench.restart()
    bench.commit(("orders", 0, 10))
    bench.log.put(partition, [], producer_id=77, committed=True)
    bench.restart()
    assert bench.offsets() == {("orders", 0): 10}


def test_a_group_in_whose_transaction_commits_are_open_is_not_removed(make_bench) -> None:
    bench = make_bench(offsets_retention_ms=1_000, offsets_retention_check_interval_ms=60_000)
    pending_commit(bench, 9)
    bench.restart()
    bench.advance(120_000)
    assert bench.group().offsets.has_open_transactions


def test_a_deleted_group_takes_its_open_commits_along(bench) -> None:
    partition = pending_commit(bench, 9)
    bench.restart()
    assert delete_group(bench) is ErrorCode.NONE
    bench.log.put(partition, [], producer_id=77, committed=True)
    bench.restart()
    assert bench.offsets() == {}
