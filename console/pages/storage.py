"""Log directories: what each broker keeps where, and which partitions take most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from ..cluster.storage_reader import Storage
from ..context import context_of
from ..explaining import explain
from ..paging import AT_ONCE_PARTITIONS_MAX, page_of
from ..parameters import Parameters

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

LARGEST_PER_PAGE: Final = 50
EMPTY: Final = Storage([], [], {})


async def show(request: Request) -> Response:
    """The page."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    number = parameters.number("page", 1, 1)
    snapshot = await context.cluster.snapshot()
    # What brokers say of many replicas takes a while: the page comes first, and asks for it.
    is_later = (
        snapshot.partitions > AT_ONCE_PARTITIONS_MAX
        and not context.storage.is_at_hand
        and not parameters.flag("now")
    )
    storage = EMPTY if is_later else await context.storage.read()
    return context.render.page(
        request,
        "storage.html",
        section="storage",
        title="Storage",
        is_later=is_later,
        number=number,
        partitions=snapshot.partitions,
        directories=storage.directories,
        failures={
            broker: explain(failure, context.settings.cluster)
            for broker, failure in storage.failures.items()
        },
        page=page_of(storage.replicas, number, LARGEST_PER_PAGE),
    )


ROUTES = [Route("/storage", show, methods=["GET"])]
