"""`odradek console`: a cluster in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..common.client_settings import CommandConfig, connection_settings
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, bootstrap_addresses
from ..common.errors import fail
from ..common.passed_options import KEY_SCHEMA, REGISTRY, SCHEMA, PassedOption
from ..common.running import run_async
from ..declarations import Option

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    import trio

    from ...client.connection_settings import ConnectionSettings
    from ...client.settings import ClientSettings
    from ...console.records.schema_values import TopicSchema
    from ...console.settings import ConsoleSettings

READY_PREFIX = "console at "
ANSWER_MS_MAX = 10_000
METADATA_MS_MAX = 5_000
"""How long a page waits for a broker before it says that there is none."""


def console(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    listen: Annotated[
        str,
        Option(
            "--listen",
            metavar="HOST:PORT",
            help="Where to serve the pages; port 0 takes a free one. Anything but this machine's "
            "loopback interface needs a token.",
        ),
    ] = "localhost:9440",
    console_write: Annotated[
        bool,
        Option("--console-write", help="Allow changes; without it the console is read-only."),
    ] = False,
    token: Annotated[
        str | None,
        Option(
            "--token",
            envvar="ODRADEK_CONSOLE_TOKEN",
            metavar="TOKEN",
            help="What visitors must know. Better given by the variable: others of this machine "
            "can read command lines.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        Option(
            "--name",
            metavar="NAME",
            help="A further name that browsers reach it by, such as that of a proxy; may be "
            "repeated.",
        ),
    ] = None,
    registry: Annotated[
        str | None,
        Option(REGISTRY.flag, metavar=REGISTRY.metavar, help=REGISTRY.help),
    ] = None,
    schema: Annotated[
        list[str] | None,
        Option(SCHEMA.flag, metavar=SCHEMA.metavar, help=SCHEMA.help),
    ] = None,
    key_schema: Annotated[
        list[str] | None,
        Option(KEY_SCHEMA.flag, metavar=KEY_SCHEMA.metavar, help=KEY_SCHEMA.help),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        Option(
            "--metrics",
            "-m",
            metavar="URL",
            help="A broker's metrics, for bytes and requests per second: "
            "http://HOST:PORT/metrics; may be repeated.",
        ),
    ] = None,
    control: Annotated[
        str | None,
        Option(
            "--control",
            metavar="URL",
            help="The control channel of a test broker (docs/control.md), for its faults.",
        ),
    ] = None,
    ends_with_input: Annotated[
        bool,
        Option(
            "--ends-with-input",
            help="End when standard input is closed: for programs that start a console.",
        ),
    ] = False,
) -> None:
    """Show a cluster in a browser: topics, records, groups, brokers.

    It works with any Kafka, and changes nothing unless `--console-write` is given.

    ```
    odradek console
    odradek console --bootstrap-server kafka1:9092 --listen localhost:9441
    odradek console --console-write
    ODRADEK_CONSOLE_TOKEN=... odradek console --listen 0.0.0.0:9440
    ```
    """
    try:
        from ...console.guard import is_loopback
        from ...console.serving import bind
        from ...console.settings import ConsoleSettings
    except ModuleNotFoundError as error:
        fail(f"the console needs {error.name}: install odradek[console]")
    host, port = listen_address(listen)
    if token is None and not is_loopback(host):
        fail(
            f"at {host} others can reach the console: give them a token to log in with "
            "(ODRADEK_CONSOLE_TOKEN), or listen on localhost"
        )
    if token is not None and not (8 <= len(token) <= 1000):
        fail("a token has 8 to 1000 characters")
    if control is not None and not control.startswith("http://"):
        fail(f"{control!r} is no control channel; write http://127.0.0.1:PORT")
    for url in metrics or ():
        if not url.startswith(("http://", "https://")):
            fail(f"{url!r} is no address of metrics; write http://HOST:PORT/metrics")
    schemas = _schemas_of(SCHEMA, schema or ())
    key_schemas = _schemas_of(KEY_SCHEMA, key_schema or ())
    connection = connection_settings(command_config, _client_defaults())
    addresses = bootstrap_addresses(bootstrap_server, connection)
    settings = ConsoleSettings(
        host,
        port,
        console_write,
        token,
        tuple(name or ()),
        control,
        registry,
        tuple(metrics or ()),
        ",".join(addresses),
        schemas,
        key_schemas,
    )
    try:
        sockets = bind(settings)
    except OSError as error:
        fail(f"{listen} cannot be listened on: {error.strerror}; choose another with --listen")
    settings = settings._replace(port=sockets[0].getsockname()[1])
    try:
        run_async(_serve, settings, addresses, connection, sockets, ends_with_input)
    except* KeyboardInterrupt:
        pass  # the way to end it


def listen_address(text: str) -> tuple[str, int]:
    """A host and a port. CommandError for anything else."""
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) < 65_536):
        fail(f"{text!r} is no address to listen on; write HOST:PORT, as in localhost:9440")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _schemas_of(option: PassedOption, texts: Sequence[str]) -> tuple[TopicSchema, ...]:
    """The topics and their schemas. CommandError for what cannot be read by."""
    from ...console.records.schema_values import topic_schema
    from ...schemas.errors import SchemaError

    try:
        return tuple(map(topic_schema, texts))
    except SchemaError as error:
        fail(f"{option.flag}: {error}")


def _client_defaults() -> ClientSettings:
    from ...client.settings import ClientSettings

    return ClientSettings(
        client_id="odradek-console",
        request_timeout_ms=ANSWER_MS_MAX,
        max_block_ms=METADATA_MS_MAX,
        allow_auto_create_topics=False,
    )


async def _serve(
    settings: ConsoleSettings,
    addresses: list[str],
    connection: ConnectionSettings,
    sockets: list[socket.socket],
    ends_with_input: bool,
) -> None:
    import trio

    from ...client.client import KafkaClient
    from ...console.serving import serve

    async with (
        KafkaClient(
            addresses,
            connection.client,
            ssl_context=connection.ssl_context,
            authenticate=connection.authenticate,
        ) as client,
        trio.open_nursery() as nursery,
    ):
        if ends_with_input:
            nursery.start_soon(_end_with_input, nursery.cancel_scope)
        nursery.start_soon(serve, settings, client, sockets)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        print(f"{READY_PREFIX}http://{host}:{settings.port}", flush=True)


async def _end_with_input(scope: trio.CancelScope) -> None:
    """End when whoever started this has closed our input, or has ended."""
    import sys

    import trio

    async with trio.lowlevel.FdStream(sys.stdin.fileno()) as pipe:
        while await pipe.receive_some():
            pass
    scope.cancel()
