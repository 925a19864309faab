"""A handshake within this process: whether a broker could talk to another one like it.

Kafka's SslEngineValidator. No host is compared: certificates of other brokers have other hosts.
"""

from __future__ import annotations

import ssl

from .stream import HandshakeError, reason_of

HANDSHAKE_ROUNDS_MAX = 20
"""A handshake takes two or three, however it goes."""


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Have a client and a server agree on keys, in memory.

    Raises:
        HandshakeError: they cannot.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    accepting = server.wrap_bio(to_server, to_client, server_side=True)
    checks_host = client.check_hostname
    client.check_hostname = False
    try:
        connecting = client.wrap_bio(to_client, to_server)
    finally:
        client.check_hostname = checks_host
    waiting = [connecting, accepting]
    for _ in range(HANDSHAKE_ROUNDS_MAX):
        for side in list(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                raise HandshakeError(_reason(error, side is accepting)) from error
            waiting.remove(side)
        if not waiting:
            return
    raise HandshakeError("they do not come to an end")


def _reason(error: ssl.SSLError, is_server: bool) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        whose = "client's" if is_server else "server's"
        return f"the {whose} certificate is not accepted: {error.verify_message}"
    return reason_of(error)
