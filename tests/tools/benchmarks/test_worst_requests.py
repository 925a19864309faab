"""The candidates for the worst request: every API has some, of the size that they shall have."""

from __future__ import annotations

import pytest

from odradek.broker.handlers.registry import REGISTRATIONS
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import read_request_header
from odradek.protocol.messages import request_message
from odradek.tools.benchmarks.worst.requests import Candidate, candidates
from odradek.tools.benchmarks.worst.scene import Scene

TOPICS = [f"t{number}" for number in range(5)]
SCENE = Scene(
    3,
    TOPICS,
    20,
    {name: bytes([number + 1] * 16) for number, name in enumerate(TOPICS)},
    ["g0", "g1"],
    ["x0", "x1"],
    ["/logs"],
)


def body_of(candidate: Candidate) -> object:
    frame = memoryview(candidate.frame)[4:]
    version = int.from_bytes(frame[2:4])
    _, _, position = read_request_header(frame)
    body, end = request_message(candidate.api).decoder(version)(frame, position)
    assert end == len(frame)
    return body


@pytest.mark.parametrize("api", [ApiKey(key) for key in REGISTRATIONS], ids=lambda api: api.name)
def test_every_api_has_requests_of_about_the_size(api: ApiKey) -> None:
    found = list(candidates(api, SCENE, 2_000))
    assert found
    for candidate in found:
        frame = candidate.frame
        assert int.from_bytes(frame[4:6]) == api
        if candidate.elements > 1:
            assert 1_000 <= len(frame) <= 4_000


def test_arrays_are_filled_one_at_a_time_with_what_exists_and_what_does_not() -> None:
    found = {each.shape: each for each in candidates(ApiKey.LIST_OFFSETS, SCENE, 2_000)}
    topics = {
        naming: body_of(found[f"topics: {naming}"]).topics  # type: ignore[attr-defined]
        for naming in ("the same", "each", "unknown")
    }
    assert {topic.name for topic in topics["the same"]} == {"t0"}
    assert {topic.name for topic in topics["each"]} == set(TOPICS)
    assert not {topic.name for topic in topics["unknown"]} & set(TOPICS)
    (topic,) = body_of(found["topics.partitions: each"]).topics  # type: ignore[attr-defined]
    assert {each.partition_index for each in topic.partitions} == set(range(20))


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
