"""What a POST carries: a form of our own pages, bounded and with their secret."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import trio
from starlette.responses import RedirectResponse

from .context import context_of
from .parameters import ParameterError, Parameters

if TYPE_CHECKING:
    from starlette.requests import Request

FORM_BYTES_MAX = 2 << 20
"""A record of a million bytes, as most brokers take at most, and what encoding adds to it."""
FIELDS_MAX = 200
RECEIVE_SECONDS_MAX = 30
FORM_TYPE = "application/x-www-form-urlencoded"


async def read_form(request: Request) -> Parameters:
    """The fields of a form.

    Raises:
        ParameterError: it is too large, is no form, or comes from no page of this console.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != FORM_TYPE:
        raise ParameterError(f"a form is sent as {FORM_TYPE}")
    body = bytearray()
    with trio.move_on_after(RECEIVE_SECONDS_MAX) as patience:
        async for chunk in request.stream():
            body += chunk
            if len(body) > FORM_BYTES_MAX:
                raise ParameterError(f"a form has at most {FORM_BYTES_MAX:,} bytes")
    if patience.cancelled_caught:
        raise ParameterError("the form did not come whole; send it again")
    try:
        fields = dict(
            parse_qsl(
                body.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=FIELDS_MAX,
            )
        )
    except ValueError as error:
        raise ParameterError("the form cannot be read") from error
    if not context_of(request).pass_.is_form(fields.pop("csrf", "")):
        raise ParameterError(
            "the form is of an earlier run of the console; go back, reload the page and send it "
            "again"
        )
    return Parameters(fields)


def done(path: str) -> RedirectResponse:
    """Go on to a page after something was changed: reloading it does not do that again."""
    return RedirectResponse(path, 303)
