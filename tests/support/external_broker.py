"""A broker that somebody else runs: the peer when the suites check another Kafka."""

from __future__ import annotations

from typing import NamedTuple


class ExternalBroker(NamedTuple):
    """The part of `BrokerProcess` that needs no process of ours."""

    bootstrap: str

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])
