"""Transactions: those that are open, each with its partitions, and the producers of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from ...common.errors import ErrorCode, KafkaError
from ..context import context_of
from ..forms import done, read_form
from ..paging import page_of
from ..parameters import ParameterError, Parameters
from ..rendering import make_url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PRODUCERS_MAX: Final = 500
STATES: Final = {
    "Empty": "No transaction yet.",
    "Ongoing": "A transaction is open.",
    "PrepareCommit": "It is being committed: markers are on their way.",
    "PrepareAbort": "It is being aborted: markers are on their way.",
    "CompleteCommit": "The last transaction was committed.",
    "CompleteAbort": "The last transaction was aborted.",
    "PrepareEpochFence": "An older producer is being fenced off.",
    "Dead": "It is being forgotten.",
}


async def list_all(request: Request) -> Response:
    """The transactional ids."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    text, is_open = parameters.text("search").strip(), parameters.flag("open")
    listed = await context.transactions.list_transactions()
    found = [
        each
        for each in listed
        if text.lower() in each.transactional_id.lower()
        and (not is_open or each.state in ("Ongoing", "PrepareCommit", "PrepareAbort"))
    ]
    return context.render.page(
        request,
        "transactions.html",
        section="transactions",
        title="Transactions",
        page=page_of(found, parameters.number("page", 1, 1)),
        search=text,
        is_open=is_open,
        count=len(listed),
        states=STATES,
    )


async def show(request: Request) -> Response:
    """One transactional id."""
    context = context_of(request)
    name = Parameters(request.query_params).required("id", 40_000)
    found = (await context.transactions.describe([name]))[name]
    if found is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"transactional id {name!r}")
    now_ms = context.client.clock.now_ms()
    return context.render.page(
        request,
        "transaction.html",
        section="transactions",
        title=name,
        transaction=found,
        partitions=sorted(found.partitions),
        age_ms=None if found.started_ms is None else now_ms - found.started_ms,
        states=STATES,
    )


async def fence(request: Request) -> Response:
    """End what a transactional id has open, and shut its producers out, once its name was typed."""
    form = await read_form(request)
    context = context_of(request)
    name = form.required("id", 40_000)
    if form.text("name", length_max=40_000) != name:
        raise ParameterError("to end the transaction, its name must be typed as it is")
    await context.transactions.fence(name)
    return done(make_url("/transactions/view", id=name))


async def producers(request: Request) -> Response:
    """The producers that a partition remembers."""
    context = context_of(request)
    name = request.path_params["topic"]
    topic = await context.cluster.topic(name)
    parameters = Parameters(request.query_params)
    partition = parameters.number("partition", 0, 0, len(topic.partitions) - 1)
    found = (await context.transactions.producers([(name, partition)]))[name, partition]
    return context.render.page(
        request,
        "producers.html",
        section="topics",
        title=name,
        topic=topic,
        tab="producers",
        partition=partition,
        producers=found[:PRODUCERS_MAX],
        count=len(found),
    )


ROUTES = [
    Route("/transactions", list_all, methods=["GET"]),
    Route("/transactions/view", show, methods=["GET"]),
    Route("/transactions/fence", fence, methods=["POST"]),
    Route("/topics/{topic}/producers", producers, methods=["GET"]),
]
