"""The token that a console may have: asked for once, then a cookie knows."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import trio
from starlette.routing import Route

from ..context import context_of
from ..forms import done, read_form

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

WRONG_TOKEN_SECONDS = 1.0
"""How long a wrong token waits for its answer: guessing is slow."""


async def show(request: Request) -> Response:
    """Ask for the token."""
    return _page(request, request.query_params.get("next", ""))


async def log_in(request: Request) -> Response:
    """Take the token."""
    form = await read_form(request)
    context = context_of(request)
    if not context.pass_.is_token(form.text("token")):
        await trio.sleep(WRONG_TOKEN_SECONDS)
        return _page(request, form.text("next"), HTTPStatus.FORBIDDEN)
    answer = done(_own_path(form.text("next")))
    answer.set_cookie(
        context.pass_.cookie_name, context.pass_.cookie(), httponly=True, samesite="strict"
    )
    return answer


def _own_path(text: str) -> str:
    """Where to go on: a path here, and never another site."""
    is_ours = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_ours else "/"


def _page(request: Request, back: str, status: int = HTTPStatus.OK) -> Response:
    return context_of(request).render.page(
        request,
        "login.html",
        status,
        section="",
        title="Log in",
        back=back,
        is_wrong=status != HTTPStatus.OK,
    )


ROUTES = [
    Route("/login", show, methods=["GET"]),
    Route("/login", log_in, methods=["POST"]),
]
