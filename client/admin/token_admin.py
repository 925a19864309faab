"""Administration of delegation tokens: make, list, renew and end them (KIP-48)."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import NamedTuple

from ...common.delegation_token import DelegationToken
from ...protocol import messages
from ..client import KafkaClient
from .admin import Outcome, require_success

DEFAULT_PERIOD = -1
"""Of a new token or a renewal: the broker's own setting. Of an end: at once."""


class SecretToken(NamedTuple):
    """A token with what it takes to log in with it.

    Attributes:
        token: what is known of it; its id is the name to log in by.
        hmac: names it in requests.
    """

    token: DelegationToken
    hmac: bytes

    def __repr__(self) -> str:
        return f"SecretToken({self.token!r}, [hidden])"

    @property
    def password(self) -> str:
        """The password to log in with, by SCRAM with `tokenauth`: the HMAC in base64."""
        return base64.b64encode(self.hmac).decode()


class TokenAdmin:
    """Administers delegation tokens through a client, which must have logged in without one.

    Args:
        client: is open, and stays so.
        timeout_ms: for each call.
    """

    def __init__(self, client: KafkaClient, timeout_ms: int = 30_000) -> None:
        self._client = client
        self._timeout_ms = timeout_ms

    async def create(
        self,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int = DEFAULT_PERIOD,
        owner: str | None = None,
    ) -> SecretToken:
        """Make a token.

        Args:
            renewers: who may renew it besides its owner, such as "User:bob".
            max_lifetime_ms: beyond which it cannot be renewed; the broker's if left out.
            owner: whom it logs in; the client itself if left out.

        Raises:
            KafkaError: the broker refused.
            ClientError: no broker could be reached.
        """
        renewers = tuple(renewers)
        creatable = messages.CreateDelegationTokenRequest.CreatableRenewers
        request = messages.CreateDelegationTokenRequest(
            renewers=[
                creatable(principal_type=kind, principal_name=name)
                for kind, name in map(_split, renewers)
            ],
            max_lifetime_ms=max_lifetime_ms,
        )
        if owner is not None:
            request.owner_principal_type, request.owner_principal_name = _split(owner)
        answer: messages.CreateDelegationTokenResponse = await self._client.send_to_any(
            request, timeout_ms=self._timeout_ms
        )
        require_success([Outcome("the token", answer.error_code, None)])
        owned_by = f"{answer.principal_type}:{answer.principal_name}"
        requester = (
            f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}"
        )
        token = DelegationToken(
            answer.token_id,
            owned_by,
            owned_by if requester == ":" else requester,
            renewers,
            answer.issue_timestamp_ms,
            answer.max_timestamp_ms,
            answer.expiry_timestamp_ms,
        )
        return SecretToken(token, bytes(answer.hmac))

    async def describe(self, owners: Iterable[str] | None = None) -> list[SecretToken]:
        """The tokens that the client may see.

        Args:
            owners: or renewers, of whose tokens; None: of everybody's.

        Raises:
            KafkaError: the broker refused.
            ClientError: no broker could be reached.
        """
        request = messages.DescribeDelegationTokenRequest(owners=None)
        if owners is not None:
            request.owners = [
                request.DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
                for kind, name in map(_split, owners)
            ]
        answer: messages.DescribeDelegationTokenResponse = await self._client.send_to_any(
            request, timeout_ms=self._timeout_ms
        )
        require_success([Outcome("the tokens", answer.error_code, None)])
        return [_described(each) for each in answer.tokens]

    async def renew(self, hmac: bytes, period_ms: int = DEFAULT_PERIOD) -> int:
        """Let a token live longer; returns when it ends, in ms since the epoch.

        Args:
            hmac: of the token.
            period_ms: from now on; the broker's setting if left out.

        Raises:
            KafkaError: DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED and so on.
            ClientError: no broker could be reached.
        """
        request = messages.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        return await self._end_of(request)

    async def expire(self, hmac: bytes, period_ms: int = DEFAULT_PERIOD) -> int:
        """Set when a token ends; returns that, in ms since the epoch.

        Args:
            hmac: of the token.
            period_ms: from now on; at once if left out.

        Raises:
            KafkaError: DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED and so on.
            ClientError: no broker could be reached.
        """
        request = messages.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        return await self._end_of(request)

    async def _end_of(
        self, request: messages.RenewDelegationTokenRequest | messages.ExpireDelegationTokenRequest
    ) -> int:
        answer: (
            messages.RenewDelegationTokenResponse | messages.ExpireDelegationTokenResponse
        ) = await self._client.send_to_any(request, timeout_ms=self._timeout_ms)
        require_success([Outcome("the token", answer.error_code, None)])
        return answer.expiry_timestamp_ms


def _described(
    found: messages.DescribeDelegationTokenResponse.DescribedDelegationToken,
) -> SecretToken:
    owner = f"{found.principal_type}:{found.principal_name}"
    requester = f"{found.token_requester_principal_type}:{found.token_requester_principal_name}"
    token = DelegationToken(
        found.token_id,
        owner,
        owner if requester == ":" else requester,
        tuple(f"{each.principal_type}:{each.principal_name}" for each in found.renewers),
        found.issue_timestamp,
        found.max_timestamp,
        found.expiry_timestamp,
    )
    return SecretToken(token, bytes(found.hmac))


def _split(principal: str) -> tuple[str, str]:
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"{principal!r} is not a principal: expected User:NAME")
    return kind, name
