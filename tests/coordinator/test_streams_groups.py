"""Members of streams groups: epochs, topics, tasks, sessions, and what another broker finds."""

from __future__ import annotations

from typing import Any

import pytest
from support.consumer_bench import GROUP, Topics
from support.pending import Pending
from support.streams_bench import INTERNAL, WORDS, StreamsBench, owning

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.classic.messages import JoinAnswer, JoinRequest, MemberProtocol
from odradek.coordinator.group.offset_metadata_manager import CommitRequest, PartitionCommit
from odradek.coordinator.group.streams.configured_topology import TASKS_MAX, StatusCode
from odradek.coordinator.group.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatAnswer
from odradek.coordinator.group.streams.member import UserEndpoint
from odradek.coordinator.group.streams.streams_groups import TAGS_AT_ONCE
from odradek.coordinator.group.streams.tasks import Tasks
from odradek.coordinator.group.streams.topology import Topology
from odradek.runtime.steps import Steps, run_at_once

ALL = {"0": frozenset(range(4)), "1": frozenset(range(4))}


@pytest.fixture
def bench() -> StreamsBench:
    """A group whose topics are all there."""
    bench = StreamsBench()
    bench.make_internal_topics()
    return bench


def codes(answer: StreamsHeartbeatAnswer) -> list[StatusCode]:
    return [status.code for status in answer.statuses]


def commit(bench: StreamsBench, member_id: str, epoch: int, partition: int = 0) -> ErrorCode:
    """Commit an offset of "orders"; the error."""
    errors: list[Any] = []
    try:
        bench.coordinator.commit_offsets(
            CommitRequest(GROUP, epoch, member_id, None, [PartitionCommit("orders", partition, 7)]),
            errors.extend,
        )
    except KafkaError as refusal:
        return refusal.code
    bench.log.flush()
    error: ErrorCode = errors[0]
    return error


# -- joining, and what the topology needs ---------------------------------------------------


def test_the_first_member_gets_all_tasks_in_epoch_two_as_in_kafka(bench: StreamsBench) -> None:
    answer = bench.beat("m1", 0)
    assert (answer.error, answer.member_epoch, answer.statuses) == (ErrorCode.NONE, 2, ())
    assert answer.assigned is not None
    assert answer.assigned.without_epochs() == Tasks(ALL)
    assert answer.heartbeat_interval_ms == 5_000
    assert bench.beat("m1", 2).assigned is None
    assert bench.coordinator.streams.describe(GROUP).state == "Stable"


def test_internal_topics_are_named_until_they_are_there() -> None:
    bench = StreamsBench()
    answer = bench.beat("m1", 0)
    assert codes(answer) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert [(topic.name, topic.partitions) for topic in answer.missing_topics] == [
        ("app-changelog", 4),
        ("app-repartition", 4),
    ]
    assert answer.missing_topics[0].configs == (("cleanup.policy", "compact"),)
    assert bench.group.state.value == "NotReady"
    bench.make_internal_topics()
    answer = bench.beat("m1", answer.member_epoch, owned=owning())
    assert answer.statuses == answer.missing_topics == ()
    assert answer.assigned is not None
    assert answer.assigned.without_epochs() == Tasks(ALL)


def test_what_could_not_be_made_is_reported_and_not_tried_for_a_while() -> None:
    bench = StreamsBench()
    epoch = bench.beat("m1", 0).member_epoch
    bench.coordinator.streams.note_creation_failures(GROUP, {"app-changelog": "no room"})
    answer = bench.beat("m1", epoch)
    assert [topic.name for topic in answer.missing_topics] == ["app-repartition"]
    assert answer.creation_failures == (("app-changelog", "no room"),)
    bench.advance(10_000)
    answer = bench.beat("m1", epoch)
    assert {topic.name for topic in answer.missing_topics} == set(INTERNAL)


def test_a_group_without_its_source_waits_for_it(bench: StreamsBench) -> None:
    bench.topics.drop("orders")
    answer = bench.beat("m1", 0)
    assert codes(answer) == [StatusCode.MISSING_SOURCE_TOPICS]
    assert answer.statuses[0].detail == "Source topics orders are missing."
    bench.topics.put("orders", b"n" * 16, 4)
    bench.coordinator.topics_changed(frozenset({"orders"}), True)
    assert bench.settle("m1") == {"m1": Tasks(ALL)}


def test_internal_topics_of_another_size_are_refused(bench: StreamsBench) -> None:
    bench.topics.put("app-changelog", b"d" * 16, 3)
    answer = bench.beat("m1", 0)
    assert codes(answer) == [StatusCode.INCORRECTLY_PARTITIONED_TOPICS]
    assert bench.group.now.targets["m1"] == Tasks()


def test_a_topology_of_more_tasks_than_can_be_assigned_in_time_is_refused(
    bench: StreamsBench,
) -> None:
    source = WORDS.subtopologies["0"]._replace(repartition_sink_topics=())
    ids = map(str, range(TASKS_MAX // 4 + 1))  # "orders" has four partitions
    answer = bench.beat("m1", 0, topology=Topology(0, dict.fromkeys(ids, source)))
    assert answer.error is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert answer.error_message == (
        f"The topology has {TASKS_MAX + 4} tasks; this broker assigns at most {TASKS_MAX}."
    )


class Meanwhile:
    """A heartbeat by which m1 joins, almost taken up: all that is done before is done."""

    def __init__(self, bench: StreamsBench) -> None:
        self.tags = tuple((f"t{number:04}", "value") for number in range(2 * TAGS_AT_ONCE))
        self._bench = bench
        self._pending: Pending[StreamsHeartbeatAnswer] = Pending()
        steps = sum(1 for _ in self._work(StreamsBench()))
        self._left = self._work(bench)
        for _ in range(steps):
            next(self._left)
        assert not bench.coordinator.streams_groups

    def _work(self, bench: StreamsBench) -> Steps[None]:
        nothing: dict[str, frozenset[int]] = {}
        request = StreamsHeartbeat(
            GROUP,
            "m1",
            0,
            rebalance_timeout_ms=1000,
            topology=WORDS,
            active=nothing,
            standby=nothing,
            warmup=nothing,
            process_id="p",
            client_tags=self.tags,
        )
        return bench.coordinator.streams.heartbeat(request, self._pending)

    def end(self) -> StreamsHeartbeatAnswer:
        run_at_once(self._left)
        self._bench.log.flush()
        answer = self._pending.answer
        self._bench.restart()
        return answer


def test_what_was_made_ready_of_a_heartbeat_is_stored() -> None:
    bench = StreamsBench()
    bench.make_internal_topics()
    meanwhile = Meanwhile(bench)
    assert (meanwhile.end().error, bench.group.now.topology) == (ErrorCode.NONE, WORDS)
    assert bench.group.members["m1"].client_tags == meanwhile.tags


def test_topics_that_go_while_a_heartbeat_is_made_ready_are_missing() -> None:
    bench = StreamsBench()
    bench.make_internal_topics()
    meanwhile = Meanwhile(bench)
    bench.topics = Topics()
    answer = meanwhile.end()
    assert (answer.error, codes(answer)) == (ErrorCode.NONE, [StatusCode.MISSING_SOURCE_TOPICS])


def test_who_brings_its_topology_while_another_is_made_ready_is_the_first() -> None:
    bench = StreamsBench()
    bench.make_internal_topics()
    meanwhile = Meanwhile(bench)
    later = WORDS._replace(epoch=1)
    bench.beat("m2", 0, topology=later)
    answer = meanwhile.end()
    assert (answer.error, codes(answer)) == (ErrorCode.NONE, [StatusCode.STALE_TOPOLOGY])
    assert bench.group.now.topology == later
    assert bench.group.members["m1"].client_tags == meanwhile.tags


def test_a_topology_of_a_later_epoch_is_refused_and_of_an_earlier_one_is_stale(
    bench: StreamsBench,
) -> None:
    later = WORDS._replace(epoch=1)
    bench.beat("m1", 0, topology=later)
    answer = bench.beat("m2", 0, topology=WORDS)
    assert (answer.error, codes(answer)) == (ErrorCode.NONE, [StatusCode.STALE_TOPOLOGY])
    refused = bench.beat("m3", 0, topology=Topology(1, {"0": WORDS.subtopologies["0"]}))
    assert refused.error is ErrorCode.INVALID_REQUEST
    assert refused.error_message == "Topology updates are not supported yet."
    assert "m3" not in bench.group.members


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"instance_id": "i"}, "Static membership is not yet supported."),
        ({"has_task_offsets": True}, "TaskOffsets are not supported yet."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"owned": owning(active={"0": {1}})}, "ActiveTasks must be empty when (re-)joining."),
        ({"standby": None}, "StandbyTasks must be empty when (re-)joining."),
        ({"process_id": "x" * 40_000}, "A text is longer than the group's records can hold."),
    ],
)
def test_what_kafka_refuses_of_who_joins(
    bench: StreamsBench, fields: dict[str, Any], message: str
) -> None:
    answer = bench.beat("m1", 0, **fields)
    assert (answer.error, answer.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert bench.coordinator.streams_groups == []


def test_a_group_takes_no_more_members_than_it_may() -> None:
    bench = StreamsBench(max_size=1)
    bench.beat("m1", 0)
    assert bench.beat("m2", 0).error is ErrorCode.GROUP_MAX_SIZE_REACHED


# -- tasks move -----------------------------------------------------------------------------


def test_tasks_move_only_after_they_were_given_up(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    joined = bench.beat("m2", 0)
    assert joined.assigned is not None
    assert joined.assigned.is_empty  # m1 has them still
    reported = bench.beat("m1", 2)
    assert reported.assigned is not None
    kept = reported.assigned.without_epochs()
    assert sum(map(len, kept.active.values())) == 4
    assert bench.beat("m2", 3).assigned is None
    assert bench.beat("m1", 2, owned=kept).member_epoch == 3
    taken = bench.beat("m2", 3).assigned
    assert taken is not None
    for subtopology_id, numbers in ALL.items():
        others = frozenset(taken.active.get(subtopology_id, {}))
        assert kept.active.get(subtopology_id, frozenset()) | others == numbers
        assert kept.active.get(subtopology_id, frozenset()).isdisjoint(others)


def test_standby_tasks_are_in_another_process() -> None:
    bench = StreamsBench(num_standby_replicas=1)
    bench.make_internal_topics()
    bench.beat("m1", 0, process_id="one")
    assert bench.settle("m1")["m1"].standby == {}
    bench.beat("m2", 0, process_id="two")
    tasks = bench.settle("m1", "m2")
    for one, other in (("m1", "m2"), ("m2", "m1")):
        assert tasks[one].standby == {"1": tasks[other].active["1"]}
        assert tasks[one].warmup == {}


def test_who_keeps_tasks_too_long_is_fenced(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    bench.beat("m2", 0)
    bench.beat("m1", 2)
    bench.advance(999)
    bench.beat("m2", 3)
    assert set(bench.group.members) == {"m1", "m2"}
    bench.advance(1)
    assert set(bench.group.members) == {"m2"}
    assert bench.settle("m2") == {"m2": Tasks(ALL)}


def test_who_is_silent_is_fenced(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    bench.advance(44_999)
    assert bench.group.members
    bench.advance(1)
    assert not bench.group.members
    assert bench.beat("m1", 2).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_leaves_leaves_its_tasks(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    bench.beat("m2", 0)
    bench.settle("m1", "m2")
    assert bench.beat("m1", -1).member_epoch == -1
    assert bench.settle("m2") == {"m2": Tasks(ALL)}


def test_only_the_present_epoch_goes_on_or_the_former_with_fewer_tasks(
    bench: StreamsBench,
) -> None:
    bench.beat("m1", 0)
    assert bench.beat("m1", 3).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.beat("m1", 1, owned=owning(active={"0": {1}})).error is (
        ErrorCode.FENCED_MEMBER_EPOCH
    )
    assert bench.beat("m1", 2, owned=owning(active={"9": {1}})).error is ErrorCode.INVALID_REQUEST
    assert bench.beat("m1", 2, owned=owning(active={"0": {4}})).error is ErrorCode.INVALID_REQUEST
    assert bench.beat("m1", 2, owned=owning(active={"0": {3}})).error is ErrorCode.NONE


# -- delays ---------------------------------------------------------------------------------


def test_the_first_assignment_waits_for_more_members() -> None:
    bench = StreamsBench(initial_rebalance_delay_ms=3_000)
    bench.make_internal_topics()
    answer = bench.beat("m1", 0)
    assert (codes(answer), answer.member_epoch) == ([StatusCode.ASSIGNMENT_DELAYED], 1)
    bench.beat("m2", 0)
    bench.advance(3_000)
    tasks = bench.settle("m1", "m2")
    assert [sum(map(len, each.active.values())) for each in tasks.values()] == [4, 4]
    assert bench.group.now.target_epoch == 3  # one assignment for both


def test_an_assignment_stands_for_its_interval() -> None:
    bench = StreamsBench(assignment_interval_ms=1_000)
    bench.make_internal_topics()
    bench.beat("m1", 0)
    assert codes(bench.beat("m2", 0)) == [StatusCode.ASSIGNMENT_DELAYED]
    assert bench.coordinator.streams.describe(GROUP).state == "Assigning"
    bench.advance(1_000)
    assert bench.beat("m2", 2).statuses == ()


def test_a_change_of_standby_replicas_sets_off_an_assignment(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    bench.beat("m2", 0)
    bench.settle("m1", "m2")
    bench.settings = bench.settings._replace(num_standby_replicas=1)
    bench.restart()
    assert all(each.standby for each in bench.settle("m1", "m2").values())


# -- endpoints and the application's end ----------------------------------------------------


def test_members_hear_who_can_be_asked_for_what(bench: StreamsBench) -> None:
    bench.beat("m1", 0, user_endpoint=UserEndpoint("h", 80))
    answer = bench.beat("m1", 2, endpoint_epoch=-1)
    assert answer.endpoints is not None
    ((endpoint, active, standby),) = answer.endpoints
    assert (endpoint, standby) == (UserEndpoint("h", 80), ())
    assert dict(active) == {"orders": (0, 1, 2, 3), "app-repartition": (0, 1, 2, 3)}
    assert bench.beat("m1", 2, endpoint_epoch=answer.endpoint_epoch).endpoints is None


def test_one_member_ends_the_application_for_all(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    bench.beat("m2", 0)
    bench.beat("m1", -1, shutdown_application=True)
    assert codes(bench.beat("m2", 3)) == [StatusCode.SHUTDOWN_APPLICATION]
    bench.beat("m2", -1)
    assert bench.beat("m1", 0).statuses == ()


# -- what is stored -------------------------------------------------------------------------


def test_another_broker_finds_the_group_as_it_was(bench: StreamsBench) -> None:
    bench.beat(
        "m1", 0, rack_id="r", client_tags=(("zone", "a"),), user_endpoint=UserEndpoint("h", 1)
    )
    bench.beat("m2", 0)
    bench.beat("m1", 2)
    before = bench.group.now
    bench.restart()
    assert bench.group.now == before
    assert bench.group.state.value == "Reconciling"
    bench.advance(1_000)  # m1 has its rebalance timeout anew, and no more
    assert set(bench.group.members) == {"m2"}


def test_a_write_that_failed_changed_nothing(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    before = bench.group.now
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.beat("m2", 0).error is not ErrorCode.NONE
    bench.log.fail_with = ErrorCode.NONE
    assert bench.group.now == before
    assert bench.beat("m2", 0).error is ErrorCode.NONE


def test_descriptions_show_what_is_stored(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    bench.log.is_held = True
    bench.send("m2", 0)
    assert [
        each.member.member_id for each in bench.coordinator.streams.describe(GROUP).members
    ] == ["m1"]
    listed = run_at_once(bench.coordinator.list_groups([], ["Streams"]))
    assert [(each.group_id, each.group_type, each.state) for each in listed] == [
        (GROUP, "streams", "Stable")
    ]


# -- offsets --------------------------------------------------------------------------------


def test_members_commit_in_their_epoch(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    assert commit(bench, "m1", 2) is ErrorCode.NONE
    assert commit(bench, "m1", 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(bench, "m1", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(bench, "m9", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(bench, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    bench.beat("m1", -1)
    assert commit(bench, "", -1) is ErrorCode.NONE


def test_a_former_epoch_commits_for_tasks_that_were_there_in_it(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    bench.beat("m2", 0)
    kept = bench.settle("m1", "m2")["m1"].active["0"]
    given_up = next(iter(ALL["0"] - kept))
    assert commit(bench, "m1", 2, next(iter(kept))) is ErrorCode.NONE
    assert commit(bench, "m1", 2, given_up) is ErrorCode.STALE_MEMBER_EPOCH


def test_offsets_outlive_restarts_and_deletion_ends_them(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    commit(bench, "m1", 2)
    bench.restart()
    assert bench.group.offsets.get("orders", 0) is not None
    errors: list[ErrorCode] = []
    with pytest.raises(KafkaError) as refused:
        run_at_once(bench.coordinator.delete_group(GROUP, errors.append))
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    bench.beat("m1", -1)
    run_at_once(bench.coordinator.delete_group(GROUP, errors.append))
    bench.log.flush()
    assert errors == [ErrorCode.NONE]
    bench.restart()
    assert bench.coordinator.streams_groups == bench.coordinator.groups == []


# -- groups of other types ------------------------------------------------------------------


def join_classic(bench: StreamsBench) -> list[JoinAnswer]:
    answers: list[JoinAnswer] = []
    request = JoinRequest(
        GROUP, "", None, "c", "/h", 10_000, 10_000, "consumer", (MemberProtocol("range", b""),)
    )
    bench.coordinator.join_group(request, answers.append)
    bench.log.flush()
    return answers


def test_an_empty_classic_group_becomes_a_streams_group_with_its_offsets(
    bench: StreamsBench,
) -> None:
    assert commit(bench, "", -1) is ErrorCode.NONE
    assert [group.group_id for group in bench.coordinator.groups] == [GROUP]
    bench.beat("m1", 0)
    for _ in range(2):
        assert bench.coordinator.groups == []
        assert bench.group.offsets.get("orders", 0) is not None
        bench.restart()


def test_classic_members_join_only_where_no_streams_member_is(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    commit(bench, "m1", 2)
    with pytest.raises(KafkaError) as refused:
        join_classic(bench)
    assert refused.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    bench.beat("m1", -1)
    join_classic(bench)
    for _ in range(2):
        (classic,) = bench.coordinator.groups
        assert bench.coordinator.streams_groups == []
        assert classic.offsets.get("orders", 0) is not None
        bench.restart()


def test_other_types_of_groups_take_no_streams_members(bench: StreamsBench) -> None:
    bench.beat("m1", 0)
    assert bench.coordinator.describe_group(GROUP).error is ErrorCode.GROUP_ID_NOT_FOUND
    with pytest.raises(KafkaError) as refused:
        bench.coordinator.describe_consumer_group(GROUP)
    assert refused.value.message == f"Group {GROUP} is not a consumer group."
