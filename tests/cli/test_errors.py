"""What goes wrong, as one sentence: each kind of error has one."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import odradek.client
import odradek.protocol.errors
import odradek.protocol.sasl
from odradek.cli.common.errors import CommandError, explain
from odradek.client.errors import (
    AuthenticationError,
    DisconnectedError,
    LogTruncationError,
    MetadataTimeoutError,
    RequestTimeoutError,
    UnsupportedByBrokerError,
)
from odradek.client.properties import PropertyError
from odradek.common.errors import ErrorCode, KafkaError
from odradek.spark_connector.errors import SparkConnectorError

from .conftest import Odradek


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
        (DisconnectedError("gone"), "the broker cannot be reached, or has gone: gone"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_errors_are_one_sentence(error: Exception, sentence: str) -> None:
    explained = explain(error)
    assert explained is not None
    assert explained.startswith(sentence)
    assert "\n" not in explained


def test_a_bug_is_explained_by_its_traceback_alone() -> None:
    assert explain(KeyError("x")) is None


CAUGHT_INSIDE = {"NothingToShift", "NoTicketError"}
"""Raised by one part of the client and caught by another."""


def exceptions_of_the_client() -> list[type[Exception]]:
    """Every kind of exception that a module of the client, or of what it stands on, defines."""
    found = set()
    for package in (odradek.client, odradek.protocol.errors, odradek.protocol.sasl):
        walked = pkgutil.walk_packages(getattr(package, "__path__", []), f"{package.__name__}.")
        for name in (package.__name__, *(each.name for each in walked)):
            if name.endswith(".gssapi"):
                continue  # needs a library that not every machine has; see CAUGHT_INSIDE
            for each in vars(importlib.import_module(name)).values():
                is_kind = isinstance(each, type) and issubclass(each, Exception)
                if is_kind and each.__module__ == name:
                    found.add(each)
    return sorted(
        (each for each in found if each.__name__ not in CAUGHT_INSIDE),
        key=lambda each: each.__name__,
    )


@pytest.mark.parametrize("kind", exceptions_of_the_client(), ids=lambda kind: kind.__name__)
def test_whatever_a_client_raises_is_explained(kind: type[Exception]) -> None:
    error = {
        LogTruncationError: lambda: LogTruncationError("t", 0, 5, 3),
        PropertyError: lambda: PropertyError("name", "it is wrong"),
    }.get(kind, lambda: kind("it is wrong"))()
    sentence = explain(error)
    assert sentence is not None
    assert str(error) in sentence


def test_of_what_several_tasks_raised_one_is_shown(
    odradek: Odradek, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [CommandError("first"), ExceptionGroup("", [CommandError("second")])]

    def raises(arguments: object) -> None:
        raise ExceptionGroup("tasks", errors)

    monkeypatch.setattr("odradek.cli.run._call", raises)
    outcome = odradek("topics", "list")
    assert (outcome.code, outcome.err) == (1, "odradek: error: first\n")
