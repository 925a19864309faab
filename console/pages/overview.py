"""The first page: is the cluster well, how large is it, and how much is written to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse
from starlette.routing import Route

from ..cluster.rates import WriteRates
from ..context import context_of
from ..parameters import ParameterError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

TROUBLED_MAX = 25
APIS_MAX = 20


async def show(request: Request) -> Response:
    """The page; its live part alone where that is asked for again."""
    context = context_of(request)
    snapshot = await context.cluster.snapshot()
    return context.render.page(
        request,
        "overview.html",
        section="overview",
        title="Overview",
        cluster=snapshot,
        troubled=snapshot.troubled[:TROUBLED_MAX],
        topics=sum(not topic.is_internal for topic in snapshot.topics.values()),
        replicas=sum(broker.replicas for broker in snapshot.brokers),
        rates_max=WriteRates.PARTITIONS_MAX,
        has_metrics=context.traffic is not None,
    )


async def rates(request: Request) -> Response:
    """Records written per second, for the chart."""
    return JSONResponse(await context_of(request).rates.read())


async def traffic(request: Request) -> Response:
    """Bytes and requests per second, as a part of the page."""
    context = context_of(request)
    if context.traffic is None:
        raise ParameterError("the console was started without --metrics")
    found = await context.traffic.read()
    return context.render.page(request, "_traffic.html", traffic=found, apis=found.apis[:APIS_MAX])


ROUTES = [
    Route("/traffic", traffic, methods=["GET"]),
    Route("/", show, methods=["GET"]),
    Route("/rates.json", rates, methods=["GET"]),
]
