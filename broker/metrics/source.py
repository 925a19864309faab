"""Where the readers of metrics take values from."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...replication.fetcher.manager import FetcherManager
from ...runtime.supervisor import Supervisor
from ...runtime.timers import Timers
from ..broker_state import BrokerState
from ..network.server import Server
from ..request.context import HandlerContext
from ..request.dispatch import Dispatcher


class MetricsContext(NamedTuple):
    """The parts of a running broker that have metrics."""

    context: HandlerContext
    dispatcher: Dispatcher
    server: Server
    fetchers: FetcherManager
    supervisor: Supervisor
    timers: Timers
    state: Callable[[], BrokerState]
