"""Twenty members of each client library join and leave a group; a checker watches who owns what.

Each time the group settles, each partition gets a record: it must be read, and each owner must
begin where the last one committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import KafkaAdminClient
from support.churn_clients import AiokafkaLoop, JoinGroup, confluent_group, kafka_python_group
from support.group_churn import GroupChurn
from support.static_restarts import check_static_restarts, instance_of
from support.watched_group import WatchedGroup

pytestmark = pytest.mark.clients

PARTITIONS = 24
SECONDS_MAX = 60.0
SHORT, LONG = 20, 200
KINDS = [
    "confluent classic eager",
    "confluent classic cooperative",
    "confluent consumer uniform",
    "confluent consumer range",
    "kafka-python",
    "aiokafka",
]
OFTEN = [kind for kind in KINDS if kind != "confluent classic cooperative"]
"""librdkafka waits a second in each of the two steps of a cooperative rebalance."""

MakeGroup = Callable[[str, WatchedGroup, str], JoinGroup]


@pytest.fixture
def make_group(broker, topic: str) -> Iterator[MakeGroup]:
    """How to start members: by the kind of client, who watches, and the group's id."""
    with ExitStack() as stack:

        def make(kind: str, watch: WatchedGroup, group: str) -> JoinGroup:
            where = (watch, broker.bootstrap, topic, group)
            if kind == "kafka-python":
                return kafka_python_group(*where)
            if kind == "aiokafka":
                return stack.enter_context(AiokafkaLoop()).group(*where)
            _, protocol, assignor = kind.split()
            if protocol == "consumer":
                return confluent_group(*where, protocol=protocol, group_remote_assignor=assignor)
            strategy = {"eager": "range", "cooperative": "cooperative-sticky"}[assignor]
            extra = {"partition_assignment_strategy": strategy}
            return confluent_group(*where, protocol=protocol, **extra)

        yield make


@pytest.fixture
def create_topic(broker, topic: str) -> Callable[[int], str]:
    """Create the test's topic with so many partitions."""

    def create(partitions: int) -> str:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 2})
        (made,) = admin.create_topics([NewTopic(topic, partitions, 1)]).values()
        made.result(SECONDS_MAX)
        return topic

    return create


def churn(
    broker, create_topic: Callable[[int], str], make_group: MakeGroup, kind: str, rebalances: int
) -> None:
    """Let members come and go; nothing may be wrong, and their last commits are there."""
    topic = create_topic(PARTITIONS)
    watch = WatchedGroup(range(PARTITIONS))
    group = f"group-{topic}"
    history = GroupChurn(watch, make_group(kind, watch, group), broker.bootstrap, topic, seed=8)

    history.run(rebalances)

    assert history.violations() == []
    generations = watch.ownership.generations()
    assert generations[-1] - generations[0] >= rebalances
    assert watch.resumption.resumed > rebalances
    assert committed(broker, group) == watch.resumption.acknowledged


def committed(broker, group: str) -> dict[int, tuple[int, str]]:
    """What the coordinator says was committed: by partition, the offset and the words with it."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    found = admin.list_group_offsets(group)[group]
    admin.close()
    # confluent-kafka ends the words it commits with a NUL.
    return {each.partition: (at.offset, at.metadata.rstrip("\0")) for each, at in found.items()}


@pytest.mark.parametrize("kind", OFTEN)
def test_no_partition_has_two_owners_or_none_as_members_come_and_go(
    broker, create_topic, make_group: MakeGroup, kind: str
) -> None:
    churn(broker, create_topic, make_group, kind, SHORT)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_no_partition_has_two_owners_or_none_in_a_long_life(
    broker, create_topic, make_group: MakeGroup, kind: str
) -> None:
    churn(broker, create_topic, make_group, kind, LONG)


@pytest.mark.parametrize("kind", OFTEN)
def test_static_members_restart_without_a_rebalance(
    broker, create_topic, make_group: MakeGroup, kind: str
) -> None:
    topic = create_topic(PARTITIONS)
    watch = WatchedGroup(range(PARTITIONS), instance_of)

    check_static_restarts(watch, make_group(kind, watch, f"group-{topic}"), broker.bootstrap, topic)
