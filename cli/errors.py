"""What goes wrong, as one sentence that says what to do next."""

from __future__ import annotations

import os
from typing import NoReturn


class CommandError(Exception):
    """A command cannot do what it was asked; the text is the sentence to show."""


def fail(sentence: str) -> NoReturn:
    """Leave the command with `sentence` as its error."""
    raise CommandError(sentence)


def explain(error: BaseException) -> str | None:
    """The sentence for an error that a user can do something about, None for a bug of ours."""
    from ..spark_connector.errors import SparkConnectorError

    if isinstance(error, CommandError | SparkConnectorError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fspath(error.filename)}: {error.strerror}"
    from kafka.errors import KafkaError

    if isinstance(error, KafkaError):
        return explain_kafka_error(error)
    return None


def explain_kafka_error(error: BaseException, what: str | None = None) -> str:
    """The sentence for what a broker answered or did not answer.

    `what` names the thing asked about, such as "topic events".
    """
    from kafka import errors

    about = f"{what}: " if what else ""
    if isinstance(error, errors.UnknownTopicOrPartitionError):
        return f"{about}there is no such topic; see: odradek topics list"
    if isinstance(error, errors.GroupIdNotFoundError):
        return f"{about}there is no such group; see: odradek groups list"
    if isinstance(error, errors.NonEmptyGroupError):
        return f"{about}the group has members; stop its consumers first"
    if isinstance(error, errors.KafkaTimeoutError):
        return f"{about}the broker did not answer in time ({_text(error)})"
    return f"{about}the broker refused: {_text(error)}"


def _text(error: BaseException) -> str:
    """The error's own words, or its class's where it has none, or too many.

    kafka-python puts whole requests and responses into some of its messages.
    """
    words = " ".join(map(str, error.args))
    if words and len(words) < 200:
        return words
    description = getattr(error, "description", None) or (type(error).__doc__ or "").strip()
    return description.splitlines()[0] if description else type(error).__name__
