"""The stage before all others on a listener that speaks SASL: only who has logged in goes on.

What a connection's logins have come to is `security.authenticator`'s; here is what that means for
its frames and for the answers to SaslHandshake and SaslAuthenticate.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING

from ...common.errors import ErrorCode
from ...protocol import messages
from ...protocol.error_response import error_response
from ...protocol.errors import ProtocolError
from ...security.authenticator.exchange import RefusedError
from ...security.authenticator.sasl_authenticator import (
    Evaluated,
    SaslAuthenticator,
    UnexpectedRequestError,
)
from .outcomes import PARKED, Answer, Parked, Task

if TYPE_CHECKING:
    from ...protocol.codec.message import Message
    from .context import HandlerContext
    from .requests import ClientConnection, Request

logger = logging.getLogger(__name__)

AUTHENTICATION_MS_MAX = 30_000
"""A connection that has not logged in by then is closed. Kafka's clients wait no longer for one
(`socket.connection.setup.timeout.max.ms`); its brokers wait for ever."""

_unpack_api_key = struct.Struct(">h").unpack_from
_pack_length = struct.Struct(">i").pack


def admit_frame(
    connection: ClientConnection, authenticator: SaslAuthenticator, frame: memoryview
) -> bool:
    """Whether a frame may go on to its route; False: it is answered.

    Raises:
        ProtocolError: it may not come now; the connection is to be closed.
    """
    if authenticator.takes_bare_tokens:
        _take_bare_token(connection, authenticator, frame)
        return False
    if not authenticator.never_expires:
        api_key = _unpack_api_key(frame)[0] if len(frame) > 1 else -1
        try:
            authenticator.check(api_key, connection.dispatcher.clock.monotonic_ms())
        except UnexpectedRequestError as error:
            _answer_unexpected(connection, authenticator, frame, str(error))
            return False
    return True


def _answer_unexpected(
    connection: ClientConnection, authenticator: SaslAuthenticator, frame: memoryview, reason: str
) -> None:
    """Answer a request that comes in place of a token, and close its connection: a client that has
    not noticed that its login failed hears so.

    Raises:
        ProtocolError: it cannot be read.
    """
    request = connection.dispatcher.read_unhandled(connection, frame)
    code = ErrorCode.ILLEGAL_SASL_STATE
    response = error_response(request.api_key, request.api_version, request.body, code, reason)
    refuse(connection, authenticator, reason, request, response)


def _take_bare_token(
    connection: ClientConnection, authenticator: SaslAuthenticator, frame: memoryview
) -> None:
    """A token as it follows version 0 of SaslHandshake, without header; so is its answer."""
    evaluate = partial(authenticator.evaluate, bytes(frame))
    threads = authenticator.threads
    if threads is None:
        _answer_bare_token(connection, authenticator, evaluate())
        return

    async def conclude_later() -> None:
        try:
            evaluated = await threads.run(evaluate)
        except Exception as error:  # of a mechanism's library: the connection would wait for ever
            connection.fail(f"a token could not be evaluated: {error}")
            return
        if not connection.is_closed:
            connection.release()
            _answer_bare_token(connection, authenticator, evaluated)

    connection.hold()
    connection.dispatcher.start_task(conclude_later)


def _answer_bare_token(
    connection: ClientConnection, authenticator: SaslAuthenticator, evaluated: Evaluated
) -> None:
    try:
        now_ms = connection.dispatcher.clock.monotonic_ms()
        answer = authenticator.conclude(evaluated, now_ms)
    except (RefusedError, ProtocolError) as error:
        refuse(connection, authenticator, str(error))
        return
    framed = _pack_length(len(answer.token)) + answer.token
    connection.send_at_once([framed], len(framed))


def take_token(
    context: HandlerContext,
    request: Request[messages.SaslAuthenticateRequest],
    authenticator: SaslAuthenticator,
) -> Answer[messages.SaslAuthenticateResponse] | Parked | Task[messages.SaslAuthenticateResponse]:
    """Answer a SaslAuthenticate with what its token has come to."""
    evaluate = partial(authenticator.evaluate, bytes(request.body.auth_bytes))
    if authenticator.threads is not None:
        evaluated = authenticator.threads.run(evaluate)
        return Task(_conclude_later(context, request, authenticator, evaluated))
    response = _conclude(context, request, authenticator, evaluate())
    return response if isinstance(response, Parked) else Answer(response)


async def _conclude_later(
    context: HandlerContext,
    request: Request[messages.SaslAuthenticateRequest],
    authenticator: SaslAuthenticator,
    evaluated: Awaitable[Evaluated],
) -> messages.SaslAuthenticateResponse | Parked:
    return _conclude(context, request, authenticator, await evaluated)


def _conclude(
    context: HandlerContext,
    request: Request[messages.SaslAuthenticateRequest],
    authenticator: SaslAuthenticator,
    evaluated: Evaluated,
) -> messages.SaslAuthenticateResponse | Parked:
    """What a token has come to, or what its login fails by; the connection ends then."""
    response = messages.SaslAuthenticateResponse
    try:
        answer = authenticator.conclude(evaluated, context.clock.monotonic_ms())
    except RefusedError as refusal:
        told = response(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(refusal))
        refuse(request.connection, authenticator, str(refusal), request, told)
        return PARKED
    except ProtocolError as error:
        refuse(request.connection, authenticator, str(error))
        return PARKED
    return response(auth_bytes=answer.token, session_lifetime_ms=answer.session_lifetime_ms)


def refuse(
    connection: ClientConnection,
    authenticator: SaslAuthenticator,
    reason: str,
    request: Request[object] | None = None,
    response: Message | None = None,
) -> None:
    """Close a connection that could not log in, after a delay that makes guessing slow.

    Args:
        connection: is parked until then.
        authenticator: says how long (`connection.failed.authentication.delay.ms`).
        reason: for the log.
        request: to be answered at last, if there is a response.
        response: what the client hears before.
    """
    connection.is_parked = True

    def close() -> None:
        if connection.is_closed:
            return
        if request is not None and response is not None:
            request.answer(response)
        connection.fail_login(reason)

    connection.dispatcher.call_later(authenticator.failure_delay_ms, close)
