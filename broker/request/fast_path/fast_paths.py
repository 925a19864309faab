"""Fast paths for requests that a connection sends again and again.

Clients repeat themselves: a producer's requests differ in their records, a consumer's in little
or nothing. A fast path is learnt from a request that took the slow path, belongs to one
connection and one version of one API, and answers what is like it without decoding it. Whatever
it is not sure of it leaves to the slow path, whose answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....protocol.api_keys import ApiKey
from ..context import HandlerContext
from ..requests import ClientConnection
from ..route import Route
from .list_offsets import learn_list_offsets
from .produce import learn_produce
from .reading_fetch import learn_reading

Learner = Callable[[HandlerContext, ClientConnection, Route, memoryview, Any], None]
"""Called after the slow path has handled a request, with its frame and its body."""

LEARNERS: dict[ApiKey, Learner] = {
    ApiKey.PRODUCE: learn_produce,
    ApiKey.FETCH: learn_reading,
    ApiKey.LIST_OFFSETS: learn_list_offsets,
}
