"""A test broker's control channel, over HTTP as docs/control.md describes it."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import trio

ANSWER_BYTES_MAX = 16 << 20
ANSWER_SECONDS_MAX = 40.0


class ControlFailed(Exception):
    """The channel refused, or does not answer; the text says why."""


class ControlChannel:
    """Sends requests to a channel.

    Args:
        url: where it is, such as http://127.0.0.1:41007.
    """

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        # The channel is on this machine; a proxy for the web would not know it.
        self._opener = build_opener(ProxyHandler({}))

    async def get(self, path: str, seconds: float = ANSWER_SECONDS_MAX, **query: object) -> Any:
        """What the channel shows. Raises ControlFailed.

        Args:
            path: of what.
            seconds: how long to wait for it.
            query: what else the request says; what is None or empty is left out.
        """
        given = {name: value for name, value in query.items() if value not in (None, "")}
        target = f"{path}?{urlencode(given)}" if given else path
        return await self._ask("GET", target, None, seconds)

    async def post(self, path: str, body: dict[str, object]) -> Any:
        """Have something done. Raises ControlFailed."""
        return await self._ask("POST", path, json.dumps(body).encode())

    async def delete(self, path: str) -> Any:
        """Have something taken back. Raises ControlFailed."""
        return await self._ask("DELETE", path, None)

    async def _ask(
        self, method: str, path: str, body: bytes | None, seconds: float = ANSWER_SECONDS_MAX
    ) -> Any:
        request = Request(self._url + path, body, method=method)
        return await trio.to_thread.run_sync(self._exchange, request, seconds)

    def _exchange(self, request: Request, seconds: float) -> Any:
        try:
            with self._opener.open(request, timeout=seconds) as answer:
                return json.loads(answer.read(ANSWER_BYTES_MAX))
        except HTTPError as error:
            raise ControlFailed(_sentence(error)) from error
        except (OSError, ValueError) as error:
            raise ControlFailed(f"the control channel at {self._url} does not answer") from error


def _sentence(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read(ANSWER_BYTES_MAX))["error"])
    except (ValueError, KeyError, TypeError, OSError):
        return f"the control channel answered {error.code}"
