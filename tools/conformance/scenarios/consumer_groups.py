"""Groups whose coordinator assigns partitions (KIP-848): ConsumerGroupHeartbeat and -Describe."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from ....common.errors import ErrorCode
from ....protocol.api_keys import ApiKey
from ....protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    ListGroupsRequest,
)
from ..scenario import NEWEST, scenario
from ..talk import RETRY_SECONDS, SETTLE_SECONDS_MAX, Talk
from .classic_groups import describing, join, joining, stable
from .groups_described import only

REBALANCE_MS = 30_000
JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2
CHOSEN = "AAAAAAAAAAAAAAAAAAAAAQ"
"""A member id as clients make them since version 1."""


class Joined(NamedTuple):
    """A member as the coordinator has taken it."""

    group: str
    id: str
    epoch: int


def beat(group: str, member: str = "", epoch: int = JOIN, **fields: Any) -> Any:
    """A heartbeat; one that joins brings what a joining one must."""
    if epoch == JOIN:
        fields = {
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": ["orders"],
            "topic_partitions": [],
            **fields,
        }
    return ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, **fields
    )


def joined(talk: Talk, group: str, *topics: str, member: str = CHOSEN, **fields: Any) -> Joined:
    """A member that has joined, and knows its assignment."""
    answer = talk.ask(beat(group, member, subscribed_topic_names=list(topics), **fields))
    return Joined(group, answer.member_id, answer.member_epoch)


def owning(topic_id: bytes, *partitions: int) -> list[Any]:
    """What a member says that it owns."""
    owned = ConsumerGroupHeartbeatRequest.TopicPartitions
    return [owned(topic_id=topic_id, partitions=list(partitions))]


def describe(*groups: str, operations: bool = False) -> ConsumerGroupDescribeRequest:
    """A request for what is known of groups."""
    return ConsumerGroupDescribeRequest(
        group_ids=list(groups), include_authorized_operations=operations
    )


def topic_for_groups(talk: Talk, name: str, partitions: int = 1) -> bytes:
    """Create a topic, and wait until the group coordinator knows it as well; returns its id.

    Nothing tells so but an assignment, so a group of its own is watched.
    """
    topic_id = talk.create_topic(name, partitions)
    group = f"{name}-is-known"
    answer = talk.quietly(beat(group, CHOSEN, subscribed_topic_names=[name]))
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while answer.assignment is None or not answer.assignment.topic_partitions:
        assert time.monotonic() < deadline, f"{name} is not assigned: {answer!r}"
        time.sleep(RETRY_SECONDS)  # another process has no event to wait for
        answer = talk.quietly(
            beat(group, CHOSEN, answer.member_epoch, subscribed_topic_names=[name])
        )
    talk.quietly(beat(group, CHOSEN, LEAVE))
    return topic_id


# -- ConsumerGroupHeartbeat ----------------------------------------------------------------


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def member_joins_a_new_group(talk: Talk) -> None:
    topic_for_groups(talk, talk.name(), 3)
    talk.ask(beat(talk.name(), CHOSEN, subscribed_topic_names=[talk.name()]), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT, "0")
def coordinator_names_the_member(talk: Talk) -> None:
    talk.ask(beat(talk.name()), 0)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT, "1-")
def member_has_no_id(talk: Talk) -> None:
    talk.ask(beat(talk.name()), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def member_joins_for_a_topic_that_is_not_there(talk: Talk) -> None:
    talk.ask(beat(talk.name(), CHOSEN, subscribed_topic_names=["absent-topic"]), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def member_stays(talk: Talk) -> None:
    topic_id = topic_for_groups(talk, talk.name(), 2)
    member = joined(talk, talk.name(), talk.name())
    owned = owning(topic_id, 0, 1)
    talk.ask(beat(member.group, member.id, member.epoch, topic_partitions=owned), talk.version)
    talk.ask(beat(member.group, member.id, member.epoch), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def member_joins_twice(talk: Talk) -> None:
    topic_for_groups(talk, talk.name(), 2)
    joined(talk, talk.name(), talk.name())
    talk.ask(beat(talk.name(), CHOSEN, subscribed_topic_names=[talk.name()]), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def member_leaves_the_group(talk: Talk) -> None:
    topic_for_groups(talk, talk.name(), 2)
    member = joined(talk, talk.name(), talk.name())
    talk.ask(beat(member.group, member.id, LEAVE), talk.version)
    talk.ask(beat(member.group, member.id, LEAVE), talk.version)
    talk.ask(beat(member.group, member.id, member.epoch), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def second_member_takes_its_share(talk: Talk) -> None:
    topic_id = topic_for_groups(talk, talk.name(), 2)
    first = joined(talk, talk.name(), talk.name())
    second = joined(talk, talk.name(), talk.name(), member="AAAAAAAAAAAAAAAAAAAAAg")
    answer = talk.ask(beat(first.group, first.id, first.epoch), talk.version)
    kept = answer.assignment.topic_partitions[0].partitions
    given_up = owning(topic_id, *kept)
    talk.ask(beat(first.group, first.id, first.epoch, topic_partitions=given_up), talk.version)
    talk.ask(beat(second.group, second.id, second.epoch), talk.version)


@scenario(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    cases={
        "no group": {"group": ""},
        "no rebalance timeout": {"rebalance_timeout_ms": -1},
        "a rebalance timeout of zero": {"rebalance_timeout_ms": 0},
        "no topics": {"subscribed_topic_names": None},
        "an empty list of topics": {"subscribed_topic_names": []},
        "a topic twice": {"subscribed_topic_names": ["t", "t"]},
        "a bad topic": {"subscribed_topic_names": ["a/b"]},
        "an empty topic": {"subscribed_topic_names": [""]},
        "no partitions": {"topic_partitions": None},
        "an unknown assignor": {"server_assignor": "magic"},
        "the range assignor": {"server_assignor": "range"},
        "the uniform assignor": {"server_assignor": "uniform"},
        "an empty assignor": {"server_assignor": ""},
        "an empty instance": {"instance_id": ""},
        "an instance": {"instance_id": "the-one"},
        "a rack": {"rack_id": "here"},
        "an empty rack": {"rack_id": ""},
        "partitions at once": {"topic_partitions": owning(b"\7" * 16, 0)},
    },
)
def joining_member_says(talk: Talk, fields: dict[str, Any]) -> None:
    fields = dict(fields)
    talk.ask(beat(fields.pop("group", talk.name()), CHOSEN, **fields), talk.version)


@scenario(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    "1-",
    cases={
        "a prefix": "conformance-.*",
        "nothing that there is": "no-such-.*",
        "a broken one": "a(b",
        "an empty one": "",
        "a lookahead": "a(?=b)",
    },
)
def member_subscribes_to_an_expression(talk: Talk, expression: str) -> None:
    request = beat(talk.name(), CHOSEN, subscribed_topic_names=None)
    request.subscribed_topic_regex = expression
    talk.ask(request, talk.version)


@scenario(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    cases={
        "later": (CHOSEN, 1),
        "much later": (CHOSEN, 1000),
        "earlier": (CHOSEN, -1),
        "a stranger's": ("AAAAAAAAAAAAAAAAAAAAAw", 0),
        "nobody's": ("", 0),
    },
)
def member_epoch_is(talk: Talk, case: tuple[str, int]) -> None:
    topic_for_groups(talk, talk.name())
    member = joined(talk, talk.name(), talk.name())
    member = joined(talk, talk.name(), talk.name(), rack_id="moved")
    member_id, shift = case
    talk.ask(beat(member.group, member_id, member.epoch + shift), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT, cases={"-3": -3, "-2": -2, "-1": -1, "5": 5})
def epoch_in_a_group_that_is_not_there(talk: Talk, epoch: int) -> None:
    talk.ask(beat(talk.name(), CHOSEN, epoch, instance_id="the-one"), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def member_says_that_it_owns_what_it_does_not(talk: Talk) -> None:
    topic_id = topic_for_groups(talk, talk.name(), 2)
    member = joined(talk, talk.name(), talk.name())
    owned = owning(topic_id, 0, 1, 2)
    talk.ask(beat(member.group, member.id, member.epoch, topic_partitions=owned), talk.version)
    lost = beat(member.group, member.id, member.epoch - 1, topic_partitions=owned)
    talk.ask(lost, talk.version)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def member_changes_its_topics(talk: Talk) -> None:
    for suffix in ("a", "b"):
        topic_for_groups(talk, talk.name(suffix), 2)
    member = joined(talk, talk.name(), talk.name("a"))
    topics = [talk.name("a"), talk.name("b")]
    answer = talk.ask(
        beat(member.group, member.id, member.epoch, subscribed_topic_names=topics), talk.version
    )
    talk.ask(beat(member.group, member.id, answer.member_epoch), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def static_member_leaves_for_a_while(talk: Talk) -> None:
    topic_for_groups(talk, talk.name(), 2)
    topics = [talk.name()]
    static: dict[str, Any] = {"instance_id": "the-one"}
    member = joined(talk, talk.name(), *topics, **static)
    talk.ask(beat(member.group, member.id, LEAVE_FOR_A_WHILE, **static), talk.version)
    talk.ask(describe(talk.name()))
    again = beat(talk.name(), "AAAAAAAAAAAAAAAAAAAABA", subscribed_topic_names=topics, **static)
    talk.ask(again, talk.version)
    talk.ask(beat(member.group, member.id, member.epoch, **static), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def instance_is_taken(talk: Talk) -> None:
    joined(talk, talk.name(), "orders", instance_id="the-one")
    other = beat(talk.name(), "AAAAAAAAAAAAAAAAAAAABA", instance_id="the-one")
    talk.ask(other, talk.version)


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT, NEWEST)
def group_of_classic_members_is_joined(talk: Talk) -> None:
    stable(talk, talk.name(), protocols=(("range", b"\xff"),))
    talk.ask(beat(talk.name(), CHOSEN))


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT, NEWEST)
def group_of_connect_workers_is_joined(talk: Talk) -> None:
    stable(talk, talk.name(), protocol_type="connect")
    talk.ask(beat(talk.name(), CHOSEN))


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT, NEWEST)
def classic_member_joins_a_consumer_group(talk: Talk) -> None:
    joined(talk, talk.name(), "orders")
    join(talk, talk.name(), protocol_type="connect")
    talk.ask(joining(talk.name(), "made-up"))


@scenario(ApiKey.CONSUMER_GROUP_HEARTBEAT, NEWEST)
def silent_member_is_fenced(talk: Talk) -> None:
    setting_of_group(talk, "consumer.session.timeout.ms", "2000")
    member = joined(talk, talk.name(), "orders")
    talk.settled(
        describe(talk.name()),
        until=lambda answer: bool(answer.groups[0].group_state == "Empty"),
    )
    talk.ask(beat(member.group, member.id, member.epoch))


def setting_of_group(talk: Talk, name: str, value: str) -> None:
    """Change a setting of the scenario's group, and wait until an answer has it."""
    from .configuration import GROUP_RESOURCE, changing, describing_configs

    talk.ask(changing(GROUP_RESOURCE, talk.name(), (name, 0, value)))
    talk.settled(
        describing_configs(GROUP_RESOURCE, talk.name(), name),
        until=lambda answer: bool(answer.results[0].configs[0].value == value),
    )


# -- ConsumerGroupDescribe -----------------------------------------------------------------


@scenario(ApiKey.CONSUMER_GROUP_DESCRIBE)
def consumer_group_is_described(talk: Talk) -> None:
    topic_for_groups(talk, talk.name(), 2)
    joined(talk, talk.name(), talk.name(), rack_id="here", instance_id="the-one")
    talk.ask(describe(talk.name()), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_DESCRIBE)
def consumer_group_of_two_is_described(talk: Talk) -> None:
    topic_for_groups(talk, talk.name(), 2)
    joined(talk, talk.name(), talk.name())
    joined(talk, talk.name(), talk.name(), member="AAAAAAAAAAAAAAAAAAAAAg")
    talk.ask(describe(talk.name()), talk.version)


@scenario(
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    cases={"unknown": ["absent-group"], "empty": [""], "none": [], "twice": ["absent", "absent"]},
)
def groups_to_describe_are(talk: Talk, groups: list[str]) -> None:
    talk.ask(describe(*groups), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_DESCRIBE)
def classic_group_is_described_as_a_consumer_group(talk: Talk) -> None:
    stable(talk, talk.name())
    talk.ask(describe(talk.name()), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_DESCRIBE)
def operations_on_a_consumer_group_are_requested(talk: Talk) -> None:
    joined(talk, talk.name(), "orders")
    talk.ask(describe(talk.name(), operations=True), talk.version)


@scenario(ApiKey.CONSUMER_GROUP_DESCRIBE, NEWEST)
def consumer_group_is_described_as_a_classic_one(talk: Talk) -> None:
    member = joined(talk, talk.name(), "orders")
    talk.ask(describing(talk.name()))
    only(talk.ask(ListGroupsRequest(types_filter=["consumer"])), talk.name())
    talk.ask(DeleteGroupsRequest(groups_names=[talk.name()]))
    talk.ask(beat(member.group, member.id, LEAVE))
    talk.ask(describe(talk.name()))
    only(talk.ask(ListGroupsRequest(states_filter=["empty"])), talk.name())
    deleted = talk.ask(DeleteGroupsRequest(groups_names=[talk.name()]))
    assert deleted.results[0].error_code == ErrorCode.NONE
    talk.ask(describe(talk.name()))
