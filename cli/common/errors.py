"""What goes wrong, as one sentence that says what to do next."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from ...common.errors import ErrorCode


class CommandError(Exception):
    """A command cannot do its work; the text is the sentence to show."""


def fail(sentence: str) -> NoReturn:
    """Leave the command with `sentence` as its error."""
    raise CommandError(sentence)


def explain(error: BaseException) -> str | None:
    """The sentence for an error that a user can do something about, None for a bug of ours."""
    from ...schemas.errors import SchemaError
    from ...spark_connector.errors import SparkConnectorError

    if isinstance(error, CommandError | SparkConnectorError | SchemaError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fspath(error.filename)}: {error.strerror}"
    from ...client.errors import (
        AuthenticationError,
        ClientError,
        MetadataTimeoutError,
        RequestTimeoutError,
        UnsupportedByBrokerError,
    )
    from ...common.errors import KafkaError

    if isinstance(error, KafkaError):
        what, _, why = (error.message or "").partition(": ")
        return explain_code(error.code, what, why)
    if isinstance(error, AuthenticationError | UnsupportedByBrokerError):
        return str(error)
    if isinstance(error, MetadataTimeoutError | RequestTimeoutError):
        return f"the cluster did not answer in time: {error}"
    if isinstance(error, ClientError):
        return f"the cluster did not answer as it should: {error}"
    return None


def explain_code(code: ErrorCode, what: str | None = None, why: str | None = None) -> str:
    """The sentence for an error code in a broker's answer.

    `what` names the subject, such as "group orders"; `why` is in the broker's words.
    """
    from ...common.errors import ErrorCode

    reasons = {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic; see: odradek topics list",
        ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group; see: odradek groups list",
        ErrorCode.NON_EMPTY_GROUP: "the group has members; stop its consumers first",
        ErrorCode.UNKNOWN_MEMBER_ID: "the group has members; stop its consumers first",
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group reads this topic; stop its consumers first",
        ErrorCode.INVALID_REGULAR_EXPRESSION: "that is no regular expression (in RE2's syntax)",
        ErrorCode.INVALID_GROUP_ID: "no group can have this name",
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "there is no such transactional id; see: odradek"
        " transactions list",
        ErrorCode.SECURITY_DISABLED: "the brokers have no ACLs; start them with -o"
        " authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "you may not do this with the cluster; log in as a"
        " super user, or as one whom an ACL allows it (--command-config FILE), and see: odradek"
        " acls explain --help",
        ErrorCode.UNSTABLE_OFFSET_COMMIT: "a transaction has yet to settle the offset; see:"
        " odradek transactions list",
    }
    about = f"{what}: " if what else ""
    return about + reasons.get(code, f"the broker refused: {why or code.name}")
