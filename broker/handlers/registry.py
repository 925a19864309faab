"""The one list of what this broker serves, filled by the handlers themselves.

Routing, ApiVersions and `docs/apis.md` are derived from it. Three ranges are kept apart:
what a schema can say (the message's own), what is served (`versions`), and what
ApiVersions advertises (`advertised`, where it differs).
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from ...protocol.api_keys import ApiKey

Handler = Callable[[Any, Any], Any]
HandlerT = TypeVar("HandlerT", bound=Handler)


NOT_ADVERTISED = "none"


class Registration(NamedTuple):
    """One API as served here."""

    api_key: ApiKey
    versions: range
    advertised: range | None
    function: Handler


REGISTRATIONS: dict[int, Registration] = {}


def handles(
    api_key: ApiKey, *, versions: str, advertised: str | None = None
) -> Callable[[HandlerT], HandlerT]:
    """Register the decorated function as the handler of an API.

    The function returns the response; None when it kept the request to answer it later;
    `AT_FLUSH` when this pass's flush will answer it. One that is async, or returns a
    coroutine for its rare cases, is awaited in a task of its own.

    Args:
        api_key: which API.
        versions: served versions, as "0-4".
        advertised: what ApiVersions says, where that is not what is served; `NOT_ADVERTISED`
            for what brokers ask of each other and Kafka 4 does not tell clients of.
    """

    def register(function: HandlerT) -> HandlerT:
        if api_key in REGISTRATIONS:
            raise ValueError(f"{api_key.name} has a handler already")
        served = parse_versions(versions)
        REGISTRATIONS[api_key] = Registration(
            api_key,
            served,
            _parse_advertised(advertised, served),
            function,
        )
        return function

    return register


def _parse_advertised(advertised: str | None, served: range) -> range | None:
    if advertised is None:
        return served
    return None if advertised == NOT_ADVERTISED else parse_versions(advertised)


def parse_versions(text: str) -> range:
    """ "0-4" or "3" as a range of versions."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def load_handlers() -> dict[int, Registration]:
    """Import every handler module beside this one, and give the whole registry."""
    package = __name__.rpartition(".")[0]
    for module in pkgutil.iter_modules(import_module(package).__path__):
        if module.name != "registry":
            import_module(f"{package}.{module.name}")
    return dict(sorted(REGISTRATIONS.items()))
