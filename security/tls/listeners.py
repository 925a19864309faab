"""How each listener speaks TLS, and what changes of that while the broker runs.

`ssl.*` holds for all listeners, `listener.name.<listener>.ssl.*` for one. Stores may be replaced on
a running broker, as Kafka's SslFactory allows: new connections get the new ones. Kafka reads a file
again when somebody alters the broker's settings; here it is looked at every few seconds, too.
"""

from __future__ import annotations

import hashlib
import logging
import ssl
from functools import partial
from typing import Any, NamedTuple

import trio

from ...client.security.tls_context import add_key, add_trust, client_context, configure
from ...client.security.tls_settings import TlsError, TlsSettings, read_tls_settings
from ...client.security.tls_stores import KeyStore, TrustStore, read_key_store, read_trust_store
from ...config.broker_config import BrokerConfig
from ...config.definition import ConfigError
from ...config.listeners import TLS_PROTOCOLS, Listener
from ...config.values import Password
from ...runtime.offload import run_in_abandoned_thread
from ...storage.io.files import REAL_FILES, Files
from .certificate import CertificateNames, MalformedCertificate, certificate_names
from .principal_rules import Rule, map_name, parse_rules
from .self_check import shake_hands
from .stream import HandshakeError

logger = logging.getLogger(__name__)

CLIENT_AUTHENTICATION = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
STORE_BYTES_MAX = 1 << 20
"""A store of keys or certificates is not larger."""

FILES_INTERVAL_S = 2.0
"""How often the files are looked at."""
LOCATIONS = ("ssl.keystore.location", "ssl.truststore.location")


class ListenerTls(NamedTuple):
    """How one listener speaks TLS.

    Attributes:
        server: towards those who connect.
        client: towards the same listener of other brokers.
        key_store, trust_store: what the two were made of.
        names: whom the own certificate is for.
        other: all settings but the stores.
        client_authentication: `ssl.client.auth`.
        rules: who a client is, by its certificate's name.
    """

    server: ssl.SSLContext
    client: ssl.SSLContext
    key_store: KeyStore
    trust_store: TrustStore | None
    names: CertificateNames
    other: tuple[object, ...]
    client_authentication: str
    rules: tuple[Rule, ...]

    @property
    def made_of(self) -> tuple[object, ...]:
        """What is to be the same for this to be the same."""
        return (
            self.key_store,
            self.trust_store,
            self.other,
            self.client_authentication,
            self.rules,
        )

    def principal_of(self, certificate: bytes) -> str:
        """Who a client is, such as `User:CN=billing`.

        Raises:
            HandshakeError: the certificate has no name that a rule is for.
        """
        try:
            subject = certificate_names(certificate).subject
        except MalformedCertificate as error:
            raise HandshakeError(f"its certificate cannot be read: {error}") from error
        name = map_name(self.rules, subject)
        if name is None:
            raise HandshakeError(f"no rule of ssl.principal.mapping.rules is for {subject!r}")
        return f"User:{name}"


class TlsListeners:
    """All listeners of a broker that speak TLS.

    Args:
        config: the broker's settings as they are when it starts.

    Raises:
        ConfigError: a setting or a file cannot be used.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._listeners = {
            listener.name: _checked(config, listener.name) for listener in _tls_of(config)
        }
        self._files: dict[str, bytes] = {}
        self._refusals: dict[str, str] = {}

    def has(self, listener_name: str) -> bool:
        """Whether a listener speaks TLS."""
        return listener_name in self._listeners

    def of(self, listener_name: str) -> ListenerTls:
        """How a listener speaks TLS now."""
        return self._listeners[listener_name]

    def to_brokers(self, listener_name: str) -> ssl.SSLContext:
        """How brokers are spoken to over their listener of this name."""
        return self._listeners[listener_name].client

    def check(self, proposed: BrokerConfig) -> None:
        """Find out whether the settings could become these.

        Raises:
            ConfigError: one sentence that says what is wrong.
        """
        for name, current in self._listeners.items():
            made = _checked(proposed, name)
            _check_step(proposed, name, current, made)

    def reconfigure(self) -> None:
        """Follow a change of the settings, or of the files that they name.

        What cannot be used is logged, once until something else is wrong.
        """
        for name, current in self._listeners.items():
            try:
                made = _checked(self._config, name)
                _check_step(self._config, name, current, made)
            except ConfigError as error:
                if self._refusals.get(name) != str(error):
                    logger.error("listener %s stays as it is: %s", name, error)
                self._refusals[name] = str(error)
                continue
            self._refusals.pop(name, None)
            if made.made_of != current.made_of:
                self._listeners[name] = made
                logger.info("listener %s speaks TLS with %s now", name, made.key_store.source)

    async def follow_files(self) -> None:
        """Take up the stores whose files were replaced, until cancelled."""
        while True:
            await self.look_at_files()
            await trio.sleep(FILES_INTERVAL_S)

    async def look_at_files(self) -> None:
        """Read the stores again if a file is not what it was when it was looked at last."""
        values = (
            self._config.listener_value(name, key) for name in self._listeners for key in LOCATIONS
        )
        paths = tuple(dict.fromkeys(path for path in values if path is not None))
        files = await run_in_abandoned_thread(partial(_contents, paths))
        if files != self._files:
            self._files = files
            self.reconfigure()


def _contents(paths: tuple[str, ...]) -> dict[str, bytes]:
    """By path what stands for a file's content, or for why it cannot be read.

    Not its time of modification: a file that was copied may have that of another.
    """
    found = {}
    for path in paths:
        try:
            found[path] = hashlib.sha256(read_store(path)).digest()
        except OSError as error:
            found[path] = str(error).encode()
    return found


def _tls_of(config: BrokerConfig) -> tuple[Listener, ...]:
    return tuple(each for each in config.listeners if each.security_protocol in TLS_PROTOCOLS)


def _checked(config: BrokerConfig, name: str) -> ListenerTls:
    """How a listener is to speak TLS. Raises: ConfigError."""
    try:
        made = _make(config, name)
        if name == config.inter_broker_listener_name:
            _check_among_brokers(made)
    except TlsError as error:
        raise ConfigError(f"Listener {name} cannot speak TLS: {error}") from error
    return made


def _make(config: BrokerConfig, name: str) -> ListenerTls:
    def value(setting: str) -> Any:
        found = config.listener_value(name, setting)
        return found.secret if isinstance(found, Password) else found

    settings = read_tls_settings(value)
    key_store = read_key_store(settings, read_store)
    if key_store is None:
        raise TlsError(
            "it has no certificate; set ssl.keystore.type=PEM, and ssl.keystore.location to a file "
            "with a private key and its certificate."
        )
    trust_store = read_trust_store(settings, read_store)
    authentication = value("ssl.client.auth")
    return ListenerTls(
        _server_context(settings, key_store, trust_store, authentication),
        client_context(settings, read_store),
        key_store,
        trust_store,
        _names(key_store),
        (
            settings.enabled_protocols,
            settings.protocol,
            settings.cipher_suites,
            settings.endpoint_identification_algorithm,
        ),
        authentication,
        parse_rules(value("ssl.principal.mapping.rules")),
    )


def read_store(path: str, files: Files = REAL_FILES) -> bytes:
    """The content of a store's file. Raises: OSError."""
    if files.size(path) > STORE_BYTES_MAX:
        raise OSError(f"it has more than {STORE_BYTES_MAX} bytes")
    return files.read_bytes(path)


def _server_context(
    settings: TlsSettings, key_store: KeyStore, trust_store: TrustStore | None, authentication: str
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = CLIENT_AUTHENTICATION[authentication]
    configure(context, settings)
    if authentication != "none":
        add_trust(context, trust_store)
    add_key(context, key_store)
    return context


def _names(store: KeyStore) -> CertificateNames:
    try:
        return certificate_names(store.certificates[0])
    except MalformedCertificate as error:
        raise TlsError(f"{store.source} holds a certificate that is none: {error}.") from error


def _check_among_brokers(made: ListenerTls) -> None:
    """Brokers of a cluster have stores alike, so each must trust itself. Raises: TlsError."""
    try:
        shake_hands(made.server, made.client)
    except HandshakeError as error:
        raise TlsError(
            "brokers are to talk over it, but one with these settings cannot connect to another "
            f"with the same: {error}."
        ) from error


def _check_step(config: BrokerConfig, name: str, current: ListenerTls, made: ListenerTls) -> None:
    """Refuse stores that cannot take the place of those in use. Raises: ConfigError."""
    if current.trust_store is None and made.trust_store is not None:
        raise ConfigError(
            f"Listener {name} has no trust store, and gets one only when the broker starts."
        )
    before, after = current.names, made.names
    if before.subject.lower() != after.subject.lower() and not config["ssl.allow.dn.changes"]:
        raise ConfigError(
            f"Listener {name} shows a certificate for {before.subject!r}, the new one is for "
            f"{after.subject!r}: the name stays, unless ssl.allow.dn.changes is set."
        )
    lost = before.alternative_names - after.alternative_names
    if lost and not config["ssl.allow.san.changes"]:
        raise ConfigError(
            f"Listener {name} shows a certificate for {len(before.alternative_names)} alternative "
            f"names, the new one lacks {len(lost)} of them: they stay, unless "
            "ssl.allow.san.changes is set."
        )
    if name == config.inter_broker_listener_name:
        for server, client in ((current, made), (made, current)):
            try:
                shake_hands(server.server, client.client)
            except HandshakeError as error:
                raise ConfigError(
                    f"Listener {name} is the one brokers talk over, and one with the new stores "
                    f"could not talk to one with the old: {error}."
                ) from error
