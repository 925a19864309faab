"""How a cluster is to be reached: all that a `KafkaClient` is made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from .settings import ClientSettings

if TYPE_CHECKING:
    from ssl import SSLContext

    from .network.connection import Authenticate


class ConnectionSettings(NamedTuple):
    """How a cluster is to be reached: what `KafkaClient` is made with.

    Attributes:
        bootstrap: `bootstrap.servers`; None if it is not given.
        client: timeouts and the like.
        ssl_context: how TLS is spoken; None: not at all.
        authenticate: what is done on each new connection; None: nothing.
        tls: the `ssl.*` settings behind the context in Java's names, for other clients.
        is_verified: whether the brokers' certificates are.
    """

    bootstrap: str | None = None
    client: ClientSettings = ClientSettings()
    ssl_context: SSLContext | None = None
    authenticate: Authenticate | None = None
    tls: Mapping[str, str] = {}
    is_verified: bool = True

    def __repr__(self) -> str:
        """Without what is secret."""
        return f"ConnectionSettings(bootstrap={self.bootstrap!r})"
