"""`odradek serve --ephemeral --json`: brokers for tests in any language, and their control channel.

The process starts the brokers, each a process of its own, prints one line of JSON when they serve,
and answers on the control channel. It ends by SIGTERM or SIGINT, when its standard input, if that
is a pipe, is closed, or when the process that started it has ended: so a test run that crashes
leaves nothing behind. If it is killed itself, its brokers end and remove what there is.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from collections.abc import Mapping

import trio

from ..cluster import Cluster
from ..process.broker_process import BrokerStartError
from ..process.process_end import wait_for_end
from .endpoint import ControlEndpoint
from .served_cluster import ServedCluster

OWN_SETTINGS = (
    "broker.id",
    "node.id",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
    "zookeeper.connect",
    "listeners",
)
"""What each broker of a cluster for tests has of its own."""
READ_BYTES = 4096


def serve(count: int, settings: Mapping[str, str], listen: str, external: str | None) -> int:
    """Serve until the end; returns the exit code.

    Args:
        count: how many brokers.
        settings: of all of them, by Kafka's names.
        listen: HOST:PORT of the first; port 0 takes a free one for each.
        external: HOST:PORT by which containers and other hosts reach the first; None: not at all.
    """
    for name in OWN_SETTINGS:
        if name in settings:
            print(
                f"odradek serve: {name} cannot be set with --json: each broker has its own, in a "
                "temporary folder; --listen says where they listen.",
                file=sys.stderr,
            )
            return 2
    parent = os.getppid()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with Cluster(count, settings, listen=listen, external=external) as cluster:
            requested: list[int] = []
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda number, _: requested.append(number))
            trio.run(_serve, cluster, parent, requested)
    except BrokerStartError as error:
        print(f"odradek serve: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass  # before it was ready
    return 0


def _interrupt(number: int, frame: object) -> None:
    """SIGTERM while brokers start ends them as Ctrl-C does."""
    raise KeyboardInterrupt


async def _serve(cluster: Cluster, parent: int, requested: list[int]) -> None:
    """Serve until one of the ends.

    Args:
        requested: the signals that came before this listens to them.
    """
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        if requested:
            return
        endpoint = ControlEndpoint(ServedCluster(cluster))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(endpoint.serve)
            nursery.start_soon(_end_with_parent, parent, nursery.cancel_scope)
            nursery.start_soon(_end_with_input, nursery.cancel_scope)
            print(json.dumps(_ready(cluster, endpoint)), flush=True)
            async for _ in signals:
                nursery.cancel_scope.cancel()


def _ready(cluster: Cluster, endpoint: ControlEndpoint) -> dict[str, object]:
    """The line that says where all is."""
    brokers = [
        {"id": each.broker_id, "address": each.bootstrap_servers} for each in cluster.brokers
    ]
    external = {}
    if all(broker.is_external for broker in cluster.brokers):
        external["external_bootstrap_servers"] = cluster.external_bootstrap_servers
    return {
        "bootstrap_servers": cluster.bootstrap_servers,
        **external,
        "control": endpoint.url,
        "control_port": endpoint.port,
        "brokers": brokers,
        "pid": os.getpid(),
    }


async def _end_with_parent(parent: int, scope: trio.CancelScope) -> None:
    await trio.to_thread.run_sync(wait_for_end, parent, abandon_on_cancel=True)
    scope.cancel()


async def _end_with_input(scope: trio.CancelScope) -> None:
    """End when standard input is closed; a terminal, a file and /dev/null say nothing."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:  # there is none
        return
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return
    while True:
        await trio.lowlevel.wait_readable(0)
        if not os.read(0, READ_BYTES):
            scope.cancel()
            return
