"""Connections from this broker to others, on the listener that brokers use among themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from ...client.errors import ConnectError
from ...client.network.connection import Connection, open_connection
from ...client.network.opening import Connect
from ...client.settings import ClientSettings
from ...common.live_broker import EndPoint
from ...protocol.api_keys import ApiKey
from .registered_brokers import VERSIONS as AUTHENTICATION_VERSIONS
from .registered_brokers import RegisteredBrokers

if TYPE_CHECKING:
    from ssl import SSLContext

    from ...metadata.metadata_cache import MetadataCache
    from ...security.authenticator.sasl_listeners import SaslListeners
    from ...security.tls.listeners import TlsListeners

LOGIN_VERSIONS: Mapping[int, int] = {ApiKey.SASL_HANDSHAKE: 1, **AUTHENTICATION_VERSIONS}


class BrokerLinks:
    """Opens connections to brokers.

    What brokers ask of each other is not negotiated: whoever connects says which version of
    each API it is going to send, and each side knows all of them.

    Args:
        broker_id: this one, which the others see as the client id.
        listener_name: the listener used.
        cache: says where brokers are.
        registered: has the others know that the connections are a broker's.
        tls: how brokers speak TLS, if they do.
        sasl: how they log in, if they do.
        connect: opens streams to other brokers; None: as always, by TCP.

    Attributes:
        connect: the same; tests put another in its place.
        open: opens connections on them.
    """

    def __init__(
        self,
        broker_id: int,
        listener_name: str,
        cache: MetadataCache,
        registered: RegisteredBrokers,
        tls: TlsListeners | None = None,
        sasl: SaslListeners | None = None,
        connect: Connect | None = None,
    ) -> None:
        self._broker_id = broker_id
        self._listener_name = listener_name
        self._cache = cache
        self._registered = registered
        self._tls = tls
        self._sasl = sasl
        self.connect = connect
        self.open: Callable[..., AbstractAsyncContextManager[Connection]] = open_connection

    @asynccontextmanager
    async def to_endpoint(
        self,
        broker_id: int,
        endpoint: EndPoint,
        versions: Mapping[int, int],
        client_id: str | None = None,
    ) -> AsyncIterator[Connection]:
        """A connection to where a broker is reached, for these APIs. Raises ClientError."""

        login = None if self._sasl is None else self._sasl.to_brokers()

        async def authenticate(connection: Connection) -> None:
            if login is not None:
                await login(connection)
            await self._registered.authenticate(connection, broker_id)

        settings = ClientSettings(client_id=client_id or str(self._broker_id))
        async with self.open(
            endpoint.host,
            endpoint.port,
            settings,
            connect=self.connect,
            ssl_context=self._ssl_context(),
            authenticate=authenticate,
            fixed_versions={**versions, **LOGIN_VERSIONS},
        ) as connection:
            yield connection

    @asynccontextmanager
    async def to_broker(
        self, broker_id: int, versions: Mapping[int, int], client_id: str | None = None
    ) -> AsyncIterator[Connection]:
        """A connection to a broker that the metadata knows. Raises ClientError."""
        broker = self._cache.snapshot.alive_brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(self._listener_name)
        if endpoint is None:
            raise ConnectError(f"broker {broker_id} is not alive, as far as is known")
        async with self.to_endpoint(broker_id, endpoint, versions, client_id) as connection:
            yield connection

    def _ssl_context(self) -> SSLContext | None:
        """How the listener that brokers use is spoken to; None if it is plain.

        This broker's own setting decides, never what another one says of itself.
        """
        if self._tls is None or not self._tls.has(self._listener_name):
            return None
        return self._tls.to_brokers(self._listener_name)
