"""The application: addresses, and what answers them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import TYPE_CHECKING

import trio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ..client.errors import ClientError
from .cluster_map import Moves
from .context import context_of, make_context
from .explaining import HANDLED, NOBODY_ANSWERS, Explanation, explain
from .guard import Guard
from .pages import (
    access,
    brokers,
    groups,
    login,
    overview,
    produce,
    storage,
    test_broker,
    topics,
    transactions,
)
from .pages import records as records_pages
from .transcript import Transcript

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ..client.client import KafkaClient
    from .settings import ConsoleSettings

logger = logging.getLogger(__name__)

Endpoint = Callable[["Request"], Awaitable[Response]]

YEAR_SECONDS = 365 * 86_400
PAGE_SECONDS_MAX = 15
"""A page waits no longer, however many of the cluster's answers it needs: as long as for metadata
and one answer. What a form requests is not given up, for nobody would know what became
of it."""


def make_app(settings: ConsoleSettings, client: KafkaClient, nursery: trio.Nursery) -> ASGIApp:
    """The console as an ASGI application, behind its guard.

    Args:
        settings: what it was started with.
        client: is open, and stays so.
        nursery: where answers are read anew while pages are made.
    """
    pages = [
        *login.ROUTES,
        *overview.ROUTES,
        *topics.ROUTES,
        *records_pages.ROUTES,
        *groups.ROUTES,
        *brokers.ROUTES,
        *produce.ROUTES,
        *transactions.ROUTES,
        *access.ROUTES,
        *storage.ROUTES,
        *test_broker.ROUTES,
    ]
    app = Starlette(
        routes=[
            *map(in_time, pages),
            Mount("/static", _Assets(directory=str(files(__package__).joinpath("static")))),
        ],
        exception_handlers={
            **dict.fromkeys(HANDLED, _show_failure),
            HTTPException: _show_http_error,
            Exception: _show_mistake,
        },
    )
    guard = Guard(app, settings)
    app.state.readers = records_pages.Readers()
    app.state.transcript = Transcript()
    app.state.moves = Moves()
    context = app.state.context = make_context(settings, client, guard.pass_, nursery)
    nursery.start_soon(trio.to_thread.run_sync, context.render.load_templates)
    return guard


def in_time(route: Route) -> Route:
    """A page that says so where nobody answers for too long; what is no page, as it is."""
    endpoint: Endpoint = route.endpoint
    if route.methods is None or "GET" not in route.methods:
        return route

    async def answer(request: Request) -> Response:
        with trio.move_on_after(PAGE_SECONDS_MAX):
            return await endpoint(request)
        raise ClientError(f"the brokers' answers did not all come within {PAGE_SECONDS_MAX} s")

    return Route(route.path, answer, methods=["GET"])


class _Assets(StaticFiles):
    """Files whose addresses change with them, so that browsers may keep them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_kept(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                kept = f"public, max-age={YEAR_SECONDS}, immutable".encode()
                message["headers"] = [*message["headers"], (b"cache-control", kept)]
            await send(message)

        await super().__call__(scope, receive, send_kept)


async def _show_failure(request: Request, error: Exception) -> Response:
    return _page(request, explain(error, context_of(request).settings.cluster))


async def _show_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        explanation = Explanation(
            404, "There is no such page", "The links on the left lead to all there are."
        )
    else:
        explanation = Explanation(error.status_code, "This cannot be done", error.detail)
    return _page(request, explanation)


async def _show_mistake(request: Request, error: Exception) -> Response:
    logger.error("%s failed", request.url.path, exc_info=error)
    return _page(
        request,
        Explanation(
            500,
            "The console made a mistake",
            f"{type(error).__name__}: its standard error says more. Please report it.",
        ),
    )


def _page(request: Request, explanation: Explanation) -> Response:
    return context_of(request).render.page(
        request,
        "error.html",
        explanation.status,
        section="",
        title=explanation.title,
        advice=explanation.advice,
        is_passing=explanation.status == NOBODY_ANSWERS and request.method == "GET",
    )
