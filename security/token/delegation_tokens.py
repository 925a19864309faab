"""The delegation tokens of a cluster, as one broker knows them, and the rules of their lives.

The rules are those of Kafka's DelegationTokenControlManager. A token's secret is the HMAC of its id
by a key that all brokers have, and nobody keeps it: whoever knows it logs in by SCRAM.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable
from typing import Final

from ...common.delegation_token import DelegationToken
from ...common.errors import ErrorCode, KafkaError
from ...protocol.sasl.scram import ITERATIONS_MIN, ScramCredential, ScramMechanism
from ...runtime.rng import random_secret
from ..authenticator.exchange import Login
from ..authenticator.scram import KnownCredential

SALT_BYTES: Final = 24
USER_PREFIX: Final = "User:"


class DelegationTokens:
    """All tokens that this broker has heard of.

    Args:
        secret_key: `delegation.token.secret.key`.
        max_lifetime_ms: `delegation.token.max.lifetime.ms`, of any token.
        expiry_time_ms: `delegation.token.expiry.time.ms`, the life that a renewal gives.
        wall_ms: the time that tokens are issued at and expire by.
    """

    def __init__(
        self,
        secret_key: str,
        max_lifetime_ms: int,
        expiry_time_ms: int,
        wall_ms: Callable[[], int],
    ) -> None:
        self._key = secret_key.encode()
        self._max_lifetime_ms = max_lifetime_ms
        self._expiry_time_ms = expiry_time_ms
        self._wall_ms = wall_ms
        self._by_id: dict[str, DelegationToken] = {}
        self._by_hmac: dict[bytes, str] = {}
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    @property
    def all(self) -> list[DelegationToken]:
        """All there are, those included that have expired and are not removed yet."""
        return list(self._by_id.values())

    def hmac(self, token_id: str) -> bytes:
        """The secret of a token."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def put(self, token: DelegationToken) -> None:
        """Take up a token, or what has changed of it."""
        self._by_id[token.token_id] = token
        self._by_hmac[self.hmac(token.token_id)] = token.token_id

    def remove(self, token_id: str) -> None:
        """Forget a token: nobody logs in with it from now on."""
        self._by_id.pop(token_id, None)
        self._by_hmac.pop(self.hmac(token_id), None)
        self._credentials = {
            key: credential for key, credential in self._credentials.items() if key[0] != token_id
        }

    # -- what requests do ----------------------------------------------------------------------

    def create(
        self,
        token_id: str,
        owner: str,
        requester: str,
        renewers: tuple[str, ...],
        max_lifetime_ms: int,
    ) -> DelegationToken:
        """A new token, which is not known yet.

        Args:
            token_id: its id.
            owner: whom it logs in.
            requester: who has it made.
            renewers: who may renew it, besides.
            max_lifetime_ms: requested; 0 or less, or more than the broker's: the broker's.
        """
        now_ms = self._wall_ms()
        lifetime_ms = self._max_lifetime_ms
        if max_lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, max_lifetime_ms)
        max_ms = now_ms + lifetime_ms
        expiry_ms = min(max_ms, now_ms + self._expiry_time_ms)
        return DelegationToken(token_id, owner, requester, renewers, now_ms, max_ms, expiry_ms)

    def token_id(self, secret: bytes) -> str:
        """The id of a token.

        Raises:
            KafkaError: DELEGATION_TOKEN_NOT_FOUND.
        """
        token_id = self._by_hmac.get(secret)
        if token_id is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return token_id

    def renewed(self, token: DelegationToken, principal: str, period_ms: int) -> DelegationToken:
        """A token with a new end.

        Args:
            token: as it is.
            principal: who renews it.
            period_ms: from now on; 0 or less, or more than the broker's: the broker's.

        Raises:
            KafkaError: it has expired, or is not this principal's to renew.
        """
        self._require_alive(token)
        _require_own(token, principal)
        lifetime_ms = self._expiry_time_ms
        if period_ms > 0:
            lifetime_ms = min(lifetime_ms, period_ms)
        return token._replace(expiry_ms=min(token.max_ms, self._wall_ms() + lifetime_ms))

    def expired(
        self, token: DelegationToken, principal: str, period_ms: int
    ) -> DelegationToken | None:
        """A token with an end that is set; None: it ends now.

        Args:
            token: as it is.
            principal: who has it end.
            period_ms: from now on; less than 0: at once.

        Raises:
            KafkaError: it has expired before, or is not this principal's to end.
        """
        _require_own(token, principal)
        if period_ms < 0:
            return None
        self._require_alive(token)
        return token._replace(expiry_ms=min(token.max_ms, self._wall_ms() + period_ms))

    @property
    def dead(self) -> list[DelegationToken]:
        """Those that have expired."""
        return [token for token in self._by_id.values() if not self._is_alive(token)]

    def _is_alive(self, token: DelegationToken) -> bool:
        return min(token.max_ms, token.expiry_ms) >= self._wall_ms()

    def _require_alive(self, token: DelegationToken) -> None:
        if not self._is_alive(token):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)

    # -- logging in ----------------------------------------------------------------------------

    def credential(self, mechanism: ScramMechanism, token_id: str) -> KnownCredential | None:
        """What a login with a token is checked against; None: there is none that is alive.

        The password is the token's HMAC in base64. Its keys are derived when it first logs in.
        """
        token = self._by_id.get(token_id)
        if token is None or not self._is_alive(token):
            return None
        key = (token_id, mechanism.name)
        credential = self._credentials.get(key)
        if credential is None:
            password = base64.b64encode(self.hmac(token_id)).decode()
            credential = mechanism.credential(password, random_secret(SALT_BYTES), ITERATIONS_MIN)
            self._credentials[key] = credential
        name = token.owner.removeprefix(USER_PREFIX)
        return KnownCredential(credential, Login(name, token.expiry_ms, is_by_token=True))


def _require_own(token: DelegationToken, principal: str) -> None:
    if not token.is_of(principal):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
