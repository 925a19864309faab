"""How a client reaches a broker for tests: its settings, in each library's own words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

CLIENTS = ("kafka-python", "aiokafka", "odradek", "confluent-kafka", "java")


class TlsFiles(NamedTuple):
    """PEM files for a broker that speaks TLS, and for its clients; paths.

    Attributes:
        ca: the certificate that issued all others; clients trust it.
        keystore: the broker's key and certificates in one file.
        client_certificate: a client's.
        client_key: a client's private key.
        client_keystore: both in one file, as Java's clients want it.
    """

    ca: str
    keystore: str
    client_certificate: str
    client_key: str
    client_keystore: str


class User(NamedTuple):
    """Who logs in."""

    name: str
    password: str

    def __repr__(self) -> str:
        return f"User({self.name!r}, [hidden])"


class Sasl(NamedTuple):
    """How clients log in to a broker.

    Attributes:
        mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
        admin: a user who is there from the start and may do everything; so do the brokers
            themselves log in.
    """

    mechanism: str
    admin: User


def client_settings(
    bootstrap_servers: str,
    tls: TlsFiles | None = None,
    client: str = "kafka-python",
    *,
    certificate: bool = True,
    sasl: Sasl | None = None,
    user: User | None = None,
) -> dict[str, Any]:
    """The settings that a client needs to reach a broker.

    Args:
        bootstrap_servers: the broker's address.
        tls: its files if it speaks TLS.
        client: "kafka-python", "aiokafka" or "odradek" (keyword arguments, of `KafkaClient` for
            the last), "confluent-kafka" (and all others on librdkafka) or "java" (properties).
        certificate: whether the client shows a certificate of its own.
        sasl: how clients log in, if they do.
        user: who does; the administrator if left out.

    Raises:
        ValueError: there is no such client.
    """
    if client not in CLIENTS:
        raise ValueError(f"{client!r} is no client known here: it must be one of {CLIENTS}")
    login = None if sasl is None else (sasl.mechanism, user or sasl.admin)
    if client == "odradek":
        return _of_odradek(bootstrap_servers, tls, certificate, login)
    if client in ("kafka-python", "aiokafka"):
        return _of_python(bootstrap_servers, tls, certificate, login, client)
    return _of_properties(bootstrap_servers, tls, certificate, login, client)


Login = tuple[str, User]


def security_protocol(*, tls: bool, sasl: bool) -> str:
    """Kafka's name of how a listener is spoken to."""
    transport = "SSL" if tls else "PLAINTEXT"
    return f"SASL_{transport}" if sasl else transport


def _of_odradek(
    bootstrap: str, tls: TlsFiles | None, certificate: bool, login: Login | None
) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap": bootstrap}
    if tls is not None:
        settings["ssl_context"] = _context(tls, certificate)
    if login is not None:
        from ..client.security.sasl import sasl

        mechanism, user = login
        settings["authenticate"] = sasl(mechanism, user.name, user.password)
    return settings


def _of_python(
    bootstrap: str, tls: TlsFiles | None, certificate: bool, login: Login | None, client: str
) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap_servers": bootstrap}
    if tls is not None or login is not None:
        settings["security_protocol"] = security_protocol(
            tls=tls is not None, sasl=login is not None
        )
    if tls is not None:
        if client == "aiokafka":
            settings["ssl_context"] = _context(tls, certificate)
        else:
            settings["ssl_cafile"] = tls.ca
            if certificate:
                settings["ssl_certfile"] = tls.client_certificate
                settings["ssl_keyfile"] = tls.client_key
    if login is not None:
        mechanism, user = login
        settings["sasl_mechanism"] = mechanism
        settings["sasl_plain_username"] = user.name
        settings["sasl_plain_password"] = user.password
    return settings


def _of_properties(
    bootstrap: str, tls: TlsFiles | None, certificate: bool, login: Login | None, client: str
) -> dict[str, Any]:
    settings = {"bootstrap.servers": bootstrap}
    if tls is not None or login is not None:
        settings["security.protocol"] = security_protocol(
            tls=tls is not None, sasl=login is not None
        )
    if tls is not None:
        settings |= _tls_properties(tls, certificate, client)
    if login is not None:
        mechanism, user = login
        settings["sasl.mechanism"] = mechanism
        if client == "java":
            from ..client.security.jaas import LOGIN_MODULES, format_jaas

            settings["sasl.jaas.config"] = format_jaas(
                LOGIN_MODULES[mechanism], {"username": user.name, "password": user.password}
            )
        else:
            settings |= {"sasl.username": user.name, "sasl.password": user.password}
    return settings


def _tls_properties(tls: TlsFiles, certificate: bool, client: str) -> dict[str, str]:
    if client == "java":
        settings = {"ssl.truststore.type": "PEM", "ssl.truststore.location": tls.ca}
        if certificate:
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": tls.client_keystore}
        return settings
    settings = {"ssl.ca.location": tls.ca}
    if certificate:
        settings["ssl.certificate.location"] = tls.client_certificate
        settings["ssl.key.location"] = tls.client_key
    return settings


def _context(tls: TlsFiles, certificate: bool) -> Any:
    import ssl

    context = ssl.create_default_context(cafile=tls.ca)
    if certificate:
        context.load_cert_chain(tls.client_certificate, tls.client_key)
    return context


class HasClientSettings(ABC):
    """A broker or cluster that clients can reach.

    Attributes:
        tls: the certificates, of clients too; None if it is plain.
        sasl: how clients log in; None if they do not.
    """

    tls: TlsFiles | None
    sasl: Sasl | None = None

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """The addresses to give to clients."""

    @property
    def ssl_ca(self) -> str:
        """The PEM file of the certificate that clients are to trust.

        Raises:
            ValueError: it does not speak TLS.
        """
        if self.tls is None:
            raise ValueError(
                "this broker does not speak TLS: make it with tls=True, or mark the test "
                "kafka(tls=True)"
            )
        return self.tls.ca

    def client_settings(
        self, client: str = "kafka-python", *, certificate: bool = True, user: User | None = None
    ) -> dict[str, Any]:
        """All settings that a client needs to reach it.

        Args:
            client: "kafka-python", "aiokafka", "odradek", "confluent-kafka" or "java".
            certificate: whether the client shows one, if TLS is spoken.
            user: who logs in, as `add_user` made one; the administrator if left out.

        Raises:
            ValueError: there is no such client, or nobody can log in.
        """
        if user is not None:
            self.require_sasl()
        return client_settings(
            self.bootstrap_servers,
            self.tls,
            client,
            certificate=certificate,
            sasl=self.sasl,
            user=user,
        )

    def require_sasl(self) -> Sasl:
        """How clients log in. Raises ValueError: they do not."""
        if self.sasl is None:
            raise ValueError(
                'nobody logs in to this broker: make it with sasl="SCRAM-SHA-512", or mark the '
                'test kafka(sasl="SCRAM-SHA-512")'
            )
        return self.sasl
