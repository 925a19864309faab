"""SaslHandshake (17), versions 0-1: how a client says which mechanism it will use.

Behaviour: the enabled mechanisms, the one that the client names among them, or
UNSUPPORTED_SASL_MECHANISM, and then the connection is closed. A connection that has logged in may
begin another login (KIP-368). ILLEGAL_SASL_STATE on a listener that speaks no SASL, and where the
last login began less than a second ago.
Version notes: 1 says that SaslAuthenticate follows (KIP-152); after 0, tokens come without headers.
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...protocol import messages
from ..request.authentication import refuse
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Answer, Parked
from ..request.requests import Request


def handle_sasl_handshake(
    context: HandlerContext, request: Request[messages.SaslHandshakeRequest]
) -> Answer[messages.SaslHandshakeResponse] | Parked:
    """Begin a login by the mechanism that the client names."""
    authenticator = request.connection.authenticator
    now_ms = context.clock.monotonic_ms()
    if authenticator is None or not authenticator.may_begin(now_ms):
        return Answer(messages.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
    mechanisms = authenticator.enabled_mechanisms
    mechanism = request.body.mechanism
    if authenticator.handshake(mechanism, request.api_version, now_ms):
        return Answer(messages.SaslHandshakeResponse(mechanisms=mechanisms))
    response = messages.SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=mechanisms
    )
    reason = f"Unsupported SASL mechanism {mechanism}"
    refuse(request.connection, authenticator, reason, request, response)
    return PARKED
