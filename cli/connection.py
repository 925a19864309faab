"""How the commands reach a broker: kafka-python's clients, made one way.

The bootstrap address is `--bootstrap-server`, or the variable ODRADEK_BOOTSTRAP_SERVER.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from .errors import CommandError, fail

if TYPE_CHECKING:
    from ..client.client import KafkaClient

ResultT = TypeVar("ResultT")

CONNECT_TIMEOUT_MS = 5_000
REQUEST_TIMEOUT_MS = 30_000

BootstrapServer = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        envvar="ODRADEK_BOOTSTRAP_SERVER",
        metavar="HOST:PORT",
        help="A broker of the cluster; several may be given with commas between.",
    ),
]
DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"


@contextmanager
def admin_client(bootstrap_server: str) -> Iterator[Any]:
    """A KafkaAdminClient, closed on leaving; CommandError when no broker answers."""
    from kafka.admin import KafkaAdminClient

    client = _connected(KafkaAdminClient, bootstrap_server, {})
    try:
        yield client
    finally:
        client.close()


@contextmanager
def producer_client(bootstrap_server: str, **settings: Any) -> Iterator[Any]:
    """A KafkaProducer, flushed and closed on leaving; CommandError when no broker answers."""
    from kafka import KafkaProducer

    from .codecs import use_own_codecs

    use_own_codecs()
    producer = _connected(KafkaProducer, bootstrap_server, settings)
    try:
        yield producer
    finally:
        producer.close()


@contextmanager
def consumer_client(bootstrap_server: str, **settings: Any) -> Iterator[Any]:
    """A KafkaConsumer that creates no topics, closed on leaving.

    Raises CommandError when no broker answers.
    """
    from kafka import KafkaConsumer

    from .codecs import use_own_codecs

    use_own_codecs()
    settings["allow_auto_create_topics"] = False
    consumer = _connected(KafkaConsumer, bootstrap_server, settings)
    try:
        yield consumer
    finally:
        consumer.close(autocommit=False)


def with_client(
    bootstrap_server: str, work: Callable[[KafkaClient], Awaitable[ResultT]]
) -> ResultT:
    """What `work` makes of a client of odradek's own; CommandError when no broker answers.

    For what kafka-python does not speak, such as the groups of KIP-848.
    """
    import trio

    from ..client.client import KafkaClient
    from ..client.errors import ClientError
    from ..client.settings import ClientSettings

    check_addresses(bootstrap_server)
    settings = ClientSettings(
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        max_block_ms=REQUEST_TIMEOUT_MS,
        allow_auto_create_topics=False,
    )

    async def run() -> ResultT:
        async with KafkaClient(bootstrap_server, settings) as client:
            try:
                await client.refresh_metadata(CONNECT_TIMEOUT_MS)
            except ClientError as error:
                raise CommandError(_nobody_at(bootstrap_server)) from error
            return await work(client)

    return trio.run(run)


def _nobody_at(bootstrap_server: str) -> str:
    return (
        f"no broker answers at {bootstrap_server}; start one with 'odradek serve', or give the"
        " address of another with --bootstrap-server"
    )


def _connected(
    client_class: Callable[..., Any], bootstrap_server: str, settings: dict[str, Any]
) -> Any:
    from kafka.errors import KafkaTimeoutError

    # Its own account of a failed connection is dozens of lines; ours is one.
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    logging.getLogger("kafka").propagate = False
    servers = check_addresses(bootstrap_server)
    try:
        return client_class(
            bootstrap_servers=servers,
            bootstrap_timeout_ms=CONNECT_TIMEOUT_MS,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            **settings,
        )
    except KafkaTimeoutError as error:
        raise CommandError(_nobody_at(bootstrap_server)) from error


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
