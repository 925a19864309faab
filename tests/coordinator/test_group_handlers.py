"""The group APIs over the wire: every served version, encoded and decoded."""

import pytest

from odradek.broker.handlers.registry import parse_versions
from odradek.common.error_texts import DEFAULT_TEXTS
from odradek.common.errors import ErrorCode
from odradek.protocol import messages

NOT_ASKED_FOR = -(2**31)


def find_request(version: int, *keys: str, key_type: int = 0) -> messages.FindCoordinatorRequest:
    if version >= 4:
        return messages.FindCoordinatorRequest(coordinator_keys=list(keys), key_type=key_type)
    return messages.FindCoordinatorRequest(key=keys[0], key_type=key_type)


def versions(text: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", parse_versions(text))


def join_request(member_id: str = "", **fields: object) -> messages.JoinGroupRequest:
    return messages.JoinGroupRequest(
        **{
            "group_id": "group",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": [
                messages.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"meta")
            ],
            **fields,
        }
    )


@versions("0-9")
def test_join_is_answered_when_the_join_phase_is_over(handlers, version: int) -> None:
    reply = handlers.send(join_request(), version)
    if version >= 4:
        assert reply.response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        reply = handlers.send(join_request(reply.response.member_id), version)
    assert reply.is_waiting
    handlers.groups.advance(3_000)
    answer = reply.response
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
    assert answer.protocol_name == "range"
    assert answer.leader == answer.member_id != ""
    assert [(m.member_id, m.metadata) for m in answer.members] == [(answer.member_id, b"meta")]
    if version >= 7:
        assert answer.protocol_type == "consumer"
    member = handlers.groups.group().members[answer.member_id]
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert member.rebalance_timeout_ms == (10_000 if version == 0 else 60_000)


@versions("0-9")
def test_join_refusals_have_no_protocol_but_what_the_version_can_say(
    handlers, version: int
) -> None:
    reply = handlers.send(join_request(group_id=""), version).response
    assert reply.error_code == ErrorCode.INVALID_GROUP_ID
    assert reply.protocol_name == (None if version >= 7 else "")
    assert reply.generation_id == -1


def test_of_two_protocols_of_one_name_the_first_counts(handlers) -> None:
    protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol
    twice = [protocol(name="range", metadata=data) for data in (b"first", b"second")]
    reply = handlers.send(join_request(protocols=twice), 3)
    handlers.groups.advance(3_000)
    assert [member.metadata for member in reply.response.members] == [b"first"]


@pytest.mark.parametrize(
    ("count", "code"), [(1000, ErrorCode.NONE), (1001, ErrorCode.INVALID_REQUEST)]
)
def test_a_member_may_name_a_thousand_protocols(handlers, count: int, code: ErrorCode) -> None:
    protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol
    many = [protocol(name=str(number), metadata=b"") for number in range(count)]
    reply = handlers.send(join_request(protocols=many), 3)
    handlers.groups.advance(3_000)
    assert reply.response.error_code == code


@versions("0-5")
def test_sync_hands_out_the_assignment(handlers, version: int) -> None:
    member, joined = handlers.groups.new_member()
    handlers.groups.advance_until_answered(joined)
    request = messages.SyncGroupRequest(
        group_id="group",
        generation_id=1,
        member_id=member,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            messages.SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=member, assignment=b"mine"
            )
        ],
    )
    answer = handlers.send(request, version).response
    assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"mine")
    if version >= 5:
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")


def test_from_version_5_a_sync_must_name_its_protocol(handlers) -> None:
    request = messages.SyncGroupRequest(group_id="group", generation_id=1, member_id="m")
    assert handlers.send(request, 5).response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert handlers.send(request, 4).response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@versions("0-4")
def test_heartbeat_tells_a_member_how_its_group_is(handlers, version: int) -> None:
    generation_id, (leader, follower) = handlers.groups.stable_group(2)
    request = messages.HeartbeatRequest(
        group_id="group", generation_id=generation_id, member_id=follower
    )
    assert handlers.send(request, version).response.error_code == ErrorCode.NONE
    handlers.groups.join(leader)
    answer = handlers.send(request, version).response
    assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS


@versions("0-5")
def test_leave_answers_for_each_member_or_for_the_only_one(handlers, version: int) -> None:
    _, (member,) = handlers.groups.stable_group(1)
    if version < 3:
        request = messages.LeaveGroupRequest(group_id="group", member_id="stranger")
        answer = handlers.send(request, version).response
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        request = messages.LeaveGroupRequest(group_id="group", member_id=member)
        assert handlers.send(request, version).response.error_code == ErrorCode.NONE
    else:
        identity = messages.LeaveGroupRequest.MemberIdentity
        request = messages.LeaveGroupRequest(
            group_id="group",
            members=[identity(member_id="stranger"), identity(member_id=member, reason="done")],
        )
        answer = handlers.send(request, version).response
        assert answer.error_code == ErrorCode.NONE
        assert [(m.member_id, m.error_code) for m in answer.members] == [
            ("stranger", ErrorCode.UNKNOWN_MEMBER_ID),
            (member, ErrorCode.NONE),
        ]
    assert handlers.groups.state() == "Empty"


@versions("0-6")
def test_describe_tells_state_and_members(handlers, version: int) -> None:
    _, (member,) = handlers.groups.stable_group(1, protocols={"range": b"meta"})
    request = messages.DescribeGroupsRequest(
        groups=["group", "no such group"], include_authorized_operations=version >= 3
    )
    known, unknown = handlers.send(request, version).response.groups
    assert (known.group_state, known.protocol_type, known.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    (reported,) = known.members
    assert (reported.member_id, reported.client_id, reported.client_host) == (
        member,
        "client",
        "/127.0.0.1",
    )
    assert (reported.member_metadata, reported.member_assignment) == (b"meta", member.encode())
    assert unknown.group_state == "Dead"
    if version >= 6:
        assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert unknown.error_message == "Group no such group not found."
    else:
        assert unknown.error_code == ErrorCode.NONE
    if version >= 3:
        assert known.authorized_operations == 0b1101_0100_1000  # as Kafka 4.3.1 tells


def test_authorized_operations_are_reported_only_when_requested_and_only_those(handlers) -> None:
    handlers.groups.commit(("orders", 0, 1))
    quiet = messages.DescribeGroupsRequest(groups=["group"])
    (group,) = handlers.send(quiet, 5).response.groups
    assert group.authorized_operations == NOT_ASKED_FOR
    handlers.denied.add(("DELETE", "GROUP", "group"))
    asking = messages.DescribeGroupsRequest(groups=["group"], include_authorized_operations=True)
    (group,) = handlers.send(asking, 5).response.groups
    assert group.authorized_operations == 0b1101_0000_1000


@versions("0-5")
def test_list_tells_what_the_version_can_say(handlers, version: int) -> None:
    handlers.groups.commit(("orders", 0, 1))
    (group,) = handlers.send(messages.ListGroupsRequest(), version).response.groups
    assert (group.group_id, group.protocol_type) == ("group", "")
    if version >= 4:
        assert group.group_state == "Empty"
        stable = messages.ListGroupsRequest(states_filter=["Stable"])
        assert handlers.send(stable, version).response.groups == []
    if version >= 5:
        assert group.group_type == "classic"
        modern = messages.ListGroupsRequest(types_filter=["consumer"])
        assert handlers.send(modern, version).response.groups == []


def test_list_shows_those_who_may_not_describe_the_cluster_only_their_groups(handlers) -> None:
    for group_id in ("mine", "theirs"):
        handlers.groups.commit(("orders", 0, 1), group_id=group_id)
    handlers.denied |= {
        ("DESCRIBE", "CLUSTER", "kafka-cluster"),
        ("DESCRIBE", "GROUP", "theirs"),
    }
    groups = handlers.send(messages.ListGroupsRequest(), 5).response.groups
    assert [group.group_id for group in groups] == ["mine"]


@versions("0-2")
def test_delete_answers_for_each_group_once(handlers, version: int) -> None:
    handlers.groups.commit(("orders", 0, 1), group_id="old")
    handlers.groups.stable_group(1)
    handlers.denied.add(("DELETE", "GROUP", "theirs"))
    request = messages.DeleteGroupsRequest(
        groups_names=["group", "old", "no such group", "theirs", "old"]
    )
    results = handlers.send(request, version).response.results
    assert [(result.group_id, result.error_code) for result in results] == [
        ("group", ErrorCode.NON_EMPTY_GROUP),
        ("old", ErrorCode.NONE),
        ("no such group", ErrorCode.GROUP_ID_NOT_FOUND),
        ("theirs", ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ]


def test_deleting_no_groups_is_answered(handlers) -> None:
    request = messages.DeleteGroupsRequest(groups_names=[])
    assert handlers.send(request, 2).response.results == []


@versions("0-6")
def test_find_coordinator_names_the_leader_of_the_groups_partition(handlers, version: int) -> None:
    answer = handlers.send(find_request(version, "group", "other"), version).response
    if version >= 4:
        assert [c.key for c in answer.coordinators] == ["group", "other"]
        found = answer.coordinators
    else:
        found = [answer]
    for entry in found:
        assert (entry.error_code, entry.node_id) == (ErrorCode.NONE, 1)
        assert (entry.host, entry.port) == ("broker.example", 9092)
    assert handlers.created == []


@versions("0-6")
def test_the_first_to_look_for_a_coordinator_waits_for_the_topic(handlers, version: int) -> None:
    handlers.forget_topics()
    answer = handlers.send(find_request(version, "group"), version).response
    found = answer.coordinators[0] if version >= 4 else answer
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 1)
    assert handlers.created == ["__consumer_offsets"]


@pytest.mark.parametrize("version", [1, 4])
@pytest.mark.parametrize("key_type", [2, 9])
def test_coordinators_that_are_not_served_are_refused_for_good(
    handlers, version: int, key_type: int
) -> None:
    request = find_request(version, "tx", key_type=key_type)
    answer = handlers.send(request, version).response
    found = answer.coordinators[0] if version >= 4 else answer
    assert (found.error_code, found.node_id) == (ErrorCode.INVALID_REQUEST, -1)
    is_silent = (key_type, version) == (2, 4)
    assert found.error_message == ("" if is_silent else DEFAULT_TEXTS[ErrorCode.INVALID_REQUEST])


def test_a_partition_without_a_leader_has_no_coordinator(handlers) -> None:
    handlers.know_topic("__consumer_offsets", bytes(range(16, 32)), 4, leader=-1)
    request = messages.FindCoordinatorRequest(coordinator_keys=["group"])
    (found,) = handlers.send(request, 4).response.coordinators
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("request_", "version", "operation", "code_of"),
    [
        (join_request(), 5, "READ", lambda r: r.error_code),
        (messages.SyncGroupRequest(group_id="group"), 4, "READ", lambda r: r.error_code),
        (messages.HeartbeatRequest(group_id="group"), 4, "READ", lambda r: r.error_code),
        (messages.LeaveGroupRequest(group_id="group"), 4, "READ", lambda r: r.error_code),
        (messages.OffsetDeleteRequest(group_id="group"), 0, "DELETE", lambda r: r.error_code),
        (
            messages.DescribeGroupsRequest(groups=["group"]),
            6,
            "DESCRIBE",
            lambda r: r.groups[0].error_code,
        ),
        (
            messages.FindCoordinatorRequest(coordinator_keys=["group"]),
            4,
            "DESCRIBE",
            lambda r: r.coordinators[0].error_code,
        ),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "group_id") else None,
)
def test_who_may_not_is_refused(handlers, request_, version: int, operation: str, code_of) -> None:
    handlers.denied.add((operation, "GROUP", "group"))
    answer = handlers.send(request_, version).response
    assert code_of(answer) == ErrorCode.GROUP_AUTHORIZATION_FAILED
