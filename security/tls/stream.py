"""The broker's side of TLS on a connection, as a trio stream.

trio has one of its own, but that drops the alert by which OpenSSL says to the peer why a handshake
failed, and clients would see nothing but a closed connection. It also gives out one record of at
most 16 KB at a time, where a Produce has many.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import cast

import trio

RECEIVE_BYTES_MIN = 16 * 1024
RECEIVE_BYTES_MAX = 256 * 1024
"""The size of a receive grows while data fills it, since each call has its price. It shrinks again,
since memory that is not filled has one, too."""
SEND_BYTES = 256 * 1024
"""So much is encrypted before it is sent."""
CLOSE_SECONDS = 1
"""How long a peer has to take the last message of a connection."""

CONNECTION_GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


class HandshakeError(Exception):
    """There is no TLS with this peer; the text says why."""


class TlsStream(trio.abc.Stream):
    """TLS over another stream; `do_handshake` comes first.

    Args:
        transport: what carries it; closed with this.
        context: versions, keys and trust.
    """

    def __init__(self, transport: trio.abc.Stream, context: ssl.SSLContext) -> None:
        self._transport = transport
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._send_lock = trio.StrictFIFOLock()
        self._is_broken = False
        self._receive_bytes = RECEIVE_BYTES_MIN

    @property
    def peer_certificate(self) -> bytes | None:
        """The peer's certificate as DER, if it has shown one; it has been verified then."""
        return self._tls.getpeercert(binary_form=True)

    async def do_handshake(self) -> None:
        """Agree on keys.

        Raises:
            HandshakeError: that is not possible; the peer has been sent the alert.
        """
        try:
            while True:
                try:
                    self._tls.do_handshake()
                except ssl.SSLWantReadError:
                    await self._send_outgoing()
                    if not await self._receive():
                        raise HandshakeError("it closed the connection") from None
                else:
                    break
            # Of TLSv1.3 only tickets are left to send; they go with the first answer, for a client
            # need not read before it has sent something.
            if self._tls.version() != "TLSv1.3":
                await self._send_outgoing()
        except ssl.SSLError as error:
            await self._tell(error)
            raise HandshakeError(reason_of(error)) from error
        except CONNECTION_GONE as error:
            raise HandshakeError("it closed the connection") from error

    async def receive_some(self, max_bytes: int | None = None) -> bytearray:
        """What has come, all of it up to a limit; empty when the peer has ended the stream.

        Raises:
            trio.BrokenResourceError: the connection broke, or what comes is no TLS.
        """
        while True:
            try:
                received = self._decrypt(max_bytes)
            except ssl.SSLWantReadError:
                if self._outgoing.pending:
                    await self._send_outgoing()
                if not await self._receive():
                    return bytearray()
            except ssl.SSLZeroReturnError:
                return bytearray()
            except ssl.SSLError as error:
                await self._tell(error)
                raise trio.BrokenResourceError(reason_of(error)) from error
            else:
                return received

    def _decrypt(self, bytes_max: int | None) -> bytearray:
        """All that lies here, up to a limit. Raises SSLError if that is nothing."""
        # What is encrypted is longer than what it holds; some may be decrypted already.
        size = self._incoming.pending + self._tls.pending() or 1
        received = bytearray(size if bytes_max is None else min(size, bytes_max))
        position = 0
        try:
            while position < len(received):
                with memoryview(received)[position:] as rest:
                    # typeshed knows no count here
                    count = cast(int, self._tls.read(len(rest), rest))
                if not count:
                    break
                position += count
        except ssl.SSLError:
            if not position:
                raise
            # it shows again at the next reading
        del received[position:]
        return received

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send.

        Raises:
            trio.BrokenResourceError: the connection broke.
        """
        view = memoryview(data)
        for start in range(0, len(view), SEND_BYTES):
            try:
                self._tls.write(view[start : start + SEND_BYTES])
            except ssl.SSLError as error:
                raise trio.BrokenResourceError(reason_of(error)) from error
            await self._send_outgoing()

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the peer has taken enough of what was sent."""
        async with self._send_lock:
            await self._transport.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """Say that this is the end, if the peer takes it, and close the connection."""
        try:
            with trio.move_on_after(CLOSE_SECONDS), suppress(ssl.SSLError, *CONNECTION_GONE):
                if not self._is_broken:
                    with suppress(ssl.SSLWantReadError):  # nobody waits for the peer's last message
                        self._tls.unwrap()
                    await self._send_outgoing()
        finally:
            await self._transport.aclose()

    async def _receive(self) -> bool:
        """Take more of what the peer sends; False if that was all."""
        requested = self._receive_bytes
        data = await self._transport.receive_some(requested)
        if len(data) == requested:
            self._receive_bytes = min(2 * requested, RECEIVE_BYTES_MAX)
        elif 4 * len(data) < requested:
            self._receive_bytes = max(requested // 2, RECEIVE_BYTES_MIN)
        self._incoming.write(data)
        return bool(data)

    async def _send_outgoing(self) -> None:
        """Send what is encrypted, in the order it was."""
        try:
            self._send_lock.acquire_nowait()  # mostly free, and waiting for it costs a round
        except trio.WouldBlock:
            await self._send_lock.acquire()
        try:
            data = self._outgoing.read()
            if not data:
                return
            if self._is_broken:
                raise trio.BrokenResourceError("a part of what was encrypted before is not sent")
            self._is_broken = True  # unless it comes to the end: a part of a record is no record
            await self._transport.send_all(data)
            self._is_broken = False
        finally:
            self._send_lock.release()

    async def _tell(self, error: ssl.SSLError) -> None:
        """Send the alert that OpenSSL has made of an error, if it has."""
        with trio.move_on_after(CLOSE_SECONDS), suppress(*CONNECTION_GONE):
            await self._send_outgoing()
        self._is_broken = True


REASONS = {
    "HTTP_REQUEST": "it speaks HTTP, not TLS",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "UNEXPECTED_MESSAGE": "it does not speak TLS",
    "UNSUPPORTED_PROTOCOL": "none of its TLS versions is enabled here",
    "NO_SHARED_CIPHER": "it has no cipher suite in common with this listener",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate, and ssl.client.auth=required",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust this listener's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not accept this listener's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not accept this listener's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it finds this listener's certificate expired",
}
"""What OpenSSL's reasons mean for whoever reads the log."""


def reason_of(error: ssl.SSLError) -> str:
    """Why TLS failed, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    reason = error.reason or ""
    return REASONS.get(reason) or reason.lower().replace("_", " ") or str(error)
