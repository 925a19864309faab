"""Settings of TLS, by the names that Kafka's clients and brokers have for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

PROTOCOLS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
"""Those that can be spoken at all, the oldest first."""


class TlsError(ValueError):
    """Settings of TLS that cannot be used; the text is one sentence a person can act on."""


class TlsSettings(NamedTuple):
    """The `ssl.*` settings that brokers and clients have in common, with Kafka's defaults.

    Attributes:
        keystore_type: of what this side shows; only PEM can be read.
        keystore_location: a PEM file of a private key and its certificates.
        keystore_password: of a whole store, which PEM has none of.
        keystore_certificate_chain: the certificates as PEM text, the own one first.
        keystore_key: the private key as PEM text.
        key_password: of the private key, where it is encrypted.
        truststore_type: of what the other side is checked with; only PEM can be read.
        truststore_location: a PEM file of certificates.
        truststore_password: of a whole store, which PEM has none of.
        truststore_certificates: certificates as PEM text.
        enabled_protocols: versions that may be spoken; none: up to `protocol`.
        protocol: the newest version, where none are enabled by name.
        cipher_suites: by their registered names; none: all that are thought safe.
        endpoint_identification_algorithm: "https": a broker's certificate must be for its host;
            empty: any trusted one will do.
    """

    keystore_type: str = "JKS"
    keystore_location: str | None = None
    keystore_password: str | None = None
    keystore_certificate_chain: str | None = None
    keystore_key: str | None = None
    key_password: str | None = None
    truststore_type: str = "JKS"
    truststore_location: str | None = None
    truststore_password: str | None = None
    truststore_certificates: str | None = None
    enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    protocol: str = "TLSv1.3"
    cipher_suites: tuple[str, ...] = ()
    endpoint_identification_algorithm: str = "https"

    def __repr__(self) -> str:
        """Nothing of it, for it holds secrets."""
        return "TlsSettings(...)"


NAMES = (
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.enabled.protocols",
    "ssl.protocol",
    "ssl.cipher.suites",
    "ssl.endpoint.identification.algorithm",
)
"""Kafka's names of the fields, in their order."""

_LISTS = frozenset({"ssl.enabled.protocols", "ssl.cipher.suites"})


def read_tls_settings(value: Callable[[str], Any]) -> TlsSettings:
    """The settings, read one by one.

    Args:
        value: the typed value of a setting by Kafka's name, which may be None.
    """
    return TlsSettings._make(
        TlsSettings._field_defaults[field] if found is None else found
        for field, found in zip(TlsSettings._fields, map(value, NAMES), strict=True)
    )


def tls_settings_of(texts: Mapping[str, str]) -> TlsSettings:
    """The settings of a client's properties.

    Args:
        texts: all of its properties; those of other things are passed over.
    """

    def value(name: str) -> Any:
        text = texts.get(name)
        if text is None or name not in _LISTS:
            return text
        return tuple(item.strip() for item in text.split(",") if item.strip())

    return read_tls_settings(value)
