"""The sticky task assignor, and what topologies come to: for any group that hypothesis makes up."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.consumer_bench import ORDERS, PAYMENTS, Topics

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.consumer.topics import TopicMetadata
from odradek.coordinator.group.streams.configured_topology import StatusCode, configure
from odradek.coordinator.group.streams.task_assignor import (
    AssignedMember,
    AssignedSubtopology,
    assign_tasks,
)
from odradek.coordinator.group.streams.tasks import NOTHING, Tasks
from odradek.coordinator.group.streams.topology import (
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    Topology,
)
from odradek.runtime.steps import run_at_once

Processes = dict[str, str]
"""Member id to process id."""

PROCESSES = st.dictionaries(
    st.sampled_from([f"m{number}" for number in range(9)]),
    st.sampled_from(["p1", "p2", "p3", "p4"]),
    min_size=1,
)
SUBTOPOLOGIES = st.dictionaries(
    st.sampled_from("0123"),
    st.builds(AssignedSubtopology, st.integers(1, 12), st.booleans()),
    min_size=1,
)


def assigned(
    processes: Processes,
    subtopologies: dict[str, AssignedSubtopology],
    standby_count: int = 0,
    former: dict[str, Tasks] | None = None,
) -> dict[str, Tasks]:
    members = {
        member_id: AssignedMember(process_id, (former or {}).get(member_id, NOTHING))
        for member_id, process_id in processes.items()
    }
    return assign_tasks(members, subtopologies, standby_count)


def ids(tasks: Tasks, kind: str) -> list[tuple[str, int]]:
    return [
        (subtopology_id, number)
        for subtopology_id, numbers in getattr(tasks, kind).items()
        for number in numbers
    ]


def check(
    targets: dict[str, Tasks],
    processes: Processes,
    subtopologies: dict[str, AssignedSubtopology],
    standby_count: int,
) -> None:
    """What holds for every assignment."""
    assert targets.keys() == processes.keys()
    active = Counter(task for each in targets.values() for task in ids(each, "active"))
    every = {(name, number) for name, each in subtopologies.items() for number in range(each[0])}
    assert active.keys() == every
    assert set(active.values()) == {1}
    most = -(-len(every) // len(processes))
    assert max(len(ids(each, "active")) for each in targets.values()) <= most
    where: dict[tuple[str, int], list[str]] = {task: [] for task in every}
    for member_id, each in targets.items():
        assert each.warmup == {}
        for task in (*ids(each, "active"), *ids(each, "standby")):
            where[task].append(processes[member_id])
    copies = min(standby_count, len(set(processes.values())) - 1)
    for (subtopology_id, _), held in where.items():
        assert len(held) == len(set(held)), "a process has a task twice"
        assert len(held) == 1 + copies * subtopologies[subtopology_id].is_stateful


@given(PROCESSES, SUBTOPOLOGIES, st.integers(0, 3))
def test_tasks_are_shared_evenly_and_their_copies_are_apart(
    processes: Processes, subtopologies: dict[str, AssignedSubtopology], standby_count: int
) -> None:
    targets = assigned(processes, subtopologies, standby_count)
    check(targets, processes, subtopologies, standby_count)


@given(PROCESSES, PROCESSES, SUBTOPOLOGIES, st.integers(0, 2))
def test_whoever_comes_and_goes_all_holds_as_before(
    before: Processes,
    after: Processes,
    subtopologies: dict[str, AssignedSubtopology],
    standby_count: int,
) -> None:
    former = assigned(before, subtopologies, standby_count)
    targets = assigned(after, subtopologies, standby_count, former)
    check(targets, after, subtopologies, standby_count)


@given(PROCESSES, SUBTOPOLOGIES)
def test_nothing_moves_where_nothing_has_changed(
    processes: Processes, subtopologies: dict[str, AssignedSubtopology]
) -> None:
    former = assigned(processes, subtopologies)
    assert assigned(processes, subtopologies, 0, former) == former


@given(PROCESSES, SUBTOPOLOGIES)
def test_when_a_member_goes_only_its_tasks_move(
    processes: Processes, subtopologies: dict[str, AssignedSubtopology]
) -> None:
    former = assigned(processes, subtopologies)
    gone = min(processes)
    left = {member_id: each for member_id, each in processes.items() if member_id != gone}
    for member_id, tasks in assigned(left, subtopologies, 0, former).items():
        assert set(ids(former[member_id], "active")) <= set(ids(tasks, "active"))


def test_a_task_goes_to_who_stood_by_for_it() -> None:
    subtopologies = {"0": AssignedSubtopology(2, is_stateful=True)}
    former = {
        "m1": Tasks({"0": frozenset({0})}, {"0": frozenset({1})}),
        "m3": Tasks({}, {"0": frozenset({0})}),
    }
    targets = assigned({"m1": "p1", "m3": "p3", "m0": "p0"}, subtopologies, 0, former)
    assert targets["m1"].active == {"0": {0}}
    later = assigned({"m3": "p3", "m0": "p0"}, subtopologies, 0, former)
    assert 0 in later["m3"].active["0"]


def test_one_member_has_everything_in_any_number_of_subtopologies() -> None:
    targets = assigned({"m": "p"}, {"0": AssignedSubtopology(3, is_stateful=True)}, 2)
    assert targets == {"m": Tasks({"0": frozenset({0, 1, 2})})}


# -- what topologies come to ----------------------------------------------------------------


@pytest.fixture
def topics() -> Topics:
    topics = Topics()
    topics.put("orders", ORDERS, 4)
    topics.put("payments", PAYMENTS, 2)
    return topics


def topology(*subtopologies: Subtopology) -> Topology:
    return Topology(0, {each.subtopology_id: each for each in subtopologies})


def counts_of(missing: tuple[InternalTopic, ...]) -> dict[str, int]:
    return {topic.name: topic.partitions for topic in missing}


def test_partitions_follow_the_largest_source_through_several_topics(topics: Topics) -> None:
    chain = topology(
        Subtopology("b", (), (), ("t2",), (InternalTopic("t1"),)),
        Subtopology("a", ("payments", "orders"), (), ("t1",)),
        Subtopology("c", (), (), (), (InternalTopic("t2"),), (InternalTopic("log"),)),
    )
    assert counts_of(run_at_once(configure(chain, topics)).missing) == {"t1": 4, "t2": 4, "log": 4}


def test_a_topic_that_says_its_number_keeps_it(topics: Topics) -> None:
    fixed = topology(
        Subtopology("a", ("orders",), (), ("t",)),
        Subtopology("b", (), (), (), (InternalTopic("t", 7),), (InternalTopic("log"),)),
    )
    assert counts_of(run_at_once(configure(fixed, topics)).missing) == {"t": 7, "log": 7}


def test_sources_are_not_searched_for_each_sink(topics: Topics) -> None:
    class Counted(Topics):
        found = 0

        def find(self, name: str) -> TopicMetadata | None:
            self.found += 1
            return topics.find(name)

    counted, many = Counted(), 300
    internal = tuple(InternalTopic(f"t{number}") for number in range(many))
    wide = topology(
        Subtopology("a", ("orders",) * many, (), tuple(topic.name for topic in internal)),
        Subtopology("b", (), (), (), internal),
    )
    assert len(run_at_once(configure(wide, counted)).missing) == many
    assert counted.found <= 10 * many


def test_what_is_read_together_gets_the_same_number(topics: Topics) -> None:
    joined = topology(
        Subtopology("a", ("payments",), (), ("t",)),
        Subtopology(
            "b", ("orders",), (), (), (InternalTopic("t"),), (), (CopartitionGroup((0,), (), (0,)),)
        ),
    )
    assert counts_of(run_at_once(configure(joined, topics)).missing) == {"t": 4}


@pytest.mark.parametrize(
    ("reader", "detail"),
    [
        (
            Subtopology(
                "a", ("orders", "payments"), copartition_groups=(CopartitionGroup((0, 1)),)
            ),
            "Following topics do not have the same number of partitions: [{orders=4, payments=2}]",
        ),
        (
            Subtopology(
                "a",
                ("orders",),
                (),
                (),
                (InternalTopic("t", 3),),
                (),
                (CopartitionGroup((0,), (), (0,)),),
            ),
            "Number of partitions [3] of repartition topic [t] doesn't match number of partitions "
            "[4] of the source topic.",
        ),
    ],
)
def test_what_cannot_be_read_together_is_refused(
    topics: Topics, reader: Subtopology, detail: str
) -> None:
    problem = run_at_once(configure(topology(reader), topics)).problem
    assert problem is not None
    assert problem.code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert problem.detail == detail


@pytest.mark.parametrize(
    "never",
    [
        topology(Subtopology("a")),
        topology(Subtopology("a", (), (), (), (InternalTopic("t"),))),
        topology(Subtopology("a", (), (), ("t",), (InternalTopic("t"),))),
    ],
)
def test_what_never_comes_to_anything_is_refused(topics: Topics, never: Topology) -> None:
    with pytest.raises(KafkaError) as refused:
        run_at_once(configure(never, topics))
    assert refused.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
