"""How the commands reach a broker.

The bootstrap address is `--bootstrap-server`, or the variable ODRADEK_BOOTSTRAP_SERVER; how it is
spoken to, if not in plain, is in a file that `--command-config` names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from ..declarations import Option
from .client_settings import connection_settings, why_nobody_answers
from .errors import CommandError, fail
from .running import run_async

if TYPE_CHECKING:
    from ssl import SSLContext

    from ...client.client import KafkaClient
    from ...client.connection_settings import ConnectionSettings

ResultT = TypeVar("ResultT")

PACKAGE = __name__.partition(".")[0]
CONNECT_TIMEOUT_MS = 5_000
REQUEST_TIMEOUT_MS = 30_000

BootstrapServer = Annotated[
    str,
    Option(
        "--bootstrap-server",
        "-b",
        envvar="ODRADEK_BOOTSTRAP_SERVER",
        metavar="HOST:PORT",
        help="A broker of the cluster; several may be given with commas between.",
    ),
]
DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"


def with_client(
    bootstrap_server: str,
    work: Callable[[KafkaClient], Awaitable[ResultT]],
    command_config: Path | None = None,
    *,
    allow_auto_create_topics: bool = False,
) -> ResultT:
    """What `work` makes of a client of odradek's own; CommandError when no broker answers.

    Args:
        bootstrap_server: addresses, with commas between.
        work: is run with the client, once a broker has answered.
        command_config: a file of settings.
        allow_auto_create_topics: whether asking for a topic may create it.
    """
    import logging

    from ...client.client import KafkaClient
    from ...client.errors import AuthenticationError, ClientError
    from ...client.settings import ClientSettings

    defaults = ClientSettings(
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        max_block_ms=REQUEST_TIMEOUT_MS,
        allow_auto_create_topics=allow_auto_create_topics,
    )
    # What matters of what the client logs comes as an error, which is shown once.
    logging.getLogger(PACKAGE).addHandler(logging.NullHandler())
    settings = connection_settings(command_config, defaults)
    addresses = bootstrap_addresses(bootstrap_server, settings)

    async def run() -> ResultT:
        async with KafkaClient(
            addresses,
            settings.client,
            ssl_context=settings.ssl_context,
            authenticate=settings.authenticate,
        ) as client:
            try:
                await client.refresh_metadata(CONNECT_TIMEOUT_MS)
            except AuthenticationError as error:
                raise CommandError(str(error)) from error
            except ClientError as error:
                raise CommandError(nobody_at(addresses, settings.ssl_context)) from error
            return await work(client)

    return run_async(run)


def check_connection(bootstrap_server: str) -> None:
    """CommandError when no broker answers."""

    async def connected(client: KafkaClient) -> None:
        """Nothing more: the client has metadata, so a broker answered."""

    with_client(bootstrap_server, connected)


def nobody_at(addresses: list[str], tls: SSLContext | None) -> str:
    """The sentence for a cluster that did not answer, and why if that can be found out.

    Args:
        addresses: HOST:PORT each.
        tls: how TLS is spoken, if it is.
    """
    return why_nobody_answers(addresses, tls) or (
        f"no broker answers at {','.join(addresses)}; start one with 'odradek serve', or give the"
        " address of another with --bootstrap-server"
    )


def bootstrap_addresses(bootstrap_server: str, settings: ConnectionSettings) -> list[str]:
    """Where the cluster is: what the command line says, or else `bootstrap.servers` of the file.

    CommandError for what is no address.
    """
    if bootstrap_server == DEFAULT_BOOTSTRAP_SERVER and settings.bootstrap:
        return check_addresses(settings.bootstrap)
    return check_addresses(bootstrap_server)


def check_addresses(bootstrap_server: str) -> list[str]:
    """The addresses between the commas; CommandError for what is no address."""
    addresses = [address.strip() for address in bootstrap_server.split(",")]
    for address in addresses:
        host, colon, port = address.rpartition(":")
        if not (host and colon and port.isdecimal() and 0 < int(port) < 65_536):
            fail(
                f"{address!r} is no broker's address; write HOST:PORT, as in"
                f" {DEFAULT_BOOTSTRAP_SERVER}"
            )
    return addresses
