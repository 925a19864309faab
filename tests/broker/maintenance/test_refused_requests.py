"""What requests were answered, in the log: a line a minute for each API and error."""

from __future__ import annotations

import logging

import pytest

from odradek.broker.handlers.registry import REGISTRATIONS
from odradek.broker.maintenance.refused_requests import INTERVAL_MS, RefusedRequests
from odradek.broker.request.route import Route
from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.api_keys import ApiKey
from odradek.replication.refused_writes import RefusedWrites
from odradek.runtime.clock import ManualClock

LOGGER = "odradek.broker.maintenance.refused_requests"


class Answers:
    """Routes that have answered, and what the log says of that."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, LOGGER)
        self.clock = ManualClock()
        self.routes = {
            (api_key, version): Route(REGISTRATIONS[api_key], version)
            for api_key, version in ((ApiKey.PRODUCE, 9), (ApiKey.PRODUCE, 10), (ApiKey.FETCH, 12))
        }
        self.writes = RefusedWrites(self.clock)
        self.refused = RefusedRequests(self.routes.values, self.writes, self.clock)
        self._caplog = caplog

    def answer(self, api_key: ApiKey, version: int, error: ErrorCode, count: int = 1) -> None:
        for _ in range(count):
            self.routes[api_key, version].errors.count_one(error)

    def look(self) -> list[tuple[str, str]]:
        """Level and text of what was logged since this was called last."""
        self.refused.look()
        found = [(record.levelname, record.getMessage()) for record in self._caplog.records]
        self._caplog.clear()
        return found


@pytest.fixture
def answers(caplog: pytest.LogCaptureFixture) -> Answers:
    return Answers(caplog)


def test_a_flood_is_one_line_a_minute_with_its_count(answers: Answers) -> None:
    answers.answer(ApiKey.PRODUCE, 9, ErrorCode.KAFKA_STORAGE_ERROR, 200)
    answers.answer(ApiKey.PRODUCE, 10, ErrorCode.KAFKA_STORAGE_ERROR, 64)
    text = "PRODUCE was answered KAFKA_STORAGE_ERROR 264 times in the last 60 s"
    assert answers.look() == [("WARNING", text)]
    answers.answer(ApiKey.PRODUCE, 9, ErrorCode.KAFKA_STORAGE_ERROR, 7)
    answers.clock.advance(INTERVAL_MS - 1)
    assert answers.look() == []
    answers.clock.advance(1)
    text = "PRODUCE was answered KAFKA_STORAGE_ERROR 7 times in the last 60 s"
    assert answers.look() == [("WARNING", text)]
    answers.clock.advance(INTERVAL_MS)
    assert answers.look() == []


def test_each_api_and_error_has_a_line_and_success_has_none(answers: Answers) -> None:
    answers.answer(ApiKey.PRODUCE, 9, ErrorCode.NONE)
    answers.answer(ApiKey.PRODUCE, 9, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answers.answer(ApiKey.FETCH, 12, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answers.answer(ApiKey.FETCH, 12, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert [text.split(" times")[0] for _, text in answers.look()] == [
        "PRODUCE was answered TOPIC_AUTHORIZATION_FAILED 1",
        "FETCH was answered TOPIC_AUTHORIZATION_FAILED 1",
        "FETCH was answered UNKNOWN_SERVER_ERROR 1",
    ]


def test_what_clients_meet_in_normal_life_is_no_warning(answers: Answers) -> None:
    answers.answer(ApiKey.FETCH, 12, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    (line,) = answers.look()
    assert line[0] == "INFO"


def test_what_a_partition_refused_has_its_line_with_the_reason_alone(answers: Answers) -> None:
    refusal = KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "a batch of 2070 bytes")
    answers.writes.note(refusal, "/data", TopicPartition("t", 0))
    answers.answer(ApiKey.PRODUCE, 9, ErrorCode.MESSAGE_TOO_LARGE)
    answers.answer(ApiKey.PRODUCE, 9, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answers.answer(ApiKey.FETCH, 12, ErrorCode.MESSAGE_TOO_LARGE)
    assert [text.split(" in the last")[0] for _, text in answers.look()] == [
        "a write to t-0 in /data was refused with MESSAGE_TOO_LARGE: a batch of 2070 bytes",
        "PRODUCE was answered TOPIC_AUTHORIZATION_FAILED 1 times",
        "FETCH was answered MESSAGE_TOO_LARGE 1 times",
    ]
    answers.clock.advance(INTERVAL_MS)
    assert answers.look() == []
    answers.answer(ApiKey.PRODUCE, 9, ErrorCode.MESSAGE_TOO_LARGE)
    text = "PRODUCE was answered MESSAGE_TOO_LARGE 1 times in the last 60 s"
    assert answers.look() == [("WARNING", text)], "of which no partition has given the reason"
