"""How the commands reach a broker: kafka-python's clients, made one way.

The bootstrap address is `--bootstrap-server`, or the variable ODRADEK_BOOTSTRAP_SERVER.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from .errors import CommandError, fail

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
        raise CommandError(
            f"no broker answers at {bootstrap_server}; start one with"
            " 'odradek serve', or give the address of another with --bootstrap-server"
        ) from error


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
