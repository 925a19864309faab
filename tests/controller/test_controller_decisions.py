"""The controller's plain decisions: names, assignments, new topics, the topics of its own."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.live_broker import LiveBroker
from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_configs import validate_topic_config
from odradek.controller.context import ControllerContext, Reassignment, Topic
from odradek.controller.settings import internal_topic
from odradek.controller.topics.assignment import (
    assign_more_partitions,
    assign_new_topic,
    assign_replicas,
    validate_manual_assignment,
)
from odradek.controller.topics.planning import (
    NewPartitions,
    TopicCreation,
    TopicDefaults,
    TopicPlan,
    check_partition_limit,
    plan_partitions,
    plan_topic,
)
from odradek.controller.topics.topic_names import topic_name_problem, validate_topic_name
from odradek.runtime.steps import run_at_once

# -- names ------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "...", "Orders.v1_x-9", "__consumer_offsets", "x" * 249])
def test_kafkas_names_are_accepted(name: str) -> None:
    assert topic_name_problem(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "é", "a\n", "٣", "a\0"])
def test_other_names_are_refused_with_a_reason(name: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        validate_topic_name(name)
    assert refusal.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refusal.value.message


# -- assignment ------------------------------------------------------------


def unracked(*broker_ids: int) -> dict[int, str | None]:
    return dict.fromkeys(broker_ids)


def test_replicas_are_spread_as_in_kafkas_own_example() -> None:
    """The table in the documentation of Kafka's AdminUtils."""
    assignment = run_at_once(assign_replicas(unracked(*range(5)), 10, 3, start_index=0, shift=0))
    first = [replicas[0] for replicas in assignment.values()]
    assert first == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    second = {broker: [p for p, r in assignment.items() if r[1] == broker] for broker in range(5)}
    assert second == {0: [4, 8], 1: [0, 9], 2: [1, 5], 3: [2, 6], 4: [3, 7]}
    third = {broker: [p for p, r in assignment.items() if r[2] == broker] for broker in range(5)}
    assert third == {0: [3, 7], 1: [4, 8], 2: [0, 9], 3: [1, 5], 4: [2, 6]}


@pytest.mark.parametrize("seed", range(20))
def test_new_topics_are_spread_evenly_from_anywhere(seed: int) -> None:
    assignment = run_at_once(assign_new_topic(unracked(3, 5, 8), 9, 2, random.Random(seed)))
    assert list(assignment) == list(range(9))
    assert all(len(set(replicas)) == 2 for replicas in assignment.values())
    assert set(Counter(r[0] for r in assignment.values()).values()) == {3}
    assert set(Counter(b for r in assignment.values() for b in r).values()) == {6}


def test_more_replicas_than_brokers_are_refused_with_their_number() -> None:
    with pytest.raises(KafkaError, match=r"\b2\b.*\b1\b") as refusal:
        run_at_once(assign_new_topic(unracked(1), 1, 2, random.Random(0)))
    assert refusal.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_added_partitions_go_on_where_the_topic_ends() -> None:
    whole = run_at_once(assign_replicas(unracked(1, 2, 3), 9, 2, start_index=1, shift=1))
    existing = {partition: whole[partition] for partition in range(4)}
    added = run_at_once(assign_more_partitions(unracked(1, 2, 3), existing, 5))
    assert list(added) == [4, 5, 6, 7, 8]
    for partition, replicas in added.items():
        assert replicas[0] == whole[partition][0]
        assert len(set(replicas)) == 2


@pytest.mark.parametrize(
    "assignments",
    [[[]], [[1, 1]], [[1, 4]], [[1], [1, 2]], [[1, 2], [1]]],
    ids=["empty", "twice", "unknown broker", "longer", "shorter"],
)
def test_impossible_manual_assignments_are_refused(assignments: list[list[int]]) -> None:
    with pytest.raises(KafkaError) as refusal:
        run_at_once(validate_manual_assignment(assignments, {1, 2, 3}))
    assert refusal.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


# -- new topics ------------------------------------------------------------

DEFAULTS = TopicDefaults(partition_count=4, replication_factor=2)


@pytest.fixture
def context() -> ControllerContext:
    context = ControllerContext()
    context.live_brokers = {broker_id: LiveBroker(broker_id, ()) for broker_id in (1, 2, 3)}
    context.add_topic(Topic("is.there", b"i" * 16, {0: (1,)}, {}))
    return context


def plan(target: TopicCreation, context: ControllerContext) -> TopicPlan:
    return run_at_once(
        plan_topic(target, context, DEFAULTS, validate_topic_config, random.Random(1))
    )


def refusal_of(target: TopicCreation, context: ControllerContext) -> KafkaError:
    with pytest.raises(KafkaError) as refusal:
        plan(target, context)
    assert refusal.value.message
    return refusal.value


def test_a_topic_gets_what_it_asks_for(context: ControllerContext) -> None:
    planned = plan(TopicCreation("t", 6, 3, configs=[("retention.ms", "5")]), context)
    assert (planned.name, len(planned.assignment), planned.replication_factor) == ("t", 6, 3)
    assert planned.config == {"retention.ms": "5"}
    assert len(planned.topic_id) == 16


def test_minus_one_is_the_brokers_default(context: ControllerContext) -> None:
    planned = plan(TopicCreation("t"), context)
    assert (len(planned.assignment), planned.replication_factor) == (4, 2)


def test_a_manual_assignment_is_kept_in_the_order_of_partitions(
    context: ControllerContext,
) -> None:
    planned = plan(TopicCreation("t", assignments=[(1, [3, 1]), (0, [2, 3])]), context)
    assert list(planned.assignment.items()) == [(0, (2, 3)), (1, (3, 1))]


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (TopicCreation("a b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TopicCreation("is_there", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TopicCreation("is.there", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (TopicCreation("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (TopicCreation("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (TopicCreation("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (TopicCreation("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (TopicCreation("t", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (TopicCreation("t", 1, -1, [(0, [1])]), ErrorCode.INVALID_REQUEST),
        (TopicCreation("t", -1, 1, [(0, [1])]), ErrorCode.INVALID_REQUEST),
        (
            TopicCreation("t", assignments=[(0, [1]), (2, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (TopicCreation("t", assignments=[(-1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (
            TopicCreation("t", assignments=[(0, [1]), (0, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (TopicCreation("t", assignments=[(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (TopicCreation("t", assignments=[(0, [9])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (TopicCreation("t", 1, 1, configs=[("retention.ms", None)]), ErrorCode.INVALID_CONFIG),
        (TopicCreation("t", 1, 1, configs=[("retention.ms", "x")]), ErrorCode.INVALID_CONFIG),
        (TopicCreation("t", 1, 1, configs=[("nope", "1")]), ErrorCode.INVALID_CONFIG),
        # With several faults, Kafka tells the name's, then the settings', then the numbers'.
        (TopicCreation("a b", 0, 0, configs=[("nope", "1")]), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TopicCreation("t", 0, 0, configs=[("nope", "1")]), ErrorCode.INVALID_CONFIG),
        (TopicCreation("t", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_impossible_topics_are_refused_with_kafkas_code(
    context: ControllerContext, target: TopicCreation, code: ErrorCode
) -> None:
    assert refusal_of(target, context).code is code


def test_a_topic_whose_deletion_is_not_done_still_has_its_name(
    context: ControllerContext,
) -> None:
    topic = context.topic("is.there")
    assert topic is not None
    topic.is_being_deleted = True
    assert context.topic("is.there") is None
    assert (
        refusal_of(TopicCreation("is.there", 1, 1), context).code is ErrorCode.TOPIC_ALREADY_EXISTS
    )
    context.remove_topic(topic)
    plan(TopicCreation("is_there", 1, 1), context)


def test_ten_thousand_partitions_are_the_most_one_request_may_make() -> None:
    assigned = TopicCreation("c", assignments=[(0, [1])])
    check_partition_limit([TopicCreation("a", 9_995), TopicCreation("b"), assigned], DEFAULTS)
    with pytest.raises(KafkaError) as refusal:
        check_partition_limit([TopicCreation("a", 9_996), TopicCreation("b"), assigned], DEFAULTS)
    assert refusal.value.code is ErrorCode.POLICY_VIOLATION


# -- more partitions ------------------------------------------------------------


@pytest.fixture
def topic(context: ControllerContext) -> Topic:
    topic = Topic("t", b"t" * 16, {0: (2, 3), 1: (3, 1)}, {})
    context.add_topic(topic)
    return topic


def test_added_partitions_have_the_topics_replication_factor(
    context: ControllerContext, topic: Topic
) -> None:
    added = run_at_once(plan_partitions(NewPartitions("t", 5), topic, context))
    assert list(added) == [2, 3, 4]
    assert {len(replicas) for replicas in added.values()} == {2}


def test_added_partitions_may_be_assigned_by_hand(context: ControllerContext, topic: Topic) -> None:
    assert run_at_once(plan_partitions(NewPartitions("t", 3, [[1, 2]]), topic, context)) == {
        2: (1, 2)
    }


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (NewPartitions("t", 2), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", -1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[1, 2], [1, 2]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[1, 9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_impossible_additions_are_refused_with_kafkas_code(
    context: ControllerContext, topic: Topic, target: NewPartitions, code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refusal:
        run_at_once(plan_partitions(target, topic, context))
    assert refusal.value.code is code


def test_partitions_on_the_move_take_no_addition(context: ControllerContext, topic: Topic) -> None:
    topic.reassignments[1] = Reassignment((2,), (3,))
    with pytest.raises(KafkaError) as refusal:
        run_at_once(plan_partitions(NewPartitions("t", 3), topic, context))
    assert refusal.value.code is ErrorCode.REASSIGNMENT_IN_PROGRESS


# -- Kafka's own topics ------------------------------------------------------------

CONFIG = BrokerConfig.from_sources({})


def test_kafkas_own_topics_have_no_more_replicas_than_there_are_brokers() -> None:
    made = internal_topic("__transaction_state", CONFIG)
    assert (made.partition_count, made.replication_factor) == (50, 3)
    alone = made.fitted_to(1)
    assert alone.replication_factor == 1
    assert alone.config["min.insync.replicas"] == "1"
    many = made.fitted_to(5)
    assert many.replication_factor == 3
    assert many.config["min.insync.replicas"] == "2"


@pytest.mark.parametrize(
    "name", ["__consumer_offsets", "__transaction_state", "__share_group_state"]
)
def test_settings_of_kafkas_own_topics_are_valid(name: str) -> None:
    validate_topic_config(internal_topic(name, CONFIG).fitted_to(1).config)
