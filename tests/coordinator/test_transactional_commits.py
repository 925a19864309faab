"""Offsets that a transaction commits: who may, when they count, what a new coordinator knows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.consumer_bench import GROUP as CONSUMERS
from support.consumer_bench import ORDERS, ConsumerBench
from support.pending import Pending

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.sentinels import ZERO_UUID
from odradek.coordinator.group.offset_metadata_manager import CommitRequest, PartitionCommit
from odradek.coordinator.log import AppendInTransaction
from odradek.storage.producer_state.verification_guard import NOT_REQUIRED

GROUP = "group"
PRODUCER = 41
STABLE = True


def commit(
    bench,
    *commits: tuple[str, int, int],
    producer_id: int = PRODUCER,
    group_id: str = GROUP,
    member_id: str = "",
    generation_id: int = -1,
    instance: str | None = None,
) -> Pending[Sequence[ErrorCode]]:
    """Send one TxnOffsetCommit of (topic, partition, offset), whose transaction is verified."""
    pending: Pending[Sequence[ErrorCode]] = Pending()
    bench.coordinator.commit_offsets(
        CommitRequest(
            group_id,
            generation_id,
            member_id,
            instance,
            [PartitionCommit(*each) for each in commits],
            transaction=AppendInTransaction(producer_id, 0, NOT_REQUIRED),
        ),
        pending,
    )
    bench.log.flush()
    return pending


def end(bench, *, committed: bool, producer_id: int = PRODUCER, group_id: str = GROUP) -> None:
    """A marker comes into the group's partition, and is on enough replicas."""
    partition = bench.coordinator.partition_for(group_id)
    bench.log.put(partition, [], producer_id, committed)
    bench.coordinator.complete_transaction(partition, producer_id, committed=committed)


def refusal_of(bench, **arguments: object) -> ErrorCode:
    with pytest.raises(KafkaError) as refusal:
        commit(bench, ("orders", 0, 1), **arguments)
    return refusal.value.code


def is_pending(bench, partition: int = 0) -> bool:
    return bool(bench.group().offsets.is_pending("orders", partition))


def test_offsets_wait_for_the_end_of_their_transaction(bench) -> None:
    bench.commit(("orders", 0, 3), ("orders", 1, 3))
    assert commit(bench, ("orders", 0, 5)).answer == [ErrorCode.NONE]
    assert bench.offsets() == {("orders", 0): 3, ("orders", 1): 3}
    assert (is_pending(bench, 0), is_pending(bench, 1)) == (True, False)
    end(bench, committed=True)
    assert bench.offsets() == {("orders", 0): 5, ("orders", 1): 3}
    assert not is_pending(bench)


def test_offsets_of_an_aborted_transaction_are_forgotten(bench) -> None:
    bench.commit(("orders", 0, 3))
    commit(bench, ("orders", 0, 5))
    end(bench, committed=False)
    assert bench.offsets() == {("orders", 0): 3}
    assert not is_pending(bench)


def test_each_producers_transaction_ends_by_itself(bench) -> None:
    commit(bench, ("orders", 0, 5), producer_id=1)
    commit(bench, ("orders", 1, 6), producer_id=2)
    end(bench, committed=True, producer_id=2)
    assert bench.offsets() == {("orders", 1): 6}
    assert (is_pending(bench, 0), is_pending(bench, 1)) == (True, False)


def test_one_transaction_commits_for_several_groups(bench) -> None:
    here = bench.coordinator.partition_for(GROUP)
    other = next(
        name
        for name in (f"group-{number}" for number in range(100))
        if bench.coordinator.partition_for(name) == here
    )
    commit(bench, ("orders", 0, 5))
    commit(bench, ("orders", 0, 7), group_id=other)
    end(bench, committed=True)
    assert (bench.offsets(), bench.offsets(other)) == ({("orders", 0): 5}, {("orders", 0): 7})


def test_a_plain_commit_that_came_later_stays(bench) -> None:
    commit(bench, ("orders", 0, 5))
    bench.commit(("orders", 0, 9))
    end(bench, committed=True)
    assert bench.offsets() == {("orders", 0): 9}


def test_a_marker_that_is_seen_first_ends_what_is_before_it_in_the_log(bench) -> None:
    bench.log.is_held = True
    late = commit(bench, ("orders", 0, 5))
    end(bench, committed=True)
    assert late.is_waiting
    bench.log.release()
    assert late.answer == [ErrorCode.NONE]
    assert bench.offsets() == {("orders", 0): 5}
    assert not is_pending(bench)


@pytest.mark.parametrize("committed", [True, False])
def test_a_new_coordinator_knows_what_is_pending(bench, committed: bool) -> None:
    bench.commit(("orders", 0, 3))
    commit(bench, ("orders", 0, 5))
    bench.restart()
    assert is_pending(bench)
    assert bench.offsets() == {("orders", 0): 3}
    end(bench, committed=committed)
    assert bench.offsets() == {("orders", 0): 5 if committed else 3}
    bench.restart()
    assert bench.offsets() == {("orders", 0): 5 if committed else 3}
    assert not is_pending(bench)


def test_an_append_that_fails_leaves_nothing_pending(bench) -> None:
    bench.commit(("orders", 0, 3))
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert commit(bench, ("orders", 0, 5)).answer == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert not is_pending(bench)


def test_a_producer_that_names_no_member_commits_for_any_group(bench) -> None:
    """So did those before KIP-447, whose requests cannot name one."""
    bench.stable_group(1)
    assert commit(bench, ("orders", 0, 5)).answer == [ErrorCode.NONE]


def test_a_member_commits_in_its_generation_only(bench) -> None:
    generation_id, (member,) = bench.stable_group(1)
    known = {"member_id": member, "generation_id": generation_id}
    assert commit(bench, ("orders", 0, 5), **known).answer == [ErrorCode.NONE]
    assert refusal_of(bench, **{**known, "generation_id": 7}) is ErrorCode.ILLEGAL_GENERATION
    assert refusal_of(bench, **{**known, "generation_id": -1}) is ErrorCode.ILLEGAL_GENERATION
    assert refusal_of(bench, **{**known, "member_id": "x"}) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal_of(bench, **{**known, "instance": "i"}) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_does_not_stop_a_transaction(bench) -> None:
    generation_id, (member,) = bench.stable_group(1)
    bench.new_member()
    assert bench.state() == "PreparingRebalance"
    known = {"member_id": member, "generation_id": generation_id}
    assert commit(bench, ("orders", 0, 5), **known).answer == [ErrorCode.NONE]


def test_nobody_commits_in_a_generation_of_a_group_that_is_not_known(bench) -> None:
    unknown = {"member_id": "m", "generation_id": 3}
    assert refusal_of(bench, **unknown) is ErrorCode.ILLEGAL_GENERATION
    assert commit(bench, ("orders", 0, 5)).answer == [ErrorCode.NONE]


def test_pending_offsets_keep_their_group(bench) -> None:
    commit(bench, ("orders", 0, 5))
    week_ms = 7 * 24 * 60 * 60 * 1000
    bench.advance(week_ms + bench.settings.offsets_retention_check_interval_ms)
    assert is_pending(bench)


def test_readers_of_stable_offsets_are_answered_after_what_is_on_its_way(bench) -> None:
    bench.commit(("orders", 0, 3))
    bench.log.is_held = True
    commit(bench, ("orders", 0, 5))
    reported: list[bool] = []
    bench.coordinator.fetch_offsets(
        GROUP,
        lambda error, offsets: reported.append(offsets.is_pending("orders", 0)),
        require_stable=STABLE,
    )
    assert reported == []
    bench.log.release()
    assert reported == [True]


# -- consumer groups (KIP-848) ----------------------------------------------------------------


def commit_as_consumer(consumers: ConsumerBench, partition: int, **who: object) -> ErrorCode:
    """Send one TxnOffsetCommit for `orders` as a member of a consumer group."""
    pending: Pending[Sequence[ErrorCode]] = Pending()
    commits = [PartitionCommit("orders", partition, 5, topic_id=ORDERS)]
    transaction = AppendInTransaction(PRODUCER, 0, NOT_REQUIRED)
    requested = {"generation_id": -1, "member_id": "", "group_instance_id": None, **who}
    request = CommitRequest(CONSUMERS, commits=commits, transaction=transaction, **requested)
    try:
        consumers.coordinator.commit_offsets(request, pending)
    except KafkaError as refusal:
        return refusal.code
    consumers.log.flush()
    (error,) = pending.answer
    return error


def test_a_consumer_commits_in_its_epoch() -> None:
    """TxnOffsetCommit speaks of generations: it has no word for a stale epoch."""
    consumers = ConsumerBench()
    consumers.join("m1")
    consumers.join("m2")
    consumers.beat("m1", 2)
    consumers.beat("m1", 2, owned={ORDERS: {0, 1}})
    for who, partition, error in (
        ({"member_id": "m1", "generation_id": 3}, 0, ErrorCode.NONE),
        ({"member_id": "m1", "generation_id": 2}, 0, ErrorCode.NONE),
        ({"member_id": "m1", "generation_id": 2}, 3, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "m1", "generation_id": 9}, 0, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "nobody", "generation_id": 3}, 0, ErrorCode.UNKNOWN_MEMBER_ID),
        ({}, 0, ErrorCode.NONE),
    ):
        assert commit_as_consumer(consumers, partition, **who) is error, who
    offsets = consumers.group().offsets
    assert offsets.is_pending("orders", 0)
    partition = consumers.group().partition
    consumers.coordinator.complete_transaction(partition, PRODUCER, committed=True)
    position = offsets.get("orders", 0)
    assert position is not None
    assert (position.offset, position.topic_id) == (5, ZERO_UUID)
