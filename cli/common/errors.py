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
    if isinstance(error, CommandError):
        return str(error)
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return f"{where}{error.strerror or str(error) or type(error).__name__}"
    if isinstance(error, ValueError) and "surrogates not allowed" in str(error):
        return "what was given on the command line is not UTF-8"
    from ...common.errors import KafkaError
    from ...schemas.errors import SchemaError
    from ...spark_connector.errors import SparkConnectorError

    if isinstance(error, SparkConnectorError | SchemaError):
        return str(error)

    if isinstance(error, KafkaError):
        what, _, why = (error.message or "").partition(": ")
        return explain_code(error.code, what, why)
    return _explain_clients(error)


def _explain_clients(error: BaseException) -> str | None:
    """The sentence for what happened between the client and the cluster."""
    from ...client.errors import (
        ClientError,
        DisconnectedError,
        LogTruncationError,
        MetadataTimeoutError,
        PeerProtocolError,
        RequestTimeoutError,
    )
    from ...client.producer.errors import ProducerFencedError
    from ...client.properties import PropertyError
    from ...client.security.jaas import JaasError
    from ...client.security.tls_settings import TlsError
    from ...protocol.errors import EncodeError, ProtocolError, UnsupportedVersionError
    from ...protocol.sasl.errors import SaslError

    openings: dict[type[BaseException] | tuple[type[BaseException], ...], str] = {
        (MetadataTimeoutError, RequestTimeoutError): "the cluster did not answer in time: ",
        (PeerProtocolError, ProtocolError): "what answers does not speak Kafka's protocol: ",
        DisconnectedError: "the broker cannot be reached, or has gone: ",
        LogTruncationError: "records were lost; read on with --from-beginning or --offset: ",
        ProducerFencedError: "another producer has taken over: ",
        ClientError: "",
        (PropertyError, TlsError, JaasError): "a setting of --command-config cannot be used: ",
        SaslError: "the login failed: ",
        UnsupportedVersionError: "the broker is of another release: ",
        EncodeError: "a value is out of the range that the protocol has: ",
    }
    for kinds, opening in openings.items():
        if isinstance(error, kinds):
            return f"{opening}{str(error) or type(error).__name__}"
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
        ErrorCode.INVALID_TOPIC_EXCEPTION: "no topic can have this name: it has 1 to 249 of"
        " ASCII's letters, digits, '.', '_' and '-'",
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "tokens are for who has logged in, and not"
        " by a token; log in with --command-config FILE (security.protocol=SASL_SSL, ...)",
        ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "the brokers issue no tokens; start them with -o"
        " delegation.token.secret.key=SECRET",
        ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas; see:"
        " odradek topics describe TOPIC",
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
