"""SaslAuthenticate (36), versions 0-2: one step of an authentication (KIP-152).

Behaviour: ILLEGAL_SASL_STATE, as on every listener of Kafka's that needs no SASL or where
it is over; listeners that do need it are not served yet.
Version notes: 1 tells for how long a session holds (KIP-368); 2 is flexible.
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...protocol import messages
from ..request.context import HandlerContext
from ..request.outcomes import Answer
from ..request.requests import Request


def handle_sasl_authenticate(
    context: HandlerContext, request: Request[messages.SaslAuthenticateRequest]
) -> Answer[messages.SaslAuthenticateResponse]:
    """Refuse: nobody needs to authenticate here."""
    return Answer(
        messages.SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="this listener asks for no authentication",
        )
    )
