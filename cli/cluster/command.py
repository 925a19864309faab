"""`odradek cluster`: a live view of brokers, and of partitions that are in trouble."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, NamedTuple

from ..common.client_settings import CommandConfig, connection_settings
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, bootstrap_addresses, nobody_at
from ..common.errors import CommandError, fail
from ..common.running import run_async
from ..common.show import JsonOutput, note, show_json
from ..declarations import Option

if TYPE_CHECKING:
    from ...client.client import KafkaClient
    from ...client.connection_settings import ConnectionSettings
    from .metrics import MetricsSource
    from .view import ClusterView

ANSWER_MS_MAX = 5_000
"""How long a broker may take before it counts as not answering."""
RATE_SECONDS = 1.0
"""Between the two readings that rates are made of, where only one table is shown."""

Bootstrap = Annotated[
    str,
    Option(
        "--bootstrap-server",
        "--bootstrap",
        "-b",
        envvar="ODRADEK_BOOTSTRAP_SERVER",
        metavar="HOST:PORT",
        help="A broker of the cluster; several may be given with commas between.",
    ),
]
Metrics = Annotated[
    list[str] | None,
    Option(
        "--metrics",
        "-m",
        metavar="[ID=]URL",
        help="Metrics of a broker, or of several: http://HOST:PORT/metrics, or HOST:PORT. "
        "May be repeated. ID is needed where the page is not odradek's.",
    ),
]


class Target(NamedTuple):
    """The cluster looked at: addresses to begin with, and how they are to be reached."""

    addresses: list[str]
    settings: ConnectionSettings


def cluster(
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    metrics: Metrics = None,
    interval: Annotated[
        float, Option("--interval", "-i", min=0.2, help="Seconds between two looks.")
    ] = 2.0,
    once: Annotated[
        bool, Option("--once", help="Show one table and end, as it does in a pipe.")
    ] = False,
    json_output: JsonOutput = False,
) -> None:
    """Watch a cluster: its brokers, and partitions without leader or with replicas out of sync.

    ```
    odradek cluster
    odradek cluster --metrics localhost:9404 --metrics localhost:9405 --metrics localhost:9406
    odradek cluster --once --json | jq 'select(.type == "partition")'
    ```
    """
    from ...client.settings import ClientSettings
    from .metrics import MetricsSource

    defaults = ClientSettings(request_timeout_ms=ANSWER_MS_MAX, max_block_ms=ANSWER_MS_MAX)
    settings = connection_settings(command_config, defaults)
    target = Target(bootstrap_addresses(bootstrap_server, settings), settings)
    sources = [MetricsSource(each) for each in metrics or ()]
    if once or json_output or not sys.stdout.isatty():
        run_async(_show_once, target, sources, json_output)
        return
    try:
        run_async(_show_live, target, sources, interval)
    except* KeyboardInterrupt:
        pass  # the way to leave it


def _client(target: Target) -> KafkaClient:
    from ...client.client import KafkaClient

    return KafkaClient(
        target.addresses,
        target.settings.client,
        ssl_context=target.settings.ssl_context,
        authenticate=target.settings.authenticate,
    )


async def _show_once(target: Target, sources: list[MetricsSource], json_output: bool) -> None:
    import trio

    from .metrics import problems
    from .view import as_json

    async with _client(target) as client:
        await _look(client, sources, target)
        if sources:
            await trio.sleep(RATE_SECONDS)
        view = await _look(client, sources, target)
    if json_output:
        show_json(as_json(view))
    else:
        from .screen import print_view

        print_view(view)
    for problem in problems(sources):
        note(problem)


async def _show_live(target: Target, sources: list[MetricsSource], interval: float) -> None:
    import trio
    from rich.live import Live

    from .metrics import problems
    from .screen import render

    async with _client(target) as client:
        view = await _look(client, sources, target)
        with Live(auto_refresh=False) as live:
            remarks = problems(sources)
            while True:
                live.update(render(view, remarks), refresh=True)
                await trio.sleep(interval)
                try:
                    view = await _look(client, sources, target)
                    remarks = problems(sources)
                except CommandError as error:
                    remarks = [str(error), "the last answer is shown"]


async def _look(client: KafkaClient, sources: list[MetricsSource], target: Target) -> ClusterView:
    """Ask a broker and all metrics. Raises CommandError: no broker answers."""
    import trio

    from ...client.errors import AuthenticationError, ClientError
    from ...protocol import messages
    from .metrics import BrokerMetrics
    from .view import make_view

    measured: dict[int, BrokerMetrics] = {}
    failure: ClientError | None = None

    async def read(source: MetricsSource) -> None:
        measured.update(await trio.to_thread.run_sync(source.read))

    request = messages.MetadataRequest(topics=None, allow_auto_topic_creation=False)
    async with trio.open_nursery() as nursery:
        for source in sources:
            nursery.start_soon(read, source)
        try:
            answer = await client.send_to_any(request, timeout_ms=ANSWER_MS_MAX)
        except ClientError as error:
            failure = error
    if isinstance(failure, AuthenticationError):
        fail(str(failure))
    if failure is not None:
        tls = target.settings.ssl_context
        fail(await trio.to_thread.run_sync(nobody_at, target.addresses, tls))
    return make_view(answer, measured)
