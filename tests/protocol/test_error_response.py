"""The error answer of each API, against what Kafka 4.3.1 answers to the same request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from odradek.protocol import ApiKey, ErrorCode, messages
from odradek.protocol.error_response import ECHOES, error_response

Rows = Callable[[str], list[list[str]]]

CODE = ErrorCode.POLICY_VIOLATION

MESSAGE_FIELD = "error_message"


def without_messages(value: Any, found: set[str | None]) -> Any:
    """The value with its error messages taken out, which are put into the set."""
    if isinstance(value, list):
        for element in value:
            without_messages(element, found)
    elif hasattr(value, "unknown_tags"):
        for name in type(value).__slots__:
            if name == MESSAGE_FIELD:
                found.add(value.error_message)
                value.error_message = None
            else:
                without_messages(getattr(value, name), found)
    return value


def sorted_and_without_empty_topics(response: Any) -> Any:
    """Kafka collects some answers in maps, which keep neither order nor topics of nothing."""
    if type(response).api_key == ApiKey.PRODUCE:
        response.responses = [topic for topic in response.responses if topic.partition_responses]
        response.responses.sort(key=repr)
        for topic in response.responses:
            topic.partition_responses.sort(key=repr)
    elif type(response).api_key == ApiKey.WRITE_TXN_MARKERS:
        for marker in response.markers:
            marker.topics = [topic for topic in marker.topics if topic.partitions]
    elif type(response).api_key == ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
        response.results.sort(key=repr)
    return response


def test_every_api_answers_errors_as_kafka_does(kafka_rows: Rows) -> None:
    rows = kafka_rows("kafka-4.3.1-refusals.tsv")
    assert len({row[0] for row in rows}) == 89
    for api_key, row_version, request_body, response_body in rows:
        key, version = ApiKey(int(api_key)), int(row_version)
        if key == ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:
            continue  # Kafka leaves the users' names out.
        request = messages.request_message(key).decoder(version)(bytes.fromhex(request_body), 0)[0]
        response_message = messages.response_message(key)
        kafkas = response_message.decoder(version)(bytes.fromhex(response_body), 0)[0]
        ours = error_response(key, version, request, CODE, "refused")
        assert response_message.encoder(version)(ours)
        kafkas_messages: set[str | None] = set()
        our_messages: set[str | None] = set()
        expected = sorted_and_without_empty_topics(without_messages(kafkas, kafkas_messages))
        found = sorted_and_without_empty_topics(without_messages(ours, our_messages))
        assert found == expected, (key, version)
        # Ours say why wherever they can, which Kafka's do not always.
        assert "refused" in our_messages or "refused" not in kafkas_messages


@pytest.mark.parametrize("api_key", ApiKey, ids=lambda api_key: api_key.name)
def test_an_error_can_be_answered_before_the_request_was_read(api_key: ApiKey) -> None:
    response_message = messages.response_message(api_key)
    for version in response_message.versions:
        response = error_response(api_key, version, None, ErrorCode.UNSUPPORTED_VERSION)
        assert response_message.encoder(version)(response)


def test_every_answer_carries_the_code_somewhere() -> None:
    for api_key in ApiKey:
        response_message = messages.response_message(api_key)
        for version in response_message.versions:
            top_level = any(
                field.name == "error_code" and version in field.versions
                for field in response_message.fields
            )
            nowhere = api_key == ApiKey.DESCRIBE_LOG_DIRS and version < 3  # As in Kafka.
            assert top_level or api_key in ECHOES or nowhere


def test_an_unsupported_version_of_api_versions_is_answered_with_the_supported_ones() -> None:
    response = error_response(ApiKey.API_VERSIONS, 0, None, ErrorCode.UNSUPPORTED_VERSION)
    (own,) = response.api_keys
    assert (own.api_key, own.min_version, own.max_version) == (18, 0, 4)


def test_scram_users_are_named_in_the_answer() -> None:
    users = [messages.DescribeUserScramCredentialsRequest.UserName(name="alice")]
    request = messages.DescribeUserScramCredentialsRequest(users=users)
    response = error_response(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request, CODE)
    assert [(result.user, result.error_code) for result in response.results] == [("alice", CODE)]


def test_the_old_control_requests_name_each_partition() -> None:
    stop = messages.StopReplicaRequest
    for version, request in (
        (0, stop(ungrouped_partitions=[stop.StopReplicaPartitionV0(topic_name="t")])),
        (1, stop(topics=[stop.StopReplicaTopicV1(name="t", partition_indexes=[0])])),
        (
            3,
            stop(
                topic_states=[
                    stop.StopReplicaTopicState(
                        topic_name="t", partition_states=[stop.StopReplicaPartitionState()]
                    )
                ]
            ),
        ),
    ):
        response = error_response(ApiKey.STOP_REPLICA, version, request, CODE)
        assert response.error_code == CODE
        (partition,) = response.partition_errors
        assert (partition.topic_name, partition.partition_index) == ("t", 0)
        assert partition.error_code == CODE
