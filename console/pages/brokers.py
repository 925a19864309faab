"""Brokers: all of them, and one with its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from ...client.admin.admin import BROKER_RESOURCE, ConfigEntry
from ...common.errors import ErrorCode, KafkaError
from ..cluster.gathering import gather_what_answers
from ..context import context_of
from ..parameters import NUMBER_MAX, ParameterError, Parameters
from .topics import DEFAULT_SOURCE, SOURCES

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def list_all(request: Request) -> Response:
    """The list."""
    context = context_of(request)
    snapshot = await context.cluster.snapshot()
    alive = [broker for broker in snapshot.brokers if broker.node is not None]
    answers = await gather_what_answers(
        *(
            lambda broker=broker: context.partitions.describe_log_dirs(broker.broker_id, ())
            for broker in alive
        )
    )
    disks = {
        broker.broker_id: (
            sum(each.total_bytes for each in directories),
            sum(each.usable_bytes for each in directories),
        )
        for broker, directories in zip(alive, answers, strict=True)
        if not isinstance(directories, Exception)
        and all(each.total_bytes >= 0 for each in directories)
    }
    return context.render.page(
        request,
        "brokers.html",
        section="brokers",
        title="Brokers",
        cluster=snapshot,
        disks=disks,
    )


async def show(request: Request) -> Response:
    """One broker's settings; those that were set first."""
    context = context_of(request)
    number = Parameters(request.path_params).number("broker", 0, 0, NUMBER_MAX)
    parameters = Parameters(request.query_params)
    text = parameters.text("search").strip().lower()
    only_set = parameters.choice("show", ("set", "all")) == "set" and not text
    snapshot = await context.cluster.snapshot()
    broker = next((each for each in snapshot.brokers if each.broker_id == number), None)
    if broker is None:
        raise ParameterError(f"the cluster has no broker {number}")
    if broker.node is None:
        raise KafkaError(
            ErrorCode.BROKER_NOT_AVAILABLE, f"broker {number} is not alive; start it again"
        )
    settings = await context.admin.config_entries(str(number), BROKER_RESOURCE)
    return context.render.page(
        request,
        "broker.html",
        section="brokers",
        title=f"Broker {number}",
        broker=broker,
        settings=sorted(
            (entry for entry in settings if _is_shown(entry, text, only_set=only_set)),
            key=lambda entry: entry.name,
        ),
        count=len(settings),
        search=text,
        only_set=only_set,
        sources=SOURCES,
        default_source=DEFAULT_SOURCE,
    )


def _is_shown(entry: ConfigEntry, text: str, *, only_set: bool) -> bool:
    if only_set:
        return entry.source != DEFAULT_SOURCE
    return text in entry.name.lower() or text in (entry.value or "").lower()


ROUTES = [
    Route("/brokers", list_all, methods=["GET"]),
    Route("/brokers/{broker}", show, methods=["GET"]),
]
