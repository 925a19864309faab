"""Log directories: what each broker keeps where, and which partitions take most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.routing import Route

from ...client.error_kinds import error_name
from ..context import context_of
from ..explaining import explain
from ..gathering import gather_what_answers
from ..paging import page_of
from ..parameters import Parameters

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ...client.admin.partition_admin import LogDirectory

LARGEST_PER_PAGE: Final = 50
UNKNOWN_BYTES: Final = -1


class DirectoryRow(NamedTuple):
    """A directory of a broker; `error` is None where it is well."""

    broker: int
    path: str
    error: str | None
    replicas: int
    size: int
    total: int | None
    usable: int | None


class ReplicaRow(NamedTuple):
    """A replica in it."""

    size: int
    topic: str
    partition: int
    broker: int
    path: str
    lag: int
    is_future: bool


async def show(request: Request) -> Response:
    """The page."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    snapshot = await context.cluster.snapshot()
    alive = [broker.broker_id for broker in snapshot.brokers if broker.node is not None]
    answers = await gather_what_answers(
        *(lambda broker=broker: context.partitions.describe_log_dirs(broker) for broker in alive)
    )
    failures = {
        broker: explain(answer, context.settings.cluster)
        for broker, answer in zip(alive, answers, strict=True)
        if isinstance(answer, Exception)
    }
    found = {
        broker: answer
        for broker, answer in zip(alive, answers, strict=True)
        if not isinstance(answer, Exception)
    }
    replicas = [
        ReplicaRow(each.size, topic, partition, broker, directory.path, each.lag, each.is_future)
        for broker, directories in found.items()
        for directory in directories
        for (topic, partition), each in directory.replicas.items()
    ]
    replicas.sort(key=lambda row: (-row.size, row.topic, row.partition, row.broker))
    return context.render.page(
        request,
        "storage.html",
        section="storage",
        title="Storage",
        directories=[
            _row(broker, directory)
            for broker, directories in found.items()
            for directory in directories
        ],
        failures=failures,
        page=page_of(replicas, parameters.number("page", 1, 1), LARGEST_PER_PAGE),
    )


def _row(broker: int, directory: LogDirectory) -> DirectoryRow:
    total, usable = directory.total_bytes, directory.usable_bytes
    return DirectoryRow(
        broker,
        directory.path,
        error_name(directory.error_code) if directory.error_code else None,
        len(directory.replicas),
        sum(each.size for each in directory.replicas.values()),
        None if total == UNKNOWN_BYTES else total,
        None if usable == UNKNOWN_BYTES else usable,
    )


ROUTES = [Route("/storage", show, methods=["GET"])]
