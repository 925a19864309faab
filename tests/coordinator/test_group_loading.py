from pathlib import Path

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.records import StoredGroup, StoredMember
from odradek.coordinator.group.shards import restore_group
from odradek.protocol.errors import ProtocolError
from odradek.protocol.records.batch import iter_batches
from odradek.protocol.records.records import iter_records
from odradek.runtime import long_work
from odradek.runtime.steps import ITEMS_AT_LEAST, run_at_once

RECORDS = 3 * ITEMS_AT_LEAST


def test_a_restart_finds_generation_members_assignment_and_offsets_again(bench) -> None:
    generation_id, (leader, follower) = bench.stable_group(2)
    known = {"member_id": leader, "generation_id": generation_id}
    bench.commit(("orders", 0, 5), **known)
    before = bench.coordinator.describe_group("group")
    bench.restart()
    assert bench.coordinator.describe_group("group") == before
    assert bench.offsets() == {("orders", 0): 5}
    assert bench.group().leader_id == leader
    assert bench.heartbeat(follower, generation_id) is ErrorCode.NONE
    assert bench.sync(follower, generation_id).answer.assignment == follower.encode()
    assert bench.group().subscribed_topics == {"orders"}


def test_members_that_are_gone_after_a_restart_lose_their_sessions(bench) -> None:
    bench.stable_group(2, session_timeout_ms=10_000)
    bench.restart()
    bench.advance(9_999)
    assert bench.state() == "Stable"
    bench.advance(60_001)
    assert bench.state() == "Empty"


def test_the_generation_goes_on_counting_after_a_restart(bench) -> None:
    generation_id, (member,) = bench.stable_group(1)
    bench.restart()
    assert bench.join(member).answer.generation_id == generation_id + 1


def test_a_rebalance_that_was_under_way_begins_anew_from_the_last_assignment(bench) -> None:
    generation_id, (leader, follower) = bench.stable_group(2)
    bench.join(leader)
    bench.restart()
    assert bench.state() == "Stable"
    assert bench.heartbeat(follower, generation_id) is ErrorCode.NONE


def test_what_a_kafka_broker_wrote_is_taken_over(bench, data: Path) -> None:
    # A static member of golden-group committed and was given up; see the data's records.
    name = "consumer-offsets-49-of-50.log"
    partition = bench.coordinator.partition_for("golden-group")
    for batch in iter_batches((data / name).read_bytes()):
        bench.log.put(partition, [(record.key, record.value) for record in iter_records(batch)])
    bench.restart()
    group = bench.group("golden-group")
    assert (group.state.value, group.generation_id) == ("Empty", 2)
    assert bench.offsets("golden-group") == {("golden", 0): 5, ("golden", 1): 0}
    position = group.offsets.get("golden", 0)
    assert (position.leader_epoch, position.metadata) == (3, "some métadata")


def test_a_member_of_a_group_that_kafka_left_behind_is_known(bench, data: Path) -> None:
    partition = bench.coordinator.partition_for("golden-group")
    batches = list(iter_batches((data / "consumer-offsets-49-of-50.log").read_bytes()))
    for batch in batches[:2]:
        bench.log.put(partition, [(record.key, record.value) for record in iter_records(batch)])
    bench.restart()
    described = bench.coordinator.describe_group("golden-group")
    assert (described.state, described.protocol_name) == ("Stable", "range")
    (member,) = described.members
    assert member.group_instance_id == "instance-1"
    assert member.client_host == "/127.0.0.1"
    assert bench.group("golden-group").subscribed_topics == {"golden"}
    assert bench.heartbeat(member.member_id, 1, group_id="golden-group", instance="instance-1") == 0


def test_a_record_that_cannot_be_read_does_not_hide_the_others(bench) -> None:
    bench.commit(("orders", 0, 5))
    partition = bench.group().partition
    bench.log.put(partition, [(b"\x00\x01\x00\x40", b"x"), (None, b"x"), (b"", b"")])
    bench.commit(("orders", 1, 6))
    bench.restart()
    assert bench.offsets() == {("orders", 0): 5, ("orders", 1): 6}


# -- who coordinates ------------------------------------------------------------------------


def test_groups_of_partitions_that_are_led_elsewhere_are_not_coordinated_here(bench) -> None:
    bench.stable_group(1)
    partition = bench.group().partition
    bench.log.led.discard(partition)
    bench.coordinator.note_leadership(partition, 1, is_leader=False)
    for ask in (
        lambda: bench.join(),
        lambda: bench.sync("m", 1),
        lambda: bench.leave("m"),
        lambda: bench.commit(("orders", 0, 1)),
        lambda: bench.offsets(),
        lambda: bench.coordinator.describe_group("group"),
        lambda: run_at_once(bench.coordinator.delete_group("group", print)),
        lambda: bench.coordinator.delete_offsets("group", [("orders", 0)], print),
    ):
        with pytest.raises(KafkaError) as refusal:
            ask()
        assert refusal.value.code is ErrorCode.NOT_COORDINATOR
    assert bench.heartbeat("m", 1) is ErrorCode.NOT_COORDINATOR
    assert run_at_once(bench.coordinator.list_groups((), ())) == []


def test_who_waits_is_answered_when_another_broker_takes_over(bench) -> None:
    bench.new_member(group_id="joining")
    first = bench.join("", group_id="joining", version=3)
    _, joined = bench.new_member()
    follower, _ = bench.new_member()
    bench.advance_until_answered(joined)
    syncing = bench.sync(follower, 1)
    bench.coordinator.close()
    assert syncing.answer.error is ErrorCode.NOT_COORDINATOR
    assert first.answer.error in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR)
    assert bench.timers.next_deadline_ms() is None


def test_a_join_that_waits_is_answered_when_another_broker_takes_over(bench) -> None:
    _, joined = bench.new_member()
    bench.coordinator.note_leadership(bench.group().partition, 1, is_leader=False)
    assert joined.answer.error is ErrorCode.NOT_COORDINATOR


def test_a_commit_on_its_way_when_another_broker_takes_over_is_not_lost_silently(bench) -> None:
    bench.commit(("orders", 0, 5))
    partition = bench.group().partition
    bench.log.led.discard(partition)
    pending = bench.commit(("orders", 0, 6))
    bench.coordinator.note_leadership(partition, 1, is_leader=False)
    assert pending.answer == [ErrorCode.NOT_COORDINATOR]


def test_coming_back_loads_what_was_written_elsewhere_meanwhile(bench) -> None:
    bench.commit(("orders", 0, 5))
    partition = bench.group().partition
    bench.coordinator.note_leadership(partition, 1, is_leader=False)
    other = bench.log.batches[partition][-1].records[0]
    bench.log.put(partition, [(other.key, other.value)])
    bench.coordinator.note_leadership(partition, 2, is_leader=True)
    assert bench.offsets() == {("orders", 0): 5}
    assert bench.group().offsets.get("orders", 0).appended_at.offset == 1


def test_hearing_of_a_leadership_twice_changes_nothing(bench) -> None:
    generation_id, (member,) = bench.stable_group(1)
    bench.coordinator.note_leadership(bench.group().partition, 5, is_leader=True)
    assert bench.heartbeat(member, generation_id) is ErrorCode.NONE


@pytest.fixture
def shortest_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)


@pytest.mark.usefixtures("shortest_steps")
def test_a_long_log_is_loaded_in_steps_and_its_groups_wait_for_the_last(bench) -> None:
    metadata = "x" * 4_000
    partition = bench.coordinator.partition_for("group")
    for number in range(RECORDS):
        bench.commit(("orders", number, number, -1, metadata))
    expected = bench.offsets()
    bench.coordinator.note_leadership(partition, 1, is_leader=False)
    bench.coordinator.note_leadership(partition, 2, is_leader=True)
    turns = 0
    while bench.coordinator._shards.is_loading:
        with pytest.raises(KafkaError) as refusal:
            bench.offsets()
        assert refusal.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(KafkaError):
            run_at_once(bench.coordinator.list_groups((), ()))
        assert bench.heartbeat("m", 1) is ErrorCode.NONE
        bench.timers.run_due(bench.clock.monotonic_ms())
        turns += 1
    assert turns >= 2
    assert bench.offsets() == expected
    assert bench.heartbeat("m", 1) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.usefixtures("shortest_steps")
def test_a_partition_that_is_lost_while_it_is_loaded_is_given_up(bench) -> None:
    partition = bench.coordinator.partition_for("group")
    for number in range(RECORDS):
        bench.commit(("orders", number, number, -1, "x" * 4_000))
    bench.coordinator.note_leadership(partition, 1, is_leader=False)
    bench.coordinator.note_leadership(partition, 2, is_leader=True)
    bench.log.led.discard(partition)
    bench.timers.run_due(bench.clock.monotonic_ms())
    with pytest.raises(KafkaError) as refusal:
        bench.offsets()
    assert refusal.value.code is ErrorCode.NOT_COORDINATOR


def test_the_leader_that_a_record_names_leads_on() -> None:
    members = (MEMBER, MEMBER._replace(member_id="n", group_instance_id=None))
    group = ClassicGroup("g", 0, 0)
    restore_group(group, StoredGroup("consumer", 1, "range", "n", 0, members))
    assert group.leader_id == "n"
    group = ClassicGroup("g", 0, 0)
    restore_group(group, StoredGroup("consumer", 1, "range", "nobody", 0, members))
    assert group.leader_id == "m"


MEMBER = StoredMember("m", "i", "c", "h", 1, 1, b"", b"")


@pytest.mark.parametrize(
    ("protocol", "members"),
    [
        (None, (MEMBER,)),
        ("range", (MEMBER, MEMBER)),
        ("range", (MEMBER, MEMBER._replace(member_id="n"))),
    ],
)
def test_a_group_record_that_contradicts_itself_is_refused(
    protocol: str | None, members: tuple[StoredMember, ...]
) -> None:
    with pytest.raises(ProtocolError):
        restore_group(
            ClassicGroup("g", 0, 0), StoredGroup("consumer", 1, protocol, "m", 0, members)
        )
