"""The faults there are, each made by a function that a sentence would name so.

All take, by name, what requests they strike: `version` (9, "3-9" or "12+"), `client_id`, `user`,
and the `topic`, `partition`, `group` or `transactional_id` that the request names. What is left out
is not looked at. They strike every such request until they are lifted; `.once()`, `.on(3)`,
`.times(2)`, `.after(5)`, `.every(10)` and `.with_probability(0.1, seed=7)` say otherwise. What
other brokers of the cluster ask is let alone, unless `client_id` names them.

A mistake is refused at once: every function raises ValueError with a sentence.
"""

from __future__ import annotations

from typing import TypedDict, Unpack

from ...common.errors import ErrorCode
from .fault import Fault
from .matcher import make_match, nearest

HOLD_SECONDS_MAX = 24 * 3600


class Which(TypedDict, total=False):
    """Which requests of an API, by keyword."""

    version: int | str | None
    client_id: str | None
    user: str | None
    topic: str | None
    partition: int | None
    group: str | None
    transactional_id: str | None


Api = str | int | None
"""An API as Kafka names it, or by its number; None: all."""


def answer(
    api: str | int,
    error: str | int | ErrorCode,
    *,
    after_applying: bool = False,
    **which: Unpack[Which],
) -> Fault:
    """Answer with an error.

    Args:
        api: such as "Produce".
        error: such as "NOT_LEADER_OR_FOLLOWER".
        after_applying: whether the request takes effect all the same.
    """
    action = "answer_after_applying" if after_applying else "answer"
    return Fault(action, make_match(_one_api(api), **which), error=error_name(error))


def delay(api: Api = None, seconds: float = 1.0, **which: Unpack[Which]) -> Fault:
    """Hold requests for some time before they are handled."""
    return Fault("delay", make_match(api, **which), seconds=_seconds(seconds))


def delay_answer(api: Api = None, seconds: float = 1.0, **which: Unpack[Which]) -> Fault:
    """Handle requests at once, and hold their answers for some time."""
    return Fault("delay_answer", make_match(api, **which), seconds=_seconds(seconds))


def drop(api: Api = None, **which: Unpack[Which]) -> Fault:
    """Neither handle requests nor answer them; the connection stays open.

    Answers come in the order of the requests, so nothing that the connection asks later is
    answered either: its client has to give it up.
    """
    return Fault("drop", make_match(api, **which))


def drop_answer(api: Api = None, **which: Unpack[Which]) -> Fault:
    """Handle requests and never answer them; the connection stays open, as with `drop`."""
    return Fault("drop_answer", make_match(api, **which))


def disconnect(api: Api = None, **which: Unpack[Which]) -> Fault:
    """Close the connection in place of handling the request."""
    return Fault("disconnect", make_match(api, **which))


def lose_answer(api: Api = None, **which: Unpack[Which]) -> Fault:
    """Handle the request, which takes effect, and close the connection in place of the answer."""
    return Fault("lose_answer", make_match(api, **which))


def truncate_answer(api: Api = None, size: int = 6, **which: Unpack[Which]) -> Fault:
    """Send the beginning of the answer, and close the connection.

    Args:
        size: how many bytes of the answer are sent; the first four of it tell its length. Of a
            shorter answer all are sent.
    """
    return Fault("truncate_answer", make_match(api, **which), size=_size(size, 0))


def corrupt_answer(
    api: Api = None, *, byte: int | None = None, seed: int = 0, **which: Unpack[Which]
) -> Fault:
    """Turn over a bit of the answer.

    Args:
        byte: the highest bit of this one, counted from 0: the length is in 0 to 3, the
            correlation id in 4 to 7. None: any bit behind these, at random.
        seed: of the random choice.
    """
    match = make_match(api, **which)
    if byte is None:
        return Fault("corrupt_answer", match, seed=seed)
    return Fault("corrupt_byte", match, size=_size(byte, 0), seed=seed)


def corrupt_records(api: str | int = "Fetch", *, seed: int = 0, **which: Unpack[Which]) -> Fault:
    """Turn over a bit of the records in the answer, so that their checksum (CRC) is wrong."""
    return Fault("corrupt_records", make_match(_one_api(api), **which), seed=seed)


def throttle(api: Api = None, bytes_per_second: int = 1024, **which: Unpack[Which]) -> Fault:
    """Let records of requests, and answers, pass each connection no faster than this."""
    return Fault("throttle", make_match(api, **which), size=_size(bytes_per_second, 1))


def half_open(api: Api = None, **which: Unpack[Which]) -> Fault:
    """Have the connection of a request go dead: it stays open, and nothing comes over it again.

    So does a connection whose other end, or the way there, has gone without a word. When the
    fault is lifted, connections that went dead are closed.
    """
    return Fault("half_open", make_match(api, **which))


def refuse_login(**which: Unpack[Which]) -> Fault:
    """Refuse logins that are right, as if the password, or the token, were wrong or had expired.

    A login counts when it is complete, whatever number of requests that takes. Who logs in again on
    a connection (KIP-368) is refused, too.
    """
    return Fault("refuse_login", make_match("SaslAuthenticate", **which))


def expire_session(api: Api = None, **which: Unpack[Which]) -> Fault:
    """Have the login of a connection expire with a request, in place of handling that.

    The broker closes the connection, as where a client has not logged in again in time
    (`connections.max.reauth.ms`), or its token has expired.
    """
    return Fault("expire_session", make_match(api, **which))


def refuse_connections() -> Fault:
    """Reset new connections as soon as they are made; those that are there go on."""
    return Fault("refuse_connections", make_match(None))


def error_name(error: str | int | ErrorCode) -> str:
    """Kafka's name of an error.

    Raises:
        ValueError: there is none; the sentence names the nearest.
    """
    if isinstance(error, int):
        try:
            found = ErrorCode(error)
        except ValueError:
            raise ValueError(f"there is no error with the code {error}") from None
    elif isinstance(error, str) and error.upper() in ErrorCode.__members__:
        found = ErrorCode[error.upper()]
    else:
        near = nearest(str(error).upper(), ErrorCode.__members__)
        raise ValueError(f"there is no error {error!r}: did you mean {near!r}?")
    if found is ErrorCode.NONE:
        raise ValueError("NONE is no error: a fault answers with one")
    return found.name


def _one_api(api: str | int) -> str | int:
    if api is None:
        raise ValueError("an error is answered to one API: name it, such as 'Produce'")
    return api


def _seconds(seconds: float) -> float:
    if not isinstance(seconds, int | float) or not 0 <= seconds <= HOLD_SECONDS_MAX:
        raise ValueError(f"seconds are a number from 0 to {HOLD_SECONDS_MAX}, not {seconds!r}")
    return float(seconds)


def _size(size: int, least: int) -> int:
    if not isinstance(size, int) or isinstance(size, bool) or size < least:
        raise ValueError(f"a number of bytes is a whole number from {least} on, not {size!r}")
    return size
