"""Offsets of consumer groups: who may commit them, when they expire, what deletes them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.consumer_bench import GROUP, ORDERS, PAYMENTS, ConsumerBench
from support.pending import Pending

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.consumer.checks import check_commit
from odradek.coordinator.group.offset_metadata_manager import CommitRequest, PartitionCommit
from odradek.coordinator.group.offsets import GroupOffsets
from odradek.runtime.steps import run_at_once

WEEK_MS = 7 * 24 * 3_600_000
CHECK_MS = 600_000
IDS = {"orders": ORDERS, "payments": PAYMENTS}


@pytest.fixture
def consumers() -> ConsumerBench:
    bench = ConsumerBench(session_timeout_ms=2 * WEEK_MS)
    bench.join("m1")
    return bench


def commit(
    consumers: ConsumerBench,
    *places: tuple[str, int, int],
    member_id: str = "m1",
    epoch: int = 2,
    version: int = 9,
) -> ErrorCode:
    pending: Pending[Sequence[ErrorCode]] = Pending()
    request = CommitRequest(
        GROUP,
        epoch,
        member_id,
        None,
        [PartitionCommit(*place, topic_id=IDS[place[0]]) for place in places],
        api_version=version,
    )
    try:
        consumers.coordinator.commit_offsets(request, pending)
    except KafkaError as refusal:
        return refusal.code
    consumers.log.flush()
    (error,) = set(pending.answer)
    return error


def committed(consumers: ConsumerBench) -> dict[tuple[str, int], int]:
    found: list[GroupOffsets] = []
    consumers.coordinator.fetch_offsets(
        GROUP, lambda error, offsets: found.append(offsets), require_stable=False
    )
    return {(topic, partition): at.offset for topic, partition, at in found[0]}


def test_a_commit_of_former_partitions_keeps_all_of_it_from_being_stored(
    consumers: ConsumerBench,
) -> None:
    consumers.join("m2")
    consumers.beat("m1", 2)
    consumers.beat("m1", 2, owned={ORDERS: {0, 1}})
    error = commit(consumers, ("orders", 0, 5), ("orders", 3, 5), epoch=2)
    assert error is ErrorCode.STALE_MEMBER_EPOCH
    assert committed(consumers) == {}
    assert commit(consumers, ("orders", 0, 5), ("orders", 1, 5), epoch=2) is ErrorCode.NONE


def test_a_commit_does_not_keep_a_session_alive() -> None:
    consumers = ConsumerBench()
    consumers.join("m1")
    consumers.advance(40_000)
    assert commit(consumers, ("orders", 0, 5)) is ErrorCode.NONE
    consumers.advance(5_000)
    assert consumers.state == "Empty"


def test_a_commit_in_a_transaction_may_leave_its_member_unsaid(consumers: ConsumerBench) -> None:
    check_commit(consumers.group(), "", None, -1, 5, is_transactional=True)
    with pytest.raises(KafkaError) as refusal:
        check_commit(consumers.group(), "", None, -1, 9)
    assert refusal.value.code is ErrorCode.UNKNOWN_MEMBER_ID
    with pytest.raises(KafkaError) as refusal:
        check_commit(consumers.group(), "m1", None, 9, 5, is_transactional=True)
    assert refusal.value.code is ErrorCode.STALE_MEMBER_EPOCH


def test_offsets_of_topics_that_are_read_do_not_expire(consumers: ConsumerBench) -> None:
    commit(consumers, ("orders", 0, 5), ("payments", 0, 5))
    consumers.advance(WEEK_MS + CHECK_MS)
    assert committed(consumers) == {("orders", 0): 5}


def test_an_empty_group_goes_with_its_last_offset(consumers: ConsumerBench) -> None:
    commit(consumers, ("orders", 0, 5))
    consumers.leave("m1")
    consumers.advance(WEEK_MS - 1)
    assert committed(consumers) == {("orders", 0): 5}
    consumers.advance(CHECK_MS)
    assert consumers.coordinator.consumer_groups == []
    consumers.restart()
    assert consumers.coordinator.consumer_groups == []
    assert committed(consumers) == {}


def test_an_empty_group_without_offsets_goes_with_the_next_look(consumers: ConsumerBench) -> None:
    consumers.leave("m1")
    assert consumers.state == "Empty"
    consumers.advance(CHECK_MS)
    assert consumers.coordinator.consumer_groups == []


def test_a_deleted_group_leaves_nothing_to_read_back(consumers: ConsumerBench) -> None:
    commit(consumers, ("orders", 0, 5))
    consumers.leave("m1")
    outcome: list[ErrorCode] = []
    run_at_once(consumers.coordinator.delete_group(GROUP, outcome.append))
    consumers.log.flush()
    assert outcome == [ErrorCode.NONE]
    left = {}
    for key, value in consumers.log.values(consumers.partition_of()):
        left[key] = value
    assert set(left.values()) == {None}  # every key that was ever written ends in a tombstone
    consumers.restart()
    assert consumers.coordinator.consumer_groups == consumers.coordinator.groups == []


def test_who_joins_while_its_group_is_being_deleted_is_a_member(consumers: ConsumerBench) -> None:
    consumers.leave("m1")
    consumers.log.is_held = True
    outcome: list[ErrorCode] = []
    run_at_once(consumers.coordinator.delete_group(GROUP, outcome.append))
    joined = consumers.send("m2", 0, topics=["orders"], owned={}, rebalance_timeout_ms=30_000)
    consumers.log.release()
    consumers.log.is_held = False
    assert joined.answer.error is ErrorCode.NONE
    assert set(consumers.group().members) == {"m2"}
    epoch = consumers.group().epoch
    consumers.restart()
    assert set(consumers.group().members) == {"m2"}
    assert consumers.group().epoch == epoch


def test_offsets_of_a_deleted_topic_go_in_consumer_groups_too(consumers: ConsumerBench) -> None:
    commit(consumers, ("orders", 0, 5), ("payments", 0, 5))
    run_at_once(consumers.coordinator.delete_partition_offsets([("payments", 0)]))
    assert committed(consumers) == {("orders", 0): 5}


def test_offsets_stay_when_a_group_changes_its_type(consumers: ConsumerBench) -> None:
    commit(consumers, ("orders", 0, 5))
    consumers.leave("m1")
    group = consumers.coordinator._consumer.end_empty(consumers.group())
    consumers.log.flush()
    assert consumers.coordinator.groups == [group]
    assert committed(consumers) == {("orders", 0): 5}
    consumers.restart()
    assert consumers.coordinator.consumer_groups == []
    assert committed(consumers) == {("orders", 0): 5}
    consumers.join("m2")
    assert consumers.coordinator.groups == []
    assert committed(consumers) == {("orders", 0): 5}
    consumers.restart()
    assert committed(consumers) == {("orders", 0): 5}
    assert set(consumers.group().members) == {"m2"}


def test_an_empty_classic_group_stays_what_it_is_where_nobody_could_join(
    consumers: ConsumerBench,
) -> None:
    commit(consumers, ("orders", 0, 5))
    consumers.leave("m1")
    classic = consumers.coordinator._consumer.end_empty(consumers.group())
    consumers.log.flush()
    refused = consumers.join("m2", None, subscribed_topic_regex="(")
    assert refused.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert consumers.coordinator.groups == [classic]
    consumers.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert consumers.join("m2").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    consumers.log.fail_with = ErrorCode.NONE
    consumers.advance(0)  # what the log says is read back
    assert consumers.coordinator.consumer_groups == []
    assert committed(consumers) == {("orders", 0): 5}
    assert consumers.join("m2").error is ErrorCode.NONE
    assert committed(consumers) == {("orders", 0): 5}
