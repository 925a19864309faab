"""Opening the stream to a broker: TCP, or whatever stands in for it, and TLS on top."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable

import trio

from ..errors import AuthenticationError, ConnectError

Connect = Callable[[str, int], Awaitable[trio.abc.Stream]]
"""Opens a stream to a host and port, or raises OSError."""


async def open_stream(
    host: str,
    port: int,
    *,
    connect: Connect | None = None,
    ssl_context: ssl.SSLContext | None = None,
    timeout_ms: int,
) -> trio.abc.Stream:
    """A stream to the broker.

    Args:
        host: a name or an address; the broker's certificate must be for it.
        port: of the broker.
        connect: opens streams; `trio.open_tcp_stream` if left out.
        ssl_context: speak TLS, with this.
        timeout_ms: for all of it (`socket.connection.setup.timeout.ms`).

    Raises:
        ConnectError: nobody listens there, or it took too long.
        AuthenticationError: there is no TLS with that certificate.
    """
    try:
        with trio.fail_after(timeout_ms / 1000):
            stream = await (connect or trio.open_tcp_stream)(host, port)
            if ssl_context is None:
                return stream
            try:
                return await _with_tls(stream, host, port, ssl_context)
            except BaseException:
                await trio.aclose_forcefully(stream)
                raise
    except trio.TooSlowError:
        raise ConnectError(f"{host}:{port} was not connected within {timeout_ms} ms") from None
    except (OSError, ValueError) as error:
        # A name that cannot be one is a ValueError; brokers may answer such names.
        raise ConnectError(f"{host}:{port} cannot be connected to: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What went wrong at each of a host's addresses, of which trio says only that it did."""
    cause = error.__cause__
    if isinstance(cause, ExceptionGroup):
        return ", ".join(dict.fromkeys(str(one) for one in cause.exceptions))
    return str(cause if isinstance(cause, OSError) else error)


async def _with_tls(
    stream: trio.abc.Stream, host: str, port: int, ssl_context: ssl.SSLContext
) -> trio.abc.Stream:
    encrypted: trio.SSLStream[trio.abc.Stream] = trio.SSLStream(
        stream, ssl_context, server_hostname=host, https_compatible=True
    )
    try:
        await encrypted.do_handshake()
    except trio.BrokenResourceError as error:
        refusal = tls_refusal(f"{host}:{port}", error)
        if refusal is not None:
            raise refusal from error
        raise ConnectError(f"{host}:{port} ended the TLS handshake") from error
    return encrypted


def tls_refusal(peer: str, error: BaseException) -> AuthenticationError | None:
    """What a broken stream says of TLS; None if it broke for another reason.

    A client of TLSv1.3 hears that its certificate is missing or refused only after its half of
    the handshake.

    Args:
        peer: the broker's address.
        error: why the stream broke.
    """
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return AuthenticationError(f"the certificate of {peer} was refused: {cause.verify_message}")
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
        reason = (cause.reason or str(cause)).lower().replace("_", " ")
        return AuthenticationError(f"{peer} refused TLS: {reason}")
    return None
