"""SaslHandshake (17), versions 0-1: how a client says which mechanism it will use.

Behaviour: ILLEGAL_SASL_STATE, as on every listener of Kafka's that needs no SASL or where
it is over; listeners that do need it are not served yet.
Version notes: 1 says that SaslAuthenticate follows (KIP-152).
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...protocol import messages
from ..request.context import HandlerContext
from ..request.outcomes import Answer
from ..request.requests import Request


def handle_sasl_handshake(
    context: HandlerContext, request: Request[messages.SaslHandshakeRequest]
) -> Answer[messages.SaslHandshakeResponse]:
    """Refuse: there is nothing to shake hands for."""
    return Answer(messages.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
