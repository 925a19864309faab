"""ExpireDelegationToken (40), versions 1-2: set when a token ends (KIP-48).

Behaviour: by its owner or a renewer; a period below 0 removes it at once.
DELEGATION_TOKEN_NOT_FOUND for an HMAC that is no token's, DELEGATION_TOKEN_OWNER_MISMATCH,
DELEGATION_TOKEN_EXPIRED; DELEGATION_TOKEN_REQUEST_NOT_ALLOWED and DELEGATION_TOKEN_AUTH_DISABLED as
in CreateDelegationToken. Any broker does it.
Version notes: 2 is flexible.
"""

from __future__ import annotations

from ...protocol import messages
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request
from ..request.token_requests import alter_token


@in_task
async def handle_expire_delegation_token(
    context: HandlerContext, request: Request[messages.ExpireDelegationTokenRequest]
) -> messages.ExpireDelegationTokenResponse:
    """Have a token end."""
    body, principal = request.body, request.connection.principal
    error, expiry_ms = await alter_token(
        context,
        request,
        bytes(body.hmac),
        lambda manager, token: manager.tokens.expired(token, principal, body.expiry_time_period_ms),
    )
    return messages.ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=expiry_ms)
