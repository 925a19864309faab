"""Which connections are those of the cluster's brokers, where no authorizer says it.

A broker of ours proves that it belongs to the cluster: it knows a secret that the metadata store
holds, and so whoever can read the store. The secret itself is never sent. Whoever connects to the
listener between brokers sends `MECHANISM` in a SaslAuthenticate, is answered with a challenge, and
sends back its keyed hash. The hash holds the id of the broker that is spoken to, too, so that a
process which has got hold of the port of one broker cannot use what it is sent at another one.

A broker of Apache Kafka (3.9 and its like, in ZooKeeper) does not know that exchange. It is taken
for one by its address: the store has its registration, which ours tell from their own by a field.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

import trio

from ...common.errors import ErrorCode
from ...controller.registration import read_live_brokers
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...runtime import waiting
from ...runtime.rng import random_secret

if TYPE_CHECKING:
    from ...client.network.connection import Connection
    from ...common.live_broker import LiveBroker
    from ...metadata.metadata_cache import MetadataCache
    from ...metadata_store.store import MetadataStore
    from ..request.requests import ClientConnection

logger = logging.getLogger(__name__)

MECHANISM: Final = b"odradek-broker"
CHALLENGE_BYTES: Final = 32
VERSIONS: Final[dict[int, int]] = {ApiKey.SASL_AUTHENTICATE: 2}
"""What the exchange needs of a connection."""

READ_INTERVAL_MS: Final = 100
"""The registrations are not read more often, however many requests come from unknown addresses."""

MAPPED_IPV4: Final = "::ffff:"


class RegisteredBrokers:
    """Tells brokers' connections from clients', and has this broker's own known as such.

    Args:
        broker_id: this broker.
        secret: of the cluster.
        listener_name: the listener that brokers use among themselves.
        store: holds the registrations.
    """

    def __init__(
        self, broker_id: int, secret: bytes, listener_name: str, store: MetadataStore
    ) -> None:
        self._broker_id = broker_id
        self._secret = secret
        self._listener_name = listener_name
        self._store = store
        self._hosts: frozenset[str] = frozenset()
        """The addresses of brokers that do not prove themselves."""
        self._one_at_a_time = waiting.new_lock()
        self._readings = 0
        self._read_at = -float("inf")

    # -- for those who connect to this broker --------------------------------------------

    def is_broker(self, connection: ClientConnection) -> bool:
        """Whether a connection is known to be another broker's, or this one's own."""
        return connection.listener_name == self._listener_name and (
            connection.is_broker or _plain_host(connection.peer_host) in self._hosts
        )

    async def look_up(self, connection: ClientConnection) -> bool:
        """Whether a connection is a broker's, by registrations as they are now.

        Raises:
            MetadataStoreError: they cannot be read.
        """
        if not self.is_broker(connection) and connection.listener_name == self._listener_name:
            await self.read()
        return self.is_broker(connection)

    async def read(self) -> None:
        """Read the registrations; one reading serves all who came before it began.

        Raises:
            MetadataStoreError: they cannot be read.
        """
        turn = self._readings
        async with self._one_at_a_time:
            if self._readings > turn:
                return
            await waiting.sleep_until(self._read_at + READ_INTERVAL_MS / 1000)
            self._readings += 1
            self._read_at = waiting.current_time()
            self._hosts = await _addresses_of(await read_live_brokers(self._store))

    def challenge(self, connection: ClientConnection, token: bytes) -> bytes | None:
        """What a connection is to hash, if it says that it is a broker's; else None."""
        if token != MECHANISM or connection.listener_name != self._listener_name:
            return None
        connection.challenge = random_secret(CHALLENGE_BYTES)
        return connection.challenge

    def verify(self, connection: ClientConnection, proof: bytes) -> bool:
        """Take a connection for a broker's if this proves it. A challenge is good for one try."""
        challenge, connection.challenge = connection.challenge, b""
        expected = self._proof(self._broker_id, challenge)
        connection.is_broker = bool(challenge) and hmac.compare_digest(expected, proof)
        return connection.is_broker

    # -- for what Apache Kafka's brokers send --------------------------------------------

    def follow(self, cache: MetadataCache, keep_running: Callable[..., None]) -> None:
        """Read the registrations whenever a broker comes or goes, as far as is known here.

        So the fetches of a follower, which are answered without waiting, find it known.
        """
        alive: Collection[int] = ()

        def look() -> None:
            nonlocal alive
            if cache.snapshot.alive_brokers.keys() != alive:
                alive = frozenset(cache.snapshot.alive_brokers)
                keep_running(self._read_if_possible)

        cache.listeners.append(look)

    async def _read_if_possible(self) -> None:
        try:
            await self.read()
        except MetadataStoreError as error:
            logger.warning("cannot read which brokers are registered: %s", error)

    # -- for this broker's own connections -----------------------------------------------

    async def authenticate(self, connection: Connection, broker_id: int) -> None:
        """Prove to a broker that this is one, too.

        Apache Kafka's brokers refuse the first step, and need none.

        Raises:
            AuthenticationError: it does not believe it.
            DisconnectedError: the connection ended meanwhile.
        """
        from ...client.errors import AuthenticationError

        answer = await connection.request(messages.SaslAuthenticateRequest(auth_bytes=MECHANISM))
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            return
        if not answer.error_code:
            proof = self._proof(broker_id, bytes(answer.auth_bytes))
            answer = await connection.request(messages.SaslAuthenticateRequest(auth_bytes=proof))
        if answer.error_code:
            raise AuthenticationError(f"broker {broker_id} refused: {answer.error_message}")

    def _proof(self, broker_id: int, challenge: bytes) -> bytes:
        message = MECHANISM + broker_id.to_bytes(4, "big", signed=True) + challenge
        return hmac.digest(self._secret, message, hashlib.sha256)


async def _addresses_of(brokers: Mapping[int, LiveBroker]) -> frozenset[str]:
    """The addresses of those brokers that do not prove themselves."""
    names = {
        endpoint.host
        for broker in brokers.values()
        if not broker.proves_itself
        for endpoint in broker.endpoints
    }
    hosts: set[str] = set()
    for name in names:
        try:
            found = await trio.socket.getaddrinfo(name, None)
        except OSError as error:
            logger.warning("no address is found for the registered broker %s: %s", name, error)
        else:
            hosts.update(_plain_host(str(address[0])) for *_, address in found)
    return frozenset(hosts)


def _plain_host(host: str) -> str:
    """An IPv4 address as such, where a socket of both families shows it as one of IPv6."""
    return host.removeprefix(MAPPED_IPV4)
