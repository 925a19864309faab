"""Groups whose members assign partitions: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....common.errors import ErrorCode
from ....protocol.api_keys import ApiKey
from ....protocol.messages import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from ..scenario import NEWEST, scenario
from ..talk import Talk

SESSION_MS = 30_000
SUBSCRIPTION = b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"
"""What a Java consumer says that reads the topic `orders`."""
ASSIGNMENT = b"\0\0\0\0\0\0\xff\xff\xff\xff"
"""What a Java leader gives a member that shall own nothing."""
RANGE = (("range", SUBSCRIPTION),)
FIRST_VERSION_WITH_INSTANCES = 5
FIRST_VERSION_THAT_LEAVES_TOGETHER = 3
FIRST_VERSION_OF_SYNC_WITH_PROTOCOLS = 5

Protocols = Sequence[tuple[str, bytes]]


class Member(NamedTuple):
    """A member of a group as the coordinator has called it."""

    group: str
    id: str
    generation: int
    instance: str | None = None


def joining(
    group: str,
    member: str = "",
    *,
    instance: str | None = None,
    protocols: Protocols = RANGE,
    protocol_type: str = "consumer",
    session_ms: int = SESSION_MS,
    rebalance_ms: int = SESSION_MS,
) -> JoinGroupRequest:
    """A request to join."""
    of_name = JoinGroupRequest.JoinGroupRequestProtocol
    return JoinGroupRequest(
        group_id=group,
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol_type,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        protocols=[of_name(name=name, metadata=data) for name, data in protocols],
    )


def join(talk: Talk, group: str, version: int | None = None, **other: Any) -> Any:
    """Join; again with the id that a dynamic member is given first."""
    answer = talk.ask(joining(group, **other), version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = talk.ask(joining(group, answer.member_id, **other), version)
    return answer


def syncing(member: Member, leads: Sequence[str] = (), **other: Any) -> SyncGroupRequest:
    """A request for one's assignment, by a leader with that of the members that it leads."""
    given = SyncGroupRequest.SyncGroupRequestAssignment
    fields = {"protocol_type": "consumer", "protocol_name": "range", **other}
    return SyncGroupRequest(
        group_id=member.group,
        generation_id=member.generation,
        member_id=member.id,
        group_instance_id=member.instance,
        assignments=[given(member_id=each, assignment=ASSIGNMENT) for each in leads],
        **fields,
    )


def heartbeat(member: Member, **other: Any) -> HeartbeatRequest:
    """A heartbeat."""
    fields = {
        "group_id": member.group,
        "generation_id": member.generation,
        "member_id": member.id,
        "group_instance_id": member.instance,
        **other,
    }
    return HeartbeatRequest(**fields)


def stable(talk: Talk, group: str, instance: str | None = None, **other: Any) -> Member:
    """The only member of a new group that is stable."""
    joined = join(talk, group, instance=instance, **other)
    member = Member(group, joined.member_id, joined.generation_id, instance)
    protocol = {"protocol_type": joined.protocol_type, "protocol_name": joined.protocol_name}
    talk.ask(syncing(member, [member.id], **protocol))
    return member


def leaving(version: int, group: str, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    """A request by members to leave, or by one where a version has no more."""
    if version < FIRST_VERSION_THAT_LEAVES_TOGETHER:
        return LeaveGroupRequest(group_id=group, member_id=members[0][0])
    identity = LeaveGroupRequest.MemberIdentity
    return LeaveGroupRequest(
        group_id=group,
        members=[identity(member_id=each, group_instance_id=name) for each, name in members],
    )


def describing(*groups: str, operations: bool = False) -> DescribeGroupsRequest:
    """A request for what is known of groups."""
    return DescribeGroupsRequest(groups=list(groups), include_authorized_operations=operations)


# -- JoinGroup -----------------------------------------------------------------------------


@scenario(ApiKey.JOIN_GROUP)
def member_joins_alone(talk: Talk) -> None:
    join(talk, talk.name(), talk.version)


@scenario(ApiKey.JOIN_GROUP, "4-")
def member_is_given_its_id_first(talk: Talk) -> None:
    talk.ask(joining(talk.name()), talk.version)


@scenario(ApiKey.JOIN_GROUP)
def member_joins_with_an_id_that_nobody_gave(talk: Talk) -> None:
    talk.ask(joining(talk.name(), "made-up"), talk.version)


@scenario(ApiKey.JOIN_GROUP)
def unknown_member_joins_a_group_that_is_there(talk: Talk) -> None:
    stable(talk, talk.name())
    talk.ask(joining(talk.name(), "made-up"), talk.version)


@scenario(ApiKey.JOIN_GROUP)
def leader_joins_again(talk: Talk) -> None:
    member = stable(talk, talk.name())
    talk.ask(joining(member.group, member.id), talk.version)


@scenario(ApiKey.JOIN_GROUP)
def second_member_joins(talk: Talk) -> None:
    first = stable(talk, talk.name())
    other = talk.another()
    version = talk.version
    answer = None
    if version >= 4:  # a first request only gives an id, and begins no rebalance
        answer = other.ask(joining(talk.name()), version)
    other.send(joining(talk.name(), "" if answer is None else answer.member_id), version)
    talk.settled(
        heartbeat(first),
        until=lambda beat: bool(beat.error_code == ErrorCode.REBALANCE_IN_PROGRESS),
    )
    talk.ask(joining(first.group, first.id), version)
    other.receive()


@scenario(
    ApiKey.JOIN_GROUP,
    cases={
        "no group": {"group": ""},
        "no protocols": {"protocols": ()},
        "no protocol type": {"protocol_type": ""},
        "session too short": {"session_ms": 999},
        "session too long": {"session_ms": 1_800_001},
        "session negative": {"session_ms": -1},
        "rebalance timeout negative": {"rebalance_ms": -1},
        "metadata empty": {"protocols": (("range", b""),)},
        "metadata that nobody can read": {"protocols": (("range", b"\xff\xff\xff"),)},
        "another type": {"protocol_type": "connect"},
        "a protocol without a name": {"protocols": (("", SUBSCRIPTION),)},
    },
)
def joining_member_says_something_unusual(talk: Talk, fields: dict[str, Any]) -> None:
    join(talk, fields.get("group", talk.name()), talk.version, **_without(fields, "group"))


def _without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}


@scenario(
    ApiKey.JOIN_GROUP,
    cases={
        "another type": {"protocol_type": "connect"},
        "no common protocol": {"protocols": (("roundrobin", SUBSCRIPTION),)},
        "a common protocol beside another": {
            "protocols": (("roundrobin", SUBSCRIPTION), *RANGE),
        },
    },
)
def member_joins_others_with(talk: Talk, fields: dict[str, Any]) -> None:
    first = stable(talk, talk.name())
    other = talk.another()
    answer = other.ask(joining(talk.name(), "made-up", **fields), talk.version)
    assert answer.error_code
    talk.ask(joining(first.group, first.id, **fields), talk.version)


@scenario(ApiKey.JOIN_GROUP, "5-")
def static_member_joins(talk: Talk) -> None:
    talk.ask(joining(talk.name(), instance="the-one"), talk.version)


@scenario(ApiKey.JOIN_GROUP, "5-")
def static_member_comes_back(talk: Talk) -> None:
    stable(talk, talk.name(), "the-one")
    talk.ask(joining(talk.name(), instance="the-one"), talk.version)
    talk.ask(describing(talk.name()))


@scenario(ApiKey.JOIN_GROUP, "5-")
def static_member_comes_back_with_other_metadata(talk: Talk) -> None:
    stable(talk, talk.name(), "the-one")
    other = (("range", SUBSCRIPTION + b"more"),)
    talk.ask(joining(talk.name(), instance="the-one", protocols=other), talk.version)
    talk.ask(describing(talk.name()))


@scenario(ApiKey.JOIN_GROUP, "5-")
def replaced_static_member_is_fenced(talk: Talk) -> None:
    member = stable(talk, talk.name(), "the-one")
    talk.ask(joining(talk.name(), instance="the-one"), talk.version)
    talk.ask(joining(talk.name(), member.id, instance="the-one"), talk.version)
    talk.ask(heartbeat(member))


@scenario(ApiKey.JOIN_GROUP, "5-", cases={"unknown": "other", "empty": "", "odd": "a b/c"})
def instance_joins_with_an_id(talk: Talk, instance: str) -> None:
    member = stable(talk, talk.name(), "the-one")
    talk.ask(joining(talk.name(), member.id, instance=instance), talk.version)


# -- SyncGroup -----------------------------------------------------------------------------


@scenario(ApiKey.SYNC_GROUP)
def leader_gives_out_assignments(talk: Talk) -> None:
    joined = join(talk, talk.name())
    member = Member(talk.name(), joined.member_id, joined.generation_id)
    talk.ask(syncing(member, [member.id]), talk.version)
    talk.ask(syncing(member), talk.version)


@scenario(ApiKey.SYNC_GROUP)
def leader_gives_out_nothing(talk: Talk) -> None:
    joined = join(talk, talk.name())
    talk.ask(syncing(Member(talk.name(), joined.member_id, joined.generation_id)), talk.version)


@scenario(ApiKey.SYNC_GROUP)
def leader_gives_to_a_stranger(talk: Talk) -> None:
    joined = join(talk, talk.name())
    member = Member(talk.name(), joined.member_id, joined.generation_id)
    talk.ask(syncing(member, ["stranger"]), talk.version)
    talk.ask(describing(talk.name()))


MEMBERS = {
    "unknown group": Member("absent-group", "m", 1),
    "no group": Member("", "m", 1),
    "unknown member": Member("", "stranger", 1),
    "no member": Member("", "", 1),
    "old generation": Member("", "", 0),
    "later generation": Member("", "", 7),
    "no generation": Member("", "", -1),
}


def impostor(talk: Talk, title: str) -> Member:
    """A member that is not quite the one that is there."""
    if title in ("unknown group", "no group"):
        return MEMBERS[title]
    member = stable(talk, talk.name())
    changed = MEMBERS[title]
    member_id = member.id if title.endswith("generation") else changed.id
    return Member(member.group, member_id, changed.generation)


@scenario(ApiKey.SYNC_GROUP, cases={title: title for title in MEMBERS})
def assignment_is_requested_by(talk: Talk, title: str) -> None:
    talk.ask(syncing(impostor(talk, title)), talk.version)


@scenario(
    ApiKey.SYNC_GROUP,
    "5-",
    cases={
        "another protocol": {"protocol_name": "roundrobin"},
        "another type": {"protocol_type": "connect"},
        "no protocol": {"protocol_name": None},
        "no type": {"protocol_type": None},
    },
)
def assignment_is_requested_with(talk: Talk, fields: dict[str, Any]) -> None:
    talk.ask(syncing(stable(talk, talk.name()), **fields), talk.version)


@scenario(ApiKey.SYNC_GROUP, "3-", cases={"another": "other", "none": None, "its own": "the-one"})
def assignment_is_requested_by_instance(talk: Talk, instance: str | None) -> None:
    member = stable(talk, talk.name(), "the-one")
    talk.ask(syncing(member._replace(instance=instance)), talk.version)


# -- Heartbeat -----------------------------------------------------------------------------


@scenario(ApiKey.HEARTBEAT)
def member_is_alive(talk: Talk) -> None:
    talk.ask(heartbeat(stable(talk, talk.name())), talk.version)


@scenario(ApiKey.HEARTBEAT, cases={title: title for title in MEMBERS})
def heartbeat_comes_from(talk: Talk, title: str) -> None:
    talk.ask(heartbeat(impostor(talk, title)), talk.version)


@scenario(ApiKey.HEARTBEAT)
def member_is_alive_before_it_is_assigned(talk: Talk) -> None:
    joined = join(talk, talk.name())
    talk.ask(heartbeat(Member(talk.name(), joined.member_id, joined.generation_id)), talk.version)


@scenario(ApiKey.HEARTBEAT)
def member_is_alive_after_it_left(talk: Talk) -> None:
    member = stable(talk, talk.name())
    talk.ask(leaving(5, member.group, (member.id, None)))
    talk.ask(heartbeat(member), talk.version)


@scenario(ApiKey.HEARTBEAT, "3-", cases={"another": "other", "none": None, "its own": "the-one"})
def heartbeat_of_instance(talk: Talk, instance: str | None) -> None:
    member = stable(talk, talk.name(), "the-one")
    talk.ask(heartbeat(member._replace(instance=instance)), talk.version)


@scenario(ApiKey.HEARTBEAT, NEWEST)
def silent_member_is_forgotten(talk: Talk) -> None:
    stable(talk, talk.name(), session_ms=6000)
    talk.settled(
        describing(talk.name()),
        until=lambda answer: bool(answer.groups[0].group_state == "Empty"),
    )


# -- LeaveGroup ----------------------------------------------------------------------------


@scenario(ApiKey.LEAVE_GROUP)
def member_leaves(talk: Talk) -> None:
    member = stable(talk, talk.name())
    talk.ask(leaving(talk.version, member.group, (member.id, None)), talk.version)
    talk.ask(leaving(talk.version, member.group, (member.id, None)), talk.version)
    talk.ask(describing(talk.name()))


@scenario(ApiKey.LEAVE_GROUP, cases={"unknown": "absent-group", "empty": ""})
def group_to_leave_is_not_there(talk: Talk, group: str) -> None:
    talk.ask(leaving(talk.version, group, ("m", None)), talk.version)


@scenario(ApiKey.LEAVE_GROUP)
def stranger_leaves(talk: Talk) -> None:
    stable(talk, talk.name())
    talk.ask(leaving(talk.version, talk.name(), ("stranger", None)), talk.version)
    talk.ask(leaving(talk.version, talk.name(), ("", None)), talk.version)


@scenario(ApiKey.LEAVE_GROUP, "3-")
def several_leave_together(talk: Talk) -> None:
    member = stable(talk, talk.name(), "the-one")
    members = [("stranger", None), ("", "the-one"), ("", "other"), (member.id, None)]
    talk.ask(leaving(talk.version, talk.name(), *members), talk.version)
    talk.ask(describing(talk.name()))


@scenario(ApiKey.LEAVE_GROUP, "3-")
def instance_leaves_with_a_wrong_id(talk: Talk) -> None:
    stable(talk, talk.name(), "the-one")
    talk.ask(leaving(talk.version, talk.name(), ("wrong", "the-one")), talk.version)


@scenario(ApiKey.LEAVE_GROUP, "3-")
def nobody_leaves(talk: Talk) -> None:
    stable(talk, talk.name())
    talk.ask(leaving(talk.version, talk.name()), talk.version)


@scenario(ApiKey.LEAVE_GROUP, "4-")
def member_that_was_only_given_an_id_leaves(talk: Talk) -> None:
    answer = talk.ask(joining(talk.name()))
    talk.ask(leaving(talk.version, talk.name(), (answer.member_id, None)), talk.version)
