"""Certificates for tests: an authority of one's own, and what it issues, as PEM files.

    authority = CertificateAuthority(folder)
    certificate = authority.issue("localhost", "127.0.0.1")

They are made by trustme, which is imported only when one is made (`pip install odradek[tls]`).
Nobody but these tests trusts them.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from .client_settings import TlsFiles

BROKER_NAMES = ("localhost", "127.0.0.1", "::1")
CLIENT_NAME = "client"


class Certificate(NamedTuple):
    """A certificate and its private key; paths of PEM files.

    Attributes:
        certificate: with the chain up to the authority, which is not in it.
        key: unencrypted (PKCS#8).
        keystore: both in one file.
    """

    certificate: str
    key: str
    keystore: str


class CertificateAuthority:
    """Issues certificates into a folder.

    Args:
        folder: is made if it is not there.
        name: of the authority's file, for folders that have several.

    Attributes:
        path: the authority's own certificate.

    Raises:
        RuntimeError: trustme is not installed.
    """

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._authority = _trustme().CA()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = str(folder / f"{name}.pem")
        self._authority.cert_pem.write_to_path(self.path)

    def __repr__(self) -> str:
        return f"<certificate authority at {self.path}>"

    def issue(
        self,
        *names: str,
        common_name: str | None = None,
        organization: str = "odradek",
        unit: str = "tests",
        not_before: datetime | None = None,
        not_after: datetime | None = None,
        file_name: str | None = None,
    ) -> Certificate:
        """A certificate for hosts, addresses, or a client.

        Args:
            names: host names and IP addresses that it is for; a client has any.
            common_name: the CN of its subject; the first name if left out.
            organization: the O of its subject.
            unit: the OU of its subject.
            not_before: from when on it holds; some time ago if left out.
            not_after: until when; far in the future if left out.
            file_name: of its files, without an ending; the first name if left out.
        """
        issued = self._authority.issue_cert(
            *names,
            common_name=common_name or names[0],
            organization_name=organization,
            organization_unit_name=unit,
            not_before=not_before,
            not_after=not_after,
        )
        stem = file_name or names[0].replace(":", "_")
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        key = _as_pkcs8(issued.private_key_pem.bytes())
        paths = [str(self._folder / f"{stem}.{end}") for end in ("crt", "key", "pem")]
        for path, content in zip(paths, (chain, key, key + chain), strict=True):
            _write_secret(path, content)
        return Certificate(*paths)


def make_tls_files(folder: Path, *names: str) -> TlsFiles:
    """All that a broker on this machine, and one client of it, need.

    Args:
        folder: where to; is made if it is not there.
        names: of this machine, besides those that it has for itself.

    Raises:
        RuntimeError: trustme is not installed.
    """
    authority = CertificateAuthority(folder)
    broker = authority.issue(*BROKER_NAMES, *names, common_name="broker", file_name="broker")
    client = authority.issue(CLIENT_NAME, common_name=CLIENT_NAME, file_name="client")
    return TlsFiles(
        authority.path, broker.keystore, client.certificate, client.key, client.keystore
    )


def broker_settings(tls: TlsFiles) -> dict[str, str]:
    """The settings of a broker, all of whose listeners speak TLS with these files."""
    return {
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": tls.keystore,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": tls.ca,
    }


def _trustme() -> Any:
    try:
        import trustme
    except ImportError as error:
        raise RuntimeError(
            "certificates for tests are made by trustme, which is not installed: "
            "pip install odradek[tls]"
        ) from error
    return trustme


def _as_pkcs8(pem: bytes) -> bytes:
    """A private key in the one form that Java's Kafka reads."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(pem, None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write_secret(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
