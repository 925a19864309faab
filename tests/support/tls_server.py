"""A broker's TLS listeners without a broker behind them: real sockets, requests are noted."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from odradek.broker.network.connection import Connection
from odradek.broker.network.connection_quotas import ConnectionQuotas
from odradek.broker.network.listener_security import tls_listeners
from odradek.broker.network.server import Server, ServerSettings
from odradek.config.broker_config import BrokerConfig
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.runtime.clock import SystemClock
from odradek.runtime.supervisor import Supervisor
from odradek.runtime.timers import Timers
from odradek.testing.certificates import Certificate, broker_settings
from odradek.testing.client_settings import TlsFiles

HELLO = b"\0\0\0\5hello"


class Echo:
    """Stands for a dispatcher: answers with who is asking."""

    def entry(self, connection: Connection, frame: memoryview) -> None:
        """Answer at once."""
        text = f"{connection.principal} says {bytes(frame).decode()}".encode()
        connection.output += [len(text).to_bytes(4, "big"), text]


class TlsServer:
    """A server with the listener SSL, as settings say."""

    def __init__(self, files: TlsFiles, settings: dict[str, str]) -> None:
        self.config = DynamicConfig(
            BrokerConfig.from_sources(
                {
                    "listeners": "SSL://127.0.0.1:0",
                    **broker_settings(files),
                    **settings,
                }
            )
        )
        self.files = files
        self.tls = tls_listeners(self.config)
        clock = SystemClock()
        self.server = Server(
            ServerSettings(self.config.listeners, 1 << 20, self.config["connections.max.idle.ms"]),
            Echo(),  # type: ignore[arg-type]  # all of a dispatcher that a connection uses
            clock,
            Timers(),
            lambda: None,
            Supervisor(),
            ConnectionQuotas(self.config, clock),
            self.tls,
        )

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.server.bound[0].port

    async def connect(self) -> trio.SocketStream:
        """A connection without TLS."""
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def ask(self, context: ssl.SSLContext) -> str:
        """Speak TLS, say hello, and return the answer."""
        stream = trio.SSLStream(
            await self.connect(), context, server_hostname="127.0.0.1", https_compatible=True
        )
        try:
            await stream.send_all(HELLO)
            received = b""
            while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
                part = await stream.receive_some()
                if not part:
                    raise EOFError(f"closed after {received!r}")
                received += part
            return received[4:].decode()
        finally:
            await trio.aclose_forcefully(stream)

    def client(self, certificate: Certificate | None = None) -> ssl.SSLContext:
        """How a client of this server speaks TLS, with or without a certificate of its own."""
        context = ssl.create_default_context(cafile=self.files.ca)
        if certificate is not None:
            context.load_cert_chain(certificate.certificate, certificate.key)
        return context


@asynccontextmanager
async def tls_server(files: TlsFiles, **settings: str) -> AsyncIterator[TlsServer]:
    """A server that runs.

    Args:
        settings: by Kafka's names, with __ for each dot.
    """
    dotted = {name.replace("__", "."): value for name, value in settings.items()}
    served = TlsServer(files, dotted)
    served.server.bind()
    error: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(served.server.serve)
        try:
            with trio.fail_after(60):
                yield served
        except BaseException as raised:
            error = raised  # raised again outside the nursery, which would put it into a group
        nursery.cancel_scope.cancel()
    served.server.close()
    if error is not None:
        raise error
