"""The two requests that every login consists of: SaslHandshake, then SaslAuthenticate."""

from __future__ import annotations

from ...protocol import messages
from ..error_kinds import error_name
from ..errors import AuthenticationError, PeerProtocolError
from ..network.connection import Connection


async def handshake(connection: Connection, mechanism: str) -> None:
    """Choose a mechanism.

    Raises:
        AuthenticationError: the broker has none of that name, or wants none at all.
        DisconnectedError: the connection ended.
    """
    response: messages.SaslHandshakeResponse = await connection.request(
        messages.SaslHandshakeRequest(mechanism=mechanism), version=1
    )
    if response.error_code:
        offered = ", ".join(response.mechanisms) or "none"
        raise AuthenticationError(
            f"{connection.peer} answered SASL mechanism {mechanism} with "
            f"{error_name(response.error_code)}; it offers {offered}"
        )


async def send_token(connection: Connection, token: bytes) -> bytes:
    """One step of an authentication; returns what the broker answers.

    Raises:
        AuthenticationError: the broker refuses it.
        DisconnectedError: the connection ended.
    """
    request = messages.SaslAuthenticateRequest(auth_bytes=token)
    response: messages.SaslAuthenticateResponse = await connection.request(request)
    if response.error_code:
        reason = response.error_message or error_name(response.error_code)
        raise AuthenticationError(f"{connection.peer} refused the credentials: {reason}")
    if response.auth_bytes is None:
        raise PeerProtocolError(f"{connection.peer} answered SaslAuthenticate without bytes")
    connection.session_lifetime_ms = response.session_lifetime_ms
    return bytes(response.auth_bytes)
