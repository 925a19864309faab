"""DescribeDelegationToken (41), versions 1-3: the tokens that one may see (KIP-48).

Behaviour: one's own, those that one may renew, those on which one has DESCRIBE, and those of users
on whom one has DESCRIBE_TOKENS; of the owners or renewers requested, or of all where none are.
An empty list of owners is answered with no token. DELEGATION_TOKEN_REQUEST_NOT_ALLOWED and
DELEGATION_TOKEN_AUTH_DISABLED as in CreateDelegationToken.
Version notes: 2 is flexible; 3 answers who requested (KIP-373).
"""

from __future__ import annotations

from ...common.delegation_token import DelegationToken
from ...common.errors import ErrorCode
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request
from ..request.token_requests import (
    REQUESTER_VERSION,
    enabled_tokens,
    may_request_tokens,
    split_principal,
)

Response = messages.DescribeDelegationTokenResponse


@in_steps
def handle_describe_delegation_token(
    context: HandlerContext, request: Request[messages.DescribeDelegationTokenRequest]
) -> Steps[messages.DescribeDelegationTokenResponse]:
    """List the tokens."""
    if not may_request_tokens(context, request):
        return Response(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    tokens = enabled_tokens(context).tokens
    owners = request.body.owners
    requested: set[str] | None = None
    if owners is not None:
        requested = set()
        for each in owners:
            requested.add(f"{each.principal_type}:{each.principal_name}")
            yield
    answer = Response()
    for token in tokens.all:
        is_requested = requested is None or token.is_of_any(requested)
        if is_requested and _may_see(context, request, token):
            described = yield from _described(token, tokens.hmac(token.token_id))
            if request.api_version >= REQUESTER_VERSION:
                kind, name = split_principal(token.requester)
                described.token_requester_principal_type = kind
                described.token_requester_principal_name = name
            answer.tokens.append(described)
        yield
    return answer


def _may_see(
    context: HandlerContext,
    request: Request[messages.DescribeDelegationTokenRequest],
    token: DelegationToken,
) -> bool:
    return (
        token.is_of(request.connection.principal)
        or context.authorize(request, "DESCRIBE", "DELEGATION_TOKEN", token.token_id)
        or context.authorize(request, "DESCRIBE_TOKENS", "USER", token.owner)
    )


def _described(
    token: DelegationToken, secret: bytes
) -> Steps[messages.DescribeDelegationTokenResponse.DescribedDelegationToken]:
    owner_type, owner = split_principal(token.owner)
    renewers = []
    for renewer in token.renewers:
        kind, name = split_principal(renewer)
        renewers.append(
            Response.DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
        )
        yield
    return Response.DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner,
        issue_timestamp=token.issue_ms,
        expiry_timestamp=token.expiry_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=secret,
        renewers=renewers,
    )
