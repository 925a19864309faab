"""Listeners: where a broker accepts connections, and what clients are to connect to.

`listeners=INTERNAL://127.0.0.1:9092,EXTERNAL://:0` names each listener, its host and its port;
`listener.security.protocol.map` says what is spoken there; `advertised.listeners` is what
Metadata answers. The rules are those of Kafka's `SocketServerConfigs` and `AbstractKafkaConfig`
with one addition, see docs/differences.md: one listener name may stand twice if one address
is IPv4 and the other IPv6, on one port.

No socket is opened here; a host name is not looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..common.named_tuple import NamedTuple
from .definition import ConfigError

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
TLS_PROTOCOLS = ("SSL", "SASL_SSL")
SASL_PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
PORT_MAX = 65535
EXTERNAL = "EXTERNAL"
"""The listener for clients that are not on this machine, as Kafka's documentation names it."""

_HOST_CHARACTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-%._:")


class Listener(NamedTuple):
    """One listener. An empty `host` is every interface; port 0 lets the system choose one."""

    name: str
    security_protocol: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """`host:port`, with brackets around an IPv6 host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"


def parse_protocol_map(text: str) -> dict[str, str]:
    """Read `listener.security.protocol.map`: listener name to security protocol.

    Raises:
        ConfigError: an entry that is not `NAME:PROTOCOL`, or a name that stands twice.
    """
    protocols: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (part.strip().upper() for part in entry.partition(":"))
        if not colon or not name or protocol not in SECURITY_PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map has {entry!r}: an entry is a listener's name, a "
                f"colon and one of {', '.join(SECURITY_PROTOCOLS)}."
            )
        if name in protocols:
            raise ConfigError(f"listener.security.protocol.map names {name} twice.")
        protocols[name] = protocol
    return protocols


def parse_listeners(
    key: str, items: Iterable[str], protocols: Mapping[str, str], *, ignored: Iterable[str] = ()
) -> tuple[Listener, ...]:
    """Read a list of `NAME://host:port`.

    Args:
        key: the setting it comes from, for error texts.
        items: the list's items.
        protocols: security protocol by listener name.
        ignored: names that are dropped (the controller listeners of a KRaft file).

    Raises:
        ConfigError: an item that is no listener, or whose name has no protocol.
    """
    dropped = {name.upper() for name in ignored}
    listeners = []
    for item in items:
        name, host, port = _split(key, item)
        if name in dropped:
            continue
        if name not in protocols:
            raise ConfigError(
                f"{key} has a listener {name} without a security protocol: add "
                f"{name}:PLAINTEXT, or another of {', '.join(SECURITY_PROTOCOLS[1:])}, to "
                f"listener.security.protocol.map."
            )
        listeners.append(Listener(name, protocols[name], host, port))
    return tuple(listeners)


def _split(key: str, item: str) -> tuple[str, str, int]:
    name, slashes, address = item.strip().partition("://")
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        slashes = ""  # an IPv6 host needs its brackets, or its end could be taken for a port
    digits = port.isascii() and port.isdigit() and len(port) <= 5
    if not (slashes and name and colon and digits and _HOST_CHARACTERS.issuperset(host)):
        raise ConfigError(
            f"{key} has {item!r}: a listener is NAME://host:port, such as "
            f"PLAINTEXT://127.0.0.1:9092 or PLAINTEXT://[::1]:9092."
        )
    if int(port) > PORT_MAX:
        raise ConfigError(f"{key} has {item!r}: a port is at most {PORT_MAX}.")
    return name.upper(), host, int(port)


def check_listeners(listeners: tuple[Listener, ...]) -> None:
    """Refuse an empty list, and names or ports that stand twice.

    Two listeners may share a port, and here also a name, if one host is an IPv4 and the other
    an IPv6 address. Port 0 may stand any number of times.

    Raises:
        ConfigError: against these rules.
    """
    if not listeners:
        raise ConfigError("listeners is empty: a broker needs one, such as PLAINTEXT://:9092.")
    for position, later in enumerate(listeners):
        for earlier in listeners[:position]:
            if _are_pair(earlier, later):
                continue
            if earlier.name == later.name:
                raise ConfigError(
                    f"listeners names {later.name} twice: each listener needs a name of its own, "
                    f"unless the two are an IPv4 and an IPv6 address on one port."
                )
            if earlier.port == later.port != 0:
                raise ConfigError(
                    f"listeners has port {later.port} twice: each listener needs a port of its "
                    f"own, unless the two are an IPv4 and an IPv6 address."
                )


def _are_pair(one: Listener, other: Listener) -> bool:
    """Whether one is an IPv4 and the other an IPv6 address on the same port."""
    if one.port != other.port:
        return False
    return {_family(one.host), _family(other.host)} == {4, 6}


def _family(host: str) -> int:
    if ":" in host:
        return 6
    parts = host.split(".")
    return 4 if len(parts) == 4 and all(part.isdigit() for part in parts) else 0


def check_advertised(advertised: tuple[Listener, ...], listeners: tuple[Listener, ...]) -> None:
    """Refuse an advertised listener that is not listened on, or that nobody could connect to.

    Raises:
        ConfigError: against these rules.
    """
    names = {listener.name for listener in listeners}
    seen: set[str] = set()
    for listener in advertised:
        if listener.name not in names:
            raise ConfigError(
                f"advertised.listeners has {listener.name}, which is not in listeners "
                f"({', '.join(sorted(names))})."
            )
        if listener.name in seen:
            raise ConfigError(f"advertised.listeners names {listener.name} twice.")
        if listener.host in ("0.0.0.0", "::"):
            raise ConfigError(
                f"advertised.listeners has {listener}: clients cannot connect to "
                f"{listener.host}, so name the address that they reach this broker at."
            )
        seen.add(listener.name)


def external_settings(first: str, external: str) -> dict[str, str]:
    """The settings of a broker that clients reach by two addresses, one of them from elsewhere.

    Args:
        first: its listener for this machine, whose name is its protocol: `PLAINTEXT://HOST:PORT`.
        external: HOST:PORT that containers and other hosts know this machine by; a listener
            EXTERNAL accepts them on every IPv4 interface, and speaks the same protocol.

    Raises:
        ConfigError: `external` is no address.
    """
    protocol = first.partition("://")[0]
    protocols = {protocol: protocol, EXTERNAL: protocol}
    try:
        (listener,) = parse_listeners("external", [f"{EXTERNAL}://{external}"], protocols)
        check_advertised((listener,), (listener,))
    except ConfigError as error:
        raise ConfigError(f"{external} is no address of this machine: {error}") from error
    if not listener.host:
        raise ConfigError(f"{external}: write it as HOST:PORT, such as host.docker.internal:9094.")
    return {
        "listeners": f"{first},{EXTERNAL}://0.0.0.0:{listener.port}",
        "advertised.listeners": f"{first},{listener}",
        "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
    }


def bind_hosts(listener: Listener) -> tuple[str, ...]:
    """The addresses to bind for one listener.

    `localhost` is both loopback addresses, since clients look it up as either; an empty host
    is every interface of both families. Whoever binds may leave out a family that the machine
    does not have.
    """
    if listener.host == "":
        return ("0.0.0.0", "::")
    if listener.host == "localhost":
        return ("127.0.0.1", "::1")
    return (listener.host,)


def advertise(
    listeners: tuple[Listener, ...],
    advertised: tuple[Listener, ...] | None,
    bound_ports: Mapping[str, int],
    local_host: Callable[[], str],
) -> tuple[Listener, ...]:
    """What Metadata says of this broker, once its sockets are bound.

    Args:
        listeners: those listened on.
        advertised: those of `advertised.listeners`; None where it is not set, which advertises
            what is listened on.
        bound_ports: the port bound for each listener name; takes the place of port 0.
        local_host: finds this machine's name, which may take long, for listeners without a host.
    """
    named: dict[str, Listener] = {}
    for listener in listeners if advertised is None else advertised:
        if listener.name in named:
            continue  # the IPv6 half of a pair: an endpoint has one address
        every_interface = listener.host in ("", "0.0.0.0", "::")
        named[listener.name] = Listener(
            listener.name,
            listener.security_protocol,
            local_host() if every_interface else listener.host,
            listener.port or bound_ports.get(listener.name, 0),
        )
    return tuple(named.values())
