"""`--command-config FILE`: how a cluster is to be spoken to, in the settings of Kafka's clients.

The same file serves Kafka's own tools, as long as keys and certificates are PEM, or clients on
librdkafka such as kcat.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..declarations import Option
from .errors import fail

if TYPE_CHECKING:
    from ssl import SSLContext

    from ...client.connection_settings import ConnectionSettings
    from ...client.settings import ClientSettings

PROBE_SECONDS = 2

CommandConfig = Annotated[
    Path | None,
    Option(
        "--command-config",
        envvar="ODRADEK_COMMAND_CONFIG",
        metavar="FILE",
        help="A file of settings of Kafka's clients, such as security.protocol=SSL and "
        "ssl.truststore.location.",
    ),
]


def connection_settings(
    command_config: Path | None, defaults: ClientSettings | None = None
) -> ConnectionSettings:
    """How the cluster is to be reached.

    Args:
        command_config: the file.
        defaults: what counts where the file says nothing.

    Raises CommandError for a setting that cannot be used, and OSError for a file that cannot be
    read.
    """
    from ...client.connection_settings import ConnectionSettings

    if command_config is None:
        return ConnectionSettings() if defaults is None else ConnectionSettings(client=defaults)
    from ...client.properties import PropertyError, connection_settings_of
    from ...config.definition import ConfigError
    from ...config.properties import parse_properties

    try:
        properties = parse_properties(command_config.read_bytes(), str(command_config))
    except ConfigError as error:
        fail(str(error))
    try:
        return connection_settings_of(properties, lambda path: Path(path).read_bytes(), defaults)
    except PropertyError as error:
        is_given = error.name is not None and error.name in properties
        place = properties.place(str(error.name)) if is_given else str(command_config)
        fail(f"{place}: {error}")


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
        except (OSError, ValueError):  # a name that cannot be one is a ValueError
            continue
    return None
