"""Replicas are spread over racks (KIP-36), as the documentation of Kafka's AdminUtils promises."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from odradek.common.live_broker import LiveBroker
from odradek.config.topic_configs import validate_topic_config
from odradek.controller.context import ControllerContext, Topic
from odradek.controller.topics.assignment import (
    Assignment,
    Racks,
    assign_more_partitions,
    assign_new_topic,
    assign_replicas,
)
from odradek.controller.topics.planning import (
    NewPartitions,
    TopicCreation,
    TopicDefaults,
    plan_partitions,
    plan_topic,
)
from odradek.runtime.steps import run_at_once

DOCUMENTED = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
"""The brokers of the example in the documentation of Kafka's AdminUtils."""


def test_replicas_are_spread_as_in_kafkas_own_example() -> None:
    assignment = run_at_once(assign_replicas(DOCUMENTED, 7, 3, start_index=0, shift=0))
    assert list(assignment.values()) == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


def test_an_added_partition_goes_on_with_the_turns_of_the_racks() -> None:
    whole = run_at_once(assign_replicas(DOCUMENTED, 7, 3, start_index=0, shift=0))
    existing = {partition: whole[partition] for partition in range(6)}
    assert run_at_once(assign_more_partitions(DOCUMENTED, existing, 1)) == {6: whole[6]}


@st.composite
def clusters(draw: st.DrawFn) -> Racks:
    """Brokers in racks, which may be of different sizes."""
    names = draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=12))
    ids = draw(st.permutations(range(100, 100 + len(names))))
    return dict(zip(ids, names, strict=True))


def assigned(data: st.DataObject, racks: Racks) -> tuple[int, Assignment]:
    """A replication factor that is possible, and some partitions of it."""
    factor = data.draw(st.integers(1, len(racks)))
    count = data.draw(st.integers(1, 30))
    seed = data.draw(st.integers(0, 1_000))
    return factor, run_at_once(assign_new_topic(racks, count, factor, random.Random(seed)))


@given(clusters(), st.data())
def test_no_rack_has_two_replicas_of_a_partition_before_each_has_one(
    racks: Racks, data: st.DataObject
) -> None:
    factor, assignment = assigned(data, racks)
    rack_count = len(set(racks.values()))
    for replicas in assignment.values():
        assert len(set(replicas)) == len(replicas) == factor
        assert len({racks[each] for each in replicas}) == min(factor, rack_count)


@given(clusters(), st.data())
def test_leaders_are_spread_evenly_over_brokers(racks: Racks, data: st.DataObject) -> None:
    _, assignment = assigned(data, racks)
    led = Counter(dict.fromkeys(racks, 0))
    led.update(replicas[0] for replicas in assignment.values())
    assert max(led.values()) - min(led.values()) <= 1


@given(
    rack_count=st.integers(1, 4),
    size=st.integers(1, 4),
    rounds=st.integers(1, 3),
    data=st.data(),
)
def test_replicas_are_spread_evenly_over_racks_of_one_size(
    rack_count: int, size: int, rounds: int, data: st.DataObject
) -> None:
    brokers = rack_count * size
    racks = {broker_id: f"rack-{broker_id % rack_count}" for broker_id in range(brokers)}
    factor = data.draw(st.integers(1, brokers))
    seed = data.draw(st.integers(0, 1_000))
    assignment = run_at_once(assign_new_topic(racks, brokers * rounds, factor, random.Random(seed)))
    held = Counter(each for replicas in assignment.values() for each in replicas)
    assert held == dict.fromkeys(racks, factor * rounds)


@given(
    st.dictionaries(st.integers(1, 9), st.sampled_from([None, "a", "b"]), min_size=1),
    st.integers(0, 9),
)
def test_racks_count_only_where_all_brokers_name_one(racks: Racks, seed: int) -> None:
    """RackAwareMode.Safe: else brokers take turns by their ids."""
    racks = {**racks, 5: None}
    assignment = run_at_once(assign_new_topic(racks, 20, len(racks), random.Random(seed)))
    without = run_at_once(
        assign_new_topic(dict.fromkeys(racks), 20, len(racks), random.Random(seed))
    )
    assert assignment == without


def test_the_controller_knows_the_racks_of_its_brokers() -> None:
    context = ControllerContext()
    context.live_brokers = {
        broker_id: LiveBroker(broker_id, (), rack) for broker_id, rack in DOCUMENTED.items()
    }
    target = TopicCreation("t", 12, 3)
    planned = run_at_once(
        plan_topic(target, context, TopicDefaults(1, 1), validate_topic_config, random.Random())
    )
    context.add_topic(topic := Topic("t", planned.topic_id, planned.assignment, {}))
    added = run_at_once(plan_partitions(NewPartitions("t", 24), topic, context))
    for replicas in [*planned.assignment.values(), *added.values()]:
        assert {DOCUMENTED[each] for each in replicas} == {"rack1", "rack2", "rack3"}
