"""TLS towards ZooKeeper, from the settings that Kafka has for it.

Stores of keys and certificates are PEM files; Python cannot read Java's own. kazoo alone would
not compare the server's name with its certificate, and would trust the system's certificates
besides those that are given, so it is handed connections made here.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from ...config.definition import ConfigError, ConfigValues

KEY_STORE = "zookeeper.ssl.keystore.location"
TRUST_STORE = "zookeeper.ssl.truststore.location"
PROTOCOLS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


def client_context(config: ConfigValues) -> ssl.SSLContext:
    """The TLS context that the `zookeeper.ssl.*` settings describe.

    Raises:
        ConfigError: a file or a value cannot be used; the text names the setting.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Java's name for the comparison; empty is none.
    context.check_hostname = bool(config["zookeeper.ssl.endpoint.identification.algorithm"])
    context.minimum_version, context.maximum_version = _versions(config)
    trusted = _pem_file(config, TRUST_STORE, "zookeeper.ssl.truststore.type")
    if trusted is None:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(trusted)
        except OSError as error:  # SSLError is one
            raise _unusable(TRUST_STORE, trusted, error) from error
    own = _pem_file(config, KEY_STORE, "zookeeper.ssl.keystore.type")
    if own is not None:
        try:
            context.load_cert_chain(own, password=config["zookeeper.ssl.keystore.password"] or "")
        except OSError as error:
            raise _unusable(KEY_STORE, own, error) from error
    return context


def _versions(config: ConfigValues) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    """The oldest and the newest version to speak.

    Where none are listed, Kafka speaks `zookeeper.ssl.protocol` alone, here TLSv1.3 will do, too:
    it is all that a ZooKeeper 3.9 speaks unless it is configured otherwise.
    """
    names = config["zookeeper.ssl.enabled.protocols"]
    try:
        versions = [PROTOCOLS[each] for each in names or [config["zookeeper.ssl.protocol"]]]
    except KeyError as error:
        raise ConfigError(
            f"zookeeper.ssl.enabled.protocols and zookeeper.ssl.protocol know no {error}: "
            f"choose among {', '.join(PROTOCOLS)}."
        ) from None
    return min(versions), max(versions) if names else max(PROTOCOLS.values())


def _pem_file(config: ConfigValues, setting: str, type_setting: str) -> str | None:
    path: str | None = config[setting]
    kind = config[type_setting]
    if path and kind not in (None, "", "PEM"):
        raise ConfigError(
            f"{type_setting}={kind} cannot be read here: name a PEM file in {setting}, "
            "and the type PEM."
        )
    return path or None


def _unusable(setting: str, path: str, error: OSError) -> ConfigError:
    return ConfigError(f"{setting}={path} is of no use as a PEM file: {error.strerror or error}.")


class TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's threads, with connections that prove whose they are.

    Args:
        context: how.
        hosts: `host:port,host:port`, the names that certificates are compared with.

    Attributes:
        last_error: why the last connection did not come about.
    """

    def __init__(self, context: ssl.SSLContext, hosts: str) -> None:
        super().__init__()
        self._context = context
        self._names = [each.strip().rpartition(":")[0].strip("[]") for each in hosts.split(",")]
        self.last_error: Exception | None = None

    def create_connection(
        self, address: tuple[str, int], timeout: float | None = None, **_: Any
    ) -> ssl.SSLSocket:
        """Called by kazoo, with an address that it has looked up. Raises OSError."""
        plain = socket.create_connection(address, timeout)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            name = _name_of(address[0], self._names)
            connection = self._context.wrap_socket(plain, server_hostname=name)
        except Exception as error:
            self.last_error = error
            plain.close()
            raise
        self.last_error = None
        return connection


def _name_of(ip: str, names: Sequence[str]) -> str:
    """Under which of the configured names an address was found."""
    for name in names:
        try:
            found = socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM)
        except OSError:
            continue
        if any(sockaddr[0] == ip for *_, sockaddr in found):
            return name
    return ip
