"""From Kafka's settings of TLS to an `ssl.SSLContext`, for either side of a connection.

What both sides have in common is here: versions, cipher suites, keys and trust. A broker adds
whether it asks for certificates.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from .tls_settings import PROTOCOLS, TlsError, TlsSettings
from .tls_stores import KeyStore, ReadFile, TrustStore, read_key_store, read_trust_store, to_pem

VERSIONS = dict(
    zip(
        PROTOCOLS,
        (
            ssl.TLSVersion.TLSv1,
            ssl.TLSVersion.TLSv1_1,
            ssl.TLSVersion.TLSv1_2,
            ssl.TLSVersion.TLSv1_3,
        ),
        strict=True,
    )
)
LEFT_OUT = {
    "TLSv1.1": ssl.OP_NO_TLSv1_1,
    "TLSv1.2": ssl.OP_NO_TLSv1_2,
}
"""How a version between the oldest and the newest is not spoken."""

SUITES_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""Those of TLSv1.3 that OpenSSL speaks by default, which Python cannot."""


def client_context(
    settings: TlsSettings, read: ReadFile, *, check_hostname: bool = True
) -> ssl.SSLContext:
    """How a client speaks TLS.

    Args:
        settings: `ssl.*`.
        read: reads the files they name.
        check_hostname: False: `ssl.endpoint.identification.algorithm` does not count.

    Raises:
        TlsError: a setting or a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    algorithm = settings.endpoint_identification_algorithm
    if algorithm.lower() not in ("", "https"):
        raise TlsError(
            f"ssl.endpoint.identification.algorithm={algorithm} is not known: it must be https, or "
            "empty."
        )
    context.check_hostname = check_hostname and bool(algorithm)
    configure(context, settings)
    add_trust(context, read_trust_store(settings, read))
    key_store = read_key_store(settings, read)
    if key_store is not None:
        add_key(context, key_store)
    return context


def configure(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Set versions and cipher suites. Raises: TlsError."""
    suites = settings.cipher_suites
    enabled = _enabled(settings)
    if suites:
        enabled = _with_suites(context, suites, enabled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # whoever asks for old ones knows
        context.minimum_version = VERSIONS[enabled[0]]
        context.maximum_version = VERSIONS[enabled[-1]]
        for name, option in LEFT_OUT.items():
            if name not in enabled:
                context.options |= option
    # A client could otherwise have a broker do the expensive part again and again.
    context.options |= ssl.OP_NO_RENEGOTIATION


def _enabled(settings: TlsSettings) -> list[str]:
    """The versions to speak, the oldest first."""
    named = settings.enabled_protocols
    unknown = [name for name in named if name not in VERSIONS]
    if unknown:
        raise TlsError(
            f"ssl.enabled.protocols has {unknown[0]}: it must be some of {', '.join(PROTOCOLS)}."
        )
    if named:
        return sorted(named, key=PROTOCOLS.index)
    if settings.protocol == "TLS":
        return ["TLSv1.2", "TLSv1.3"]
    if settings.protocol not in VERSIONS:
        raise TlsError(f"ssl.protocol={settings.protocol} must be one of {', '.join(PROTOCOLS)}.")
    newest = PROTOCOLS.index(settings.protocol)
    return list(PROTOCOLS[min(newest, PROTOCOLS.index("TLSv1.2")) : newest + 1])


def _with_suites(context: ssl.SSLContext, suites: tuple[str, ...], enabled: list[str]) -> list[str]:
    """Allow these suites only; returns the versions that have any of them."""
    newest = [suite for suite in suites if suite in SUITES_1_3]
    older = [suite for suite in suites if suite not in SUITES_1_3]
    if newest and "TLSv1.3" in enabled and set(newest) != set(SUITES_1_3):
        raise TlsError(
            f"ssl.cipher.suites has {', '.join(newest)}, but of TLSv1.3 Python can take all three "
            f"suites or none: name {', '.join(SUITES_1_3)}, or none of them."
        )
    if older:
        try:
            context.set_ciphers(":".join(map(_openssl_name, older)))
        except ssl.SSLError:
            raise TlsError(
                f"ssl.cipher.suites has none that OpenSSL knows but {', '.join(newest) or 'none'}: "
                "write them as in TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384."
            ) from None
        _require_each(context, older)
    usable = [name for name in enabled if (bool(newest) if name == "TLSv1.3" else bool(older))]
    if not usable:
        raise TlsError(
            f"ssl.cipher.suites and ssl.enabled.protocols have nothing in common: none of the "
            f"suites is one of {', '.join(enabled)}."
        )
    return usable


def _require_each(context: ssl.SSLContext, suites: list[str]) -> None:
    """OpenSSL passes over names it does not know, as long as it knows one."""
    known = {cipher["name"] for cipher in context.get_ciphers()}
    for suite in suites:
        if _openssl_name(suite) not in known:
            raise TlsError(f"ssl.cipher.suites has {suite}, which OpenSSL does not know here.")


def _openssl_name(suite: str) -> str:
    """OpenSSL's name of a registered suite: ECDHE-RSA-AES128-GCM-SHA256 and so on."""
    exchange, with_, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not with_ or not suite.replace("_", "").isalnum():
        return suite
    cipher = cipher.removesuffix("_SHA256") if "POLY1305" in cipher else cipher
    cipher = cipher.replace("AES_", "AES").replace("CAMELLIA_", "CAMELLIA").replace("_CBC", "")
    parts = ([] if exchange == "RSA" else [exchange]) + [cipher]
    return "-".join(parts).replace("_", "-")


def add_trust(context: ssl.SSLContext, store: TrustStore | None) -> None:
    """Check the other side's certificates with those of a store, or with the system's.

    Each certificate of the store is trusted in itself, as Java does it: one that was issued by
    another need not have that one beside it.

    Raises:
        TlsError: OpenSSL cannot read one.
    """
    if store is None:
        context.load_default_certs()
        return
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=b"".join(store.certificates))
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(
            f"{store.source} holds a certificate that is none: {_why(error)}."
        ) from error


def add_key(context: ssl.SSLContext, store: KeyStore) -> None:
    """Show the certificates of a store. Raises: TlsError."""
    text = store.key + "".join(to_pem("CERTIFICATE", each) for each in store.certificates)
    try:
        with _as_file(text.encode("latin-1")) as path:
            context.load_cert_chain(path, password=store.password or "")
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(
            f"{store.source} cannot be used: {_why(error)}; it must have a private key, whose "
            "password is in ssl.key.password if it is encrypted, and the certificate made for it."
        ) from error


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error).rstrip(".") or "OpenSSL cannot read it"


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """A file of this content, for OpenSSL reads keys from nowhere else; in memory where it can."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("key")
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
