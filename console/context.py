"""What pages are made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..client.admin.admin import Admin
from ..client.admin.group_admin import GroupAdmin
from ..client.admin.partition_admin import PartitionAdmin
from ..client.admin.transaction_admin import TransactionAdmin
from .cluster.cluster_reader import ClusterReader
from .cluster.rates import WriteRates
from .cluster.storage_reader import StorageReader
from .cluster.traffic import TrafficReader
from .guard import Pass
from .records.schema_values import RecordSchemas, SchemaValues
from .rendering import Renderer

if TYPE_CHECKING:
    import trio
    from starlette.requests import Request

    from ..client.client import KafkaClient
    from .settings import ConsoleSettings

ANSWER_MS_MAX = 10_000
"""How long a page waits for the cluster before it says that nobody answers."""


class ConsoleContext(NamedTuple):
    """The cluster, read and administered through one client, and what makes pages of it."""

    settings: ConsoleSettings
    client: KafkaClient
    cluster: ClusterReader
    admin: Admin
    groups: GroupAdmin
    partitions: PartitionAdmin
    transactions: TransactionAdmin
    storage: StorageReader
    rates: WriteRates
    traffic: TrafficReader | None
    schemas: RecordSchemas
    render: Renderer
    pass_: Pass


def make_context(
    settings: ConsoleSettings, client: KafkaClient, pass_: Pass, nursery: trio.Nursery
) -> ConsoleContext:
    """The context of a console.

    Args:
        settings: what it was started with.
        client: is open, and stays so.
        pass_: the secrets of its guard.
        nursery: where answers are read anew while pages are made.
    """
    cluster = ClusterReader(client, nursery)
    partitions = PartitionAdmin(client, ANSWER_MS_MAX)
    return ConsoleContext(
        settings,
        client,
        cluster,
        Admin(client, ANSWER_MS_MAX),
        GroupAdmin(client, ANSWER_MS_MAX),
        partitions,
        TransactionAdmin(client, ANSWER_MS_MAX),
        StorageReader(client, partitions, nursery),
        WriteRates(client, cluster),
        TrafficReader(settings.metrics, client.clock) if settings.metrics else None,
        RecordSchemas(
            SchemaValues("key", settings.key_schemas, settings.registry),
            SchemaValues("value", settings.schemas, settings.registry),
        ),
        Renderer(settings),
        pass_,
    )


def context_of(request: Request) -> ConsoleContext:
    """The context that a request's application has."""
    context: ConsoleContext = request.app.state.context
    return context
