"""What goes wrong, as one sentence: each kind of error has one."""

from __future__ import annotations

import pytest

from odradek.cli.common.errors import CommandError, explain
from odradek.client.errors import (
    AuthenticationError,
    DisconnectedError,
    MetadataTimeoutError,
    RequestTimeoutError,
    UnsupportedByBrokerError,
)
from odradek.common.errors import ErrorCode, KafkaError
from odradek.spark_connector.errors import SparkConnectorError


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (CommandError("as it is"), "as it is"),
        (SparkConnectorError("as it is"), "as it is"),
        (FileNotFoundError(2, "No such file or directory", "x.txt"), "x.txt: No such file"),
        (
            KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic t: This server does not host"),
            "topic t: there is no such topic; see: odradek topics list",
        ),
        (
            KafkaError(ErrorCode.INVALID_CONFIG, "topic t: a: b: c"),
            "topic t: the broker refused: a: b: c",
        ),
        (KafkaError(ErrorCode.INVALID_CONFIG), "the broker refused: INVALID_CONFIG"),
        (AuthenticationError("b:1 refused the credentials: no"), "b:1 refused the credentials: no"),
        (UnsupportedByBrokerError("broker 1 is too old"), "broker 1 is too old"),
        (RequestTimeoutError("30 s"), "the cluster did not answer in time: 30 s"),
        (MetadataTimeoutError("30 s"), "the cluster did not answer in time: 30 s"),
        (DisconnectedError("gone"), "the cluster did not answer as it should: gone"),
    ],
)
def test_errors_are_one_sentence(error: Exception, sentence: str) -> None:
    explained = explain(error)
    assert explained is not None
    assert explained.startswith(sentence)
    assert "\n" not in explained


def test_a_bug_is_explained_by_its_traceback_alone() -> None:
    assert explain(KeyError("x")) is None
