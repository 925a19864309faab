"""Groups that change their type with members in them, and what refuses or undoes that."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.consumer_bench import GROUP, ORDERS, partitions
from support.mixed_bench import MixedBench, assignment, subscription
from support.pending import Pending

from odradek.common.errors import ErrorCode
from odradek.coordinator.group.classic.messages import JoinAnswer, LeavingMember
from odradek.coordinator.group.offset_metadata_manager import CommitRequest, PartitionCommit
from odradek.coordinator.group.offsets import GroupOffsets

EVERYTHING = {"a": {"orders": (0, 1)}, "b": {"orders": (2, 3)}}


@pytest.fixture
def bench() -> MixedBench:
    return MixedBench()


def upgraded(bench: MixedBench) -> dict[str, str]:
    """A stable group of two classic members and one of the consumer protocol, `new`."""
    ids = bench.classic_group(EVERYTHING)
    assert bench.join("new").error is ErrorCode.NONE
    for _ in range(3):
        for member_id in ids.values():
            bench.rejoin(member_id, owned={"orders": owned_by(bench, member_id)})
        new = bench.group().members["new"]
        bench.beat("new", new.member_epoch, owned=partitions(new.assigned_partitions))
    assert bench.state == "Stable"
    return ids


def owned_by(bench: MixedBench, member_id: str) -> set[int]:
    return set(bench.group().members[member_id].assigned_partitions.get(ORDERS, ()))


def commit(bench: MixedBench, member_id: str, epoch: int) -> ErrorCode:
    pending: Pending[Any] = Pending()
    bench.coordinator.commit_offsets(
        CommitRequest(GROUP, epoch, member_id, None, [PartitionCommit("orders", 0, 42)]), pending
    )
    bench.log.flush()
    (error,) = pending.answer
    return ErrorCode(error)


def committed(bench: MixedBench) -> dict[tuple[str, int], int]:
    found: list[GroupOffsets] = []
    bench.coordinator.fetch_offsets(
        GROUP, lambda _error, offsets: found.append(offsets), require_stable=False
    )
    return {(topic, partition): position.offset for topic, partition, position in found[0]}


# -- upgrade ---------------------------------------------------------------------------------


def test_the_first_member_of_the_consumer_protocol_upgrades_the_group(bench: MixedBench) -> None:
    ids = bench.classic_group(EVERYTHING)
    assert bench.kind == "classic"
    answer = bench.join("new")
    assert (answer.error, bench.kind) == (ErrorCode.NONE, "consumer")
    members = bench.group().members
    assert set(members) == {*ids.values(), "new"}
    assert owned_by(bench, ids["a"]) == {0, 1}
    assert members[ids["a"]].client_id == "classic-client"
    assert answer.member_epoch == members[ids["a"]].member_epoch + 1


def test_classic_members_are_called_back_and_give_up_what_the_new_one_gets(
    bench: MixedBench,
) -> None:
    ids = bench.classic_group(EVERYTHING)
    epoch = bench.join("new").member_epoch
    for member_id in ids.values():
        assert bench.classic_beat(member_id, epoch - 1) is ErrorCode.REBALANCE_IN_PROGRESS
    shares = [bench.rejoin(member_id) for member_id in ids.values()]
    assert [generation for generation, _ in shares] == [epoch, epoch]
    new = bench.settle("new")["new"][ORDERS]
    everything = [*shares[0][1]["orders"], *shares[1][1]["orders"], *new]
    assert sorted(everything) == [0, 1, 2, 3]
    assert bench.state == "Stable"
    assert bench.classic_beat(ids["a"], epoch) is ErrorCode.NONE


def test_a_member_that_owns_what_it_must_give_up_is_called_back_until_it_has(
    bench: MixedBench,
) -> None:
    ids = bench.classic_group({"a": {"orders": (0, 1, 2, 3)}})
    epoch = bench.join("new").member_epoch
    kept, share = bench.rejoin(ids["a"], owned={"orders": (0, 1, 2, 3)})
    assert kept == epoch - 1, "it keeps its generation until it has given up"
    assert len(share["orders"]) == 2
    assert bench.classic_beat(ids["a"], kept) is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.rejoin(ids["a"], owned=share) == (epoch, share)
    assert bench.classic_beat(ids["a"], epoch) is ErrorCode.NONE
    assert bench.settle("new")["new"][ORDERS] == {0, 1, 2, 3} - share["orders"]


def test_a_classic_member_waits_for_what_another_has_not_given_up(bench: MixedBench) -> None:
    bench.join("new")
    first = bench.classic_join().answer
    generation, share = bench.rejoin(first.member_id)
    assert share == {}
    assert bench.classic_beat(first.member_id, generation) is ErrorCode.NONE, "nothing is free"
    bench.go_on("new")
    assert bench.classic_beat(first.member_id, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    generation, share = bench.rejoin(first.member_id)
    assert len(share["orders"]) == 2
    assert bench.classic_beat(first.member_id, generation) is ErrorCode.NONE


def test_offsets_outlive_upgrade_and_downgrade(bench: MixedBench) -> None:
    ids = bench.classic_group(EVERYTHING)
    assert commit(bench, ids["a"], 1) is ErrorCode.NONE
    bench.join("new")
    assert committed(bench) == {("orders", 0): 42}
    bench.leave("new")
    assert bench.kind == "classic"
    assert committed(bench) == {("orders", 0): 42}


def test_who_waits_in_a_rebalance_when_the_group_is_upgraded_is_called_back(
    bench: MixedBench,
) -> None:
    ids = bench.classic_group(EVERYTHING)
    waiting = bench.classic_join(ids["a"], topics=("payments",))
    assert waiting.is_waiting
    bench.join("new")
    assert waiting.answer.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_is_refused_leaves_the_classic_group_as_it_is(bench: MixedBench) -> None:
    ids = bench.classic_group(EVERYTHING)
    refused = bench.join("new", None, subscribed_topic_regex="(")
    assert refused.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert (bench.kind, bench.classic_state()) == ("classic", "Stable")
    assert bench.classic_beat(ids["a"], 1) is ErrorCode.NONE
    bench.advance(9_000)
    assert bench.classic_beat(ids["a"], 1) is ErrorCode.NONE


@pytest.mark.parametrize("policy", ["disabled", "downgrade", "DISABLED"])
def test_a_policy_without_upgrade_keeps_new_members_out(policy: str) -> None:
    bench = MixedBench(migration_policy=policy)
    bench.classic_group(EVERYTHING)
    answer = bench.join("new")
    assert answer.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert "online upgrade is disabled" in (answer.error_message or "")
    assert bench.kind == "classic"


def test_a_group_that_is_too_large_is_not_upgraded() -> None:
    bench = MixedBench(max_size=1)
    bench.classic_group(EVERYTHING)
    answer = bench.join("new")
    assert answer.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert "exceeds the consumer group maximum size" in (answer.error_message or "")


def test_a_group_of_something_else_than_consumers_is_not_upgraded(bench: MixedBench) -> None:
    first = bench.classic_join(protocol_type="connect").answer
    bench.classic_join(first.member_id, protocol_type="connect")
    bench.advance(5_000)
    assert bench.join("new").error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_whose_metadata_cannot_be_read_is_not_upgraded(bench: MixedBench) -> None:
    broken = {"range": subscription("orders")[:-30]}
    first = bench.classic_join(protocols=broken).answer
    bench.classic_join(first.member_id, protocols=broken)
    bench.advance(5_000)
    answer = bench.join("new")
    assert answer.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert "consumer protocol is malformed" in (answer.error_message or "")


def test_a_group_whose_assignor_keeps_data_of_its_own_is_not_upgraded(bench: MixedBench) -> None:
    first = bench.classic_join().answer
    joined = bench.classic_join(first.member_id)
    bench.advance(5_000)
    generation_id = joined.answer.generation_id
    given = {first.member_id: assignment({"orders": (0,)}, user_data=b"x")}
    assert bench.classic_sync(first.member_id, generation_id, given).error is ErrorCode.NONE
    answer = bench.join("new")
    assert answer.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert "assignor" in (answer.error_message or "")


def test_what_a_cooperative_member_has_not_given_up_is_its_own_after_an_upgrade(
    bench: MixedBench,
) -> None:
    """Its leader gave 2 and 3 to nobody yet, as the member owned them when it joined."""
    claims = {"range": subscription("orders", owned={"orders": (0, 1, 2, 3)})}
    first = bench.classic_join(protocols=claims).answer
    joined = bench.classic_join(first.member_id, protocols=claims)
    bench.advance(5_000)
    given = {first.member_id: assignment({"orders": (0, 1)})}
    bench.classic_sync(first.member_id, joined.answer.generation_id, given)
    bench.join("new")
    assert owned_by(bench, first.member_id) == {0, 1, 2, 3}
    assert bench.group().members["new"].assigned_partitions == {}
    bench.rejoin(first.member_id, owned={"orders": (0, 1)})
    assert bench.settle("new") == {"new": {ORDERS: {2, 3}}}


def test_an_upgrade_that_could_not_be_stored_leaves_a_classic_group(bench: MixedBench) -> None:
    ids = bench.classic_group(EVERYTHING)
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.join("new").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.log.fail_with = ErrorCode.NONE
    bench.advance(0)
    assert (bench.kind, bench.classic_state()) == ("classic", "Stable")
    assert bench.classic_beat(ids["a"], 1) is ErrorCode.NONE


def kinds(records: Iterable[tuple[bytes | None, bytes | None]]) -> list[str]:
    """The kinds of records, those that delete something with a dash."""
    return [
        f"{int.from_bytes(key[:2], 'big')}{'-' if value is None else ''}"
        for key, value in records
        if key is not None
    ]


def test_both_changes_of_type_are_written_in_kafkas_order(bench: MixedBench, data: Path) -> None:
    """In each of them stand two members: in Kafka's file a downgrade is its first deletion of a
    group's epoch, and an upgrade begins with its first deletion of a classic group."""
    lines = (data / "consumer-group-4.3.1.txt").read_text().splitlines()
    pairs = [line.split() for line in lines if not line.startswith("#")]
    kafkas = kinds(
        (bytes.fromhex(key), None if value == "-" else bytes.fromhex(value)) for key, value in pairs
    )
    bench.classic_group({"a": {"orders": (0, 1, 2, 3)}})
    bench.join("new")
    bench.leave("new")
    batches = bench.log.batches[bench.partition_of()][-2:]
    upgrade, downgrade = (
        kinds((record.key, record.value) for record in batch.records) for batch in batches
    )
    start = kafkas.index("2-")
    assert upgrade == kafkas[start : start + len(upgrade)]
    end = kafkas.index("3-") + 2
    assert downgrade == kafkas[end - len(downgrade) : end]


# -- classic members in a consumer group ---------------------------------------------------------


def test_a_classic_member_is_given_its_id_first(bench: MixedBench) -> None:
    bench.join("new")
    first = bench.classic_join().answer
    assert (first.error, len(first.member_id) > 0) == (ErrorCode.MEMBER_ID_REQUIRED, True)
    assert set(bench.group().members) == {"new"}
    old = bench.classic_join(version=3).answer
    assert (old.error, old.leader, old.members) == (ErrorCode.NONE, "", ())
    assert set(bench.group().members) == {"new", old.member_id}
    assert (old.protocol_type, old.protocol_name) == ("consumer", "range")


def test_a_policy_of_nothing_keeps_classic_members_out_of_consumer_groups() -> None:
    bench = MixedBench(migration_policy="disabled")
    bench.join("new")
    assert bench.classic_join().answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    "reported",
    [
        {"protocol_type": "connect"},
        {"protocols": {}},
        {"protocols": {"roundrobin": subscription("orders")}},
    ],
)
def test_a_classic_member_must_share_a_protocol_with_the_others(
    bench: MixedBench, reported: dict[str, Any]
) -> None:
    bench.join("new")
    bench.classic_join(version=3)
    answer = bench.classic_join(version=3, **reported).answer
    assert answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_consumer_group_takes_no_classic_member() -> None:
    bench = MixedBench(max_size=1)
    bench.join("new")
    assert bench.classic_join(version=3).answer.error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_subscription_that_cannot_be_read_is_refused(bench: MixedBench) -> None:
    bench.join("new")
    answer = bench.classic_join(version=3, protocols={"range": b"\x00"}).answer
    assert answer.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert set(bench.group().members) == {"new"}


def test_sync_and_heartbeat_need_the_right_member_generation_and_protocol(
    bench: MixedBench,
) -> None:
    ids = upgraded(bench)
    member_id, epoch = ids["a"], bench.group().epoch
    assert bench.classic_sync("who", epoch).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.classic_sync("new", epoch).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.classic_sync(member_id, epoch - 1).error is ErrorCode.ILLEGAL_GENERATION
    for reported in ({"protocol_type": "connect"}, {"protocol_name": "sticky"}):
        refused = bench.classic_sync(member_id, epoch, **reported)
        assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.classic_sync(member_id, epoch, instance="i").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.classic_beat("who", epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.classic_beat("new", epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.classic_beat(member_id, epoch + 1) is ErrorCode.ILLEGAL_GENERATION
    assert bench.classic_beat(member_id, epoch) is ErrorCode.NONE


def test_sync_calls_back_a_member_that_the_group_has_left_behind(bench: MixedBench) -> None:
    ids = upgraded(bench)
    epoch = bench.group().epoch
    bench.join("newer")
    assert bench.classic_sync(ids["a"], epoch).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_classic_member_commits_in_its_generation(bench: MixedBench) -> None:
    ids = upgraded(bench)
    epoch = bench.group().epoch
    assert commit(bench, ids["a"], epoch) is ErrorCode.NONE
    assert commit_error(bench, ids["a"], epoch + 1) is ErrorCode.ILLEGAL_GENERATION


def commit_error(bench: MixedBench, member_id: str, epoch: int) -> ErrorCode:
    from odradek.common.errors import KafkaError

    with pytest.raises(KafkaError) as refusal:
        commit(bench, member_id, epoch)
    return refusal.value.code


def test_a_classic_member_that_stays_silent_is_given_up(bench: MixedBench) -> None:
    ids = upgraded(bench)
    bench.advance(9_000)
    epoch = bench.group().epoch
    bench.classic_beat(ids["a"], epoch)
    bench.beat("new", epoch)
    bench.advance(2_000)
    assert set(bench.group().members) == {ids["a"], "new"}, "its session is its own 10 s"


def test_a_classic_member_that_is_called_back_and_does_not_join_is_given_up(
    bench: MixedBench,
) -> None:
    ids = upgraded(bench)
    epoch = bench.group().epoch
    bench.join("newer")
    for _ in range(9):
        assert bench.classic_beat(ids["a"], epoch) is ErrorCode.REBALANCE_IN_PROGRESS
        bench.classic_beat(ids["b"], epoch)
        bench.go_on("new")
        bench.go_on("newer")
        bench.advance(7_000)
    assert ids["a"] not in bench.group().members


def test_a_classic_member_that_joins_and_does_not_sync_is_given_up(bench: MixedBench) -> None:
    bench.join("new")
    answer = bench.classic_join(version=3).answer
    for _ in range(9):
        assert answer.member_id in bench.group().members
        bench.classic_beat(answer.member_id, answer.generation_id)
        bench.go_on("new")
        bench.advance(7_000)
    assert set(bench.group().members) == {"new"}


def test_classic_members_leave_a_consumer_group(bench: MixedBench) -> None:
    ids = upgraded(bench)
    assert bench.classic_leave(ids["a"], "who") == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert set(bench.group().members) == {ids["b"], "new"}
    assert bench.kind == "consumer"


def test_a_static_classic_member_that_comes_back_keeps_its_share(bench: MixedBench) -> None:
    bench.join("new")
    first = bench.classic_join(instance="i").answer
    assert first.error is ErrorCode.NONE, "a static member needs no id first"
    bench.classic_sync(first.member_id, first.generation_id, instance="i")
    bench.go_on("new")
    _, share = bench.rejoin_static(first.member_id, "i")
    again = bench.classic_join(instance="i").answer
    assert again.member_id != first.member_id
    synced = bench.classic_sync(again.member_id, again.generation_id, instance="i")
    assert synced.error is ErrorCode.NONE
    assert owned_by(bench, again.member_id) == share["orders"]
    fenced = bench.classic_beat(first.member_id, again.generation_id, "i")
    assert fenced is ErrorCode.FENCED_INSTANCE_ID


def test_a_member_may_go_over_to_the_consumer_protocol_by_its_instance_id(
    bench: MixedBench,
) -> None:
    bench.join("new")
    first = bench.classic_join(instance="i").answer
    answer = bench.join("over", instance_id="i")
    assert answer.error is ErrorCode.NONE
    member = bench.group().members["over"]
    assert not member.uses_classic_protocol
    assert first.member_id not in bench.group().members


def test_mixed_groups_are_loaded_as_they_were(bench: MixedBench) -> None:
    ids = upgraded(bench)
    before = bench.group().image()
    epoch = bench.group().epoch
    bench.restart()
    after = bench.group().image()
    assert after == before._replace(state=after.state)
    assert bench.classic_beat(ids["a"], epoch) is ErrorCode.NONE
    assert bench.beat("new", epoch).error is ErrorCode.NONE
    bench.advance(11_000)
    assert set(bench.group().members) == {"new"}, "classic sessions go on with their time-outs"


# -- downgrade -------------------------------------------------------------------------------


def test_the_last_member_of_the_consumer_protocol_takes_the_type_with_it(
    bench: MixedBench,
) -> None:
    ids = upgraded(bench)
    epoch = bench.group().epoch
    assert bench.leave("new").error is ErrorCode.NONE
    assert (bench.kind, bench.classic_state()) == ("classic", "PreparingRebalance")
    for member_id in ids.values():
        assert bench.classic_beat(member_id, epoch) is ErrorCode.REBALANCE_IN_PROGRESS
    joins = [bench.classic_join(member_id) for member_id in ids.values()]
    assert {pending.answer.generation_id for pending in joins} == {epoch + 1}
    assert {pending.answer.leader for pending in joins} <= set(ids.values())


def test_a_downgraded_group_is_loaded_as_a_classic_one(bench: MixedBench) -> None:
    ids = upgraded(bench)
    epoch = bench.group().epoch
    shares = {member_id: owned_by(bench, member_id) for member_id in ids.values()}
    bench.leave("new")
    bench.restart()
    assert (bench.kind, bench.classic_state()) == ("classic", "Stable")
    assert bench.coordinator.consumer_groups == []
    for member_id in ids.values():
        synced = bench.classic_sync(member_id, epoch)
        assert synced.error is ErrorCode.NONE
        assert (
            synced.assignment
            == assignment({"orders": sorted(shares[member_id])})[:0] + synced.assignment
        )


def test_an_upgrade_within_the_downgrades_rebalance_gives_nothing_twice(bench: MixedBench) -> None:
    (member_id,) = bench.classic_group({"a": {"orders": (0, 1, 2, 3)}}).values()
    bench.join("new")
    bench.leave("new")
    assert (bench.kind, bench.classic_state()) == ("classic", "PreparingRebalance")
    bench.join("newer")
    assert owned_by(bench, member_id) == {0, 1, 2, 3}, "it was never told to give anything up"
    assert bench.group().members["newer"].assigned_partitions == {}


def test_a_member_whose_session_ends_may_be_the_last_of_the_consumer_protocol(
    bench: MixedBench,
) -> None:
    ids = upgraded(bench)
    epoch = bench.group().epoch
    for _ in range(8):
        for member_id in ids.values():
            bench.classic_beat(member_id, epoch)
        bench.advance(6_000)
    assert bench.kind == "classic"


@pytest.mark.parametrize("policy", ["upgrade", "UPGRADE"])
def test_a_policy_without_downgrade_keeps_the_type(policy: str) -> None:
    bench = MixedBench(migration_policy=policy)
    ids = upgraded(bench)
    bench.leave("new")
    assert bench.kind == "consumer"
    assert set(bench.group().members) == set(ids.values())


def test_an_empty_group_is_no_reason_to_downgrade(bench: MixedBench) -> None:
    bench.join("new")
    bench.leave("new")
    assert bench.kind == "consumer"


def test_a_classic_member_that_replaces_the_last_other_one_downgrades_without_a_rebalance(
    bench: MixedBench,
) -> None:
    bench.join("new", instance_id="i")
    classic = bench.classic_join(version=3).answer
    bench.classic_sync(classic.member_id, classic.generation_id)
    bench.go_on("new", "i")
    generation, share = bench.rejoin(classic.member_id)
    kept = owned_by(bench, "new")
    answer = bench.classic_join(instance="i").answer
    assert (bench.kind, bench.classic_state()) == ("classic", "Stable")
    assert answer.generation_id == generation
    synced = bench.classic_sync(answer.member_id, generation, instance="i")
    assert bench.read(synced) == {"orders": kept}
    assert bench.classic_beat(classic.member_id, generation) is ErrorCode.NONE
    assert kept | share["orders"] == {0, 1, 2, 3}


def test_a_downgrade_that_could_not_be_stored_leaves_a_consumer_group(bench: MixedBench) -> None:
    ids = upgraded(bench)
    epoch = bench.group().epoch
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.leave("new").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.log.fail_with = ErrorCode.NONE
    bench.advance(0)
    assert bench.kind == "consumer"
    assert set(bench.group().members) == {*ids.values(), "new"}
    assert bench.beat("new", epoch).error is ErrorCode.NONE


def test_members_that_an_administrator_sends_away_may_be_the_last_ones(bench: MixedBench) -> None:
    bench.join("new", instance_id="i")
    bench.classic_join(version=3)
    assert bench.classic_leave(LeavingMember("", "i")) == [ErrorCode.NONE]
    assert bench.kind == "classic"


def test_a_classic_joiner_of_a_group_without_members_makes_it_classic(bench: MixedBench) -> None:
    bench.join("new")
    bench.leave("new")
    first = bench.classic_join().answer
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    joined: Pending[JoinAnswer] = bench.classic_join(first.member_id)
    bench.advance(5_000)
    assert joined.answer.error is ErrorCode.NONE
    assert bench.kind == "classic"
