"""Members of share groups: epochs, assignments, sessions, and what another broker finds."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.consumer_bench import GROUP, ORDERS, PAYMENTS, Topics
from support.memory_log import PARTITIONS, MemoryLog

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.assignor.assignor import GroupSpec, MemberSpec
from odradek.coordinator.group.assignor.simple import SimpleAssignor
from odradek.coordinator.group.classic.messages import JoinRequest, MemberProtocol
from odradek.coordinator.group.consumer.settings import ConsumerGroupSettings
from odradek.coordinator.group.coordinator import GroupCoordinator
from odradek.coordinator.group.records import NAMES_AT_ONCE
from odradek.coordinator.group.runtime import GroupRuntime
from odradek.coordinator.group.settings import GroupSettings
from odradek.coordinator.group.share.settings import ShareGroupSettings
from odradek.coordinator.group.share.share_group import SharedTopic
from odradek.coordinator.group.share.share_groups import ShareHeartbeat, ShareHeartbeatAnswer
from odradek.coordinator.group.share.share_partitions import PartitionAnswers
from odradek.coordinator.share.operations import (
    DeleteState,
    InitializeState,
    Operation,
    StateAnswer,
    StateCallback,
)
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.runtime.timers import Timers


class Persister:
    """Begins every share partition at once, unless it is to fail.

    Attributes:
        operations: what was requested.
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.error = ErrorCode.NONE

    def submit(self, operation: Operation, respond: StateCallback) -> None:
        self.operations.append(operation)
        respond(StateAnswer(self.error))


class Bench:
    """A group coordinator on a log in memory; every call flushes what it appended."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.clock = ManualClock(1_700_000_000_000)
        self.topics = Topics()
        self.topics.put("orders", ORDERS, 4)
        self.topics.put("payments", PAYMENTS, 2)
        self.persister = Persister()
        self.restart()

    def restart(self) -> None:
        """A new broker on the same log."""
        self.timers = Timers()
        runtime = GroupRuntime(GroupSettings(), self.clock, self.timers, random.Random(3), self.log)
        self.coordinator = GroupCoordinator(
            runtime,
            lambda: PARTITIONS,
            lambda: self.topics,
            ConsumerGroupSettings(),
            None,
            ShareGroupSettings(max_size=3, assignment_interval_ms=0),
            self.persister,
        )
        for partition in range(PARTITIONS):
            self.coordinator.note_leadership(partition, 0, is_leader=True)
        self.advance(0)

    def advance(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.timers.run_due(self.clock.monotonic_ms())
        self.log.flush()

    def beat(
        self, member_id: str, epoch: int, *topics: str, rack: str | None = None
    ) -> ShareHeartbeatAnswer:
        answers: list[ShareHeartbeatAnswer] = []
        names = frozenset(topics) or None
        try:
            run_at_once(
                self.coordinator.share.heartbeat(
                    ShareHeartbeat(GROUP, member_id, epoch, rack, names), answers.append
                )
            )
        except KafkaError as refusal:
            return ShareHeartbeatAnswer(refusal.code)
        self.log.flush()
        (answer,) = answers
        return answer

    def joined(self, member_id: str, *topics: str) -> ShareHeartbeatAnswer:
        """The answer that tells a new member what it reads."""
        first = self.beat(member_id, 0, *topics)
        assert first.error is ErrorCode.NONE
        return self.beat(member_id, first.member_epoch)

    def settle(self) -> None:
        """Flush until what is stored leads to no other write: each verb takes two or three."""
        for _ in range(3):
            self.log.flush()

    def alter(self, offsets: dict[tuple[bytes, int], int]) -> PartitionAnswers:
        """Have the group begin there; the answers of all partitions."""
        answers: list[PartitionAnswers] = []
        names = {ORDERS: "orders", PAYMENTS: "payments"}
        self.coordinator.share.alter_offsets(GROUP, offsets, names, answers.append)
        self.settle()
        (answer,) = answers
        return answer

    def forget(self, topic_id: bytes) -> ErrorCode:
        """Have the group forget a topic."""
        errors: list[ErrorCode] = []
        group = self.coordinator.share.find(GROUP)
        self.coordinator.share.partitions.forget_topics(group, [topic_id], errors.append)
        self.settle()
        (error,) = errors
        return error

    def delete(self) -> ErrorCode:
        errors: list[ErrorCode] = []
        run_at_once(self.coordinator.delete_group(GROUP, errors.append))
        self.settle()
        (error,) = errors
        return error


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_member_reads_what_the_share_coordinator_has_begun(bench: Bench) -> None:
    first = bench.beat("m1", 0, "orders", "missing")
    assert (first.member_epoch, first.assignment) == (2, {})
    assert {each.key[1:] for each in bench.persister.operations} == {
        (ORDERS, number) for number in range(4)
    }

    second = bench.beat("m1", 2)

    assert (second.member_epoch, second.assignment) == (3, {ORDERS: {0, 1, 2, 3}})
    assert bench.beat("m1", 3).assignment is None


def test_what_could_not_be_begun_is_tried_again(bench: Bench) -> None:
    bench.persister.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.joined("m1", "payments").assignment is None
    assert len(bench.persister.operations) == 2
    bench.persister.error = ErrorCode.NONE

    bench.advance(30_000)

    assert bench.beat("m1", 2).error is ErrorCode.NONE
    assert len(bench.persister.operations) == 4
    assert bench.beat("m1", 2).assignment == {PAYMENTS: {0, 1}}


def test_a_new_partition_is_begun_and_assigned(bench: Bench) -> None:
    epoch = bench.joined("m1", "payments").member_epoch
    bench.topics.put("payments", PAYMENTS, 3)
    bench.coordinator.topics_changed(frozenset({"payments"}), has_new=False)

    epoch = bench.beat("m1", epoch).member_epoch

    assert bench.beat("m1", epoch).assignment == {PAYMENTS: {0, 1, 2}}


def test_more_members_than_partitions_share_them(bench: Bench) -> None:
    bench.topics.put("one", b"1" * 16, 1)
    epochs = {each: bench.joined(each, "one").member_epoch for each in ("m1", "m2", "m3")}
    for member_id in ("m1", "m2"):
        epochs[member_id] = bench.beat(member_id, epochs[member_id]).member_epoch

    group = bench.coordinator.share_groups[0]

    assigned = [member.assigned for member in group.members.values()]
    assert assigned == [{b"1" * 16: {0}}] * 3
    assert bench.beat("m4", 0, "one").error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_silent_members_are_fenced_and_may_come_again(bench: Bench) -> None:
    epoch = bench.joined("m1", "orders").member_epoch
    bench.advance(30_000)
    assert bench.beat("m1", epoch).error is ErrorCode.NONE
    bench.advance(44_000)
    assert bench.coordinator.share.describe(GROUP).state == "Stable"

    bench.advance(2_000)

    assert bench.beat("m1", epoch).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.coordinator.share.describe(GROUP).state == "Empty"
    assert bench.beat("m1", 0, "orders").error is ErrorCode.NONE


def test_epochs_are_checked(bench: Bench) -> None:
    assert bench.beat("m1", 3).error is ErrorCode.GROUP_ID_NOT_FOUND
    epoch = bench.joined("m1", "orders").member_epoch
    assert bench.beat("m1", epoch - 1).error is ErrorCode.NONE
    assert bench.beat("m1", epoch + 1).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.beat("m2", epoch).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.beat("", 0, "orders").error is ErrorCode.INVALID_REQUEST
    assert bench.beat("m3", 0).error is ErrorCode.INVALID_REQUEST
    assert bench.beat("m1", -2).error is ErrorCode.INVALID_REQUEST


def test_another_broker_finds_all_of_the_group(bench: Bench) -> None:
    epoch = bench.joined("m1", "orders", "payments").member_epoch
    assert bench.beat("m1", epoch, rack="rack-a").member_epoch == epoch
    before = bench.coordinator.share_groups[0].image()

    bench.restart()

    (group,) = bench.coordinator.share_groups
    assert group.image() == before
    assert bench.beat("m1", epoch).error is ErrorCode.NONE
    (described,) = bench.coordinator.share.describe(GROUP).members
    assert described.member.rack_id == "rack-a", "a heartbeat without one keeps it"
    assert bench.beat("m1", epoch, rack="rack-b").error is ErrorCode.NONE
    (described,) = bench.coordinator.share.describe(GROUP).members
    assert described.member.rack_id == "rack-b"
    assert bench.beat("m1", epoch, rack="").error is ErrorCode.INVALID_REQUEST
    assert len(bench.persister.operations) == 6, "nothing is begun twice"


def test_what_was_encoded_of_a_member_is_stored_if_it_is_still_so(bench: Bench) -> None:
    for changes_meanwhile in (False, True):
        many = frozenset(f"{changes_meanwhile}-{number}" for number in range(2 * NAMES_AT_ONCE))
        epoch = bench.beat("m1", 0, "orders").member_epoch
        request = ShareHeartbeat(GROUP, "m1", epoch, None, many)
        work = bench.coordinator.share.heartbeat(request, lambda answer: None)
        for _ in range(3 * NAMES_AT_ONCE):  # on its way: nothing has changed yet
            next(work)
        assert bench.coordinator.share.find(GROUP).subscribed_topics == {"orders"}
        if changes_meanwhile:
            assert bench.beat("m1", epoch, rack="rack-b").error is ErrorCode.NONE
        run_at_once(work)
        bench.settle()

        bench.restart()

        (member,) = bench.coordinator.share.find(GROUP).members.values()
        assert member.subscribed_topic_names == many
        assert member.rack_id == ("rack-b" if changes_meanwhile else None)


def test_a_refused_write_leaves_nothing_behind(bench: Bench) -> None:
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.beat("m1", 0, "orders").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.coordinator.share_groups == []
    bench.log.fail_with = ErrorCode.NONE
    assert bench.beat("m1", 0, "orders").member_epoch == 2


def test_a_write_that_fails_when_another_broker_has_the_group_is_answered(bench: Bench) -> None:
    bench.joined("m1", "orders")
    group = bench.coordinator.share.find(GROUP)
    bench.log.is_held = True
    answers: list[ShareHeartbeatAnswer] = []
    request = ShareHeartbeat(GROUP, "m2", 0, None, frozenset({"orders"}))
    run_at_once(bench.coordinator.share.heartbeat(request, answers.append))
    for partition in range(PARTITIONS):
        bench.coordinator.note_leadership(partition, 1, is_leader=False)
    bench.advance(0)

    for on_complete, _, _ in bench.log.take_waiting():
        on_complete(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    assert [answer.error for answer in answers] == [ErrorCode.NOT_COORDINATOR]
    assert group.is_dead


def test_a_group_is_deleted_with_what_it_has_read(bench: Bench) -> None:
    epoch = bench.joined("m1", "payments").member_epoch
    assert bench.beat("m1", epoch).error is ErrorCode.NONE
    with pytest.raises(KafkaError) as refused:
        bench.delete()
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    assert bench.beat("m1", -1).member_epoch == -1

    assert bench.delete() is ErrorCode.NONE

    deleted = [each.key for each in bench.persister.operations if isinstance(each, DeleteState)]
    assert {key[1:] for key in deleted} == {(PAYMENTS, 0), (PAYMENTS, 1)}
    bench.restart()
    assert bench.coordinator.share_groups == []


def test_a_group_is_deleted_though_its_topic_was_deleted_before(bench: Bench) -> None:
    bench.persister.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.beat("m1", 0, "payments").error is ErrorCode.NONE
    assert bench.beat("m1", -1).error is ErrorCode.NONE
    bench.persister.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    assert bench.delete() is ErrorCode.NONE
    assert bench.coordinator.share_groups == []


def test_groups_of_other_types_keep_out(bench: Bench) -> None:
    bench.joined("m1", "orders")
    request = JoinRequest(
        group_id=GROUP,
        member_id="",
        group_instance_id=None,
        client_id="client",
        client_host="/127.0.0.1",
        protocol_type="consumer",
        protocols=(MemberProtocol("range", b""),),
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
    )
    with pytest.raises(KafkaError) as refused:
        bench.coordinator.join_group(request, lambda _: None)
    assert refused.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    listed = run_at_once(bench.coordinator.list_groups([], ["share"]))
    assert [(each.group_id, each.group_type, each.state) for each in listed] == [
        (GROUP, "share", "Stable")
    ]


def test_offsets_are_altered_while_nobody_reads(bench: Bench) -> None:
    bench.joined("m1", "payments")
    group = bench.coordinator.share_groups[0]
    epoch = group.now.epoch
    with pytest.raises(KafkaError):
        bench.alter({(PAYMENTS, 0): 7})
    bench.beat("m1", -1)

    assert bench.alter({(PAYMENTS, 0): 7}) == {(PAYMENTS, 0): StateAnswer()}

    last = bench.persister.operations[-1]
    assert last == InitializeState(last.key, epoch + 1, 7), "the member has left since"


def test_a_group_comes_to_be_with_the_offsets_that_it_is_given(bench: Bench) -> None:
    bench.persister.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    refused = StateAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.alter({(PAYMENTS, 0): 7}) == {(PAYMENTS, 0): refused}
    bench.persister.error = ErrorCode.NONE

    assert bench.alter({(PAYMENTS, 1): 8}) == {(PAYMENTS, 1): StateAnswer()}

    bench.restart()
    (group,) = bench.coordinator.share_groups
    assert group.now.initialized == {PAYMENTS: SharedTopic("payments", frozenset({1}))}
    assert bench.delete() is ErrorCode.NONE
    assert bench.coordinator.share_groups == []


def test_nobody_is_made_a_group_by_no_offsets(bench: Bench) -> None:
    assert bench.alter({}) == {}
    assert bench.coordinator.share_groups == []


def test_topics_that_could_not_be_forgotten_are_forgotten_later(bench: Bench) -> None:
    bench.alter({(ORDERS, 0): 1, (PAYMENTS, 1): 2})
    bench.persister.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.forget(PAYMENTS) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.restart()
    bench.persister.error = ErrorCode.NONE
    (group,) = bench.coordinator.share_groups
    assert group.now.initialized.keys() == {ORDERS}

    assert bench.forget(PAYMENTS) is ErrorCode.NONE

    deleted = [each.key[1:] for each in bench.persister.operations if isinstance(each, DeleteState)]
    assert deleted == [(PAYMENTS, 1), (PAYMENTS, 0), (PAYMENTS, 1)]
    bench.restart()
    (group,) = bench.coordinator.share_groups
    assert group.now.initialized.keys() == {ORDERS}
    assert group.now.deleting == {}


# -- the assignor -------------------------------------------------------------------------------


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=3),
        st.sets(st.sampled_from([ORDERS, PAYMENTS]), min_size=1),
        min_size=1,
        max_size=9,
    ),
    st.integers(1, 12),
    st.integers(1, 3),
)
def test_every_partition_is_read_and_every_member_reads(
    subscriptions: dict[str, set[bytes]], orders: int, payments: int
) -> None:
    counts = {ORDERS: orders, PAYMENTS: payments}
    read = set().union(*subscriptions.values())
    spec = GroupSpec({each: MemberSpec(topics) for each, topics in subscriptions.items()})

    targets = SimpleAssignor().assign(spec, {each: counts[each] for each in read})

    assert targets.keys() == subscriptions.keys()
    for member_id, target in targets.items():
        assert target
        assert target.keys() <= subscriptions[member_id]
    assert {
        (topic, number)
        for target in targets.values()
        for topic in target
        for number in target[topic]
    } == {(topic, number) for topic in read for number in range(counts[topic])}
    again = SimpleAssignor().assign(
        GroupSpec({each: MemberSpec(subscriptions[each], targets[each]) for each in subscriptions}),
        {each: counts[each] for each in read},
    )
    assert again == targets or any(len(topics) < len(read) for topics in subscriptions.values())
