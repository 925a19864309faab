"""Log directories: what each broker keeps where, and which partitions take most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from ..context import context_of
from ..explaining import explain
from ..paging import page_of
from ..parameters import Parameters

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

LARGEST_PER_PAGE: Final = 50


async def show(request: Request) -> Response:
    """The page."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    storage = await context.storage.read()
    return context.render.page(
        request,
        "storage.html",
        section="storage",
        title="Storage",
        directories=storage.directories,
        failures={
            broker: explain(failure, context.settings.cluster)
            for broker, failure in storage.failures.items()
        },
        page=page_of(storage.replicas, parameters.number("page", 1, 1), LARGEST_PER_PAGE),
    )


ROUTES = [Route("/storage", show, methods=["GET"])]
