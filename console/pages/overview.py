"""The first page: is the cluster well, how large is it, and how much is written to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse
from starlette.routing import Route

from ..cluster.rates import WriteRates
from ..context import context_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

TROUBLED_MAX = 25


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
    )


async def rates(request: Request) -> Response:
    """Records written per second, for the chart."""
    return JSONResponse(await context_of(request).rates.read())


ROUTES = [
    Route("/", show, methods=["GET"]),
    Route("/rates.json", rates, methods=["GET"]),
]
