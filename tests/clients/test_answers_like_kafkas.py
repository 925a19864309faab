"""Answers that scenarios of `make conformance` once found to differ from Apache Kafka 4.3.1's."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol.api_keys import ApiKey
from odradek.testing.process.broker_process import BrokerProcess
from odradek.tools.conformance.requests import LATEST, batch, offset_listing, production
from odradek.tools.conformance.scenarios.administration import electing, reassigning
from odradek.tools.conformance.scenarios.appending import RECORDS_COUNT_AT, patched
from odradek.tools.conformance.scenarios.offsets import committing, deleting
from odradek.tools.conformance.scenarios.reading import BY_NAME, fetch, fetched, partition
from odradek.tools.conformance.talk import Talk
from odradek.tools.conformance.transcript import Transcript

pytestmark = pytest.mark.clients


@pytest.fixture
def talk(broker: BrokerProcess, topic: str) -> Iterator[Talk]:
    with Talk(broker.bootstrap, topic, 0, Transcript()) as talk:
        talk.create_topic(topic)
        talk.produce(topic, count=3)
        yield talk


def the_partition(answer: Any) -> Any:
    """The only partition of a Fetch or Produce answer."""
    (topic,) = answer.responses
    (only,) = topic.partitions if hasattr(topic, "partitions") else topic.partition_responses
    return only


def test_fetch_tells_partitions_that_cannot_be_read_last(talk: Talk) -> None:
    answer = talk.ask(fetched(talk.name(), {9: 0, 0: 0}), BY_NAME)
    (topic,) = answer.responses
    assert [each.partition_index for each in topic.partitions] == [0, 9]
    refused = topic.partitions[1]
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refused.aborted_transactions == []


def test_fetch_names_a_topic_again_after_another(talk: Talk) -> None:
    request = fetched(talk.name(), {0: 0, 9: 0})
    other = talk.name("other")
    talk.create_topic(other)
    request.topics += fetched(other, {0: 0}).topics
    answer = talk.ask(request, BY_NAME)
    assert [topic.topic for topic in answer.responses] == [talk.name(), other, talk.name()]


def test_isolation_level_that_is_none_is_an_error_of_the_server(talk: Talk) -> None:
    answer = talk.ask(fetched(talk.name(), {0: 0}, isolation_level=7), BY_NAME)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    answer = talk.ask(offset_listing(talk.name(), {0: LATEST}, isolation_level=7))
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.offset) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1)


def test_negative_number_of_bytes_is_an_error_where_there_are_records(talk: Talk) -> None:
    for offset, error in ((0, ErrorCode.UNKNOWN_SERVER_ERROR), (3, ErrorCode.NONE)):
        requested = [partition(0, offset, partition_max_bytes=-1)]
        answer = talk.ask(fetch(talk.name(), requested), BY_NAME)
        assert the_partition(answer).error_code == error


def test_batch_refused_by_the_log_is_answered_with_its_start(talk: Talk) -> None:
    wrong = patched(batch(b"v"), RECORDS_COUNT_AT, ">i", 2)
    refused = the_partition(talk.ask(production(talk.name(), {0: wrong}), BY_NAME))
    assert (refused.error_code, refused.log_start_offset) == (ErrorCode.INVALID_RECORD, 0)


def test_batch_refused_before_the_log_is_answered_without_its_start(talk: Talk) -> None:
    refused = the_partition(talk.ask(production(talk.name(), {0: batch(b"v")[:-1]}), BY_NAME))
    assert (refused.error_code, refused.log_start_offset) == (ErrorCode.INVALID_RECORD, -1)


def test_reassignment_to_the_replicas_that_are_there_changes_nothing(talk: Talk) -> None:
    before = talk.ask(offset_listing(talk.name(), {0: LATEST})).topics[0].partitions[0]
    answer = talk.ask(reassigning(talk.name(), {0: [1]}))
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
    after = talk.ask(offset_listing(talk.name(), {0: LATEST})).topics[0].partitions[0]
    assert after.leader_epoch == before.leader_epoch == 0


def test_replicas_are_looked_at_before_their_number(talk: Talk) -> None:
    request = reassigning(talk.name(), {0: [1, 9]}, allow_replication_factor_change=False)
    (answered,) = talk.ask(request).responses[0].partitions
    assert answered.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_election_everywhere_names_every_topic(talk: Talk) -> None:
    answer = talk.ask(electing(None))
    reported = {each.topic: each.partition_result for each in answer.replica_election_results}
    assert reported[talk.name()] == []


def test_election_that_is_not_needed_says_so(talk: Talk) -> None:
    (topic,) = talk.ask(electing(talk.name(), 0)).replica_election_results
    (result,) = topic.partition_result
    assert result.error_code == ErrorCode.ELECTION_NOT_NEEDED
    assert result.error_message


def test_topic_without_partitions_is_not_among_deleted_offsets(talk: Talk) -> None:
    group = talk.name()
    talk.wait_for_coordinator(group)
    talk.settled(committing(group, group, {0: 1}), 9)
    answer = talk.settled(deleting(group, group))
    assert (answer.error_code, answer.topics) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("length", [-1, -2, -32768])
def test_client_id_of_a_negative_length_is_none(talk: Talk, length: int) -> None:
    talk.connection.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, 0, 7, length))
    assert talk.connection.receive(ApiKey.API_VERSIONS, 0).error_code == ErrorCode.NONE
