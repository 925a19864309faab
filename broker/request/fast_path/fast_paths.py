"""Short ways for requests that a connection sends again and again.

Clients repeat themselves: a producer's requests differ in their records, a consumer's in little
or nothing. A shortcut is learnt from a request that took the general way, belongs to one
connection and one version of one API, and answers what is like it without decoding it. Whatever
it is not sure of it leaves to the general way, whose answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ....protocol.api_keys import ApiKey
from .list_offsets import learn_list_offsets
from .produce import learn_produce
from .reading_fetch import learn_reading

if TYPE_CHECKING:
    from ...broker import Broker
    from ...network.connection import Connection
    from ..dispatch import Route


class Shortcut(Protocol):
    """What is known of a connection's requests of one kind."""

    def take(self, connection: Connection, frame: memoryview) -> bool:
        """Handle the request if it is one that is known; returns whether that was done."""


Learner = Callable[["Broker", "Connection", "Route", memoryview, Any], None]
"""Called after the general way has handled a request, with its frame and its body."""

LEARNERS: dict[ApiKey, Learner] = {
    ApiKey.PRODUCE: learn_produce,
    ApiKey.FETCH: learn_reading,
    ApiKey.LIST_OFFSETS: learn_list_offsets,
}
