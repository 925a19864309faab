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


def client_settings(
    bootstrap_servers: str,
    tls: TlsFiles | None = None,
    client: str = "kafka-python",
    *,
    certificate: bool = True,
) -> dict[str, Any]:
    """The settings that a client needs to reach a broker.

    Args:
        bootstrap_servers: the broker's address.
        tls: its files if it speaks TLS.
        client: "kafka-python", "aiokafka" or "odradek" (keyword arguments, of `KafkaClient` for
            the last), "confluent-kafka" (and all others on librdkafka) or "java" (properties).
        certificate: whether the client shows a certificate of its own.

    Raises:
        ValueError: there is no such client.
    """
    if client == "odradek":
        settings: dict[str, Any] = {"bootstrap": bootstrap_servers}
        return settings if tls is None else {**settings, "ssl_context": _context(tls, certificate)}
    if client in ("kafka-python", "aiokafka"):
        settings = {"bootstrap_servers": bootstrap_servers}
        if tls is not None:
            settings["security_protocol"] = "SSL"
            if client == "aiokafka":
                settings["ssl_context"] = _context(tls, certificate)
            else:
                settings["ssl_cafile"] = tls.ca
                if certificate:
                    settings["ssl_certfile"] = tls.client_certificate
                    settings["ssl_keyfile"] = tls.client_key
        return settings
    if client not in CLIENTS:
        raise ValueError(f"{client!r} is no client known here: it must be one of {CLIENTS}")
    settings = {"bootstrap.servers": bootstrap_servers}
    if tls is None:
        return settings
    settings["security.protocol"] = "SSL"
    if client == "java":
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": tls.ca}
        if certificate:
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": tls.client_keystore}
        return settings
    settings["ssl.ca.location"] = tls.ca
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
    """

    tls: TlsFiles | None

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
        self, client: str = "kafka-python", *, certificate: bool = True
    ) -> dict[str, Any]:
        """All settings that a client needs to reach it.

        Args:
            client: "kafka-python", "aiokafka", "odradek", "confluent-kafka" or "java".
            certificate: whether the client shows one, if TLS is spoken.
        """
        return client_settings(self.bootstrap_servers, self.tls, client, certificate=certificate)
