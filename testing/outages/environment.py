"""What a broker for tests lives in: a time that can be advanced, disks that can fail,
links to others that can be cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...broker.start import Environment
from .clock import BrokerClock
from .faulty_files import FaultyFiles
from .links import Links

if TYPE_CHECKING:
    from ...broker.broker import Broker

NO_CUTS: Mapping[int, bool] = MappingProxyType({})


def breakable_environment(
    on_made: Callable[[Broker], None],
    *,
    ahead_ms: int = 0,
    skew_ms: int = 0,
    cuts: Mapping[int, bool] = NO_CUTS,
) -> Environment:
    """As the operating system's, until a test says otherwise.

    Args:
        on_made: called with the broker when it is put together.
        ahead_ms: how far its time is ahead from the start, since it was before a restart.
        skew_ms: how wrong its wall time is besides.
        cuts: by port of another broker, whether the link there is cut silently.
    """
    links = Links()
    for port, silent in cuts.items():
        links.link(port).cut(silent=silent)

    def made(broker: Broker) -> None:
        broker.links.connect = links.connect
        on_made(broker)

    return Environment(BrokerClock(ahead_ms, skew_ms), FaultyFiles(), made)
