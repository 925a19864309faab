"""A broker that is alive, as the others know it: its id and where it can be reached."""

from __future__ import annotations

from typing import NamedTuple


class EndPoint(NamedTuple):
    """One advertised listener of a broker."""

    listener_name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class LiveBroker(NamedTuple):
    """A registered broker.

    Attributes:
        endpoints: in the order of `advertised.listeners`.
        epoch: the creation id of its registration; larger after each restart.
    """

    broker_id: int
    endpoints: tuple[EndPoint, ...]
    rack: str | None = None
    epoch: int = -1

    def endpoint(self, listener_name: str) -> EndPoint | None:
        """The advertised endpoint of a listener, None where the broker has no such."""
        for endpoint in self.endpoints:
            if endpoint.listener_name == listener_name:
                return endpoint
        return None
