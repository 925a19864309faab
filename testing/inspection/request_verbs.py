"""Asking the request log of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..control.verbs import VerbError
from .request_log import RequestFilter, RequestLog
from .requests import read_logged

if TYPE_CHECKING:
    from ..control.verbs import Controlled


def mark(target: Controlled) -> int:
    """The number of the latest request."""
    return _log(target).latest


def count(target: Controlled, **wanted: Any) -> int:
    """How many requests pass a filter."""
    return sum(1 for _ in _log(target).find(RequestFilter(**wanted)))


def find(target: Controlled, limit: int, **wanted: Any) -> list[dict[str, Any]]:
    """The last requests that pass a filter, oldest first."""
    return [logged.as_json() for logged in _log(target).last(RequestFilter(**wanted), limit)]


def lines(target: Controlled, since: int, limit: int) -> list[str]:
    """The last requests after a mark, as lines to read."""
    return [str(read_logged(each)) for each in find(target, limit, since=since)]


def remember(target: Controlled, most: int) -> None:
    """Remember no more than so many requests from now on."""
    _log(target).capacity = most


def clear(target: Controlled) -> None:
    """Forget all requests."""
    _log(target).clear()


def _log(target: Controlled) -> RequestLog:
    for watcher in target.hooks.watchers:
        if isinstance(watcher, RequestLog):
            return watcher
    raise VerbError("this broker keeps no log of its requests")
