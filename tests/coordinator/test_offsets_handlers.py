"""OffsetCommit, OffsetFetch and OffsetDelete over the wire, in every served version."""

import pytest

from odradek.broker.handlers.registry import parse_versions
from odradek.common.errors import ErrorCode
from odradek.protocol import messages

ORDERS_ID = bytes(range(16))
UNKNOWN_ID = bytes([255] * 16)
FIRST_VERSION_WITH_TOPIC_IDS = 10


def versions(text: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", parse_versions(text))


def commit_request(
    *topics: tuple[str, bytes, list[int]], group_id: str = "group", **fields: object
) -> messages.OffsetCommitRequest:
    """Commit offset 5, leader epoch 2, metadata "note" for the partitions."""
    request = messages.OffsetCommitRequest
    return request(
        group_id=group_id,
        topics=[
            request.OffsetCommitRequestTopic(
                name=name,
                topic_id=topic_id,
                partitions=[
                    request.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=5,
                        committed_leader_epoch=2,
                        committed_metadata="note",
                    )
                    for index in indexes
                ],
            )
            for name, topic_id, indexes in topics
        ],
        **fields,
    )


def errors_of(response: messages.OffsetCommitResponse) -> list[list[int]]:
    return [[p.error_code for p in topic.partitions] for topic in response.topics]


@versions("2-10")
def test_commits_succeed_or_fail_each_on_its_own(handlers, version: int) -> None:
    request = commit_request(
        ("orders", ORDERS_ID, [0, 1, 2]), ("unknown", UNKNOWN_ID, [0]), retention_time_ms=-1
    )
    response = handlers.send(request, version).response
    unknown = (
        ErrorCode.UNKNOWN_TOPIC_ID
        if version >= FIRST_VERSION_WITH_TOPIC_IDS
        else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert errors_of(response) == [
        [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [unknown],
    ]
    if version >= FIRST_VERSION_WITH_TOPIC_IDS:
        assert [topic.topic_id for topic in response.topics] == [ORDERS_ID, UNKNOWN_ID]
    else:
        assert [topic.name for topic in response.topics] == ["orders", "unknown"]
    assert handlers.groups.offsets() == {("orders", 0): 5, ("orders", 1): 5}
    position = handlers.groups.group().offsets.get("orders", 0)
    assert position.leader_epoch == (2 if version >= 6 else -1)
    assert (position.metadata, position.topic_id) == ("note", ORDERS_ID)


def test_a_commit_is_answered_when_it_is_stored(handlers) -> None:
    handlers.groups.log.is_held = True
    reply = handlers.send(commit_request(("orders", ORDERS_ID, [0])), 8)
    assert reply.is_waiting
    handlers.groups.log.release()
    assert errors_of(reply.response) == [[ErrorCode.NONE]]


@versions("2-4")
def test_early_versions_may_ask_for_a_retention_of_their_own(handlers, version: int) -> None:
    handlers.send(commit_request(("orders", ORDERS_ID, [0]), retention_time_ms=1_000), version)
    position = handlers.groups.group().offsets.get("orders", 0)
    assert position.expire_timestamp_ms == position.commit_timestamp_ms + 1_000


@versions("2-10")
def test_a_member_of_an_unknown_group_is_refused(handlers, version: int) -> None:
    request = commit_request(
        ("orders", ORDERS_ID, [0, 9]), generation_id_or_member_epoch=3, member_id="m"
    )
    refused = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
    response = handlers.send(request, version).response
    assert errors_of(response) == [[refused, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]]


def test_commits_of_those_who_may_not_are_refused(handlers) -> None:
    handlers.denied.add(("READ", "TOPIC", "orders"))
    response = handlers.send(commit_request(("orders", ORDERS_ID, [0])), 8).response
    assert errors_of(response) == [[ErrorCode.TOPIC_AUTHORIZATION_FAILED]]
    handlers.denied.add(("READ", "GROUP", "group"))
    response = handlers.send(commit_request(("orders", ORDERS_ID, [0])), 8).response
    assert errors_of(response) == [[ErrorCode.GROUP_AUTHORIZATION_FAILED]]


def test_null_metadata_are_kept_as_none_at_all(handlers) -> None:
    request = commit_request(("orders", ORDERS_ID, [0]))
    request.topics[0].partitions[0].committed_metadata = None
    handlers.send(request, 8)
    assert handlers.groups.group().offsets.get("orders", 0).metadata == ""


# -- OffsetFetch ------------------------------------------------------------------------------


def fetch_request(
    version: int,
    topics: list[tuple[str, bytes, list[int]]] | None,
    group_ids: tuple[str, ...] = ("group",),
    *,
    require_stable: bool = False,
) -> messages.OffsetFetchRequest:
    request = messages.OffsetFetchRequest
    if version >= 8:
        return request(
            require_stable=require_stable,
            groups=[
                request.OffsetFetchRequestGroup(
                    group_id=group_id,
                    topics=None
                    if topics is None
                    else [
                        request.OffsetFetchRequestTopics(
                            name=name, topic_id=topic_id, partition_indexes=indexes
                        )
                        for name, topic_id, indexes in topics
                    ],
                )
                for group_id in group_ids
            ],
        )
    return request(
        group_id=group_ids[0],
        require_stable=require_stable,
        topics=None
        if topics is None
        else [
            request.OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
            for name, _, indexes in topics
        ],
    )


def reported(response: messages.OffsetFetchResponse, version: int) -> tuple[int, dict]:
    """The group's error, and (topic or its id, partition) to offset, metadata and error."""
    group = response.groups[0] if version >= 8 else response
    error = group.error_code if version >= 2 else 0
    positions = {}
    for topic in group.topics:
        name = topic.topic_id if version >= FIRST_VERSION_WITH_TOPIC_IDS else topic.name
        for p in topic.partitions:
            positions[name, p.partition_index] = (p.committed_offset, p.metadata, p.error_code)
    return error, positions


@versions("1-10")
def test_what_was_committed_is_reported_and_what_was_not_is_minus_one(
    handlers, version: int
) -> None:
    handlers.send(commit_request(("orders", ORDERS_ID, [1])), 10)
    request = fetch_request(version, [("orders", ORDERS_ID, [0, 1])])
    response = handlers.send(request, version).response
    name = ORDERS_ID if version >= FIRST_VERSION_WITH_TOPIC_IDS else "orders"
    assert reported(response, version) == (
        0,
        {(name, 0): (-1, "", ErrorCode.NONE), (name, 1): (5, "note", ErrorCode.NONE)},
    )
    if version >= 5:
        group = response.groups[0] if version >= 8 else response
        assert [p.committed_leader_epoch for p in group.topics[0].partitions] == [-1, 2]


@versions("2-10")
def test_without_a_list_of_topics_everything_is_reported(handlers, version: int) -> None:
    handlers.groups.commit(("orders", 0, 7), ("gone", 3, 8))
    response = handlers.send(fetch_request(version, None), version).response
    _, positions = reported(response, version)
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    assert positions == {
        (ORDERS_ID if by_id else "orders", 0): (7, "", ErrorCode.NONE),
        (bytes(16) if by_id else "gone", 3): (8, "", ErrorCode.NONE),
    }


@versions("1-10")
def test_an_unknown_group_has_committed_nothing(handlers, version: int) -> None:
    response = handlers.send(fetch_request(version, [("orders", ORDERS_ID, [0])]), version).response
    error, positions = reported(response, version)
    assert error == 0
    assert list(positions.values()) == [(-1, "", ErrorCode.NONE)]


@versions("1-10")
def test_a_group_that_is_coordinated_elsewhere_is_refused_as_the_version_can(
    handlers, version: int
) -> None:
    partition = handlers.coordinators.group.partition_for("group")
    handlers.coordinators.group.note_leadership(partition, 1, is_leader=False)
    response = handlers.send(fetch_request(version, [("orders", ORDERS_ID, [0])]), version).response
    error, positions = reported(response, version)
    if version == 1:
        assert list(positions.values()) == [(-1, "", ErrorCode.NOT_COORDINATOR)]
    else:
        assert (error, positions) == (ErrorCode.NOT_COORDINATOR, {})


@versions("8-10")
def test_several_groups_are_described_in_the_order_requested(handlers, version: int) -> None:
    handlers.groups.commit(("orders", 0, 7), group_id="a")
    handlers.groups.commit(("orders", 0, 9), group_id="b")
    handlers.denied.add(("DESCRIBE", "GROUP", "theirs"))
    request = fetch_request(version, None, ("b", "theirs", "a"))
    groups = handlers.send(request, version).response.groups
    assert [(g.group_id, g.error_code) for g in groups] == [
        ("b", ErrorCode.NONE),
        ("theirs", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("a", ErrorCode.NONE),
    ]
    assert groups[0].topics[0].partitions[0].committed_offset == 9


def test_asking_for_no_group_at_all_is_answered(handlers) -> None:
    assert handlers.send(fetch_request(8, None, ()), 8).response.groups == []


@versions("7-10")
def test_who_wants_it_stable_waits_for_commits_on_their_way(handlers, version: int) -> None:
    handlers.groups.log.is_held = True
    handlers.send(commit_request(("orders", ORDERS_ID, [0])), 8)
    request = fetch_request(version, [("orders", ORDERS_ID, [0])], require_stable=True)
    reply = handlers.send(request, version)
    assert reply.is_waiting
    handlers.groups.log.release()
    _, positions = reported(reply.response, version)
    assert list(positions.values()) == [(5, "note", ErrorCode.NONE)]


@versions("7-10")
def test_positions_of_open_transactions_are_unstable_for_who_asks(handlers, version: int) -> None:
    handlers.groups.commit(("orders", 0, 7), ("orders", 1, 8))
    offsets = handlers.groups.group().offsets
    offsets.put_pending(77, "orders", 0, offsets.get("orders", 1))
    requested = [("orders", ORDERS_ID, [0, 1])]
    request = fetch_request(version, requested, require_stable=True)
    _, positions = reported(handlers.send(request, version).response, version)
    assert list(positions.values()) == [
        (-1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT),
        (8, "", ErrorCode.NONE),
    ]
    _, positions = reported(
        handlers.send(fetch_request(version, requested), version).response, version
    )
    assert [offset for offset, _, _ in positions.values()] == [7, 8]


def test_a_topic_made_anew_has_no_committed_offsets(handlers) -> None:
    handlers.send(commit_request(("orders", ORDERS_ID, [0])), 10)
    handlers.forget_topics()
    new_id = bytes(reversed(range(16)))
    handlers.know_topic("orders", new_id, 2)
    handlers.know_topic("__consumer_offsets", bytes(range(16, 32)), 4)
    response = handlers.send(fetch_request(10, [("orders", new_id, [0])]), 10).response
    assert reported(response, 10) == (0, {(new_id, 0): (-1, "", ErrorCode.NONE)})


def test_an_unknown_topic_id_is_reported(handlers) -> None:
    response = handlers.send(fetch_request(10, [("", UNKNOWN_ID, [0])]), 10).response
    assert reported(response, 10) == (0, {(UNKNOWN_ID, 0): (-1, "", ErrorCode.UNKNOWN_TOPIC_ID)})


def test_offsets_of_topics_that_one_may_not_see_are_not_reported(handlers) -> None:
    handlers.groups.commit(("orders", 0, 7))
    handlers.denied.add(("DESCRIBE", "TOPIC", "orders"))
    requested = fetch_request(8, [("orders", ORDERS_ID, [0])])
    _, positions = reported(handlers.send(requested, 8).response, 8)
    assert positions == {("orders", 0): (-1, "", ErrorCode.TOPIC_AUTHORIZATION_FAILED)}
    _, positions = reported(handlers.send(fetch_request(8, None), 8).response, 8)
    assert positions == {}


# -- OffsetDelete -----------------------------------------------------------------------------


def delete_request(*keys: tuple[str, int]) -> messages.OffsetDeleteRequest:
    request = messages.OffsetDeleteRequest
    return request(
        group_id="group",
        topics=[
            request.OffsetDeleteRequestTopic(
                name=topic, partitions=[request.OffsetDeleteRequestPartition(partition_index=index)]
            )
            for topic, index in keys
        ],
    )


def test_delete_answers_for_each_partition(handlers) -> None:
    handlers.groups.commit(("orders", 0, 7), ("orders", 1, 8))
    handlers.denied.add(("READ", "TOPIC", "secret"))
    request = delete_request(("orders", 0), ("unknown", 0), ("secret", 0), ("orders", 5))
    response = handlers.send(request, 0).response
    assert response.error_code == ErrorCode.NONE
    assert [
        (t.name, p.partition_index, p.error_code) for t in response.topics for p in t.partitions
    ] == [
        ("orders", 0, ErrorCode.NONE),
        ("unknown", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("secret", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("orders", 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert handlers.groups.offsets() == {("orders", 1): 8}


def test_delete_of_an_unknown_group_fails_as_a_whole(handlers) -> None:
    response = handlers.send(delete_request(("orders", 0)), 0).response
    assert (response.error_code, response.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
