"""What went wrong, as a heading, a sentence that says what to do next, and a status."""

from __future__ import annotations

from typing import NamedTuple

from ..client.errors import (
    AuthenticationError,
    ClientError,
    NoLeaderError,
    PeerProtocolError,
    UnsupportedByBrokerError,
)
from ..common.errors import ErrorCode, KafkaError
from ..protocol.errors import EncodeError, ProtocolError
from ..schemas.errors import RegistryError, SchemaError, ValueEncodingError
from .control_channel import ControlFailed
from .parameters import ParameterError


class Explanation(NamedTuple):
    """For a page of its own, or a note on one."""

    status: int
    title: str
    advice: str


NOBODY_ANSWERS = 503
"""The status of what may pass by itself."""

NOT_THERE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "There is no such topic",
        "It may have been deleted, or this login may not see it. The list of topics has all that "
        "it may see.",
    ),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (
        "No topic can have this name",
        "Names have 1 to 249 of ASCII's letters and digits, '.', '_' and '-'.",
    ),
    ErrorCode.GROUP_ID_NOT_FOUND: (
        "There is no such group",
        "It may have been deleted, or have lost its last offsets. Groups appear when their first "
        "member joins or commits.",
    ),
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: (
        "There is no such transactional id",
        "Its coordinator forgets it some days after its last transaction.",
    ),
    ErrorCode.OFFSET_OUT_OF_RANGE: (
        "There is no such offset",
        "The record may have been deleted by retention, or not be written yet.",
    ),
}

FORBIDDEN = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)

HANDLED = (
    KafkaError,
    ClientError,
    ProtocolError,
    EncodeError,
    ParameterError,
    ControlFailed,
    SchemaError,
    ValueEncodingError,
)
"""What is explained; anything else is a mistake of ours."""


def explain(error: BaseException, cluster: str) -> Explanation:
    """What to tell of an error.

    Args:
        error: one of `HANDLED`.
        cluster: where its brokers were looked for.
    """
    if isinstance(error, KafkaError):
        return _explain_code(error)
    if isinstance(error, ParameterError):
        return Explanation(400, "This address is not right", f"{error}.")
    if isinstance(error, ControlFailed):
        return Explanation(502, "The test broker did not do it", f"{error}.")
    if isinstance(error, RegistryError):
        return Explanation(502, "The schema registry does not answer", f"{error}.")
    if isinstance(error, SchemaError | ValueEncodingError):
        return Explanation(400, "The schema does not allow it", f"{error}.")
    if isinstance(error, AuthenticationError):
        return Explanation(
            502,
            "The brokers refuse the console's login",
            f"{error}. Name a file with the right settings with --command-config.",
        )
    if isinstance(error, UnsupportedByBrokerError):
        return Explanation(
            501, "The brokers are too old for this", f"{error}. The other pages work all the same."
        )
    if isinstance(error, PeerProtocolError | ProtocolError | EncodeError):
        return Explanation(502, "The answer could not be read", f"{error}.")
    if isinstance(error, NoLeaderError):
        return Explanation(
            NOBODY_ANSWERS,
            "The partition has no leader",
            f"{error}. Start the brokers that have replicas of it again; the page Storage says "
            "whose disks have failed.",
        )
    return Explanation(
        NOBODY_ANSWERS,
        "No broker answers",
        f"The console looks for the cluster at {cluster}, and goes on trying. If nothing runs "
        f"there, start it; `odradek serve` does. What was seen last: {error or type(error)}.",
    )


def _explain_code(error: KafkaError) -> Explanation:
    if error.code in NOT_THERE:
        return Explanation(404, *NOT_THERE[error.code])
    detail = error.message or error.code.name
    if error.code in FORBIDDEN:
        return Explanation(
            403,
            "The console's login may not see this",
            f"{detail}. Log in as another user with --command-config, or add an ACL.",
        )
    if error.code is ErrorCode.SECURITY_DISABLED:
        return Explanation(
            409,
            "The brokers have no ACLs",
            "They serve without an authorizer: everybody may do everything.",
        )
    return Explanation(409, "The broker refused", f"{detail} ({error.code.name}).")
