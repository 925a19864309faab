"""A broker that is alive, as the others know it: its id and where it can be reached."""

from __future__ import annotations

from .named_tuple import NamedTuple


class EndPoint(NamedTuple):
    """One advertised listener of a broker."""

    listener_name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class FeatureRange(NamedTuple):
    """The levels of a feature that a broker supports (KIP-584); both ends belong to them."""

    name: str
    min_version: int
    max_version: int

    def holds(self, level: int) -> bool:
        """Whether the level is one of them."""
        return self.min_version <= level <= self.max_version


class LiveBroker(NamedTuple):
    """A registered broker.

    Attributes:
        endpoints: in the order of `advertised.listeners`.
        epoch: the creation id of its registration; larger after each restart.
        features: what it supports, by its registration.
        proves_itself: whether it knows the secret that odradek's brokers share.
    """

    broker_id: int
    endpoints: tuple[EndPoint, ...]
    rack: str | None = None
    epoch: int = -1
    features: tuple[FeatureRange, ...] = ()
    proves_itself: bool = False

    def endpoint(self, listener_name: str) -> EndPoint | None:
        """The advertised endpoint of a listener, None where the broker has no such."""
        for endpoint in self.endpoints:
            if endpoint.listener_name == listener_name:
                return endpoint
        return None
