"""CreateDelegationToken (38), versions 1-3: a token to log in with (KIP-48).

Behaviour: for its requester, or for another owner if the requester has CREATE_TOKENS on that user.
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED on a connection that proves nobody, or logged in by a token;
INVALID_PRINCIPAL_TYPE for a renewer that is no User; DELEGATION_TOKEN_AUTH_DISABLED without
`delegation.token.secret.key`. Any broker does it.
Version notes: 2 is flexible; 3 names an owner, and answers who requested (KIP-373).
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...controller.fenced_store import kafka_error_of
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
from ...runtime.long_work import run_in_steps
from ...runtime.steps import map_in_steps
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request
from ..request.token_requests import (
    NO_TIME,
    REQUESTER_VERSION,
    enabled_tokens,
    may_request_tokens,
    split_principal,
)

Response = messages.CreateDelegationTokenResponse


@in_task
async def handle_create_delegation_token(
    context: HandlerContext, request: Request[messages.CreateDelegationTokenRequest]
) -> messages.CreateDelegationTokenResponse:
    """Make a token."""
    body = request.body
    requester = request.connection.principal
    owner = requester
    if body.owner_principal_name:
        owner = f"{body.owner_principal_type}:{body.owner_principal_name}"
    answer = Response()
    answer.principal_type, answer.principal_name = split_principal(owner)
    if request.api_version >= REQUESTER_VERSION:
        kind, name = split_principal(requester)
        answer.token_requester_principal_type, answer.token_requester_principal_name = kind, name
    refusal = _refusal(context, request, owner)
    if refusal:
        answer.error_code = refusal
        answer.issue_timestamp_ms = answer.expiry_timestamp_ms = answer.max_timestamp_ms = NO_TIME
        return answer
    renewers = await run_in_steps(
        map_in_steps(lambda each: f"{each.principal_type}:{each.principal_name}", body.renewers)
    )
    try:
        tokens = enabled_tokens(context)
        token = await tokens.create(owner, requester, tuple(renewers), body.max_lifetime_ms)
    except (KafkaError, MetadataStoreError) as error:
        answer.error_code = kafka_error_of(error).code
        return answer
    answer.issue_timestamp_ms = token.issue_ms
    answer.expiry_timestamp_ms = token.expiry_ms
    answer.max_timestamp_ms = token.max_ms
    answer.token_id = token.token_id
    answer.hmac = tokens.tokens.hmac(token.token_id)
    return answer


def _refusal(
    context: HandlerContext, request: Request[messages.CreateDelegationTokenRequest], owner: str
) -> ErrorCode:
    """Why a request is refused before anything else is looked at; NONE: it is not."""
    if not may_request_tokens(context, request):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != request.connection.principal and not context.authorize(
        request, "CREATE_TOKENS", "USER", owner
    ):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(each.principal_type != "User" for each in request.body.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return ErrorCode.NONE
