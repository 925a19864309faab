"""Keys and certificates as Kafka's settings name them: PEM, in a file or in the setting itself.

After Kafka's DefaultSslEngineFactory: which settings go together, and that PEM is found wherever it
stands in a text, even with spaces in place of the ends of its lines.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import NamedTuple

from .tls_settings import TlsError, TlsSettings

PEM = "PEM"
PEM_LINE = 64

ReadFile = Callable[[str], bytes]
"""The content of a file. Raises OSError."""


class KeyStore(NamedTuple):
    """What one side shows the other.

    Attributes:
        certificates: DER, the own one first.
        key: PEM, as OpenSSL reads it.
        password: of the key.
        source: the setting it comes from, and the file if there is one.
    """

    certificates: tuple[bytes, ...]
    key: str
    password: str | None
    source: str

    def __repr__(self) -> str:
        """Where it is from; not the key."""
        return f"KeyStore({self.source})"


class TrustStore(NamedTuple):
    """Certificates, as DER, that those of the other side are checked with."""

    certificates: tuple[bytes, ...]
    source: str


def read_key_store(settings: TlsSettings, read: ReadFile) -> KeyStore | None:
    """The key and certificates of `ssl.keystore.*`; None where none are set.

    Args:
        settings: which.
        read: reads the file.

    Raises:
        TlsError: the settings contradict each other, or hold no key and certificate.
    """
    location, chain = settings.keystore_location, settings.keystore_certificate_chain
    key = settings.keystore_key
    if location is None and chain is None and key is None:
        if settings.keystore_password is not None:
            raise TlsError(
                "ssl.keystore.password is set and no store: name one in ssl.keystore.location."
            )
        return None
    _require_pem("keystore", settings.keystore_type, settings.keystore_password, location)
    if location is not None:
        if key is not None or chain is not None:
            raise TlsError(
                "ssl.keystore.location is set, and so are ssl.keystore.key or "
                "ssl.keystore.certificate.chain: the key comes from one place."
            )
        source = f"ssl.keystore.location={location}"
        text = _read(location, source, read)
        return KeyStore(
            _certificates(text, source), _key(text, source), settings.key_password, source
        )
    if key is None or chain is None:
        raise TlsError(
            "Of ssl.keystore.key and ssl.keystore.certificate.chain only one is set: a key and its "
            "certificates go together."
        )
    source = "ssl.keystore.key"
    return KeyStore(
        _certificates(chain, "ssl.keystore.certificate.chain"),
        _key(key, source),
        settings.key_password,
        source,
    )


def read_trust_store(settings: TlsSettings, read: ReadFile) -> TrustStore | None:
    """The certificates of `ssl.truststore.*`; None where none are set.

    Args:
        settings: which.
        read: reads the file.

    Raises:
        TlsError: the settings contradict each other, or hold no certificate.
    """
    location, text = settings.truststore_location, settings.truststore_certificates
    if location is None and text is None:
        if settings.truststore_password is not None:
            raise TlsError(
                "ssl.truststore.password is set and no store: name one in ssl.truststore.location."
            )
        return None
    _require_pem("truststore", settings.truststore_type, settings.truststore_password, location)
    if text is None:
        assert location is not None
        source = f"ssl.truststore.location={location}"
        text = _read(location, source, read)
    elif location is None:
        source = "ssl.truststore.certificates"
    else:
        raise TlsError(
            "ssl.truststore.location and ssl.truststore.certificates are both set: set one of them."
        )
    return TrustStore(_certificates(text, source), source)


def _require_pem(which: str, kind: str, password: str | None, location: str | None) -> None:
    if kind != PEM:
        advice = (
            f"make a PEM file of it (keytool -importkeystore ... -deststoretype PKCS12, then "
            f"openssl pkcs12 -in STORE -nodes -out FILE), name that in ssl.{which}.location, "
            f"and set ssl.{which}.type=PEM."
        )
        if location is None:
            advice = f"set ssl.{which}.type=PEM, which is what the other settings hold."
        raise TlsError(f"ssl.{which}.type={kind} cannot be read, only PEM can: {advice}")
    if password is not None:
        raise TlsError(
            f"ssl.{which}.password is set, but PEM has a password for the key only: "
            "remove it, and set ssl.key.password if the key is encrypted."
        )


def _read(path: str, source: str, read: ReadFile) -> str:
    try:
        return read(path).decode("latin-1")
    except OSError as error:
        raise TlsError(f"{source} cannot be read: {error.strerror or error}.") from error


def _pattern(name: str) -> re.Pattern[str]:
    """What stands between the lines that begin and end an entry of a kind."""
    kind = name.replace(" ", r"\s+")
    return re.compile(
        rf"-----BEGIN\s((?:[A-Z0-9]+\s+)*{kind})-----(.*?)-----END\s[^-]*{kind}-----",
        re.DOTALL,
    )


_CERTIFICATE = _pattern("CERTIFICATE")
_KEY = _pattern("PRIVATE KEY")


def _certificates(text: str, source: str) -> tuple[bytes, ...]:
    found = tuple(_decode(body, source) for _, body in _CERTIFICATE.findall(text))
    if not found:
        raise TlsError(
            f"{source} holds no certificate in PEM: it must have at least one entry that begins "
            "with -----BEGIN CERTIFICATE-----."
        )
    return found


def _key(text: str, source: str) -> str:
    found = _KEY.findall(text)
    if len(found) != 1:
        raise TlsError(
            f"{source} holds {len(found)} private keys in PEM: it must have one, an entry that "
            "begins with -----BEGIN PRIVATE KEY----- or -----BEGIN ENCRYPTED PRIVATE KEY-----."
        )
    label, body = found[0]
    if ":" in body:  # OpenSSL's older form of an encrypted key, which has headers
        return f"-----BEGIN {label}-----{body}-----END {label}-----\n"
    return to_pem(" ".join(label.split()), _decode(body, source))


def _decode(body: str, source: str) -> bytes:
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        raise TlsError(f"{source} holds an entry in PEM that is not base64.") from None


def to_pem(label: str, data: bytes) -> str:
    """DER as an entry of a PEM text, in lines as OpenSSL expects them."""
    text = base64.b64encode(data).decode("ascii")
    lines = [text[start : start + PEM_LINE] for start in range(0, len(text), PEM_LINE)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])
