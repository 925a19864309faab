"""What a POST carries: a form of our own pages, with a file or without, bounded."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import trio
from starlette.responses import RedirectResponse

from .context import context_of
from .parameters import TEXT_MAX, ParameterError, Parameters

if TYPE_CHECKING:
    from starlette.requests import Request

FORM_BYTES_MAX = 2 << 20
"""A record of a million bytes, as most brokers take at most, and what encoding adds to it."""
FIELDS_MAX = 200
RECEIVE_SECONDS_MAX = 30
FILE_BYTES_MAX = 8 << 20
"""Of a form with a file, all of it."""
FILE_FORM_TYPE = "multipart/form-data"
FORM_TYPE = "application/x-www-form-urlencoded"


async def read_form(request: Request) -> Parameters:
    """The fields of a form.

    Raises:
        ParameterError: it is too large, is no form, or comes from no page of this console.
    """
    _require_type(request, FORM_TYPE)
    body = await _read(request, FORM_BYTES_MAX)
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
    return _own(request, fields)


async def read_file_form(request: Request, name: str) -> tuple[Parameters, bytes]:
    """The fields of a form with a file, and what is in the file.

    Args:
        name: of the field with the file.

    Raises:
        ParameterError: as `read_form`, or there is no file.
    """
    _require_type(request, FILE_FORM_TYPE)
    body = await _read(request, FILE_BYTES_MAX)
    content_type = request.headers["content-type"].encode("latin-1")
    fields = await trio.to_thread.run_sync(_parts_of, content_type, body)
    content = fields.pop(name, b"")
    try:
        texts = {field: value.decode() for field, value in fields.items()}
    except UnicodeDecodeError as error:
        raise ParameterError("the form cannot be read") from error
    form = _own(request, texts)
    if not content:
        raise ParameterError("choose a file that is not empty")
    return form, content


def _require_type(request: Request, form_type: str) -> None:
    if request.headers.get("content-type", "").partition(";")[0].strip() != form_type:
        raise ParameterError(f"a form is sent as {form_type}")


async def _read(request: Request, bytes_max: int) -> bytes:
    body = bytearray()
    with trio.move_on_after(RECEIVE_SECONDS_MAX) as patience:
        async for chunk in request.stream():
            body += chunk
            if len(body) > bytes_max:
                raise ParameterError(f"a form has at most {bytes_max:,} bytes")
    if patience.cancelled_caught:
        raise ParameterError("the form did not come whole; send it again")
    return bytes(body)


def _parts_of(content_type: bytes, body: bytes) -> dict[str, bytes]:
    """The parts of a form with a file, by name. Raises ParameterError.

    Its format is that of mail with attachments, which the standard library reads.
    """
    head = b"Content-Type: " + content_type + b"\r\n\r\n"
    try:
        message = BytesParser(policy=HTTP).parsebytes(head + body)
    except RecursionError as error:  # parts within parts, which no browser sends
        raise ParameterError("the form cannot be read") from error
    if not message.is_multipart():
        raise ParameterError("the form cannot be read")
    fields: dict[str, bytes] = {}
    for part in message.iter_parts():
        name, content = part.get_param("name", header="content-disposition"), None
        if not part.is_multipart():
            content = part.get_payload(decode=True)
        if not (isinstance(name, str) and isinstance(content, bytes)) or len(fields) >= FIELDS_MAX:
            raise ParameterError("the form cannot be read")
        fields[name] = content
    return fields


def _own(request: Request, fields: dict[str, str]) -> Parameters:
    """The fields but for the secret of our pages. Raises ParameterError where that is wrong."""
    if not context_of(request).pass_.is_form(fields.pop("csrf", "")):
        raise ParameterError(
            "the form is of an earlier run of the console; go back, reload the page and send it "
            "again"
        )
    return Parameters(fields)


def require_typed(
    form: Parameters,
    name: str,
    purpose: str,
    whose: str = "its name",
    length_max: int = TEXT_MAX,
) -> None:
    """Refuse what cannot be undone unless a name was typed.

    Args:
        form: with what was typed, as `name`.
        name: what it must be.
        purpose: what is going to be done: "delete the group".
        whose: what the sentence calls the name.
        length_max: so many characters such names have at most.

    Raises:
        ParameterError: another one was typed, or none.
    """
    if form.text("name", length_max=length_max) != name:
        raise ParameterError(f"to {purpose}, {whose} must be typed as it is")


def done(path: str) -> RedirectResponse:
    """Go on to a page after something was changed: reloading it does not do that again."""
    return RedirectResponse(path, 303)
