"""How many connections a broker has at one time, in all, by listener and by address.

`max.connections`, of the broker and of its listeners, and `max.connections.per.ip` are Kafka's
(ConnectionQuotas in SocketServer.scala): at the first two nothing is accepted until a connection
ends, beyond the third a connection is closed at once. How fast connections come is bounded, too:
by `max.connection.creation.rate`, above which a listener pauses, and by quotas of addresses
(KIP-612). The listener that brokers use among themselves is protected where there are others: it
goes above `max.connections`, and a connection of another listener makes way for it.

The bound on answers that clients do not read, of all connections together, is ours: beyond it the
one is closed that has taken nothing for longest.

The bound by file descriptors is ours, too: accepting goes on there, and another makes way. What
makes way is of the address with the most connections: first those that have not logged in, then
those that were never used, then those that idle longest.
"""

from __future__ import annotations

import heapq
import logging
import socket
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from ...common.log_lines import one_class
from ...config.dynamic.dynamic_config import DynamicConfig
from ...runtime.clock import Clock

if TYPE_CHECKING:
    from ...security.quotas.connection_rates import ConnectionRates

logger = logging.getLogger(__name__)

UNLIMITED: Final = 2**31 - 1
VICTIMS_SHARE: Final = 16
"""Of the connections, one in so many at most is chosen in one look at all of them."""
ACCEPT_AGAIN_MS: Final = 1000
"""Whoever may accept nothing looks again after so long: settings may change."""
THROTTLED_MAX: Final = 128
"""So many connections that come too fast are kept open for a while; more are closed at once."""
CREATION_RATE: Final = "max.connection.creation.rate"
MAX: Final = "max.connections"
PER_IP: Final = "max.connections.per.ip"
PER_IP_RATE: Final = "connection_creation_rate"
DESCRIPTORS: Final = "file descriptors"
UNREAD: Final = "unread answers"
UNREAD_BYTES_MAX: Final = 64 << 20
"""So many bytes of answers may be in memory because their clients do not take them. Of one
connection it is a single answer and 64 KB of others, but there may be thousands of connections. A
connection that is alone with its answer keeps it."""


class TooManyConnections(ConnectionRefusedError):
    """An address has as many connections as it may, or there is no descriptor for another."""


class ConnectionThrottled(TooManyConnections):
    """An address makes connections too fast.

    Attributes:
        close_in_ms: the connection is to be closed after so long, unserved.
    """

    def __init__(self, host: str, close_in_ms: int) -> None:
        super().__init__(f"{host} makes connections too fast")
        self.close_in_ms = close_in_ms


class Countable(Protocol):
    """A connection, as far as it is counted."""

    @property
    def host(self) -> str:
        """The other side's address."""

    @property
    def listener_name(self) -> str:
        """The listener by which it came."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way and no answer unsent."""

    @property
    def has_logged_in(self) -> bool:
        """Whether its client has logged in, or need not."""

    @property
    def last_used_ms(self) -> int:
        """When it last sent or received, in monotonic milliseconds; -1 if it never did."""

    @property
    def accepted_ms(self) -> int:
        """When it was accepted, in monotonic milliseconds."""

    def evict(self) -> None:
        """Close it now."""


class ConnectionQuotas:
    """Counts one broker's connections.

    Args:
        config: the broker's settings.
        clock: for how often something is logged.
        connections_max: what descriptors allow.
        scarce_from: a descriptor of this number shows that there are too few left.

    Attributes:
        refused: how many were closed, by reason.
        on_slot: called when a connection has ended and another may be accepted.
        rates: measures how fast connections come; None until there is a bound on that.
        throttled: how many are open only to be closed after a while.
    """

    def __init__(
        self,
        config: DynamicConfig,
        clock: Clock,
        connections_max: int = UNLIMITED,
        scarce_from: int = UNLIMITED,
    ) -> None:
        self.refused: Counter[str] = Counter()
        self.on_slot: list[Callable[[], None]] = []
        self._config = config
        self._clock = clock
        self.rates: ConnectionRates | None = None
        self.throttled = 0
        self._resume_ms: dict[str, int] = {}
        self._connections_max = connections_max
        self._scarce_from = scarce_from
        self._connections: dict[Countable, None] = {}
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._victims: deque[tuple[Countable, int]] = deque()
        self._overrides_text = ""
        self._overrides: dict[str, int] = {}
        self._unread: dict[Countable, int] = {}
        """Bytes of answers that wait; whose client has taken nothing for longest is first."""
        self._unread_bytes = 0

    def __len__(self) -> int:
        return len(self._connections)

    def has_slot(self, listener_name: str) -> bool:
        """Whether another connection may be accepted from a listener."""
        if self._resume_ms and self._paused_ms(listener_name):
            return False
        if self._by_listener[listener_name] >= self._config.listener_value(listener_name, MAX):
            return False
        return self._is_protected(listener_name) or len(self) < self._config[MAX]

    def accept_again_ms(self, listener_name: str) -> int:
        """After how many ms to look again where no connection may be accepted."""
        return self._paused_ms(listener_name) or ACCEPT_AGAIN_MS

    def _paused_ms(self, listener_name: str) -> int:
        """For how long a listener that accepted too fast accepts nothing."""
        left_ms = self._resume_ms.get(listener_name, 0) - self._clock.monotonic_ms()
        if left_ms <= 0:
            self._resume_ms.pop(listener_name, None)
        return max(left_ms, 0)

    def use_ip_rates(self, rates: Mapping[str | None, float]) -> None:
        """Bound how many connections a second an address makes.

        Args:
            rates: by address; None: of those that have none of their own.
        """
        self._measured().set_ip_rates(rates)

    def _measured(self) -> ConnectionRates:
        if self.rates is None:
            from ...security.quotas.connection_rates import ConnectionRates
            from ...security.quotas.quota_managers import Windows

            config = self._config
            self.rates = ConnectionRates(
                Windows(config["quota.window.num"], config["quota.window.size.seconds"] * 1000)
            )
        return self.rates

    def _measure(self, host: str, listener_name: str) -> None:
        """Count how fast connections come.

        Raises:
            ConnectionThrottled: this one came too fast.
        """
        rate = self._config[CREATION_RATE]
        if self._is_protected(listener_name):
            rate = UNLIMITED
        listener_rate = self._config.listener_value(listener_name, CREATION_RATE)
        if self.rates is None and rate == listener_rate == UNLIMITED:
            return
        rates, now_ms = self._measured(), self._clock.monotonic_ms()
        close_in_ms = rates.admit_ip(host, now_ms)
        if close_in_ms:
            self._note(PER_IP_RATE, f"{host} makes them faster than it may")
            raise ConnectionThrottled(host, close_in_ms if self.throttled < THROTTLED_MAX else 0)
        paused_ms = 0
        if rate < UNLIMITED:
            paused_ms = rates.record("", rate, now_ms)
        if listener_rate < UNLIMITED:
            paused_ms = max(paused_ms, rates.record(listener_name, listener_rate, now_ms))
        if paused_ms:
            self._resume_ms[listener_name] = now_ms + paused_ms

    def admit(self, connection: Countable, descriptor: int) -> None:
        """Count an accepted connection; others may be closed for it.

        Raises:
            TooManyConnections: it is to be closed, after a while if it is `ConnectionThrottled`.
        """
        host, listener_name = connection.host, connection.listener_name
        self._measure(host, listener_name)
        allowed = self._max_of(host)
        if self._by_host[host] >= allowed:
            self._note(PER_IP, f"{host} has the {allowed} connections that it may have")
            raise TooManyConnections(f"{host} has {allowed} connections already")
        is_scarce = len(self) >= self._connections_max or descriptor >= self._scarce_from
        if is_scarce and not self.make_way():
            raise TooManyConnections("no file descriptor is left for it")
        self._connections[connection] = None
        self._by_host[host] += 1
        self._by_listener[listener_name] += 1
        if len(self) > self._config[MAX] and self._is_protected(listener_name):
            self._make_way_for_broker()

    def release(self, connection: Countable) -> None:
        """A connection has ended; it may not have been counted."""
        self.note_all_read(connection)
        if connection not in self._connections:
            return
        del self._connections[connection]
        self._by_listener[connection.listener_name] -= 1
        self._by_host[connection.host] -= 1
        if not self._by_host[connection.host]:
            del self._by_host[connection.host]
        for callback in self.on_slot:
            callback()

    def note_unread(self, connection: Countable, unread_bytes: int, *, took_some: bool) -> None:
        """A client does not take its answers; where there are too many, one client is closed.

        Args:
            unread_bytes: of answers that are in memory.
            took_some: whether it has taken anything since it was noted last.
        """
        former = self._unread.pop(connection, 0) if took_some else self._unread.get(connection, 0)
        self._unread[connection] = unread_bytes
        self._unread_bytes += unread_bytes - former
        while self._unread_bytes > UNREAD_BYTES_MAX and len(self._unread) > 1:
            victim = next(iter(self._unread))
            self._note(
                UNREAD, f"{self._unread[victim]} bytes of answers waited for {victim.host} longest"
            )
            self.note_all_read(victim)
            victim.evict()
            self.release(victim)

    def note_all_read(self, connection: Countable) -> None:
        """A client has taken its answers, or is gone."""
        self._unread_bytes -= self._unread.pop(connection, 0)

    @property
    def unread_bytes(self) -> int:
        """Of answers that their clients do not take."""
        return self._unread_bytes

    def make_way(self) -> bool:
        """Close one connection, since descriptors are short; returns whether there was one."""
        for _ in range(2):
            while self._victims:
                connection, last_used_ms = self._victims.popleft()
                if connection in self._connections and connection.last_used_ms == last_used_ms:
                    self._note(DESCRIPTORS, f"one of {connection.host} is closed for others")
                    connection.evict()
                    self.release(connection)
                    return True
            self._choose_victims()
        return False

    def _choose_victims(self) -> None:
        """Look at all connections once for a number of those to come."""
        chosen = _first_to_go(self._connections, max(len(self) // VICTIMS_SHARE, 1))
        self._victims.extend((each, each.last_used_ms) for each in chosen)

    def _make_way_for_broker(self) -> None:
        others = [each for each in self._connections if not self._is_protected(each.listener_name)]
        for victim in _first_to_go(others, 1):
            self._note(MAX, f"one of {victim.host} is closed for a broker's")
            victim.evict()
            self.release(victim)

    def _is_protected(self, listener_name: str) -> bool:
        config = self._config
        return listener_name == config.inter_broker_listener_name and len(config.listeners) > 1

    def _max_of(self, host: str) -> int:
        text = self._config["max.connections.per.ip.overrides"]
        if text != self._overrides_text:
            self._overrides_text, self._overrides = text, dict(_parse_overrides(text))
        default: int = self._config["max.connections.per.ip"]
        return self._overrides.get(host, default)

    def _note(self, reason: str, text: str) -> None:
        """Count it, and log it: of a reason the log has a line a minute."""
        self.refused[reason] += 1
        logger.warning("a connection is closed by %s: %s", reason, text, extra=one_class(reason))


def _first_to_go(connections: Collection[Countable], count: int) -> list[Countable]:
    """Those that make way: of the address that has most of these connections.

    One that idles goes first, and of these one that has not logged in where that is to be done,
    then one that was never used, then the one that idles longest.
    """
    by_host = Counter(each.host for each in connections)
    busiest = max(by_host, key=by_host.__getitem__, default="")
    return heapq.nsmallest(
        count,
        (each for each in connections if each.host == busiest),
        key=lambda each: (
            not each.is_idle,
            each.has_logged_in,
            each.last_used_ms,
            each.accepted_ms,
        ),
    )


def host_of(peer: str) -> str:
    """The address in a peer's name, an IPv4 one as such where IPv6 carries it."""
    return peer.rpartition(":")[0].strip("[]").removeprefix("::ffff:")


def _parse_overrides(text: str) -> Iterable[tuple[str, int]]:
    """Addresses and their numbers; what the settings check lets pass."""
    import ipaddress

    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, count = item.rpartition(":")
        name = name.strip().strip("[]")
        try:
            yield str(ipaddress.ip_address(name)), int(count)
        except ValueError:
            try:
                found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            except OSError as error:
                logger.error("max.connections.per.ip.overrides: %s is not known: %s", name, error)
                continue
            for *_, address in found:
                yield str(address[0]), int(count)
