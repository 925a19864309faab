"""Who may request delegation tokens at all (Kafka's KafkaApis.allowTokenRequests), and what
renewing and ending one have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...common.errors import ErrorCode, KafkaError
from ...controller.fenced_store import kafka_error_of
from ...metadata_store.errors import MetadataStoreError

if TYPE_CHECKING:
    from ...common.delegation_token import DelegationToken
    from ..dynamic_config.token_manager import TokenManager
    from .context import HandlerContext
    from .requests import Request

ANONYMOUS: Final = "User:ANONYMOUS"
NO_TIME: Final = -1
"""The times in an answer to somebody who may not request tokens."""

REQUESTER_VERSION: Final = 3
"""Of CreateDelegationToken and DescribeDelegationToken: from here on answers say who requested."""


def may_request_tokens(context: HandlerContext, request: Request[object]) -> bool:
    """Whether the connection proves who its client is, and not by a token."""
    connection = request.connection
    protocol = next(
        listener.security_protocol
        for listener in context.config.listeners
        if listener.name == connection.listener_name
    )
    if protocol == "PLAINTEXT" or (protocol == "SSL" and connection.principal == ANONYMOUS):
        return False
    login = None if connection.authenticator is None else connection.authenticator.login
    return login is None or not login.is_by_token


def enabled_tokens(context: HandlerContext) -> TokenManager:
    """The tokens of the cluster.

    Raises:
        KafkaError: DELEGATION_TOKEN_AUTH_DISABLED, without `delegation.token.secret.key`.
    """
    if context.tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return context.tokens


async def alter_token(
    context: HandlerContext,
    request: Request[object],
    hmac: bytes,
    change: Callable[[TokenManager, DelegationToken], DelegationToken | None],
) -> tuple[ErrorCode, int]:
    """Change when a token ends.

    Args:
        hmac: names the token.
        change: what becomes of it; None: it is removed. Raises KafkaError where nothing may.

    Returns:
        What is answered: an error, and when the token ends now, in wall ms.
    """
    if not may_request_tokens(context, request):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NO_TIME
    try:
        manager = enabled_tokens(context)
        token = await manager.alter(hmac, lambda token: change(manager, token))
    except (KafkaError, MetadataStoreError) as error:
        return kafka_error_of(error).code, 0
    return ErrorCode.NONE, context.clock.now_ms() if token is None else token.expiry_ms


def split_principal(principal: str) -> tuple[str, str]:
    """Type and name of a principal such as "User:alice"."""
    kind, _, name = principal.partition(":")
    return kind, name
