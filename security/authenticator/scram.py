"""SASL SCRAM for brokers (Kafka's ScramSaslServer)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import NamedTuple

from ...protocol.sasl.errors import SaslError
from ...protocol.sasl.scram import (
    ITERATIONS_MIN,
    ClientFinal,
    ClientFirst,
    ScramCredential,
    ScramExchange,
    ScramMechanism,
    ServerFinal,
    ServerFirst,
    client_first_bare,
)
from .exchange import Login, RefusedError

NONCE_BYTES = 24
TOKEN_EXTENSION = "tokenauth"
"""With the value "true" the name is a delegation token's id (KIP-48)."""


class KnownCredential(NamedTuple):
    """A credential that was found, and who it logs in.

    Attributes:
        credential: to check the proof against.
        login: what a right proof makes of the connection.
    """

    credential: ScramCredential
    login: Login


FindCredential = Callable[[str, bool], KnownCredential | None]
"""The credential of a user or, if the flag says so, of a delegation token; None: there is none."""


class ScramServerExchange:
    """One login.

    Args:
        mechanism: which of the two.
        find: looks credentials up.
        make_nonce: random bytes of a length.
    """

    def __init__(
        self, mechanism: ScramMechanism, find: FindCredential, make_nonce: Callable[[int], bytes]
    ) -> None:
        self.login: Login | None = None
        self._mechanism = mechanism
        self._find = find
        self._make_nonce = make_nonce
        self._known: KnownCredential | None = None
        self._client_first = ClientFirst("", "")
        self._client_first_bare = ""
        self._server_first = ServerFirst("", b"", 0)

    def evaluate(self, token: bytes) -> bytes:
        """Take the client's first or last message; see `Exchange`."""
        if self._known is None:
            return self._begin(token)
        return self._end(token, self._known)

    def _begin(self, token: bytes) -> bytes:
        first = ClientFirst.decode(token)
        is_token = first.extensions.get(TOKEN_EXTENSION, "").lower() == "true"
        known = self._find(first.username, is_token)
        if known is None:
            # Kafka refuses here and now, too: the answer is the same as to a wrong proof.
            raise SaslError(f"there is no {self._mechanism.name} credential of {first.username!r}")
        if first.authorization_id not in ("", first.username):
            raise RefusedError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        credential = known.credential
        if credential.iterations < ITERATIONS_MIN:
            raise SaslError(
                f"Iterations {credential.iterations} is less than the minimum {ITERATIONS_MIN} "
                f"for {self._mechanism.name}"
            )
        own_nonce = base64.b32encode(self._make_nonce(NONCE_BYTES)).decode().rstrip("=")
        self._client_first = first
        self._client_first_bare = client_first_bare(token)
        self._server_first = ServerFirst(
            first.nonce + own_nonce, credential.salt, credential.iterations
        )
        self._known = known
        return self._server_first.encode()

    def _end(self, token: bytes, known: KnownCredential) -> bytes:
        final = ClientFinal.decode(token)
        if final.nonce != self._server_first.nonce:
            raise SaslError("Invalid client nonce in the final client message.")
        if final.channel != self._client_first.header.encode():
            raise SaslError("the final client message repeats another header")
        exchange = ScramExchange(
            self._mechanism,
            self._client_first_bare,
            self._server_first.encode(),
            final.without_proof,
        )
        if not exchange.is_proven(known.credential, final.proof):
            raise SaslError("Invalid client credentials")
        self.login = known.login
        return ServerFinal(exchange.server_signature(known.credential.server_key)).encode()
