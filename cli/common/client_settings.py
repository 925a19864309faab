"""`--command-config FILE`: how a cluster is to be spoken to, in the settings of Kafka's clients.

The same file serves Kafka's own tools, as long as keys and certificates are PEM.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .errors import fail

if TYPE_CHECKING:
    from ssl import SSLContext

PLAINTEXT, SSL = "PLAINTEXT", "SSL"
PROBE_SECONDS = 2

CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        envvar="ODRADEK_COMMAND_CONFIG",
        metavar="FILE",
        help="A file of settings of Kafka's clients, such as security.protocol=SSL and "
        "ssl.truststore.location.",
    ),
]


def tls_of(command_config: Path | None) -> SSLContext | None:
    """How TLS is spoken with the cluster; None where it is not.

    Raises CommandError for what cannot be used, and OSError for a file that cannot be read.
    """
    return kafka_settings(command_config)[0]


def kafka_settings(command_config: Path | None) -> tuple[SSLContext | None, dict[str, str]]:
    """How TLS is spoken with the cluster, and the settings that say so; None and none: it is not.

    Raises CommandError for what cannot be used, and OSError for a file that cannot be read.
    """
    if command_config is None:
        return None, {}
    from ...config.definition import ConfigError
    from ...config.properties import parse_properties

    try:
        settings = parse_properties(command_config.read_bytes(), str(command_config))
    except ConfigError as error:
        fail(str(error))
    protocol = settings.get("security.protocol", PLAINTEXT).strip().upper()
    if protocol == PLAINTEXT:
        return None, {}
    if protocol != SSL:
        fail(
            f"{command_config} has security.protocol={protocol}; these commands speak"
            f" {PLAINTEXT} and {SSL}"
        )
    from ...client.security.tls_context import client_context
    from ...client.security.tls_settings import TlsError, tls_settings_of

    try:
        read = tls_settings_of(settings)
        context = client_context(read, lambda path: Path(path).read_bytes())
    except TlsError as error:
        fail(f"{command_config}: {error}")
    return context, {key: value for key, value in settings.items() if key.startswith("ssl.")}


def why_nobody_answers(addresses: list[str], tls: SSLContext | None) -> str | None:
    """What stands between a client and the first broker that can be connected to.

    Args:
        addresses: HOST:PORT each.
        tls: how TLS is spoken, if it is.

    Returns:
        A sentence; None if none of them can be connected to at all.
    """
    import ssl

    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), PROBE_SECONDS) as plain:
                if tls is None:
                    return (
                        f"no broker answers at {address}, though something listens there; if it"
                        " speaks TLS, say how in a file and name that with --command-config"
                        " (security.protocol=SSL, ssl.truststore.type=PEM,"
                        " ssl.truststore.location=...)"
                    )
                with tls.wrap_socket(plain, server_hostname=host.strip("[]")) as encrypted:
                    encrypted.recv(1)  # a broker that wants a certificate says so only now
        except ssl.SSLCertVerificationError as error:
            return f"the certificate of {address} is not accepted: {error.verify_message}"
        except ssl.SSLError as error:
            reason = (error.reason or str(error)).lower().replace("_", " ")
            return f"{address} cannot be spoken to over TLS: {reason}"
        except OSError:
            continue
    return None
