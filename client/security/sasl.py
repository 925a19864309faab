"""The client's half of SASL: who this client is, said before anything else (KIP-43, KIP-152)."""

from __future__ import annotations

import base64
import hmac
import secrets

from ...protocol.sasl import gssapi, oauthbearer, plain
from ...protocol.sasl.errors import SaslError
from ...protocol.sasl.scram import (
    ITERATIONS_MAX,
    SCRAM_MECHANISMS,
    ClientFinal,
    ClientFirst,
    ScramExchange,
    ServerFinal,
    ServerFirst,
    is_user_name,
)
from ..errors import AuthenticationError
from ..network.connection import Authenticate, Connection
from .sasl_steps import handshake, send_token

PASSWORD_MECHANISMS = (plain.MECHANISM, *SCRAM_MECHANISMS)
"""Those that prove who a client is by a name and a password."""

MECHANISMS = (*PASSWORD_MECHANISMS, oauthbearer.MECHANISM, gssapi.MECHANISM)
"""Those that a client can log in by."""

TOKEN_EXTENSIONS = {"tokenauth": "true"}
"""Says that name and password are a delegation token's id and HMAC (KIP-48)."""

NONCE_BYTES = 24


def sasl(
    mechanism: str, username: str, password: str, *, is_delegation_token: bool = False
) -> Authenticate:
    """Authentication by name and password, to be given as `authenticate`.

    Args:
        mechanism: one of `PASSWORD_MECHANISMS`.
        username: of the client.
        password: of the client.
        is_delegation_token: whether they are a token's id and HMAC, by SCRAM.

    Raises:
        ValueError: the mechanism is another, or cannot carry the name or the password.
    """
    if mechanism == plain.MECHANISM and not is_delegation_token:
        return sasl_plain(username, password)
    if mechanism in SCRAM_MECHANISMS:
        return sasl_scram(mechanism, username, password, is_delegation_token=is_delegation_token)
    allowed = SCRAM_MECHANISMS if is_delegation_token else PASSWORD_MECHANISMS
    raise ValueError(f"{mechanism} is not one of {', '.join(allowed)}")


def sasl_plain(username: str, password: str, authorization_id: str = "") -> Authenticate:
    """Authentication by name and password, to be given as `authenticate` (RFC 4616).

    The password crosses the network as it is: use it with TLS.

    Raises:
        ValueError: a NUL is in one of them, which the mechanism cannot carry.
    """
    token = plain.PlainMessage(authorization_id, username, password).encode()

    async def authenticate(connection: Connection) -> None:
        await handshake(connection, plain.MECHANISM)
        await send_token(connection, token)

    return authenticate


def sasl_scram(
    mechanism: str, username: str, password: str, *, is_delegation_token: bool = False
) -> Authenticate:
    """Authentication by a proof of the password, which is not sent (RFC 5802).

    The broker has to prove in turn that it knows the credential.

    Args:
        mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
        username: in ASCII, as Kafka takes it.
        password: of the user.
        is_delegation_token: whether they are the id and the HMAC, in base64, of a delegation token.

    Raises:
        ValueError: the mechanism is another, or the name cannot be sent.
    """
    scram = SCRAM_MECHANISMS.get(mechanism)
    if scram is None:
        raise ValueError(f"{mechanism} is not one of {', '.join(SCRAM_MECHANISMS)}")
    if not is_user_name(username):
        raise ValueError("a SCRAM user name consists of ASCII characters other than NUL")
    extensions = TOKEN_EXTENSIONS if is_delegation_token else {}

    async def authenticate(connection: Connection) -> None:
        await handshake(connection, mechanism)
        first = ClientFirst(username, secrets.token_urlsafe(NONCE_BYTES), extensions=extensions)
        try:
            answer = await send_token(connection, first.encode())
            server_first = ServerFirst.decode(answer)
            if not server_first.nonce.startswith(first.nonce):
                raise SaslError("it answers another nonce")
            if not 0 < server_first.iterations <= ITERATIONS_MAX:
                raise SaslError(f"it demands {server_first.iterations} iterations")
            salted = scram.salted_password(password, server_first.salt, server_first.iterations)
            channel = first.header.encode()
            without_proof = f"c={base64.b64encode(channel).decode()},r={server_first.nonce}"
            exchange = ScramExchange(scram, first.bare, answer, without_proof)
            proof = exchange.proof(salted)
            final = ClientFinal(server_first.nonce, proof, without_proof, channel)
            server_final = ServerFinal.decode(await send_token(connection, final.encode()))
            if server_final.error:
                raise AuthenticationError(
                    f"{connection.peer} refused the credentials: {server_final.error}"
                )
            expected = exchange.server_signature_of_salted(salted)
            if not hmac.compare_digest(server_final.signature, expected):
                raise SaslError("it does not know the credential of its own user")
        except SaslError as error:
            raise AuthenticationError(
                f"{connection.peer} cannot be trusted with {mechanism}: {error}"
            ) from error

    return authenticate
