"""The worst requests: every API has some, they name what is there, and misses are found."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.handlers.registry import REGISTRATIONS
from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import read_request_header
from odradek.protocol.messages import request_message
from odradek.tools.benchmarks.worst.answers import error_codes
from odradek.tools.benchmarks.worst.requests import Candidate, candidates
from odradek.tools.benchmarks.worst.rows import GOALS, Goal, Row, missed, refused_apis
from odradek.tools.benchmarks.worst.scene import KINDS, GroupKind, MadeGroup, Scene

TOPICS = [f"t{number}" for number in range(5)]
SCENE = Scene(
    3,
    TOPICS,
    20,
    {name: bytes([number + 1] * 16) for number, name in enumerate(TOPICS)},
    ["g0", "g1"],
    ["x0", "x1"],
    ["/logs"],
    {
        kind: [
            MadeGroup(f"{kind.value}{n}", [f"{kind.value}-{n}-{m}" for m in range(3)], 7)
            for n in range(2)
        ]
        for kind in GroupKind
    },
    {GroupKind.SHARE: [MadeGroup("empty")]},
    {"x0": (100, 4), "x1": (101, 5)},
    ["user0", "user1"],
    b"hmac",
)


def body_in(whole: bytes) -> Any:
    frame = memoryview(whole)[4:]
    api, version = ApiKey(int.from_bytes(frame[:2])), int.from_bytes(frame[2:4])
    _, _, position = read_request_header(frame)
    body, end = request_message(api).decoder(version)(frame, position)
    assert end == len(frame)
    return body


def body_of(candidate: Candidate) -> Any:
    return body_in(candidate.frame)


def found_by_shape(api: ApiKey) -> dict[str, Candidate]:
    return {each.shape: each for each in candidates(api, SCENE, 2_000)}


@pytest.mark.parametrize("api", [ApiKey(key) for key in REGISTRATIONS], ids=lambda api: api.name)
def test_every_api_has_requests_of_about_the_size(api: ApiKey) -> None:
    found = list(candidates(api, SCENE, 2_000))
    assert found
    for candidate in found:
        frame = candidate.frame
        assert int.from_bytes(frame[4:6]) == api
        if "each once" in candidate.shape:
            assert candidate.elements == len(TOPICS)
        elif candidate.elements > 1:
            assert 1_000 <= len(frame) <= 4_000


def test_arrays_are_filled_one_at_a_time_with_what_exists_and_what_does_not() -> None:
    found = found_by_shape(ApiKey.LIST_OFFSETS)
    topics = {
        naming: body_of(found[f"topics: {naming}"]).topics
        for naming in ("the same", "each", "unknown")
    }
    assert {topic.name for topic in topics["the same"]} == {"t0"}
    assert {topic.name for topic in topics["each"]} == set(TOPICS)
    assert not {topic.name for topic in topics["unknown"]} & set(TOPICS)
    (topic,) = body_of(found["topics.partitions: each"]).topics
    assert {each.partition_index for each in topic.partitions} == set(range(20))


def test_what_may_be_named_once_only_names_all_that_there_is() -> None:
    once = found_by_shape(ApiKey.DELETE_TOPICS)
    bodies = [body_of(each) for shape, each in once.items() if "each once" in shape]
    assert bodies
    assert {frozenset(each.name or each.topic_id for each in body.topics) for body in bodies} == {
        frozenset(TOPICS),
        frozenset(SCENE.topic_ids.values()),
    }
    assert all(len(body.topics) == len(TOPICS) for body in bodies)


def test_all_of_what_may_be_null_is_a_request_of_its_own() -> None:
    shapes = [each.shape for each in candidates(ApiKey.METADATA, SCENE, 2_000)]
    assert "topics: all" in shapes


def test_what_a_broker_does_not_read_becomes_smaller_until_nothing_is_left() -> None:
    candidate: Candidate | None = next(candidates(ApiKey.METADATA, SCENE, 2_000))
    sizes = []
    while candidate is not None:
        sizes.append(len(candidate.frame))
        candidate = candidate.smaller()
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) > 5


@pytest.mark.parametrize("api", KINDS, ids=lambda api: api.name)
def test_requests_of_groups_name_one_of_their_kind(api: ApiKey) -> None:
    known = SCENE.made_groups[KINDS[api]]
    empty = SCENE.empty_groups.get(KINDS[api], ())
    named = set()
    for candidate in candidates(api, SCENE, 2_000):
        body = body_of(candidate)
        if hasattr(body, "group_id"):
            named.add(body.group_id)
        else:
            for each in getattr(body, "groups", None) or body.group_ids:
                named.add(getattr(each, "group_id", each))
    assert named & {each.group_id for each in (*known, *empty)}


def test_members_beat_in_their_epoch_and_what_joins_is_another_time() -> None:
    bodies = [body_of(each) for each in candidates(ApiKey.CONSUMER_GROUP_HEARTBEAT, SCENE, 2_000)]
    known = SCENE.made_groups[GroupKind.CONSUMER][0]
    in_group = [each for each in bodies if each.group_id == known.group_id]
    assert {(each.member_id, each.member_epoch) for each in in_group} == {
        (known.member_ids[0], known.epoch),
        (known.member_ids[0], 0),
    }
    assert len({each.group_id for each in bodies}) > 1


def test_members_of_share_groups_acknowledge_in_a_session_that_is_opened_before() -> None:
    member = SCENE.made_groups[GroupKind.SHARE][0]
    for candidate in candidates(ApiKey.SHARE_ACKNOWLEDGE, SCENE, 2_000):
        assert candidate.opening is not None
        for body in (body_in(candidate.opening), body_of(candidate)):
            assert (body.group_id, body.member_id) == (member.group_id, member.member_ids[0])
        assert body_in(candidate.opening).share_session_epoch == 0


def test_transactions_are_those_of_their_producers() -> None:
    each = found_by_shape(ApiKey.ADD_PARTITIONS_TO_TXN)["transactions: each"]
    assert {
        (one.transactional_id, one.producer_id, one.producer_epoch)
        for one in body_of(each).transactions
    } == {("x0", 100, 4), ("x1", 101, 5)}
    (end,) = candidates(ApiKey.END_TXN, SCENE, 2_000)
    assert end.opening is not None
    begun = body_in(end.opening)
    assert begun.v3_and_below_transactional_id == body_of(end).transactional_id == "x0"


def test_an_answer_has_the_codes_of_what_was_refused_in_it() -> None:
    response = messages.OffsetDeleteResponse
    topic, partition = (
        response.OffsetDeleteResponseTopic,
        response.OffsetDeleteResponsePartition,
    )
    refused = partition(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    answer = response(topics=[topic(partitions=[partition(), refused])])
    assert error_codes(answer) == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
    assert error_codes(answer) == [ErrorCode.GROUP_ID_NOT_FOUND]


def row(api: str = "FETCH", **figures: Any) -> Row:
    return Row(api, "", 1, 1, 1, cpu_ms=0.0, **{"memory_mb": 0.0, "hold_ms": 0.0, **figures})


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.figure)
def test_what_misses_a_goal_is_found(goal: Goal) -> None:
    late = row(**{goal.figure: goal.most + 0.1})
    assert missed(late, judges_waits=True) == {goal.figure}
    assert missed(late, judges_waits=False) == (set() if goal.is_of_waits else {goal.figure})
    assert not missed(row(**{goal.figure: goal.most}), judges_waits=True)


def test_apis_without_any_answer_but_errors_are_named() -> None:
    rows = [row(), row(has_succeeded=True), row("PRODUCE"), row("PRODUCE")]
    assert refused_apis(rows) == ["PRODUCE"]
